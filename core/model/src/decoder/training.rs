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
}

impl Decoder {
    /// For documents of at most `max_tokens` tokens each.
    pub fn trunk(&self, max_tokens: usize) -> Trunk {
        Trunk { ropes: RopeTables::new(&self.config, max_tokens, &self.device) }
    }

    /// Before the first layer: the embeddings of all tokens.
    pub fn enter(&self, documents: &Documents) -> Stream {
        Stream::enter(documents.step(), &self.embed, self.entry.as_ref(), self.config.embed_scale)
    }

    /// Through some layers.
    pub fn pass(&self, layers: Range<usize>, stream: Stream, documents: &Documents, trunk: &Trunk) -> Stream {
        let layers = self.layers.get(layers).unwrap_or_default().iter();
        layers.fold(stream, |stream, layer| layer.over(stream, documents, trunk))
    }

    /// The loss of what the last layer gives, and its gradients with respect to that and to a dense head.
    pub fn loss(&self, hidden: &Tensor<2>, documents: &Documents, spec: &LossSpec) -> Loss {
        ops::cross_entropy(hidden, self.head.as_ref().unwrap_or(&self.embed), documents, spec)
    }
}

impl Layer {
    /// All tokens, each over its own document.
    fn over(&self, stream: Stream, documents: &Documents, trunk: &Trunk) -> Stream {
        let attend = |qkv: &Tensor<2>| {
            let rope = trunk.ropes.of(self.span);
            ops::self_attention(qkv, &self.qk_norm, rope, documents, &self.qk, &self.attention)
        };
        self.forward(stream, attend, |x, w, activation| ops::glu(&ops::linear(x, w), activation))
    }
}
