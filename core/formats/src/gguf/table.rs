//! The tensor table of a GGUF file, and the proof that every tensor lies inside the data.

use super::cursor::Cursor;
use crate::checkpoint::check_overlap;
use crate::dtype::unreadable_ggml_name;
use crate::error::shown;
use crate::tensor::Place;
use crate::{DType, FormatError, TensorInfo};

/// The least an entry can take: an empty name (8), the number of dimensions (4), a type (4), an offset (8).
pub(super) const MIN_ENTRY_BYTES: u64 = 24;

/// The format's limit on dimensions.
const MAX_DIMS: u32 = 4;

/// One entry before the start of the data is known.
struct Entry {
    name: String,
    shape: Vec<usize>,
    dtype: DType,
    /// Bytes from the start of the data.
    offset: u64,
    n_bytes: u64,
    /// Where in the file the offset stands.
    offset_at: u64,
}

/// Reads the table; the cursor stands at its start.
pub(super) fn read(
    cursor: &mut Cursor<'_>,
    n_tensors: usize,
    alignment: u64,
    file_idx: usize,
) -> Result<Vec<TensorInfo>, FormatError> {
    let entries = (0..n_tensors).map(|_| read_entry(cursor)).collect::<Result<Vec<_>, _>>()?;
    let data_start = cursor.offset.next_multiple_of(alignment);
    let mut tensors = Vec::with_capacity(entries.len());
    for entry in entries {
        tensors.push(place(entry, cursor, data_start, alignment, file_idx)?);
    }
    check_overlap(&mut tensors, &cursor.file.name)?;
    Ok(tensors)
}

fn read_entry(cursor: &mut Cursor<'_>) -> Result<Entry, FormatError> {
    let name = cursor.string("a tensor name")?;
    let tensor = shown(&name);
    let shape = read_shape(cursor, &tensor)?;
    let dtype = read_dtype(cursor, &tensor)?;
    let n_bytes = checked_bytes(cursor, &tensor, &shape, dtype)?;
    let offset_at = cursor.offset;
    let offset = cursor.u64(&format!("the offset of tensor {tensor}"))?;
    Ok(Entry { name, shape, dtype, offset, n_bytes, offset_at })
}

/// The dimensions, turned around: the file has the innermost first.
fn read_shape(cursor: &mut Cursor<'_>, tensor: &str) -> Result<Vec<usize>, FormatError> {
    let offset = cursor.offset;
    let what = format!("the shape of tensor {tensor}");
    let n_dims = cursor.u32(&what)?;
    if n_dims > MAX_DIMS {
        let problem = format!("{n_dims} dimensions, at most {MAX_DIMS} are possible");
        return Err(shape_error(cursor, tensor, offset, problem));
    }
    let mut shape = Vec::with_capacity(n_dims as usize);
    for _ in 0..n_dims {
        let dim = cursor.u64(&what)?;
        match usize::try_from(dim) {
            Ok(0) => return Err(shape_error(cursor, tensor, offset, "a dimension of 0".into())),
            Ok(dim) => shape.push(dim),
            Err(_) => return Err(shape_error(cursor, tensor, offset, format!("a dimension of {dim}"))),
        }
    }
    shape.reverse();
    Ok(shape)
}

fn read_dtype(cursor: &mut Cursor<'_>, tensor: &str) -> Result<DType, FormatError> {
    let offset = cursor.offset;
    let id = cursor.u32(&format!("the type of tensor {tensor}"))?;
    DType::from_ggml_id(id).ok_or_else(|| FormatError::TensorType {
        file: cursor.name(),
        tensor: tensor.into(),
        dtype: unreadable_ggml_name(id),
        offset,
    })
}

fn checked_bytes(cursor: &Cursor<'_>, tensor: &str, shape: &[usize], dtype: DType) -> Result<u64, FormatError> {
    let row_len = shape.last().copied().unwrap_or(1);
    if !row_len.is_multiple_of(dtype.block_len()) {
        let problem = format!("rows of {row_len} values, {dtype} comes in blocks of {}", dtype.block_len());
        return Err(shape_error(cursor, tensor, cursor.offset, problem));
    }
    shape
        .iter()
        .try_fold(1usize, |n, dim| n.checked_mul(*dim))
        .and_then(|n| dtype.n_bytes(n))
        .map(|n| n as u64)
        .ok_or_else(|| shape_error(cursor, tensor, cursor.offset, format!("a size beyond counting: {shape:?}")))
}

/// Turns an entry into a tensor once its bytes are known to be in the file.
fn place(
    entry: Entry,
    cursor: &Cursor<'_>,
    data_start: u64,
    alignment: u64,
    file_idx: usize,
) -> Result<TensorInfo, FormatError> {
    let Entry { name, shape, dtype, offset, n_bytes, offset_at } = entry;
    if !offset.is_multiple_of(alignment) {
        let tensor = shown(&name);
        return Err(FormatError::Misaligned { file: cursor.name(), tensor, at: offset_at, offset, alignment });
    }
    let start = data_start.checked_add(offset);
    let end = start.and_then(|start| start.checked_add(n_bytes));
    match start.zip(end) {
        Some((start, end)) if end <= cursor.file.n_bytes() => {
            Ok(TensorInfo { name, shape, dtype, place: Place { file_idx, range: start..end } })
        }
        _ => Err(FormatError::Outside {
            file: cursor.name(),
            tensor: shown(&name),
            at: offset_at,
            start: data_start.saturating_add(offset),
            n_bytes,
            file_bytes: cursor.file.n_bytes(),
        }),
    }
}

fn shape_error(cursor: &Cursor<'_>, tensor: &str, offset: u64, problem: String) -> FormatError {
    FormatError::Shape { file: cursor.name(), tensor: tensor.into(), offset, problem }
}
