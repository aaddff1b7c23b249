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
