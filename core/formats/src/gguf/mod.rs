//! GGUF, versions 2 and 3: header, metadata, tensor table, split sets.
//!
//! The one idea: a [`cursor::Cursor`] knows its file and position, so that every complaint names both, and no count is
//! believed before the bytes that must back it are known to exist. Layout: magic, version, two counts, the key-value
//! pairs, the tensor table, padding to `general.alignment`, then the data.

mod cursor;
mod lora;
mod merged;
mod metadata;
mod split;
mod table;
mod write;

#[cfg(not(target_arch = "wasm32"))]
pub use lora::write_lora;
pub use lora::{GgufLora, encode_lora, interleaved_rows};
pub use merged::{merged_dtype, merged_metadata, unsplit_metadata};

pub use metadata::{GgufArray, GgufMetadata, GgufValue};
#[cfg(not(target_arch = "wasm32"))]
pub(crate) use split::is_later_part;
#[cfg(not(target_arch = "wasm32"))]
pub use write::write;
pub use write::{GgufTensor, encode};

use crate::checkpoint::{Checkpoint, Metadata, sorted};
use crate::foreign::{Kind, identify};
use crate::source::{Folder, SourceFile};
use crate::{Foreign, FormatError, TensorInfo};
use cursor::Cursor;

/// Where tensor data starts unless `general.alignment` says otherwise: multiples of 32 bytes.
const DEFAULT_ALIGNMENT: u64 = 32;

/// Reads a GGUF file, or the whole set when `name` is one part of a split model.
pub(crate) fn load(folder: &mut dyn Folder, name: &str, source: String) -> Result<Checkpoint, FormatError> {
    let parts = match split::Name::parse(name) {
        Some(set) => split::load(folder, &set)?,
        None => vec![load_single(folder, name)?],
    };
    let mut parts = parts.into_iter();
    let first = parts.next().ok_or_else(|| FormatError::NotFound { path: source.clone() })?;
    let (mut files, mut tensors) = (vec![first.file], first.tensors);
    for part in parts {
        files.push(part.file);
        tensors.extend(part.tensors);
    }
    let tensors = sorted(tensors, &files)?;
    Ok(Checkpoint::new(source, Metadata::Gguf(first.metadata), files, tensors))
}

fn load_single(folder: &mut dyn Folder, name: &str) -> Result<Part, FormatError> {
    let part = Part::read(folder, name, 0)?
        .ok_or_else(|| FormatError::NotFound { path: format!("{}/{name}", folder.label()) })?;
    match part.metadata.u32("split.count") {
        None | Some(0 | 1) => Ok(part),
        Some(count) => Err(FormatError::Split {
            file: part.file.name,
            problem: format!(
                "it is one of {count} parts, and the others are found by a name that ends in -00001-of-{count:05}.gguf"
            ),
        }),
    }
}

/// One file of a model, parsed.
struct Part {
    file: SourceFile,
    metadata: GgufMetadata,
    tensors: Vec<TensorInfo>,
}

impl Part {
    /// Opens and parses the file of this name; `None` when the folder has none.
    fn read(folder: &mut dyn Folder, name: &str, file_idx: usize) -> Result<Option<Self>, FormatError> {
        let Some(file) = folder.take(name)? else { return Ok(None) };
        if identify(&file)? != Kind::Gguf {
            return Err(FormatError::NotAModel { file: file.name, found: Foreign::Unknown });
        }
        let (metadata, tensors) = parse(&file, file_idx)?;
        Ok(Some(Self { file, metadata, tensors }))
    }
}

/// Reads everything in front of the data.
fn parse(file: &SourceFile, file_idx: usize) -> Result<(GgufMetadata, Vec<TensorInfo>), FormatError> {
    let mut cursor = Cursor::new(file);
    cursor.take(4, "the magic")?;
    check_version(cursor.u32("the version")?, file)?;
    let n_tensors = cursor.count("the tensor count", table::MIN_ENTRY_BYTES)?;
    let n_pairs = cursor.count("the metadata count", metadata::MIN_PAIR_BYTES)?;
    let metadata = GgufMetadata::read(&mut cursor, n_pairs)?;
    let alignment = alignment(&metadata, file)?;
    let tensors = table::read(&mut cursor, n_tensors, alignment, file_idx)?;
    Ok((metadata, tensors))
}

fn check_version(version: u32, file: &SourceFile) -> Result<(), FormatError> {
    match version {
        2 | 3 => Ok(()),
        _ => Err(FormatError::Version { file: file.name.clone(), version }),
    }
}

fn alignment(metadata: &GgufMetadata, file: &SourceFile) -> Result<u64, FormatError> {
    let Some(value) = metadata.values.get("general.alignment") else { return Ok(DEFAULT_ALIGNMENT) };
    match value {
        GgufValue::U32(alignment) if alignment.is_power_of_two() => Ok(u64::from(*alignment)),
        other => Err(FormatError::Alignment { file: file.name.clone(), found: other.summary() }),
    }
}
