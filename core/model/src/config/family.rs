//! The published architectures, each as the choices that all its models share.

use std::fmt;

use samara_ops::{Activation, NormKind, QkNorm};

use super::NormPlacement;

/// A published architecture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    Llama,
    Olmo,
    Olmo2,
    Olmo3,
    Olmoe,
    Gemma3,
}

/// What every model of one family has in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Traits {
    pub norm: NormKind,
    pub placement: NormPlacement,
    pub qk_norm: QkNorm,
    pub activation: Activation,
    /// What `config.json` calls the activation.
    pub activation_name: &'static str,
    /// Norm epsilon where the file gives none.
    pub norm_eps: f64,
    /// Rotary base of full layers where the file gives none.
    pub rope_theta: f64,
    /// Rotary base of sliding layers where the file gives none; `None` = that of full layers.
    pub rope_theta_sliding: Option<f64>,
    /// Where the file lists no layer kinds: one layer in this many is full, the others slide.
    pub sliding_period: Option<usize>,
    /// Tokens the model was made for where the file does not say.
    pub context_length: usize,
    /// The head is the embedding table where the file does not say.
    pub tied_head: bool,
}

/// Llama's choices, which the other families are told apart from.
const LLAMA: Traits = Traits {
    norm: NormKind::Rms,
    placement: NormPlacement::Pre,
    qk_norm: QkNorm::None,
    activation: Activation::Silu,
    activation_name: "silu",
    norm_eps: 1e-6,
    rope_theta: 1e4,
    rope_theta_sliding: None,
    sliding_period: None,
    context_length: 2048,
    tied_head: false,
};

impl Family {
    pub const ALL: [Self; 6] = [Self::Llama, Self::Olmo, Self::Olmo2, Self::Olmo3, Self::Olmoe, Self::Gemma3];

    pub(crate) const fn traits(self) -> Traits {
        match self {
            Self::Llama => LLAMA,
            Self::Olmo => Traits { norm: NormKind::Layer, norm_eps: 1e-5, ..LLAMA },
            Self::Olmo2 => POST_NORM,
            Self::Olmo3 => Traits { rope_theta: 5e5, sliding_period: Some(4), ..POST_NORM },
            Self::Olmoe => OLMOE,
            Self::Gemma3 => GEMMA3,
        }
    }

    /// The name `config.json` uses as `model_type`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Llama => "llama",
            Self::Olmo => "olmo",
            Self::Olmo2 => "olmo2",
            Self::Olmo3 => "olmo3",
            Self::Olmoe => "olmoe",
            Self::Gemma3 => "gemma3",
        }
    }

    /// Every family's name, for messages.
    pub(crate) fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }
}

const POST_NORM: Traits = Traits { placement: NormPlacement::Post, qk_norm: QkNorm::Full, norm_eps: 1e-5, ..LLAMA };

const OLMOE: Traits = Traits { qk_norm: QkNorm::Full, norm_eps: 1e-5, context_length: 4096, ..LLAMA };

const GEMMA3: Traits = Traits {
    placement: NormPlacement::Sandwich,
    qk_norm: QkNorm::PerHead,
    activation: Activation::GeluTanh,
    activation_name: "gelu_pytorch_tanh",
    rope_theta: 1e6,
    rope_theta_sliding: Some(1e4),
    sliding_period: Some(6),
    context_length: 131_072,
    tied_head: true,
    ..LLAMA
};

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
