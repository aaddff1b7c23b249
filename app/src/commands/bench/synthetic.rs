//! Models of random weights in memory, for speed alone: no file, no download, and the loader cannot tell.
//!
//! They have the shape and the tensor names of an OLMo 2 in GGUF. Codes are random, scales are fixed and small, norms are
//! ones, so activations stay as large as in a real model. What such a model says means nothing.

use std::collections::BTreeMap;

use clap::ValueEnum;
use samara_formats::gguf::{GgufTensor, encode};
use samara_formats::{Checkpoint, DType, GgufMetadata, GgufValue, codec};

/// Tokens that the models claim to be made for.
const CONTEXT_TOKENS: u32 = 16_384;

/// Which shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Synthetic {
    /// Two layers of width 256, to see that all works
    Tiny,
    /// OLMo 2 1B: 1.5 billion weights in 16 layers of width 2048
    #[value(name = "olmo2-1b")]
    Olmo2Of1B,
}

/// How matrices are quantised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum BlockType {
    /// 4.5 bits a weight, a scale for 32 weights
    #[value(name = "q4_0")]
    Q4_0,
    /// 4.5 bits a weight, scales and minima in blocks of 256
    #[value(name = "q4_k")]
    Q4K,
}

struct Shape {
    d_model: usize,
    n_layers: usize,
    n_heads: usize,
    d_ff: usize,
    vocab_size: usize,
}

/// A tensor that owns what [`GgufTensor`] borrows.
struct Tensor {
    name: String,
    shape: Vec<usize>,
    dtype: DType,
    bytes: Vec<u8>,
}

impl Synthetic {
    /// The model, as if it had been read from a file.
    pub(super) fn checkpoint(self, block_type: BlockType) -> anyhow::Result<Checkpoint> {
        let shape = self.shape();
        let tensors = shape.tensors(block_type);
        let bytes = encode(&shape.metadata(), &tensors.iter().map(Tensor::borrowed).collect::<Vec<_>>())?;
        drop(tensors);
        Ok(Checkpoint::from_gguf("synthetic.gguf", bytes)?)
    }

    fn shape(self) -> Shape {
        match self {
            Self::Tiny => Shape { d_model: 256, n_layers: 2, n_heads: 4, d_ff: 512, vocab_size: 1000 },
            Self::Olmo2Of1B => Shape { d_model: 2048, n_layers: 16, n_heads: 16, d_ff: 8192, vocab_size: 100_352 },
        }
    }
}

impl Shape {
    fn metadata(&self) -> GgufMetadata {
        let number = |key: &str, value: usize| (format!("olmo2.{key}"), GgufValue::U32(value as u32));
        let values = BTreeMap::from([
            ("general.architecture".to_owned(), GgufValue::String("olmo2".to_owned())),
            number("embedding_length", self.d_model),
            number("block_count", self.n_layers),
            number("attention.head_count", self.n_heads),
            number("feed_forward_length", self.d_ff),
            ("olmo2.context_length".to_owned(), GgufValue::U32(CONTEXT_TOKENS)),
            ("olmo2.attention.layer_norm_rms_epsilon".to_owned(), GgufValue::F32(1e-6)),
            ("olmo2.rope.freq_base".to_owned(), GgufValue::F32(500_000.0)),
        ]);
        GgufMetadata { values }
    }

    fn tensors(&self, block_type: BlockType) -> Vec<Tensor> {
        let mut seed = 0;
        let mut matrix = |name: String, n_out: usize, n_in: usize| {
            seed += 1;
            Tensor {
                name,
                shape: vec![n_out, n_in],
                dtype: block_type.dtype(),
                bytes: block_type.blocks(n_out * n_in, seed),
            }
        };
        let &Self { d_model, d_ff, vocab_size, .. } = self;
        let ones = |name: String| Tensor {
            name,
            shape: vec![d_model],
            dtype: DType::F32,
            bytes: codec::to_f32(&vec![1.0; d_model]),
        };
        let mut tensors = vec![
            matrix("token_embd.weight".to_owned(), vocab_size, d_model),
            matrix("output.weight".to_owned(), vocab_size, d_model),
            ones("output_norm.weight".to_owned()),
        ];
        for layer in 0..self.n_layers {
            let of_layer = |name: &str| format!("blk.{layer}.{name}.weight");
            let square = ["attn_q", "attn_k", "attn_v", "attn_output"];
            tensors.extend(square.map(|name| matrix(of_layer(name), d_model, d_model)));
            tensors.extend(["ffn_gate", "ffn_up"].map(|name| matrix(of_layer(name), d_ff, d_model)));
            tensors.push(matrix(of_layer("ffn_down"), d_model, d_ff));
            let norms = ["attn_q_norm", "attn_k_norm", "post_attention_norm", "post_ffw_norm"];
            tensors.extend(norms.map(|name| ones(of_layer(name))));
        }
        tensors
    }
}

impl Tensor {
    fn borrowed(&self) -> GgufTensor<'_> {
        GgufTensor { name: &self.name, shape: &self.shape, dtype: self.dtype, bytes: &self.bytes }
    }
}

impl BlockType {
    fn dtype(self) -> DType {
        match self {
            Self::Q4_0 => DType::Q4_0,
            Self::Q4K => DType::Q4K,
        }
    }

    /// The numbers that every block begins with: weights lie around 0 and below a half.
    fn scales(self) -> Vec<u8> {
        match self {
            Self::Q4_0 => codec::to_f16(&[1.0 / 64.0]),
            Self::Q4K => codec::to_f16(&[1.0 / 2048.0, 7.5 / 2048.0]),
        }
    }

    /// Random blocks (SplitMix64) with the same scales.
    fn blocks(self, n_values: usize, seed: u64) -> Vec<u8> {
        let dtype = self.dtype();
        let mut bytes = vec![0; n_values / dtype.block_len() * dtype.block_bytes()];
        let mut state = seed << 32;
        for word in bytes.as_chunks_mut::<8>().0 {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            *word = (z ^ (z >> 31)).to_le_bytes();
        }
        let scales = self.scales();
        for block in bytes.chunks_exact_mut(dtype.block_bytes()) {
            block.iter_mut().zip(&scales).for_each(|(byte, scale)| *byte = *scale);
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use samara_model::{Config, Family};

    use super::*;

    #[test]
    fn a_synthetic_model_passes_for_an_olmo_2() {
        for block_type in [BlockType::Q4_0, BlockType::Q4K] {
            let checkpoint = Synthetic::Tiny.checkpoint(block_type).unwrap();
            let config = Config::from_checkpoint(&checkpoint).unwrap();
            assert_eq!((config.family, config.vocab_size, config.head_dim), (Family::Olmo2, 1000, 64));
        }
    }

    #[test]
    fn weights_lie_around_zero() {
        for block_type in [BlockType::Q4_0, BlockType::Q4K] {
            let mut values = vec![0.0; 1 << 16];
            codec::dequantize(block_type.dtype(), &block_type.blocks(1 << 16, 1), &mut values).unwrap();
            let mean = values.iter().sum::<f32>() / values.len() as f32;
            let largest = values.iter().fold(0.0f32, |largest, value| largest.max(value.abs()));
            assert!(mean.abs() < 0.02 && largest < 0.5, "{block_type:?}: mean {mean}, largest {largest}");
        }
    }
}
