//! Writes a GGUF file, version 3: into memory, or to disk from rows computed as it goes.

use super::{DEFAULT_ALIGNMENT, GgufArray, GgufMetadata, GgufValue};
use crate::{DType, FormatError};
#[cfg(not(target_arch = "wasm32"))]
pub use disk::write;

/// A tensor to be written.
#[derive(Debug, Clone)]
pub struct GgufTensor<'a> {
    pub name: &'a str,
    /// Outermost first, at most four.
    pub shape: &'a [usize],
    pub dtype: DType,
    /// Whole blocks, as many as the shape asks for.
    pub bytes: &'a [u8],
}

/// The bytes of a GGUF file with this metadata and these tensors, in the order given.
///
/// `general.alignment` in the metadata is obeyed when it is a power of two; 32 otherwise.
///
/// # Errors
/// A tensor whose bytes do not match its shape and type.
pub fn encode(metadata: &GgufMetadata, tensors: &[GgufTensor<'_>]) -> Result<Vec<u8>, FormatError> {
    tensors.iter().try_for_each(check)?;
    let alignment = alignment(metadata);
    let entries: Vec<_> = tensors.iter().map(Entry::from).collect();
    let mut out = head(metadata, &entries);
    for tensor in tensors {
        out.extend_from_slice(tensor.bytes);
        out.resize(out.len().next_multiple_of(alignment), 0);
    }
    Ok(out)
}

/// A line of the tensor table.
struct Entry<'a> {
    name: &'a str,
    shape: &'a [usize],
    dtype: DType,
    n_bytes: usize,
}

impl<'a> From<&GgufTensor<'a>> for Entry<'a> {
    fn from(tensor: &GgufTensor<'a>) -> Self {
        Self { name: tensor.name, shape: tensor.shape, dtype: tensor.dtype, n_bytes: tensor.bytes.len() }
    }
}

fn alignment(metadata: &GgufMetadata) -> usize {
    let alignment = metadata.u32("general.alignment").map_or(DEFAULT_ALIGNMENT, u64::from);
    if alignment.is_power_of_two() { alignment as usize } else { DEFAULT_ALIGNMENT as usize }
}

/// All that comes before the data, padded to the alignment.
fn head(metadata: &GgufMetadata, entries: &[Entry<'_>]) -> Vec<u8> {
    let mut out = b"GGUF\x03\x00\x00\x00".to_vec();
    put_len(&mut out, entries.len());
    put_len(&mut out, metadata.values.len());
    for (key, value) in &metadata.values {
        put_str(&mut out, key);
        put_value(&mut out, value);
    }
    let alignment = alignment(metadata);
    put_table(&mut out, entries, alignment);
    out.resize(out.len().next_multiple_of(alignment), 0);
    out
}

fn put_table(out: &mut Vec<u8>, entries: &[Entry<'_>], alignment: usize) {
    let mut offset = 0;
    for entry in entries {
        put_str(out, entry.name);
        out.extend((entry.shape.len() as u32).to_le_bytes());
        for dim in entry.shape.iter().rev() {
            put_len(out, *dim);
        }
        out.extend(entry.dtype.ggml_id().to_le_bytes());
        put_len(out, offset);
        offset += entry.n_bytes.next_multiple_of(alignment);
    }
}

fn check(tensor: &GgufTensor<'_>) -> Result<(), FormatError> {
    let n_values = tensor.shape.iter().try_fold(1usize, |n, dim| n.checked_mul(*dim));
    let n_bytes = n_values.and_then(|n| tensor.dtype.n_bytes(n));
    if n_bytes == Some(tensor.bytes.len()) {
        return Ok(());
    }
    Err(FormatError::Blocks {
        dtype: tensor.dtype,
        n_bytes: tensor.bytes.len(),
        n_values: n_values.unwrap_or(usize::MAX),
    })
}

fn put_len(out: &mut Vec<u8>, n: usize) {
    out.extend((n as u64).to_le_bytes());
}

fn put_str(out: &mut Vec<u8>, text: &str) {
    put_len(out, text.len());
    out.extend_from_slice(text.as_bytes());
}

/// The type number, then the value.
fn put_value(out: &mut Vec<u8>, value: &GgufValue) {
    match value {
        GgufValue::U8(v) => put_scalar(out, 0, &v.to_le_bytes()),
        GgufValue::I8(v) => put_scalar(out, 1, &v.to_le_bytes()),
        GgufValue::U16(v) => put_scalar(out, 2, &v.to_le_bytes()),
        GgufValue::I16(v) => put_scalar(out, 3, &v.to_le_bytes()),
        GgufValue::U32(v) => put_scalar(out, 4, &v.to_le_bytes()),
        GgufValue::I32(v) => put_scalar(out, 5, &v.to_le_bytes()),
        GgufValue::F32(v) => put_scalar(out, 6, &v.to_le_bytes()),
        GgufValue::Bool(v) => put_scalar(out, 7, &[u8::from(*v)]),
        GgufValue::U64(v) => put_scalar(out, 10, &v.to_le_bytes()),
        GgufValue::I64(v) => put_scalar(out, 11, &v.to_le_bytes()),
        GgufValue::F64(v) => put_scalar(out, 12, &v.to_le_bytes()),
        GgufValue::String(v) => {
            out.extend(8u32.to_le_bytes());
            put_str(out, v);
        }
        GgufValue::Array(array) => {
            out.extend(9u32.to_le_bytes());
            put_array(out, array);
        }
    }
}

fn put_scalar(out: &mut Vec<u8>, of: u32, bytes: &[u8]) {
    out.extend(of.to_le_bytes());
    out.extend_from_slice(bytes);
}

/// The elements' type number, their count, the elements.
fn put_array(out: &mut Vec<u8>, array: &GgufArray) {
    match array {
        GgufArray::U8(v) => put_all(out, 0, v, |v| v.to_le_bytes()),
        GgufArray::I8(v) => put_all(out, 1, v, |v| v.to_le_bytes()),
        GgufArray::U16(v) => put_all(out, 2, v, |v| v.to_le_bytes()),
        GgufArray::I16(v) => put_all(out, 3, v, |v| v.to_le_bytes()),
        GgufArray::U32(v) => put_all(out, 4, v, |v| v.to_le_bytes()),
        GgufArray::I32(v) => put_all(out, 5, v, |v| v.to_le_bytes()),
        GgufArray::F32(v) => put_all(out, 6, v, |v| v.to_le_bytes()),
        GgufArray::Bool(v) => put_all(out, 7, v, |v| [u8::from(*v)]),
        GgufArray::U64(v) => put_all(out, 10, v, |v| v.to_le_bytes()),
        GgufArray::I64(v) => put_all(out, 11, v, |v| v.to_le_bytes()),
        GgufArray::F64(v) => put_all(out, 12, v, |v| v.to_le_bytes()),
        GgufArray::String(v) => {
            out.extend(8u32.to_le_bytes());
            put_len(out, v.len());
            v.iter().for_each(|text| put_str(out, text));
        }
    }
}

fn put_all<T, const N: usize>(out: &mut Vec<u8>, of: u32, values: &[T], bytes: fn(&T) -> [u8; N]) {
    out.extend(of.to_le_bytes());
    put_len(out, values.len());
    values.iter().for_each(|value| out.extend(bytes(value)));
}

#[cfg(not(target_arch = "wasm32"))]
mod disk {
    use std::ops::Range;
    use std::path::Path;

    use super::{Entry, GgufMetadata, alignment, head};
    use crate::error::shown;
    use crate::output::NewFile;
    use crate::{FormatError, NewTensor};

    /// Writes a GGUF file at `path`, asking `rows` for the values of a few rows of a tensor at a time: all rows of one
    /// tensor in order, then the next. The file appears under its name when it is whole.
    ///
    /// # Errors
    /// A type that is not written, a wrong number of values, a value the type cannot hold, a failing write, or what
    /// `rows` fails with.
    pub fn write<E: From<FormatError>>(
        path: &Path,
        metadata: &GgufMetadata,
        tensors: &[NewTensor],
        mut rows: impl FnMut(&NewTensor, Range<usize>) -> Result<Vec<f32>, E>,
    ) -> Result<(), E> {
        let entries = tensors.iter().map(entry).collect::<Result<Vec<_>, _>>()?;
        check_names(&entries)?;
        let alignment = alignment(metadata);
        let mut file = NewFile::create(path)?;
        file.put(&head(metadata, &entries))?;
        for (tensor, entry) in tensors.iter().zip(&entries) {
            tensor.put_rows(&mut rows, |bytes| file.put(bytes))?;
            file.put(&vec![0; entry.n_bytes.next_multiple_of(alignment) - entry.n_bytes])?;
        }
        Ok(file.finish()?)
    }

    fn entry(tensor: &NewTensor) -> Result<Entry<'_>, FormatError> {
        let n_bytes = tensor.checked_bytes()?;
        Ok(Entry { name: &tensor.name, shape: &tensor.shape, dtype: tensor.dtype, n_bytes })
    }

    fn check_names(entries: &[Entry<'_>]) -> Result<(), FormatError> {
        let mut names: Vec<_> = entries.iter().map(|entry| entry.name).collect();
        names.sort_unstable();
        match names.array_windows().find(|[a, b]| a == b) {
            Some([name, _]) => Err(FormatError::NamedTwice { tensor: shown(name) }),
            None => Ok(()),
        }
    }
}
