//! What can go wrong between a checkpoint's bytes and a loaded decoder.
//!
//! Every variant says which file and which key or tensor, what was expected and what was found.
//! After loading there is nothing left to fail: forward passes return values.

use samara_formats::FormatError;
use samara_ops::{KvFormats, OpsError};

use crate::memory::{DeviceMemory, readable};

/// Why a checkpoint cannot become a decoder.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The architecture has no mapping here.
    #[error("{source_name}: unknown architecture `{found}`; supported are {supported}")]
    UnknownArchitecture { source_name: String, found: String, supported: String },

    /// The checkpoint is in the layout that OLMo used before it joined transformers.
    #[error(
        "{source_name}: this is the old OLMo layout (`{found}`); use the repository of the same name that ends in `-hf`"
    )]
    OldOlmoLayout { source_name: String, found: String },

    /// A key that must be there is not.
    #[error("{source_name}: `{key}` is missing")]
    MissingKey { source_name: String, key: String },

    /// A key holds something it cannot hold.
    #[error("{source_name}: `{key}` is {found}, expected {expected}")]
    BadKey { source_name: String, key: String, expected: String, found: String },

    /// A key asks for something that is not built.
    #[error("{source_name}: `{key}` = {found} is not supported; supported: {supported}")]
    Unsupported { source_name: String, key: String, found: String, supported: String },

    /// A tensor the configuration asks for is not in the checkpoint.
    #[error("{source_name}: tensor `{tensor}` is missing, expected shape {expected:?}")]
    MissingTensor { source_name: String, tensor: String, expected: Vec<usize> },

    /// A tensor has another shape than the configuration says.
    #[error("{source_name}: tensor `{tensor}` has shape {found:?}, expected {expected:?}")]
    TensorShape { source_name: String, tensor: String, expected: Vec<usize>, found: Vec<usize> },

    /// The checkpoint holds a tensor that the architecture has no place for.
    #[error("{source_name}: tensor `{tensor}` (shape {found:?}) has no place in architecture {family}")]
    UnknownTensor { source_name: String, tensor: String, family: String, found: Vec<usize> },

    /// A token id has no row in the embedding table.
    #[error("token {token} at position {position} is outside the vocabulary of {vocab_size} rows")]
    TokenOutOfRange { token: u32, position: usize, vocab_size: usize },

    /// One buffer of the cache would be larger than the device binds at once.
    #[error(
        "{source_name}: a context of {context_tokens} tokens is too long for this device, which binds at most {} at once; \
         {max_tokens} tokens are possible (--context {max_tokens})",
        readable(*.max_binding_bytes)
    )]
    ContextTooLong { source_name: String, context_tokens: usize, max_tokens: usize, max_binding_bytes: u64 },

    /// The device has less memory than model and context need.
    #[error(
        "{source_name}: {} are needed and {} are free: {} for weights,{} {} for keys and values of {context_tokens} tokens, \
         {} to compute in; {}",
        readable(.needed.total_bytes()), readable(*.free_bytes), readable(.needed.weights_bytes), adapters(.needed),
        readable(.needed.kv_bytes), readable(.needed.scratch_bytes), advice(*.fitting_tokens, *.fitting_kv)
    )]
    DoesNotFit {
        source_name: String,
        needed: DeviceMemory,
        context_tokens: usize,
        free_bytes: u64,
        /// The longest context that would fit; 0 where none does.
        fitting_tokens: usize,
        /// The most exact way to keep keys and values in which this context would fit.
        fitting_kv: Option<KvFormats>,
    },

    /// An adapter was made for another model.
    #[error("the LoRA adapter does not fit the model: {}", problems.join("; "))]
    Adapter { problems: Vec<String> },

    /// The same, where several adapters are given.
    #[error("{source_name}: {error}")]
    NamedAdapter { source_name: String, error: Box<ModelError> },

    /// The device failed while the weights were brought to it.
    #[error(transparent)]
    Device(#[from] OpsError),

    /// The checkpoint's bytes could not be read.
    #[error(transparent)]
    Format(#[from] FormatError),
}

fn adapters(needed: &DeviceMemory) -> String {
    match needed.adapters_bytes {
        0 => String::new(),
        n_bytes => format!(" {} for LoRA adapters,", readable(n_bytes)),
    }
}

fn advice(fitting_tokens: usize, fitting_kv: Option<KvFormats>) -> String {
    match (fitting_tokens, fitting_kv) {
        (0, None) => "no context is short enough: take a file with fewer bits a weight".to_owned(),
        (0, Some(kv)) => format!("they fit with --kv {kv}"),
        (n, None) => format!("a context of {n} tokens fits (--context {n})"),
        (n, Some(kv)) => format!("they fit with --kv {kv}, and a context of {n} tokens fits (--context {n})"),
    }
}
