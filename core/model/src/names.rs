//! Which tensors of a file make up which weights of the decoder.
//!
//! A [`Plan`] lists, for every weight on the device, the pieces it is put together from, in row
//! order: queries, keys and values one after another; each expert's gate and up. Two tables of
//! names, one per file kind, are all that tells the sources apart. Nothing is read here.

mod check;
mod experts;
mod plan;

use std::ops::Range;

use crate::config::NormPlacement;

pub(crate) use self::{
    check::check,
    plan::{FeedForwardPlan, LayerPlan, Plan},
};

pub(crate) const GGUF_EMBED: &str = "token_embd.weight";
pub(crate) const GGUF_HEAD: &str = "output.weight";
pub(crate) const GGUF_ROPE_DIVISORS: &str = "rope_freqs.weight";

/// A device matrix `[sum of the pieces' rows, n_in]`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MatrixPlan {
    pub n_in: usize,
    pub pieces: Vec<Piece>,
}

/// Some rows of one tensor.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Piece {
    pub tensor: String,
    /// Shape the whole tensor must have, outermost dimension first.
    pub shape: Vec<usize>,
    pub rows: Range<usize>,
    pub order: RowOrder,
}

/// How rows lie in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowOrder {
    /// As the decoder wants them: both halves of a head one after the other.
    AsStored,
    /// Rows `i` and `i + head_dim / 2` of each head stand next to each other, for runtimes that
    /// rotate adjacent pairs.
    Interleaved { head_dim: usize },
}

impl RowOrder {
    /// Where the decoder wants the row that stands at `idx` in the file.
    pub fn decoder_row(self, idx: usize) -> usize {
        match self {
            Self::AsStored => idx,
            Self::Interleaved { head_dim } => {
                let (head, in_head) = (idx / head_dim, idx % head_dim);
                head * head_dim + in_head % 2 * (head_dim / 2) + in_head / 2
            }
        }
    }
}

/// A device vector: tensors one after another, or all ones where there is none.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct VectorPlan {
    /// Names and lengths.
    pub tensors: Vec<(String, usize)>,
    pub len: usize,
    /// Added to every value: 1 where a file stores a scale as its distance from 1.
    pub add: f32,
}

impl Piece {
    /// All rows of a matrix `[n_out, n_in]`.
    pub fn whole(tensor: String, n_out: usize, n_in: usize) -> Self {
        Self { tensor, shape: vec![n_out, n_in], rows: 0..n_out, order: RowOrder::AsStored }
    }
}

/// The names one kind of file uses. Those of a layer follow `layer_prefix`, the layer and a dot.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    pub embed: String,
    pub head: String,
    pub final_norm: String,
    pub layer_prefix: String,
    pub q: &'static str,
    pub k: &'static str,
    pub v: &'static str,
    pub o: &'static str,
    pub q_norm: &'static str,
    pub k_norm: &'static str,
    pub norm_before_attention: &'static str,
    pub norm_after_attention: &'static str,
    pub norm_before_mlp: &'static str,
    pub norm_after_mlp: &'static str,
    pub gate: &'static str,
    pub up: &'static str,
    pub down: &'static str,
    pub router: &'static str,
}

impl Names {
    /// Names in safetensors files; `root` comes before `embed_tokens` and `layers`.
    pub fn huggingface(root: &str, head: &str, placement: NormPlacement) -> Self {
        Self {
            embed: format!("{root}embed_tokens.weight"),
            head: head.to_owned(),
            final_norm: format!("{root}norm.weight"),
            layer_prefix: format!("{root}layers."),
            q: "self_attn.q_proj.weight",
            k: "self_attn.k_proj.weight",
            v: "self_attn.v_proj.weight",
            o: "self_attn.o_proj.weight",
            q_norm: "self_attn.q_norm.weight",
            k_norm: "self_attn.k_norm.weight",
            norm_before_attention: "input_layernorm.weight",
            norm_after_attention: "post_attention_layernorm.weight",
            // Where nothing follows attention, the name "post attention" means "before the MLP".
            norm_before_mlp: match placement {
                NormPlacement::Sandwich => "pre_feedforward_layernorm.weight",
                NormPlacement::Pre | NormPlacement::Post => "post_attention_layernorm.weight",
            },
            norm_after_mlp: "post_feedforward_layernorm.weight",
            gate: "mlp.gate_proj.weight",
            up: "mlp.up_proj.weight",
            down: "mlp.down_proj.weight",
            router: "mlp.gate.weight",
        }
    }

    /// Names in GGUF files.
    pub fn gguf() -> Self {
        Self {
            embed: GGUF_EMBED.to_owned(),
            head: GGUF_HEAD.to_owned(),
            final_norm: "output_norm.weight".to_owned(),
            layer_prefix: "blk.".to_owned(),
            q: "attn_q.weight",
            k: "attn_k.weight",
            v: "attn_v.weight",
            o: "attn_output.weight",
            q_norm: "attn_q_norm.weight",
            k_norm: "attn_k_norm.weight",
            norm_before_attention: "attn_norm.weight",
            norm_after_attention: "post_attention_norm.weight",
            norm_before_mlp: "ffn_norm.weight",
            norm_after_mlp: "post_ffw_norm.weight",
            gate: "ffn_gate.weight",
            up: "ffn_up.weight",
            down: "ffn_down.weight",
            router: "ffn_gate_inp.weight",
        }
    }

    /// The full name of a layer's tensor.
    pub fn of_layer(&self, layer: usize, name: &str) -> String {
        format!("{}{layer}.{name}", self.layer_prefix)
    }
}

#[cfg(test)]
mod tests;
