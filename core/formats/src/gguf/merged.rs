//! A GGUF model written anew with other weights: what its file says of itself, and what each tensor is stored as.
//!
//! Follows the choices of llama.cpp's converter, so that its readers find what they expect.

use super::{GgufMetadata, GgufValue};
use crate::DType;

/// The metadata of the same model in one file.
pub fn unsplit_metadata(source: &GgufMetadata) -> GgufMetadata {
    let mut values = source.values.clone();
    values.retain(|key, _| !key.starts_with("split."));
    GgufMetadata { values }
}

/// The metadata of the same model stored as `kind`, in one file.
pub fn merged_metadata(source: &GgufMetadata, kind: DType) -> GgufMetadata {
    let GgufMetadata { mut values } = unsplit_metadata(source);
    values.insert("general.file_type".into(), GgufValue::U32(file_type(kind)));
    match kind.is_float() {
        true => values.remove("general.quantization_version"),
        false => values.insert("general.quantization_version".into(), GgufValue::U32(2)),
    };
    GgufMetadata { values }
}

/// What a tensor of a model stored as `kind` is itself stored as: vectors and routers stay exact, and rows that are no
/// whole blocks stay floats.
pub fn merged_dtype(name: &str, shape: &[usize], kind: DType) -> DType {
    let row_len = shape.last().copied().unwrap_or(1);
    if shape.len() < 2 || name.contains("ffn_gate_inp") || name.ends_with("_norm.weight") {
        DType::F32
    } else if row_len.is_multiple_of(kind.block_len()) {
        kind
    } else {
        DType::F16
    }
}

/// What `general.file_type` calls a file whose matrices are of this type; 1024 leaves it to the reader.
fn file_type(kind: DType) -> u32 {
    match kind {
        DType::F32 => 0,
        DType::F16 => 1,
        DType::Q8_0 => 7,
        DType::BF16 => 32,
        _ => 1024,
    }
}
