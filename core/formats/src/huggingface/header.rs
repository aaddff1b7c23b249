//! The header of a safetensors file.
//!
//! The `safetensors` crate has the last word on what is valid; the checks before it exist because its errors do not say
//! which tensor is wrong, and because a repeated name would silently replace the first.

use safetensors::tensor::{Dtype, Metadata, TensorInfo as Entry};

use super::unique::UniqueMap;
use crate::error::shown;
use crate::source::SourceFile;
use crate::tensor::Place;
use crate::{DType, FormatError, TensorInfo};

/// Bytes of the header's length.
const LENGTH_BYTES: u64 = 8;

/// The format's own limit on the header.
const MAX_HEADER_BYTES: u64 = 100_000_000;

/// Reads the header and places every tensor inside the file. Tensors come in the order of their bytes.
pub(super) fn read(file: &SourceFile, file_idx: usize) -> Result<Vec<TensorInfo>, FormatError> {
    let data_start = LENGTH_BYTES + header_bytes(file)?;
    let bytes = file.read(LENGTH_BYTES..data_start)?;
    let mut entries = parse(&bytes, file)?;
    entries.sort_by_key(|(_, entry)| entry.data_offsets);
    check_extents(&entries, file, data_start)?;
    let tensors = entries.iter().map(|(name, entry)| place(name, entry, file, file_idx, data_start)).collect();
    Metadata::new(None, entries).map_err(|error| header_error(file, error.to_string()))?;
    tensors
}

/// The length of the header, once it is known to be in the file.
fn header_bytes(file: &SourceFile) -> Result<u64, FormatError> {
    let name = || file.name.clone();
    let head = file.head(LENGTH_BYTES)?;
    let Ok(length) = <[u8; 8]>::try_from(&*head) else {
        let left = head.len() as u64;
        return Err(FormatError::Truncated {
            file: name(),
            what: "the header length".into(),
            offset: 0,
            needed: 8,
            left,
        });
    };
    let n_bytes = u64::from_le_bytes(length);
    let left = file.n_bytes() - LENGTH_BYTES;
    if n_bytes > left {
        let reason = format!("only {left} bytes follow; the file is cut short or damaged");
        return Err(FormatError::HeaderLength { file: name(), n_bytes, reason });
    }
    if n_bytes > MAX_HEADER_BYTES {
        let reason = format!("at most {MAX_HEADER_BYTES} are allowed");
        return Err(FormatError::HeaderLength { file: name(), n_bytes, reason });
    }
    Ok(n_bytes)
}

fn parse(bytes: &[u8], file: &SourceFile) -> Result<Vec<(String, Entry)>, FormatError> {
    let text = str::from_utf8(bytes).map_err(|error| FormatError::Utf8 {
        file: file.name.clone(),
        what: "the safetensors header".into(),
        offset: LENGTH_BYTES + error.valid_up_to() as u64,
    })?;
    if !text.starts_with('{') {
        return Err(header_error(file, "it does not start with {".into()));
    }
    let entries = serde_json::from_str::<UniqueMap<Entry>>(text);
    entries.map(|map| map.0).map_err(|error| header_error(file, error.to_string()))
}

/// Tensors must follow each other without gap or overlap, from the end of the header to the end of the file.
fn check_extents(entries: &[(String, Entry)], file: &SourceFile, data_start: u64) -> Result<(), FormatError> {
    let mut expected = 0;
    for (name, entry) in entries {
        let (start, end) = entry.data_offsets;
        let found = format!("tensor {} has the bytes {start}..{end} of the data", shown(name));
        if start != expected || end < start {
            return Err(header_error(file, format!("{found}, expected to start at {expected}")));
        }
        match n_bytes(entry) {
            Some(n_bytes) if n_bytes == end - start => expected = end,
            Some(n_bytes) => {
                let problem = format!("{found}, but {:?} values of {} take {n_bytes}", entry.shape, entry.dtype);
                return Err(header_error(file, problem));
            }
            None => return Err(header_error(file, format!("{found} and a size beyond counting: {:?}", entry.shape))),
        }
    }
    let n_data_bytes = file.n_bytes() - data_start;
    if expected as u64 == n_data_bytes {
        return Ok(());
    }
    Err(header_error(
        file,
        format!(
            "the tensors take {expected} bytes after byte {data_start}, but the file has {n_data_bytes} there; \
             it is cut short or damaged"
        ),
    ))
}

fn n_bytes(entry: &Entry) -> Option<usize> {
    let n_elements = entry.shape.iter().try_fold(1usize, |n, dim| n.checked_mul(*dim))?;
    n_elements.checked_mul(entry.dtype.bitsize()).map(|n_bits| n_bits / 8)
}

fn place(
    name: &str,
    entry: &Entry,
    file: &SourceFile,
    file_idx: usize,
    data_start: u64,
) -> Result<TensorInfo, FormatError> {
    let (start, end) = entry.data_offsets;
    let range = data_start + start as u64..data_start + end as u64;
    if range.is_empty() {
        let problem = format!("no values: {:?}", entry.shape);
        return Err(FormatError::Shape { file: file.name.clone(), tensor: shown(name), offset: range.start, problem });
    }
    let dtype = match entry.dtype {
        Dtype::F32 => DType::F32,
        Dtype::F16 => DType::F16,
        Dtype::BF16 => DType::BF16,
        other => {
            let dtype = other.to_string();
            return Err(FormatError::TensorType {
                file: file.name.clone(),
                tensor: shown(name),
                dtype,
                offset: range.start,
            });
        }
    };
    Ok(TensorInfo { name: name.to_owned(), shape: entry.shape.clone(), dtype, place: Place { file_idx, range } })
}

fn header_error(file: &SourceFile, problem: String) -> FormatError {
    FormatError::Header { file: file.name.clone(), problem }
}
