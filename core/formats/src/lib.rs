//! Model files as named tensors: GGUF and safetensors in, shapes, types and bytes out; and the way back, row by row.
//!
//! The one idea: a [`Checkpoint`] is cheap metadata over bytes that stay where they are (mapped natively, embedded or
//! downloaded in a browser), and everything the file claims is checked against its length before it is believed.
//! [`codec`] holds the block formats, which are the reference for the GPU's own unpacking.
//!
//! Not here: what a tensor means. Names stay as the file has them, and no family or device is known.
#![deny(clippy::indexing_slicing)]

mod checkpoint;
pub mod codec;
#[cfg(not(target_arch = "wasm32"))]
mod disk;
mod dtype;
mod error;
mod foreign;
pub mod gguf;
mod huggingface;
#[cfg(not(target_arch = "wasm32"))]
mod mmap;
mod new_tensor;
#[cfg(not(target_arch = "wasm32"))]
mod output;
pub mod peft;
mod source;
mod tensor;

pub use checkpoint::{Checkpoint, Metadata};
pub use dtype::DType;
pub use error::FormatError;
pub use foreign::Foreign;
pub use gguf::{GgufArray, GgufMetadata, GgufValue};
pub use huggingface::{HuggingFaceFiles, HuggingFaceMetadata};
#[cfg(not(target_arch = "wasm32"))]
pub use huggingface::{copy_companions, declare_dtype, write_companions, write_safetensors};
pub use new_tensor::NewTensor;
#[cfg(not(target_arch = "wasm32"))]
pub use output::{NewFolder, write_file};
pub use tensor::TensorInfo;
