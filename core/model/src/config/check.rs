//! The border between numbers from a file and numbers we compute with.
//!
//! After [`check`] every count is positive, bounded and consistent with the others; later code
//! does not ask again.

use super::{Attention, Config};
use crate::{
    ModelError,
    rope::{Rope, RopeScaling},
};

const MAX_LAYERS: usize = 1024;
const MAX_WIDTH: usize = 1 << 20;
const MAX_VOCAB: usize = 1 << 24;
/// The widest head that attention holds.
const MAX_HEAD_DIM: usize = 256;
const MAX_CONTEXT: usize = 1 << 28;
const MAX_EXPERTS: usize = 4096;
const MAX_EXPERTS_OF_ALL_LAYERS: usize = 1 << 17;
const MAX_EXPERT_ROWS: usize = 1 << 28;

/// Bounds the layer count before anything of that length is made.
pub(super) fn n_layers(source: &str, n_layers: usize) -> Result<(), ModelError> {
    at_most(source, "number of layers", n_layers, MAX_LAYERS)
}

/// Bounds every number and checks that they fit each other.
pub(super) fn check(source: &str, config: &Config) -> Result<(), ModelError> {
    n_layers(source, config.n_layers)?;
    for (what, found, most) in [
        ("vocabulary size", config.vocab_size, MAX_VOCAB),
        ("model width", config.d_model, MAX_WIDTH),
        ("feed-forward width", config.d_ff, MAX_WIDTH),
        ("number of heads", config.n_heads, MAX_WIDTH),
        ("number of key-value heads", config.n_kv_heads, config.n_heads),
        ("head width", config.head_dim, MAX_HEAD_DIM),
        ("context length", config.context_length, MAX_CONTEXT),
    ] {
        at_most(source, what, found, most)?;
    }
    at_most(source, "width of all heads", config.n_heads.saturating_mul(config.head_dim), MAX_WIDTH)?;
    fits(source, config)?;
    experts(source, config)?;
    rope(source, config, &config.rope_full)?;
    rope(source, config, &config.rope_sliding)
}

fn fits(source: &str, config: &Config) -> Result<(), ModelError> {
    if !config.n_heads.is_multiple_of(config.n_kv_heads) {
        let expected = format!("a divisor of the {} heads", config.n_heads);
        return Err(bad(source, "number of key-value heads", config.n_kv_heads, expected));
    }
    if !config.head_dim.is_multiple_of(2) {
        return Err(bad(source, "head width", config.head_dim, "an even number".to_owned()));
    }
    if config.attention.len() != config.n_layers {
        let expected = format!("one for each of the {} layers", config.n_layers);
        return Err(bad(source, "number of layer types", config.attention.len(), expected));
    }
    let windows = config.attention.iter().filter_map(|kind| match kind {
        Attention::Sliding(window) => Some(*window),
        Attention::Full => None,
    });
    windows.take(1).try_for_each(|n| at_most(source, "sliding window", n, MAX_CONTEXT))
}

fn experts(source: &str, config: &Config) -> Result<(), ModelError> {
    let Some(moe) = config.moe else { return Ok(()) };
    at_most(source, "number of experts", moe.n_experts, MAX_EXPERTS)?;
    let of_all_layers = moe.n_experts * config.n_layers;
    at_most(source, "experts of all layers", of_all_layers, MAX_EXPERTS_OF_ALL_LAYERS)?;
    let width = moe.n_experts.saturating_mul(config.d_ff);
    at_most(source, "feed-forward width of all experts", width, MAX_EXPERT_ROWS)?;
    at_most(source, "experts per token", moe.top_k, moe.n_experts)
}

fn rope(source: &str, config: &Config, rope: &Rope) -> Result<(), ModelError> {
    if rope.theta <= 1.0 {
        let expected = "above 1".to_owned();
        return Err(bad(source, "rotary base", rope.theta, expected));
    }
    let n_pairs = config.head_dim / 2;
    match &rope.scaling {
        RopeScaling::Divisors(by) if by.len() != n_pairs => {
            let expected = format!("one for each of the {n_pairs} pairs of a head");
            Err(bad(source, "number of rotary divisors", by.len(), expected))
        }
        RopeScaling::Divisors(by) if by.iter().any(|d| !d.is_normal() || *d <= 0.0) => {
            Err(bad(source, "rotary divisors", "out of range", "all above 0".to_owned()))
        }
        RopeScaling::Llama3(l) if l.high_freq_factor <= l.low_freq_factor => {
            let expected = format!("above low_freq_factor {}", l.low_freq_factor);
            Err(bad(source, "high_freq_factor", l.high_freq_factor, expected))
        }
        _ => Ok(()),
    }
}

fn at_most(source: &str, what: &str, found: usize, most: usize) -> Result<(), ModelError> {
    if (1..=most).contains(&found) {
        return Ok(());
    }
    Err(bad(source, what, found, format!("1 to {most}")))
}

fn bad(source: &str, what: &str, found: impl std::fmt::Display, expected: String) -> ModelError {
    ModelError::BadKey { source_name: source.to_owned(), key: what.to_owned(), expected, found: found.to_string() }
}
