//! What can go wrong with a model file. Each message names the file, the place in it, what was found and what was
//! expected; names that come out of the file are shortened and escaped, for they too may be hostile.

use std::io;
use std::ops::Range;

use crate::{DType, Foreign};

/// Why a model could not be read.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    #[error("{path}: no such file or folder")]
    NotFound { path: String },
    #[error("{path}: neither a file nor a folder")]
    NotAFile { path: String },
    #[error("{file}: {cause}")]
    Io { file: String, cause: io::Error },
    #[error("{file}: the file is empty")]
    Empty { file: String },
    #[error("{file}: {found}")]
    NotAModel { file: String, found: Foreign },
    #[error("{file}: {n_bytes} bytes, more than the {limit} that such a file may have")]
    TooLarge { file: String, n_bytes: u64, limit: u64 },

    #[error("{file}: GGUF version {version}, at byte 4, is not read (2 and 3 are)")]
    Version { file: String, version: u32 },
    #[error("{file}: {what} needs {needed} bytes at byte {offset}, but only {left} are left; the file is cut short")]
    Truncated { file: String, what: String, offset: u64, needed: u64, left: u64 },
    #[error(
        "{file}: {what} is {count} (byte {offset}), but the rest of the file has room for {limit}; it is cut short or damaged"
    )]
    Count { file: String, what: String, offset: u64, count: u64, limit: u64 },
    #[error("{file}: {what} is not UTF-8 at byte {offset}")]
    Utf8 { file: String, what: String, offset: u64 },
    #[error("{file}: {key} at byte {offset} has the value type {found}, expected a scalar, a string or a list of them")]
    ValueType { file: String, key: String, offset: u64, found: u32 },
    #[error("{file}: {key} at byte {offset} is a bool of value {found}, expected 0 or 1")]
    Bool { file: String, key: String, offset: u64, found: u8 },
    #[error("{file}: the key {key} at byte {offset} appears twice")]
    DuplicateKey { file: String, key: String, offset: u64 },
    #[error("{file}: general.alignment is {found}, expected a power of two as u32")]
    Alignment { file: String, found: String },
    #[error("{file}: {problem}")]
    Split { file: String, problem: String },

    #[error("{file}: tensor {tensor} has {problem} (byte {offset})")]
    Shape { file: String, tensor: String, offset: u64, problem: String },
    #[error("{file}: tensor {tensor} is stored as {dtype} (byte {offset}), which cannot be read")]
    TensorType { file: String, tensor: String, dtype: String, offset: u64 },
    #[error("{file}: tensor {tensor} starts at {offset} (said at byte {at}), which is no multiple of {alignment}")]
    Misaligned { file: String, tensor: String, at: u64, offset: u64, alignment: u64 },
    #[error(
        "{file}: tensor {tensor} is said (byte {at}) to take {n_bytes} bytes from byte {start}, \
         but the file ends at byte {file_bytes}; it is cut short or damaged"
    )]
    Outside { file: String, tensor: String, at: u64, start: u64, n_bytes: u64, file_bytes: u64 },
    #[error("{file}: tensors {first} and {second} overlap at byte {offset}")]
    Overlap { file: String, first: String, second: String, offset: u64 },
    #[error("{file}: the tensor {tensor} appears twice{}", in_other(.other))]
    DuplicateTensor { file: String, tensor: String, other: Option<String> },

    #[error("{file}: the safetensors header is said to take {n_bytes} bytes, but {reason}")]
    HeaderLength { file: String, n_bytes: u64, reason: String },
    #[error("{file}: bad safetensors header: {problem}")]
    Header { file: String, problem: String },
    #[error("{file}: {cause}")]
    Json { file: String, cause: serde_json::Error },
    #[error("{file}: {problem}")]
    Index { file: String, problem: String },
    #[error("{file}: the part {shard} is missing, {needed_by} needs it")]
    MissingShard { file: String, shard: String, needed_by: String },

    #[error("{folder}: no config.json, which a safetensors model needs beside its weights")]
    MissingConfig { folder: String },
    #[error("{folder}: no model here: expected model.safetensors, model.safetensors.index.json or a .gguf file")]
    NoWeights { folder: String },
    #[error("{folder}: several GGUF models ({names}); name one of them")]
    SeveralModels { folder: String, names: String },
    #[error(
        "{file}: an OLMo model in the old hf_olmo layout, which is not read; \
         take the same model from the repository whose name ends in -hf"
    )]
    OldOlmo { file: String },

    #[error("{folder}: no {missing}, which a LoRA adapter consists of")]
    NoAdapter { folder: String, missing: String },
    #[error("{folder}: the LoRA adapter there keeps changing while it is read")]
    AdapterChanges { folder: String },
    #[error("{file}: {key} {problem}")]
    AdapterConfig { file: String, key: String, problem: String },
    #[error("{file}: the file holds no LoRA tensors")]
    NoLoraTensors { file: String },
    #[error("{file}: {tensor} {problem}")]
    AdapterTensor { file: String, tensor: String, problem: String },

    #[error("this adapter has no form in GGUF, {reason}; merge it into its model instead")]
    NoGgufForm { reason: &'static str },
    #[error("{path}: the new model would overwrite the one it is made from")]
    OverSource { path: String },
    #[error("two tensors of the new file are called {tensor}")]
    NamedTwice { tensor: String },
    #[error("tensor {tensor} cannot be written as {dtype} with the shape {shape:?}")]
    Unwritable { tensor: String, dtype: DType, shape: Vec<usize> },
    #[error("tensor {tensor} was given {found} values for the rows {}..{}, expected {expected}", .rows.start, .rows.end)]
    RowValues { tensor: String, rows: Range<usize>, found: usize, expected: usize },
    #[error("tensor {tensor} has the value {value}, which {dtype} cannot hold")]
    Overflow { tensor: String, value: f32, dtype: DType },

    #[error("tensor {tensor} has {n_rows} rows, asked for {}..{}", .rows.start, .rows.end)]
    Rows { tensor: String, n_rows: usize, rows: Range<usize> },
    #[error("tensor {tensor} is not from this checkpoint ({source_name})")]
    ForeignTensor { tensor: String, source_name: String },
    #[error("{n_bytes} bytes of {dtype} for {n_values} values, expected whole blocks of {} bytes for {} values",
        .dtype.block_bytes(), .dtype.block_len())]
    Blocks { dtype: DType, n_bytes: usize, n_values: usize },
}

fn in_other(other: &Option<String>) -> String {
    other.as_ref().map_or_else(String::new, |other| format!(", also in {other}"))
}

/// A name from a file, fit for a message: at most 80 characters, control characters escaped.
pub(crate) fn shown(name: &str) -> String {
    let mut characters = name.chars();
    let mut text: String = characters.by_ref().take(80).flat_map(char::escape_debug).collect();
    if characters.next().is_some() {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn names_in_messages_are_short_and_harmless() {
        assert_eq!(shown("blk.0.attn_q.weight"), "blk.0.attn_q.weight");
        assert_eq!(shown("a\x1b[31m\n"), "a\\u{1b}[31m\\n");
        assert_eq!(shown(&"x".repeat(1000)).chars().count(), 81);
    }
}
