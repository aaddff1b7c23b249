//! Where a model comes from.

use std::fmt;

use samara_formats::Checkpoint;

use crate::{ChatError, embedded};

/// A place to load a model from. A browser, which has no paths, opens a [`Checkpoint`] from bytes instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file or a folder: GGUF, safetensors, or a Hugging Face model.
    #[cfg(not(target_arch = "wasm32"))]
    Path(std::path::PathBuf),
    /// The tiny model inside the program.
    Embedded,
}

impl Source {
    /// Opens it: reads what the model says about itself, and none of its weights.
    ///
    /// # Errors
    /// What is wrong with which file, and where in it.
    pub fn open(&self) -> Result<Checkpoint, ChatError> {
        Ok(match self {
            #[cfg(not(target_arch = "wasm32"))]
            Self::Path(path) => Checkpoint::open(path)?,
            Self::Embedded => Checkpoint::from_huggingface(embedded::files())?,
        })
    }

    /// Copies config, tokenizer and template of a model in safetensors to the folder `to`, which is made.
    ///
    /// # Errors
    /// `to` is where the model itself lies, or a file cannot be read or written.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn copy_companions(&self, to: &std::path::Path) -> Result<(), ChatError> {
        match self {
            Self::Path(path) if path.is_dir() => samara_formats::copy_companions(path, to)?,
            Self::Path(path) => samara_formats::copy_companions(path.parent().unwrap_or(path), to)?,
            Self::Embedded => samara_formats::write_companions(embedded::files(), to)?,
        }
        Ok(())
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            #[cfg(not(target_arch = "wasm32"))]
            Self::Path(path) => path.display().fmt(f),
            Self::Embedded => f.write_str(embedded::NAME),
        }
    }
}
