//! The key-value pairs of a GGUF file, kept with the types the file gives them.

use std::collections::BTreeMap;

use super::cursor::Cursor;
use crate::FormatError;
use crate::error::shown;

/// The least a pair can take: an empty key (8), a type (4), one byte of value.
pub(super) const MIN_PAIR_BYTES: u64 = 13;

/// Every key and value of a GGUF file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GgufMetadata {
    /// By key, for instance `general.architecture`.
    pub values: BTreeMap<String, GgufValue>,
}

/// One metadata value.
#[derive(Debug, Clone, PartialEq)]
pub enum GgufValue {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    U64(u64),
    I64(i64),
    F32(f32),
    F64(f64),
    Bool(bool),
    String(String),
    Array(GgufArray),
}

/// A list of values of one type. Lists of lists are refused: no model has them.
#[derive(Debug, Clone, PartialEq)]
pub enum GgufArray {
    U8(Vec<u8>),
    I8(Vec<i8>),
    U16(Vec<u16>),
    I16(Vec<i16>),
    U32(Vec<u32>),
    I32(Vec<i32>),
    U64(Vec<u64>),
    I64(Vec<i64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    Bool(Vec<bool>),
    String(Vec<String>),
}

/// Typed look-ups: `None` when the key is absent or its value does not fit the type asked for.
impl GgufMetadata {
    /// A number, from any integer type, if it fits.
    pub fn u32(&self, key: &str) -> Option<u32> {
        self.values.get(key)?.as_i128()?.try_into().ok()
    }

    /// A number of either float type.
    pub fn f32(&self, key: &str) -> Option<f32> {
        match self.values.get(key)? {
            GgufValue::F32(value) => Some(*value),
            GgufValue::F64(value) => Some(*value as f32),
            _ => None,
        }
    }

    /// A truth value.
    pub fn bool(&self, key: &str) -> Option<bool> {
        match self.values.get(key)? {
            GgufValue::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// A text.
    pub fn str(&self, key: &str) -> Option<&str> {
        match self.values.get(key)? {
            GgufValue::String(value) => Some(value),
            _ => None,
        }
    }

    /// A list of texts.
    pub fn strs(&self, key: &str) -> Option<&[String]> {
        match self.array(key)? {
            GgufArray::String(values) => Some(values),
            _ => None,
        }
    }

    /// A list of truth values.
    pub fn bools(&self, key: &str) -> Option<&[bool]> {
        match self.array(key)? {
            GgufArray::Bool(values) => Some(values),
            _ => None,
        }
    }

    /// A list of `f32`.
    pub fn f32s(&self, key: &str) -> Option<&[f32]> {
        match self.array(key)? {
            GgufArray::F32(values) => Some(values),
            _ => None,
        }
    }

    /// A list of numbers, from any integer type, if all of them fit.
    pub fn u32s(&self, key: &str) -> Option<Vec<u32>> {
        match self.array(key)? {
            GgufArray::U8(values) => fit(values),
            GgufArray::I8(values) => fit(values),
            GgufArray::U16(values) => fit(values),
            GgufArray::I16(values) => fit(values),
            GgufArray::U32(values) => fit(values),
            GgufArray::I32(values) => fit(values),
            GgufArray::U64(values) => fit(values),
            GgufArray::I64(values) => fit(values),
            _ => None,
        }
    }

    fn array(&self, key: &str) -> Option<&GgufArray> {
        match self.values.get(key)? {
            GgufValue::Array(array) => Some(array),
            _ => None,
        }
    }
}

fn fit<T: Copy + TryInto<u32>>(values: &[T]) -> Option<Vec<u32>> {
    values.iter().map(|value| (*value).try_into().ok()).collect()
}

impl GgufValue {
    /// The value of any integer type.
    fn as_i128(&self) -> Option<i128> {
        Some(match self {
            Self::U8(value) => i128::from(*value),
            Self::I8(value) => i128::from(*value),
            Self::U16(value) => i128::from(*value),
            Self::I16(value) => i128::from(*value),
            Self::U32(value) => i128::from(*value),
            Self::I32(value) => i128::from(*value),
            Self::U64(value) => i128::from(*value),
            Self::I64(value) => i128::from(*value),
            _ => return None,
        })
    }

    /// A few words for messages.
    pub(super) fn summary(&self) -> String {
        match self {
            Self::String(text) => format!("the string \"{}\"", shown(text)),
            Self::Array(_) => "a list".to_owned(),
            scalar => format!("{scalar:?}"),
        }
    }
}

impl GgufMetadata {
    pub(super) fn read(cursor: &mut Cursor<'_>, n_pairs: usize) -> Result<Self, FormatError> {
        let mut values = BTreeMap::new();
        for _ in 0..n_pairs {
            let offset = cursor.offset;
            let key = cursor.string("a metadata key")?;
            let value = read_value(cursor, &key)?;
            if values.contains_key(&key) {
                return Err(FormatError::DuplicateKey { file: cursor.name(), key: shown(&key), offset });
            }
            values.insert(key, value);
        }
        Ok(Self { values })
    }
}

fn read_value(cursor: &mut Cursor<'_>, key: &str) -> Result<GgufValue, FormatError> {
    let what = shown(key);
    let what = what.as_str();
    let offset = cursor.offset;
    Ok(match cursor.u32(what)? {
        0 => GgufValue::U8(cursor.u8(what)?),
        1 => GgufValue::I8(i8::from_le_bytes(cursor.array(what)?)),
        2 => GgufValue::U16(u16::from_le_bytes(cursor.array(what)?)),
        3 => GgufValue::I16(i16::from_le_bytes(cursor.array(what)?)),
        4 => GgufValue::U32(cursor.u32(what)?),
        5 => GgufValue::I32(i32::from_le_bytes(cursor.array(what)?)),
        6 => GgufValue::F32(f32::from_le_bytes(cursor.array(what)?)),
        7 => GgufValue::Bool(read_bool(cursor, what)?),
        8 => GgufValue::String(cursor.string(what)?),
        9 => GgufValue::Array(read_array(cursor, what)?),
        10 => GgufValue::U64(cursor.u64(what)?),
        11 => GgufValue::I64(i64::from_le_bytes(cursor.array(what)?)),
        12 => GgufValue::F64(f64::from_le_bytes(cursor.array(what)?)),
        found => return Err(unknown_type(cursor, what, offset, found)),
    })
}

fn read_array(cursor: &mut Cursor<'_>, what: &str) -> Result<GgufArray, FormatError> {
    let offset = cursor.offset;
    let of = cursor.u32(what)?;
    let min_bytes = match of {
        0 | 1 | 7 => 1,
        2 | 3 => 2,
        4..=6 => 4,
        8 | 10..=12 => 8,
        found => return Err(unknown_type(cursor, what, offset, found)),
    };
    let n = cursor.count(&format!("the length of {what}"), min_bytes)?;
    Ok(match of {
        0 => GgufArray::U8(cursor.numbers(n, what, u8::from_le_bytes)?),
        1 => GgufArray::I8(cursor.numbers(n, what, i8::from_le_bytes)?),
        2 => GgufArray::U16(cursor.numbers(n, what, u16::from_le_bytes)?),
        3 => GgufArray::I16(cursor.numbers(n, what, i16::from_le_bytes)?),
        4 => GgufArray::U32(cursor.numbers(n, what, u32::from_le_bytes)?),
        5 => GgufArray::I32(cursor.numbers(n, what, i32::from_le_bytes)?),
        6 => GgufArray::F32(cursor.numbers(n, what, f32::from_le_bytes)?),
        7 => GgufArray::Bool((0..n).map(|_| read_bool(cursor, what)).collect::<Result<_, _>>()?),
        8 => GgufArray::String((0..n).map(|_| cursor.string(what)).collect::<Result<_, _>>()?),
        10 => GgufArray::U64(cursor.numbers(n, what, u64::from_le_bytes)?),
        11 => GgufArray::I64(cursor.numbers(n, what, i64::from_le_bytes)?),
        _ => GgufArray::F64(cursor.numbers(n, what, f64::from_le_bytes)?),
    })
}

fn read_bool(cursor: &mut Cursor<'_>, what: &str) -> Result<bool, FormatError> {
    let offset = cursor.offset;
    match cursor.u8(what)? {
        0 => Ok(false),
        1 => Ok(true),
        found => Err(FormatError::Bool { file: cursor.name(), key: what.into(), offset, found }),
    }
}

fn unknown_type(cursor: &Cursor<'_>, key: &str, offset: u64, found: u32) -> FormatError {
    FormatError::ValueType { file: cursor.name(), key: key.into(), offset, found }
}
