//! A model as the Hugging Face hub keeps it: `config.json`, safetensors, tokenizer files.

mod files;
mod header;
mod index;
mod unique;
mod write;

pub use files::HuggingFaceFiles;
pub(crate) use write::encode as encode_safetensors;
#[cfg(not(target_arch = "wasm32"))]
pub use write::{copy_companions, declare_dtype, write as write_safetensors, write_companions};

use serde_json::Value;

use crate::checkpoint::{Checkpoint, Metadata, sorted};
use crate::foreign::{Kind, check_text, has_pickle_ending, identify};
use crate::source::{Folder, SourceFile};
use crate::{Foreign, FormatError, TensorInfo};

const SINGLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

/// Larger than any published configuration or index, small enough to parse without harm.
pub(crate) const MAX_JSON_BYTES: u64 = 64 << 20;

/// The files around the weights, unread but for being JSON.
#[derive(Debug, Clone, Default)]
pub struct HuggingFaceMetadata {
    /// `config.json`.
    pub config: Value,
    /// `generation_config.json`.
    pub generation_config: Option<Value>,
    /// `tokenizer_config.json`.
    pub tokenizer_config: Option<Value>,
    /// `tokenizer.json`, as it stands.
    pub tokenizer_json: Option<Vec<u8>>,
    /// `chat_template.jinja`, which takes precedence over a template in `tokenizer_config`.
    pub chat_template: Option<String>,
    /// `special_tokens_map.json`.
    pub special_tokens_map: Option<Value>,
}

/// Reads a model from its folder. `weights` names the weight file to take; without it the usual names are looked for,
/// the single file before the index, as the reference implementation does.
pub(crate) fn load(folder: &mut dyn Folder, weights: Option<&str>, source: String) -> Result<Checkpoint, FormatError> {
    let metadata = read_metadata(folder)?;
    let (files, tensors) = match weights {
        Some(name) => load_named(folder, name)?,
        None => load_usual(folder)?,
    };
    let tensors = sorted(tensors, &files)?;
    Ok(Checkpoint::new(source, Metadata::HuggingFace(metadata), files, tensors))
}

/// Whether a folder with a file of this name holds safetensors weights under the usual names.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn is_weights(name: &str) -> bool {
    name == SINGLE || name == INDEX
}

type Weights = (Vec<SourceFile>, Vec<TensorInfo>);

/// The whole set when the named file is a part of the index beside it, else that file alone.
fn load_named(folder: &mut dyn Folder, name: &str) -> Result<Weights, FormatError> {
    if name != SINGLE
        && let Some(index) = index::Index::read(folder)?
        && index.has_shard(name)
    {
        return index.load(folder);
    }
    let file =
        folder.take(name)?.ok_or_else(|| FormatError::NotFound { path: format!("{}/{name}", folder.label()) })?;
    load_single(file)
}

fn load_usual(folder: &mut dyn Folder) -> Result<Weights, FormatError> {
    if let Some(file) = folder.take(SINGLE)? {
        return load_single(file);
    }
    if let Some(index) = index::Index::read(folder)? {
        return index.load(folder);
    }
    let label = folder.label();
    match folder.names()?.into_iter().find(|name| has_pickle_ending(name)) {
        Some(name) => Err(FormatError::NotAModel { file: format!("{label}/{name}"), found: Foreign::Pickle }),
        None => Err(FormatError::NoWeights { folder: label.to_owned() }),
    }
}

fn load_single(file: SourceFile) -> Result<Weights, FormatError> {
    let tensors = read_tensors(&file, 0)?;
    Ok((vec![file], tensors))
}

/// The tensors of one safetensors file, after making sure that it is one.
pub(crate) fn read_tensors(file: &SourceFile, file_idx: usize) -> Result<Vec<TensorInfo>, FormatError> {
    match identify(file)? {
        Kind::Safetensors => header::read(file, file_idx),
        Kind::Gguf => Err(FormatError::Header {
            file: file.name.clone(),
            problem: "the file is GGUF under a safetensors name".into(),
        }),
    }
}

fn read_metadata(folder: &mut dyn Folder) -> Result<HuggingFaceMetadata, FormatError> {
    let Some(file) = folder.take("config.json")? else {
        return Err(FormatError::MissingConfig { folder: folder.label().to_owned() });
    };
    let config = parse_json(&file)?;
    if is_old_olmo(&config) {
        return Err(FormatError::OldOlmo { file: file.name });
    }
    Ok(HuggingFaceMetadata {
        config,
        generation_config: read_json(folder, "generation_config.json")?,
        tokenizer_config: read_json(folder, "tokenizer_config.json")?,
        tokenizer_json: read_bytes(folder, "tokenizer.json")?,
        chat_template: read_text(folder, "chat_template.jinja")?,
        special_tokens_map: read_json(folder, "special_tokens_map.json")?,
    })
}

/// The layout from before OLMo was part of transformers: other tensor names, fused projections.
fn is_old_olmo(config: &Value) -> bool {
    let is_type = config.get("model_type").and_then(Value::as_str) == Some("hf_olmo");
    let architectures = config.get("architectures").and_then(Value::as_array);
    is_type || architectures.is_some_and(|names| names.iter().any(|name| name == "OLMoForCausalLM"))
}

fn read_json(folder: &mut dyn Folder, name: &str) -> Result<Option<Value>, FormatError> {
    folder.take(name)?.map(|file| parse_json(&file)).transpose()
}

pub(crate) fn parse_json<T: serde::de::DeserializeOwned>(file: &SourceFile) -> Result<T, FormatError> {
    check_text(file)?;
    let bytes = file.read_all(MAX_JSON_BYTES)?;
    serde_json::from_slice(&bytes).map_err(|cause| FormatError::Json { file: file.name.clone(), cause })
}

fn read_bytes(folder: &mut dyn Folder, name: &str) -> Result<Option<Vec<u8>>, FormatError> {
    let Some(file) = folder.take(name)? else { return Ok(None) };
    check_text(&file)?;
    Ok(Some(file.read_all(MAX_JSON_BYTES)?.into_owned()))
}

fn read_text(folder: &mut dyn Folder, name: &str) -> Result<Option<String>, FormatError> {
    let Some(file) = folder.take(name)? else { return Ok(None) };
    let bytes = file.read_all(MAX_JSON_BYTES)?;
    match str::from_utf8(&bytes) {
        Ok(text) => Ok(Some(text.to_owned())),
        Err(error) => Err(FormatError::Utf8 {
            file: file.name.clone(),
            what: "the template".into(),
            offset: error.valid_up_to() as u64,
        }),
    }
}
