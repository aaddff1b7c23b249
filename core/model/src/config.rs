//! What a model is, as plain data.
//!
//! The families differ in these values and in nothing else: one decoder reads them.
//! Two readers fill them, one for `config.json`, one for GGUF metadata; neither reads weights.

mod check;
mod family;
mod fields;
mod gguf;
mod huggingface;

use samara_formats::{Checkpoint, Metadata};
use samara_ops::{Activation, NormKind, QkNorm};

pub use self::family::Family;
use crate::{ModelError, rope::Rope};

/// The shape and the choices of one model.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Which published architecture this is.
    pub family: Family,
    /// Rows of the embedding table; may exceed the tokenizer's length (the rest is padding).
    pub vocab_size: usize,
    /// Width of the residual stream.
    pub d_model: usize,
    /// Width of the feed-forward layer, of one expert where there are experts.
    pub d_ff: usize,
    pub n_layers: usize,
    /// Query heads.
    pub n_heads: usize,
    /// Key and value heads; divides `n_heads`.
    pub n_kv_heads: usize,
    /// Width of one head; not always `d_model / n_heads`.
    pub head_dim: usize,
    /// Tokens the model was made for.
    pub context_length: usize,
    /// How activations are normalised. `Layer` has no weights in the files, `Rms` has.
    pub norm: NormKind,
    pub norm_eps: f32,
    /// Where in a layer the norms stand.
    pub placement: NormPlacement,
    /// Norm of queries and keys before they are rotated.
    pub qk_norm: QkNorm,
    /// Queries, keys and values are clamped to ± this, after their norm.
    pub clip_qkv: Option<f32>,
    pub activation: Activation,
    /// Experts in the place of one feed-forward layer.
    pub moe: Option<Moe>,
    /// The output head is the embedding table.
    pub tied_head: bool,
    /// Factor on embedding rows.
    pub embed_scale: f32,
    /// Factor on attention scores.
    pub attention_scale: f32,
    /// What each layer attends to; `n_layers` entries.
    pub attention: Vec<Attention>,
    /// Rotary embedding of the layers that attend to everything.
    pub rope_full: Rope,
    /// Rotary embedding of the layers that attend to a window.
    pub rope_sliding: Rope,
}

/// What a layer attends to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attention {
    /// Every earlier token.
    Full,
    /// This many latest tokens, the token itself included.
    Sliding(usize),
}

/// Where the norms of a layer stand. `f` is attention or feed-forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NormPlacement {
    /// `x + f(norm(x))`
    Pre,
    /// `x + norm(f(x))`
    Post,
    /// `x + norm(f(norm(x)))`
    Sandwich,
}

/// A feed-forward layer made of experts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moe {
    pub n_experts: usize,
    /// Experts a token visits.
    pub top_k: usize,
    /// The chosen experts' weights are scaled to sum to 1.
    pub renormalise: bool,
}

impl Config {
    /// The configuration a checkpoint declares.
    ///
    /// # Errors
    /// An unknown architecture, a missing or impossible value, or a feature that is not built.
    pub fn from_checkpoint(checkpoint: &Checkpoint) -> Result<Self, ModelError> {
        match checkpoint.metadata() {
            Metadata::HuggingFace(metadata) => Self::from_huggingface(checkpoint.source(), &metadata.config),
            Metadata::Gguf(metadata) => gguf::read(checkpoint, metadata),
        }
    }

    /// The configuration a `config.json` declares; `source` names it in errors.
    ///
    /// # Errors
    /// As [`Config::from_checkpoint`].
    pub fn from_huggingface(source: &str, config: &serde_json::Value) -> Result<Self, ModelError> {
        huggingface::read(source, config)
    }

    /// Width of all query heads together.
    pub fn q_width(&self) -> usize {
        self.n_heads * self.head_dim
    }

    /// Width of all key heads together, which is also that of the values.
    pub fn kv_width(&self) -> usize {
        self.n_kv_heads * self.head_dim
    }

    /// Says whether every token has an embedding row; callers ask once, where tokens come in.
    ///
    /// # Errors
    /// [`ModelError::TokenOutOfRange`] with the first one that has none.
    pub fn check_tokens(&self, tokens: &[u32]) -> Result<(), ModelError> {
        let outside = |token: &u32| usize::try_from(*token).is_ok_and(|id| id >= self.vocab_size);
        match tokens.iter().position(outside) {
            None => Ok(()),
            Some(position) => Err(ModelError::TokenOutOfRange {
                token: tokens.get(position).copied().unwrap_or_default(),
                position,
                vocab_size: self.vocab_size,
            }),
        }
    }
}
