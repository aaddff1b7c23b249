//! The decoder over whole documents, for training: the same layers, without a cache.
//!
//! A pass is cut into segments of layers, so that a trainer can keep the states between segments alone and compute a
//! segment's activations again when it comes to its gradient. Nothing here knows whether a tape is recording.

use std::ops::Range;

use burn::tensor::Tensor;
use samara_ops::{self as ops, Documents, Loss, LossSpec};

use super::{Decoder, Layer};
use crate::{cache::RopeTables, exit::Stream};

/// What training passes need beside the weights: rotations for every position.
pub struct Trunk {
    ropes: RopeTables,
    max_tokens: usize,
}

/// What lies between two layers, both `[T, D]`.
#[derive(Debug, Clone)]
pub struct TrunkState {
    /// The residual stream.
    pub residual: Tensor<2>,
    /// What the next layer is given; after the last one, what the head is given.
    pub input: Tensor<2>,
}

impl Decoder {
    /// For documents of at most `max_tokens` tokens each.
    pub fn trunk(&self, max_tokens: usize) -> Trunk {
        Trunk { ropes: RopeTables::new(&self.config, max_tokens, &self.device), max_tokens }
    }

    /// Before the first layer: the embeddings of all tokens.
    pub fn enter(&self, documents: &Documents) -> TrunkState {
        Stream::enter(documents.step(), &self.embed, self.entry.as_ref(), self.config.embed_scale).into()
    }

    /// Through some layers.
    pub fn pass(&self, layers: Range<usize>, state: TrunkState, documents: &Documents, trunk: &Trunk) -> TrunkState {
        let layers = self.layers.get(layers).unwrap_or_default().iter();
        layers.fold(state.into(), |stream: Stream, layer: &Layer| layer.over(stream, documents, trunk)).into()
    }

    /// The loss of what the last layer gives, and its gradients with respect to that and to a dense head.
    pub fn loss(&self, hidden: &Tensor<2>, documents: &Documents, spec: &LossSpec) -> Loss {
        ops::cross_entropy(hidden, self.head.as_ref().unwrap_or(&self.embed), documents, spec)
    }
}

impl Trunk {
    /// The most tokens of one document.
    pub fn max_tokens(&self) -> usize {
        self.max_tokens
    }
}

impl Layer {
    /// All tokens, each over its own document.
    fn over(&self, stream: Stream, documents: &Documents, trunk: &Trunk) -> Stream {
        self.forward(stream, |qkv| {
            let rope = trunk.ropes.of(self.span);
            ops::self_attention(qkv, &self.qk_norm, rope, documents, &self.qk, &self.attention)
        })
    }
}

impl From<Stream> for TrunkState {
    fn from(Stream { residual, input }: Stream) -> Self {
        Self { residual, input }
    }
}

impl From<TrunkState> for Stream {
    fn from(TrunkState { residual, input }: TrunkState) -> Self {
        Self { residual, input }
    }
}
