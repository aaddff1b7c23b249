//! A LoRA adapter as GGUF: its A and B beside the names that the base model's own GGUF uses.
//!
//! Readers scale by `adapter.lora.alpha` over the rank and know no other rule, so alpha is stored such that this gives
//! the adapter's scale. Follows `convert_lora_to_gguf.py` of llama.cpp.
//!
//! Not here: the table from module paths to GGUF names, and the adapters of single experts, which would be stacked.

use super::write::{GgufTensor, encode};
use super::{GgufMetadata, GgufValue};
use crate::error::shown;
use crate::peft::AdapterConfig;
use crate::{DType, FormatError, codec};

/// What is added to one matrix of the base model.
#[derive(Debug, Clone)]
pub struct GgufLora<'a> {
    /// The matrix in the base model's file, for instance `blk.0.attn_q.weight`.
    pub name: &'a str,
    pub d_in: usize,
    pub d_out: usize,
    /// `[rank, d_in]`.
    pub a: &'a [f32],
    /// `[d_out, rank]`, rows in the order of the matrix in that file: see [`interleaved_rows`].
    pub b: &'a [f32],
}

/// The bytes of a GGUF adapter, in f32, for base models whose `general.architecture` is `architecture`.
///
/// # Errors
/// A DoRA adapter, an alpha of 0, or values that do not fit the sizes.
pub fn encode_lora(
    architecture: &str,
    config: &AdapterConfig,
    modules: &[GgufLora<'_>],
) -> Result<Vec<u8>, FormatError> {
    if config.use_dora {
        return Err(FormatError::NoGgufForm { reason: "whose adapters have no magnitudes, and it is a DoRA" });
    }
    if config.alpha == 0.0 {
        return Err(FormatError::NoGgufForm { reason: "where an alpha of 0 means a scale of 1" });
    }
    let stored = modules.iter().map(|module| stored(module, config.rank)).collect::<Result<Vec<_>, _>>()?;
    let tensors: Vec<_> = stored.iter().flatten().map(Stored::borrowed).collect();
    encode(&metadata(architecture, config), &tensors)
}

/// Writes what [`encode_lora`] gives at `path`; the file appears under its name when it is whole.
///
/// # Errors
/// As [`encode_lora`], or a failing write.
#[cfg(not(target_arch = "wasm32"))]
pub fn write_lora(
    path: &std::path::Path,
    architecture: &str,
    config: &AdapterConfig,
    modules: &[GgufLora<'_>],
) -> Result<(), FormatError> {
    crate::output::write_file(path, &encode_lora(architecture, config, modules)?)
}

/// Rows as files of the architectures `llama` and `olmo` keep those of queries and keys: in each head, row `i` of its
/// second half comes right after row `i` of its first. What does not fill a head stays as it is.
pub fn interleaved_rows(rows: &[f32], row_len: usize, head_dim: usize) -> Vec<f32> {
    let half = head_dim / 2 * row_len;
    if half == 0 {
        return rows.to_vec();
    }
    let mut out = Vec::with_capacity(rows.len());
    let heads = rows.chunks_exact(2 * half);
    let rest = heads.remainder();
    for (first, second) in heads.map(|head| head.split_at(half)) {
        let pairs = first.chunks_exact(row_len).zip(second.chunks_exact(row_len));
        pairs.for_each(|(a, b)| out.extend(a.iter().chain(b)));
    }
    out.extend(rest);
    out
}

/// A tensor that owns what [`GgufTensor`] borrows.
struct Stored {
    name: String,
    shape: [usize; 2],
    bytes: Vec<u8>,
}

impl Stored {
    fn borrowed(&self) -> GgufTensor<'_> {
        GgufTensor { name: &self.name, shape: &self.shape, dtype: DType::F32, bytes: &self.bytes }
    }
}

fn stored(module: &GgufLora<'_>, rank: usize) -> Result<[Stored; 2], FormatError> {
    let GgufLora { name, d_in, d_out, a, b } = module;
    let tensor = |part: &str, shape: [usize; 2], values: &[f32]| {
        let [n_rows, row_len] = shape;
        let (tensor, expected) = (format!("{name}.{part}"), n_rows.saturating_mul(row_len));
        if values.len() != expected {
            let tensor = shown(&tensor);
            return Err(FormatError::RowValues { tensor, rows: 0..n_rows, found: values.len(), expected });
        }
        Ok(Stored { name: tensor, shape, bytes: codec::to_f32(values) })
    };
    Ok([tensor("lora_a", [rank, *d_in], a)?, tensor("lora_b", [*d_out, rank], b)?])
}

fn metadata(architecture: &str, config: &AdapterConfig) -> GgufMetadata {
    let text = |text: &str| GgufValue::String(text.to_owned());
    let alpha = config.scale() * config.rank as f32;
    let values = [
        ("general.architecture", text(architecture)),
        ("general.type", text("adapter")),
        ("adapter.type", text("lora")),
        ("adapter.lora.alpha", GgufValue::F32(alpha)),
    ];
    GgufMetadata { values: values.map(|(key, value)| (key.to_owned(), value)).into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_a_head_are_interleaved() {
        let rows: Vec<f32> = (0..16).map(|i| i as f32).collect();
        assert_eq!(interleaved_rows(&rows[..8], 1, 4), [0.0, 2.0, 1.0, 3.0, 4.0, 6.0, 5.0, 7.0]);
        assert_eq!(interleaved_rows(&rows[..8], 2, 4), [0.0, 1.0, 4.0, 5.0, 2.0, 3.0, 6.0, 7.0]);
        assert_eq!(interleaved_rows(&rows[..3], 1, 2), [0.0, 1.0, 2.0]);
        assert_eq!(interleaved_rows(&rows[..3], 0, 0), [0.0, 1.0, 2.0]);
    }
}
