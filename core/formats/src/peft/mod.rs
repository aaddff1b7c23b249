//! LoRA adapters as PEFT keeps them: a folder of `adapter_config.json` and `adapter_model.safetensors`.
//!
//! The one idea: a [`LoraAdapter`] is proven. Each of its modules has an A and a B of the stated rank and the file
//! holds nothing else; what PEFT can say but nobody here computes is refused by the name of its key, never ignored.
//!
//! Not here: which weight a module's path means, and the arithmetic.

mod config;
#[cfg(not(target_arch = "wasm32"))]
mod folder;
mod tensors;

pub use config::{AdapterConfig, TargetModules};

use crate::huggingface::parse_json;
use crate::source::{Folder, SourceFile};
use crate::{Foreign, FormatError, HuggingFaceFiles};

pub(crate) const CONFIG: &str = "adapter_config.json";
pub(crate) const WEIGHTS: &str = "adapter_model.safetensors";

/// A LoRA adapter: what is added to which linear layers.
#[derive(Debug, Clone, PartialEq)]
pub struct LoraAdapter {
    pub config: AdapterConfig,
    /// Sorted by path, paths unique, at least one.
    pub modules: Vec<LoraModule>,
}

/// What is added to one linear layer: `y = W x + scale B (A x)`.
#[derive(Debug, Clone, PartialEq)]
pub struct LoraModule {
    /// The layer in the words of the model, for instance `model.layers.0.self_attn.q_proj`.
    pub path: String,
    pub d_in: usize,
    pub d_out: usize,
    /// `[rank, d_in]`.
    pub a: Vec<f32>,
    /// `[d_out, rank]`.
    pub b: Vec<f32>,
    /// `[d_out]`, of a DoRA adapter only: the lengths that the rows of `W + scale B A` are brought to.
    pub magnitude: Option<Vec<f32>>,
}

impl LoraAdapter {
    /// Reads the folder, whichever of f32, f16 and bf16 its tensors are stored in.
    ///
    /// # Errors
    /// Names the file and the key or tensor that is wrong, or that asks for something not supported.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn open(folder: &std::path::Path) -> Result<Self, FormatError> {
        folder::open(folder)
    }

    /// Whether a folder holds an adapter.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn is_in(folder: &std::path::Path) -> bool {
        folder::is_adapter(folder)
    }

    /// Reads the two files from memory.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn from_files(mut files: HuggingFaceFiles) -> Result<Self, FormatError> {
        let config = required(&mut files, CONFIG)?;
        let weights = required(&mut files, WEIGHTS)?;
        load(&config, &weights)
    }

    /// Writes the folder so that PEFT loads it, in f32; files in it under other names stay as they are.
    ///
    /// A kill at any moment leaves the adapter that was there or the new one, and nobody sees half of each. The new
    /// files are written beside the old under names ending in `.next`; once both are whole they replace them, the old
    /// config leaving before the new weights come. A kill between these renames is made good by the next
    /// [`Self::open`] or `write`; until then other programs find no config, never one that does not fit its weights.
    ///
    /// # Errors
    /// A module that does not fit the config, or a failing write.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn write(&self, folder: &std::path::Path) -> Result<(), FormatError> {
        folder::write(self, folder)
    }

    /// The bytes of `adapter_config.json` and of `adapter_model.safetensors`.
    ///
    /// # Errors
    /// A module that does not fit the config.
    pub fn to_bytes(&self) -> Result<(Vec<u8>, Vec<u8>), FormatError> {
        Ok((self.config.to_json(), tensors::encode(self)?))
    }
}

fn load(config: &SourceFile, weights: &SourceFile) -> Result<LoraAdapter, FormatError> {
    let config = AdapterConfig::of(&config.name, parse_json(config)?)?;
    let modules = tensors::read(weights, &config)?;
    Ok(LoraAdapter { config, modules })
}

fn required(folder: &mut dyn Folder, name: &str) -> Result<SourceFile, FormatError> {
    if let Some(file) = folder.take(name)? {
        return Ok(file);
    }
    match folder.names()?.iter().find(|name| name.starts_with("adapter_model.bin")) {
        Some(pickle) if name == WEIGHTS => {
            Err(FormatError::NotAModel { file: format!("{}/{pickle}", folder.label()), found: Foreign::Pickle })
        }
        _ => Err(FormatError::NoAdapter { folder: folder.label().to_owned(), missing: name.to_owned() }),
    }
}
