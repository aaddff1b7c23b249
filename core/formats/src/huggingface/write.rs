//! Writes safetensors files, and the files around them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::error::shown;
use crate::{FormatError, NewTensor};
#[cfg(not(target_arch = "wasm32"))]
pub use disk::{copy_companions, declare_dtype, write, write_companions};

/// The bytes of a file with these tensors and values.
pub(crate) fn encode(tensors: &[(&NewTensor, &[f32])]) -> Result<Vec<u8>, FormatError> {
    let order = ordered(tensors.iter().map(|(tensor, values)| (*tensor, *values)));
    let mut out = header(order.iter().map(|(tensor, _)| *tensor))?;
    for (tensor, values) in order {
        let mut rows = |tensor: &NewTensor, rows: std::ops::Range<usize>| {
            let range = rows.start * tensor.row_len()..rows.end * tensor.row_len();
            Ok::<_, FormatError>(values.get(range).unwrap_or_default().to_vec())
        };
        tensor.put_rows(&mut rows, |bytes| {
            out.extend_from_slice(bytes);
            Ok(())
        })?;
    }
    Ok(out)
}

/// Wide types first, so that each tensor begins at a multiple of its type's width; then by name.
fn ordered<'a, T>(tensors: impl Iterator<Item = (&'a NewTensor, T)>) -> Vec<(&'a NewTensor, T)> {
    let mut order: Vec<_> = tensors.collect();
    order.sort_by(|(a, _), (b, _)| (b.dtype.block_bytes(), &a.name).cmp(&(a.dtype.block_bytes(), &b.name)));
    order
}

/// The header's length and the header, padded to a multiple of 8 bytes.
fn header<'a>(tensors: impl Iterator<Item = &'a NewTensor>) -> Result<Vec<u8>, FormatError> {
    let mut entries = BTreeMap::<&str, Value>::from([("__metadata__", json!({ "format": "pt" }))]);
    let mut start = 0;
    for tensor in tensors {
        let n_bytes = tensor.checked_bytes()?;
        let end = start + n_bytes;
        if entries.insert(&tensor.name, entry(tensor, start, end)?).is_some() {
            return Err(FormatError::NamedTwice { tensor: shown(&tensor.name) });
        }
        start = end;
    }
    let mut text = json!(entries).to_string().into_bytes();
    text.resize(text.len().next_multiple_of(8), b' ');
    Ok([&(text.len() as u64).to_le_bytes(), text.as_slice()].concat())
}

fn entry(tensor: &NewTensor, start: usize, end: usize) -> Result<Value, FormatError> {
    if !tensor.dtype.is_float() {
        let NewTensor { name, shape, dtype } = tensor;
        return Err(FormatError::Unwritable { tensor: shown(name), dtype: *dtype, shape: shape.clone() });
    }
    Ok(json!({ "dtype": tensor.dtype.to_string(), "shape": tensor.shape, "data_offsets": [start, end] }))
}

#[cfg(not(target_arch = "wasm32"))]
mod disk {
    use std::fs;
    use std::ops::Range;
    use std::path::Path;

    use serde_json::Value;

    use super::super::{MAX_JSON_BYTES, parse_json};
    use super::{header, ordered};
    use crate::output::{NewFile, create_folder, write_file};
    use crate::source::Folder;
    use crate::{DType, FormatError, HuggingFaceFiles, NewTensor, disk::DiskFolder};

    /// Files that tell how to use the weights beside them, whoever trained these.
    const COMPANIONS: [&str; 11] = [
        "config.json",
        "generation_config.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "special_tokens_map.json",
        "added_tokens.json",
        "chat_template.jinja",
        "chat_template.json",
        "vocab.json",
        "merges.txt",
        "tokenizer.model",
    ];

    /// Writes a safetensors file at `path`, asking `rows` for the values of a few rows of a tensor at a time: all rows
    /// of one tensor in order, then the next. The file appears under its name when it is whole.
    ///
    /// # Errors
    /// A tensor that is no plain float, a wrong number of values, a value the type cannot hold, a failing write, or
    /// what `rows` fails with.
    pub fn write<E: From<FormatError>>(
        path: &Path,
        tensors: &[NewTensor],
        mut rows: impl FnMut(&NewTensor, Range<usize>) -> Result<Vec<f32>, E>,
    ) -> Result<(), E> {
        let order = ordered(tensors.iter().map(|tensor| (tensor, ())));
        let header = header(order.iter().map(|(tensor, ())| *tensor))?;
        let mut file = NewFile::create(path)?;
        file.put(&header)?;
        for (tensor, ()) in order {
            tensor.put_rows(&mut rows, |bytes| file.put(bytes))?;
        }
        Ok(file.finish()?)
    }

    /// Copies config, tokenizer and template of the model in the folder `from` to the folder `to`, which is made.
    ///
    /// # Errors
    /// Both are the same folder, or a file cannot be read or written.
    pub fn copy_companions(from: &Path, to: &Path) -> Result<(), FormatError> {
        create_folder(to)?;
        let absolute = |path: &Path| fs::canonicalize(path).ok();
        if absolute(from).is_some_and(|from| Some(from) == absolute(to)) {
            return Err(FormatError::OverSource { path: to.display().to_string() });
        }
        put_companions(&mut DiskFolder::of(from), to)
    }

    /// Writes config, tokenizer and template of a model whose files are in memory to the folder `to`, which is made.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write_companions(mut from: HuggingFaceFiles, to: &Path) -> Result<(), FormatError> {
        create_folder(to)?;
        put_companions(&mut from, to)
    }

    fn put_companions(from: &mut dyn Folder, to: &Path) -> Result<(), FormatError> {
        for name in COMPANIONS {
            if let Some(file) = from.take(name)? {
                write_file(&to.join(name), &file.read_all(MAX_JSON_BYTES)?)?;
            }
        }
        Ok(())
    }

    /// Has the `config.json` in a folder say that the weights are stored as `dtype`; readers take that for the type to
    /// compute in.
    ///
    /// # Errors
    /// The file cannot be read or written, or is no JSON.
    pub fn declare_dtype(folder: &Path, dtype: DType) -> Result<(), FormatError> {
        let Some(file) = DiskFolder::of(folder).take("config.json")? else { return Ok(()) };
        let mut config: Value = parse_json(&file)?;
        let name = match dtype {
            DType::F16 => "float16",
            DType::BF16 => "bfloat16",
            _ => "float32",
        };
        for key in ["dtype", "torch_dtype"] {
            if let Some(value) = config.get_mut(key) {
                *value = name.into();
            }
        }
        drop(file);
        write_file(&folder.join("config.json"), format!("{config:#}\n").as_bytes())
    }
}
