//! Says how the next token of a sequence is chosen. The choosing itself is an operation of the device.
//!
//! The randomness is made by [`uniform`] from the seed and the index of the token alone. So neither chunk size, nor prefix
//! reuse, nor another sequence can change what a seed gives.

use std::collections::BTreeMap;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use samara_ops::{Adjustment, Choice, Draw};

use crate::Sampling;

/// The choice of a token below `limit`.
///
/// `history` holds the sequence so far, for the penalties; `uniform` in `[0, 1)` decides where temperature leaves a choice.
/// Equal logits rank by id, the lower first.
pub(crate) fn choice(sampling: &Sampling, limit: usize, history: &[u32], uniform: f64) -> Choice {
    let Sampling { temperature, top_k, top_p, min_p, .. } = *sampling;
    let draw = (temperature > 0.0).then_some(Draw { temperature, top_k, top_p, min_p, uniform });
    Choice { adjustments: adjustments(sampling, history), limit, draw }
}

/// A number in `[0, 1)` that depends on nothing but its arguments: one ChaCha8 stream per token index.
pub fn uniform(seed: u64, token_idx: u64) -> f64 {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    let mut rng = ChaCha8Rng::from_seed(key);
    rng.set_stream(token_idx);
    // The 53 bits that an f64 between 0 and 1 can hold.
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// Bias and penalties of single tokens, in order of tokens.
fn adjustments(sampling: &Sampling, history: &[u32]) -> Vec<Adjustment> {
    let mut by_token = BTreeMap::new();
    for &(token, bias) in &sampling.logit_bias {
        let of_token = by_token.entry(token).or_insert(Adjustment::none(token));
        of_token.bias = (of_token.bias + bias).min(f32::MAX);
    }
    for (token, count) in penalised(sampling, history) {
        let of_token = by_token.entry(token).or_insert(Adjustment::none(token));
        of_token.repetition = sampling.repetition_penalty;
        of_token.penalty = sampling.presence_penalty + sampling.frequency_penalty * count;
    }
    by_token.into_values().collect()
}

/// The tokens of the penalties' window and how often each occurs there; none where no penalty is set.
fn penalised(sampling: &Sampling, history: &[u32]) -> BTreeMap<u32, f32> {
    let Sampling { repetition_penalty, presence_penalty, frequency_penalty, penalty_window, .. } = *sampling;
    let idle = (repetition_penalty, presence_penalty, frequency_penalty) == (1.0, 0.0, 0.0);
    let mut counts = BTreeMap::new();
    for &token in history.iter().rev().take(if idle { 0 } else { penalty_window }) {
        *counts.entry(token).or_insert(0.0) += 1.0;
    }
    counts
}

#[cfg(test)]
mod tests;
