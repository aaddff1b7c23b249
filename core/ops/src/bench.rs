//! What `samara bench` measures and checks: an operation at one size as plain data, the work it cannot do without, and
//! a form of it that is ready to be launched again and again.
//!
//! No clock is read here: the device times its own work, and a caller who wants more looks at their own clock. Inputs
//! are random with fixed seeds, so every device gets the same. Models use nothing of this.

mod fill;
mod launches;
mod ready;
mod work;

pub use ready::Ready;
pub use work::{Work, largest_error};

use crate::family::Family;
use crate::glu::Activation;
use crate::kv::KvFormats;
use crate::norm::NormKind;
use crate::qk_norm_rope::{HeadShape, QkNorm};
use samara_shaders::Format;

/// An operation at one size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Subject {
    /// [`crate::ceiling_copy`].
    CeilingCopy { n_values: usize },
    /// [`crate::ceiling_multiply_add`].
    CeilingMultiplyAdd { n_values: usize, n_rounds: u32 },
    /// [`crate::linear`].
    Linear { format: Format, family: Family, n_tokens: usize, n_out: usize, n_in: usize },
    /// [`crate::gated_linear`] of one token, with `n_out` results.
    GatedLinear { format: Format, family: Family, activation: Activation, n_out: usize, n_in: usize },
    /// [`crate::stock_matmul`].
    StockMatmul { n_tokens: usize, n_out: usize, n_in: usize },
    /// [`crate::embed`].
    Embed { format: Format, n_tokens: usize, n_rows: usize, n_in: usize },
    /// [`crate::moe_route`], [`crate::moe_linear`] with two of the experts for each token, [`crate::moe_combine`].
    Experts { format: Format, n_tokens: usize, n_experts: usize, n_out: usize, n_in: usize },
    /// [`crate::norm`].
    Norm { kind: NormKind, n_tokens: usize, width: usize },
    /// [`crate::norm_add`].
    NormAdd { kind: NormKind, n_tokens: usize, width: usize },
    /// [`crate::add_norm`].
    AddNorm { kind: NormKind, n_tokens: usize, width: usize },
    /// [`crate::glu`].
    Glu { activation: Activation, n_tokens: usize, d_ff: usize },
    /// [`crate::qk_norm_rope`].
    QkNormRope { norm: QkNorm, heads: HeadShape, n_tokens: usize },
    /// [`crate::attention`] of tokens of which the last sees `n_keys` keys, its own among them.
    Attention { family: Family, kv: KvFormats, heads: HeadShape, n_tokens: usize, n_keys: usize },
    /// [`crate::penalise`] of every 37th token.
    Penalise { vocab_size: usize },
    /// [`crate::greedy`].
    Greedy { vocab_size: usize },
    /// [`crate::greedy`] and [`crate::sample`] among the 40 likeliest.
    Sample { vocab_size: usize },
}

/// The heads of an OLMo 2 1B.
pub const OLMO2_1B_HEADS: HeadShape = HeadShape { n_heads: 16, n_kv_heads: 16, head_dim: 128 };

impl Subject {
    /// What people call it; a product of up to four tokens is a matvec.
    pub fn name(&self) -> &'static str {
        match self {
            Self::CeilingCopy { .. } => "ceiling_copy",
            Self::CeilingMultiplyAdd { .. } => "ceiling_multiply_add",
            Self::Linear { n_tokens: ..=4, .. } => "matvec",
            Self::Linear { .. } => "matmul",
            Self::GatedLinear { .. } => "gated_matvec",
            Self::StockMatmul { .. } => "stock_matmul",
            Self::Embed { .. } => "embed",
            Self::Experts { .. } => "moe",
            Self::Norm { .. } => "norm",
            Self::NormAdd { .. } => "norm_add",
            Self::AddNorm { .. } => "add_norm",
            Self::Glu { .. } => "glu",
            Self::QkNormRope { .. } => "qk_norm_rope",
            Self::Attention { .. } => "attention",
            Self::Penalise { .. } => "penalise",
            Self::Greedy { .. } => "greedy",
            Self::Sample { .. } => "sample",
        }
    }

    /// The format of its weights, where it reads any.
    pub fn format(&self) -> Option<Format> {
        match self {
            Self::Linear { format, .. }
            | Self::GatedLinear { format, .. }
            | Self::Embed { format, .. }
            | Self::Experts { format, .. } => Some(*format),
            Self::StockMatmul { .. } => Some(Format::F32),
            _ => None,
        }
    }

    /// The family of its kernel, where there are two.
    pub fn family(&self) -> Option<Family> {
        match self {
            Self::Linear { family, .. } | Self::GatedLinear { family, .. } | Self::Attention { family, .. } => {
                Some(*family)
            }
            _ => None,
        }
    }

    /// Its size in a few letters, tokens first.
    pub fn shape(&self) -> String {
        match *self {
            Self::CeilingCopy { n_values } | Self::CeilingMultiplyAdd { n_values, .. } => format!("{n_values} values"),
            Self::Linear { n_tokens, n_out, n_in, .. } | Self::StockMatmul { n_tokens, n_out, n_in } => {
                format!("{n_tokens} x {n_out}x{n_in}")
            }
            Self::GatedLinear { n_out, n_in, .. } => format!("1 x 2x{n_out}x{n_in}"),
            Self::Embed { n_tokens, n_in, .. } => format!("{n_tokens} x {n_in}"),
            Self::Experts { n_tokens, n_experts, n_out, n_in, .. } => {
                format!("{n_tokens} x {n_experts}x{n_out}x{n_in}")
            }
            Self::Norm { n_tokens, width, .. }
            | Self::NormAdd { n_tokens, width, .. }
            | Self::AddNorm { n_tokens, width, .. } => format!("{n_tokens} x {width}"),
            Self::Glu { n_tokens, d_ff, .. } => format!("{n_tokens} x {d_ff}"),
            Self::QkNormRope { n_tokens, heads, .. } => format!("{n_tokens} x {}", heads_of(heads)),
            Self::Attention { kv, heads, n_tokens, n_keys, .. } => {
                format!("{n_tokens} x {n_keys} keys in {kv}, {}", heads_of(heads))
            }
            Self::Penalise { vocab_size } | Self::Greedy { vocab_size } | Self::Sample { vocab_size } => {
                format!("{vocab_size} logits")
            }
        }
    }
}

fn heads_of(heads: HeadShape) -> String {
    format!("{}/{}x{}", heads.n_heads, heads.n_kv_heads, heads.head_dim)
}
