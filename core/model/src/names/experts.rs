//! Where a file keeps the matrices of a layer's experts.

use super::{Names, Piece, RowOrder};
use crate::config::Moe;

/// The three ways in which files store a layer's experts.
pub(super) enum ExpertFiles {
    /// GGUF: one tensor `[E, F, D]` for each of gate, up and down.
    Stacked { gate: String, up: String, down: String },
    /// One tensor `[E, 2F, D]` of gate and up, one `[E, D, F]` of down.
    Fused { gate_up: String, down: String },
    /// A tensor per expert; the name goes on with the expert's number.
    Single { root: String },
}

impl ExpertFiles {
    /// How the file with these names and tensors stores the experts of `layer`.
    pub fn of(names: &Names, layer: usize, has: &dyn Fn(&str) -> bool) -> Self {
        let name = |name: &str| names.of_layer(layer, name);
        let fused = name("mlp.experts.gate_up_proj");
        if names.layer_prefix == Names::gguf().layer_prefix {
            Self::Stacked {
                gate: name("ffn_gate_exps.weight"),
                up: name("ffn_up_exps.weight"),
                down: name("ffn_down_exps.weight"),
            }
        } else if has(&fused) {
            Self::Fused { gate_up: fused, down: name("mlp.experts.down_proj") }
        } else {
            Self::Single { root: name("mlp.experts.") }
        }
    }

    /// Gate rows of expert `e`, then its up rows.
    pub fn gate_up(&self, e: usize, moe: Moe, d_ff: usize, d_model: usize) -> Vec<Piece> {
        match self {
            Self::Stacked { gate, up, .. } => [gate, up].map(|name| slice(name, e, moe, d_ff, d_model)).into(),
            Self::Fused { gate_up, .. } => vec![slice(gate_up, e, moe, 2 * d_ff, d_model)],
            Self::Single { root } => {
                ["gate", "up"].map(|half| Piece::whole(format!("{root}{e}.{half}_proj.weight"), d_ff, d_model)).into()
            }
        }
    }

    /// Down rows of expert `e`.
    pub fn down(&self, e: usize, moe: Moe, d_ff: usize, d_model: usize) -> Piece {
        match self {
            Self::Stacked { down, .. } | Self::Fused { down, .. } => slice(down, e, moe, d_model, d_ff),
            Self::Single { root } => Piece::whole(format!("{root}{e}.down_proj.weight"), d_model, d_ff),
        }
    }
}

/// The rows of expert `e` in a tensor `[E, n_out, n_in]`.
fn slice(name: &str, e: usize, moe: Moe, n_out: usize, n_in: usize) -> Piece {
    Piece {
        tensor: name.to_owned(),
        shape: vec![moe.n_experts, n_out, n_in],
        rows: e * n_out..(e + 1) * n_out,
        order: RowOrder::AsStored,
    }
}
