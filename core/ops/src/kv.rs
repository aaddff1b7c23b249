//! How keys and values lie in device memory: [`KvFormats`], and a cache's [`Side`] as words.
//!
//! The twin of `kv_layout.wgsl`, which says where everything is. Nothing here knows a device.

mod pack;

use crate::qk_norm_rope::HeadShape;
use std::fmt;
use std::str::FromStr;

/// Heads are filled up with zeros to whole octets of channels.
const OCTET: usize = 8;
/// Channels that share a scale record.
const BLOCK: usize = 32;
/// A side is bound as cells of so many words.
const CELL: usize = 4;

/// How keys, or values, lie in device memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KvFormat {
    /// As they were computed.
    F32,
    /// In half the memory. Finite values beyond 65504 become that, infinities and NaN stay what they are.
    #[default]
    F16,
    /// In 9 bits a channel: blocks of 32 in 127ths of their largest magnitude.
    Q8,
    /// In 5 bits a channel: blocks of 32 in 15ths of the way from their least to their largest value.
    Q4,
}

/// How keys and how values lie; people write `f16`, or `q8/q4` for keys in q8 and values in q4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KvFormats {
    /// Of keys.
    pub keys: KvFormat,
    /// Of values.
    pub values: KvFormat,
}

/// A text that names no formats.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no way to keep keys and values: take f32, f16, q8 or q4, or one for each as in q8/q4")]
pub struct UnknownKvFormats(String);

/// Keys or values of one layer: `n_rows` heads of single positions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Side {
    pub format: KvFormat,
    pub n_rows: usize,
    pub head_dim: usize,
}

impl KvFormat {
    /// All of them, in the order of the kernels' variants.
    pub const ALL: [Self; 4] = [Self::F32, Self::F16, Self::Q8, Self::Q4];

    /// As people write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Q8 => "q8",
            Self::Q4 => "q4",
        }
    }

    /// Bytes of one position's keys, or of its values.
    pub fn row_bytes(self, heads: &HeadShape) -> u64 {
        let side = Side { format: self, n_rows: heads.n_kv_heads, head_dim: heads.head_dim };
        4 * (side.n_rows * side.row_words()) as u64
    }

    /// Bits of a channel, scale records apart.
    const fn bits(self) -> usize {
        match self {
            Self::F32 => 32,
            Self::F16 => 16,
            Self::Q8 => 8,
            Self::Q4 => 4,
        }
    }
}

impl KvFormats {
    /// Bytes of the keys and values of `n_slots` positions.
    pub fn bytes(self, n_slots: usize, heads: &HeadShape) -> u64 {
        let of = |format: KvFormat| {
            let n_cells = format.row_bytes(heads).saturating_mul(n_slots as u64).div_ceil(4 * CELL as u64);
            n_cells.saturating_mul(4 * CELL as u64)
        };
        of(self.keys).saturating_add(of(self.values))
    }

    /// Keys and values.
    pub(crate) fn sides(self, n_rows: usize, head_dim: usize) -> [Side; 2] {
        [self.keys, self.values].map(|format| Side { format, n_rows, head_dim })
    }

    /// Where the `n`-th variant of a kernel for these formats is among its variants for all formats.
    pub(crate) fn variant(self, n: usize) -> usize {
        (n * KvFormat::ALL.len() + self.keys as usize) * KvFormat::ALL.len() + self.values as usize
    }
}

impl From<KvFormat> for KvFormats {
    /// The same for both.
    fn from(format: KvFormat) -> Self {
        Self { keys: format, values: format }
    }
}

impl FromStr for KvFormats {
    type Err = UnknownKvFormats;

    fn from_str(text: &str) -> Result<Self, UnknownKvFormats> {
        let (keys, values) = text.split_once('/').unwrap_or((text, text));
        let named = |name: &str| KvFormat::ALL.into_iter().find(|format| format.name() == name);
        let formats = named(keys).zip(named(values)).map(|(keys, values)| Self { keys, values });
        formats.ok_or_else(|| UnknownKvFormats(text.to_owned()))
    }
}

impl fmt::Display for KvFormats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.keys == self.values {
            true => f.write_str(self.keys.name()),
            false => write!(f, "{}/{}", self.keys.name(), self.values.name()),
        }
    }
}

impl Side {
    /// Words of the whole side.
    pub fn n_words(&self) -> usize {
        (self.n_rows * self.row_words()).next_multiple_of(CELL)
    }

    /// Stores a row.
    pub fn encode(&self, row: usize, values: &[f32], words: &mut [u32]) {
        let n_at_once = if self.has_records() { BLOCK } else { OCTET };
        for (i, some) in values.chunks(n_at_once).enumerate() {
            let packed = pack::pack(self.format, some);
            let n_words = self.code_words(some.len());
            let start = row * self.code_words(self.head_dim) + self.code_words(i * n_at_once);
            words[start..][..n_words].copy_from_slice(&packed.words[..n_words]);
            if self.has_records() {
                words[self.record_of(row, i)] = packed.record;
            }
        }
    }

    /// Reads a row back.
    pub fn decode(&self, row: usize, words: &[u32], values: &mut [f32]) {
        for (i, block) in values.chunks_mut(BLOCK).enumerate() {
            let start = row * self.code_words(self.head_dim) + self.code_words(i * BLOCK);
            let record = if self.has_records() { words[self.record_of(row, i)] } else { 0 };
            pack::unpack(self.format, &words[start..][..self.code_words(block.len())], record, block);
        }
    }

    fn has_records(&self) -> bool {
        matches!(self.format, KvFormat::Q8 | KvFormat::Q4)
    }

    /// Words of a row and its share of the scale records.
    fn row_words(&self) -> usize {
        self.code_words(self.head_dim) + self.n_records()
    }

    /// Words of so many neighbouring channels.
    fn code_words(&self, n_channels: usize) -> usize {
        n_channels.next_multiple_of(OCTET) * self.format.bits() / 32
    }

    /// Scale records of a row.
    fn n_records(&self) -> usize {
        if self.has_records() { self.head_dim.div_ceil(BLOCK) } else { 0 }
    }

    /// The word with the scale record of a block.
    fn record_of(&self, row: usize, block: usize) -> usize {
        self.n_rows * self.code_words(self.head_dim) + row * self.n_records() + block
    }
}

#[cfg(test)]
mod tests;
