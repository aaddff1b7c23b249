//! The families as mathematics: configuration, tensor names, layers, KV cache.
//!
//! One decoder serves Llama, OLMo 1, OLMo 2, Olmo 3, OLMoE and Gemma 3; they differ in [`Config`]
//! alone. A checkpoint goes in, logits come out, and after loading every shape is proven.
//!
//! Not here: sampling, text, files' formats, and which kernel computes what.
#![deny(clippy::indexing_slicing)]

mod adapter;
pub mod cache;
pub mod config;
pub mod decoder;
mod error;
mod exit;
mod export;
mod load;
pub mod memory;
mod merge;
mod names;
pub mod replay;
mod rope;
mod scaled;

pub use self::{
    adapter::{Adapter, Product, Site},
    cache::KvCache,
    config::{Attention, Config, Family, Moe, NormPlacement},
    decoder::{Decoder, Parameter, TensorRows, Trunk, Want, parameter_tensors},
    error::ModelError,
    exit::Stream,
    export::gguf_adapter,
    load::LoadProgress,
    memory::{DeviceMemory, Room},
    merge::Merge,
    scaled::ScaledAdapter,
};
pub use samara_ops::{Activation, KvFormat, KvFormats, NormKind, QkNorm, UnknownKvFormats};
