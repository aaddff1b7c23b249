//! Chooses one token from one row of logits.
//!
//! [`sample`] is a pure function: the randomness is an argument, made by [`uniform`] from the seed and the index of the
//! token alone. So neither chunk size, nor prefix reuse, nor another sequence can change what a seed gives.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use crate::{SampleError, Sampling};

/// A chosen token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Picked {
    pub token: u32,
    /// The model's own log-probability of it: the softmax over every row, before any setting.
    pub logprob: f32,
}

/// Chooses a token below `limit` from `logits` `[V]`.
///
/// `history` holds the sequence so far, for the penalties; `draw` in `[0, 1)` decides where temperature leaves a choice.
/// Equal logits rank by id, the lower first.
///
/// # Errors
/// A logit that is NaN or +inf, or no token left to choose.
pub fn sample(
    logits: &[f32],
    limit: usize,
    history: &[u32],
    sampling: &Sampling,
    draw: f64,
) -> Result<Picked, SampleError> {
    check_finite(logits)?;
    let mut adjusted: Vec<f32> = logits.iter().copied().take(limit).collect();
    add_bias(&mut adjusted, &sampling.logit_bias);
    add_penalties(&mut adjusted, history, sampling);
    let mut candidates = candidates(&adjusted);
    let best = best(&candidates).ok_or(SampleError::NothingLeft)?;
    let token = if sampling.temperature == 0.0 {
        best.id
    } else {
        top_k(&mut candidates, sampling.top_k);
        set_weights(&mut candidates, best.logit, sampling.temperature);
        top_p(&mut candidates, f64::from(sampling.top_p));
        candidates.retain(|c| c.weight >= f64::from(sampling.min_p));
        choose(candidates, draw).unwrap_or(best.id)
    };
    Ok(Picked { token, logprob: log_prob(logits, token) as f32 })
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

/// The log-probability of `token` under the softmax of `logits` `[V]`, summed in f64. NaN where `token >= V`.
pub fn log_prob(logits: &[f32], token: u32) -> f64 {
    let max = f64::from(logits.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    let sum: f64 = logits.iter().map(|&x| (f64::from(x) - max).exp()).sum();
    logits.get(token as usize).map_or(f64::NAN, |&x| f64::from(x) - max - sum.ln())
}

/// Refuses a row in which a number has broken down. -inf is a number: it says "never".
pub(crate) fn check_finite(logits: &[f32]) -> Result<(), SampleError> {
    match logits.iter().enumerate().find(|(_, x)| x.is_nan() || **x == f32::INFINITY) {
        Some((token, &value)) => Err(SampleError::NotFinite { token, value }),
        None => Ok(()),
    }
}

/// One token that may still be chosen.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    id: u32,
    logit: f32,
    /// Unnormalised probability; 1 for the best.
    weight: f64,
}

/// Higher logits first, then lower ids.
fn by_rank(a: &Candidate, b: &Candidate) -> Ordering {
    b.logit.total_cmp(&a.logit).then(a.id.cmp(&b.id))
}

fn candidates(logits: &[f32]) -> Vec<Candidate> {
    let all = (0..).zip(logits).map(|(id, &logit)| Candidate { id, logit, weight: 0.0 });
    all.filter(|c| c.logit > f32::NEG_INFINITY).collect()
}

fn best(candidates: &[Candidate]) -> Option<Candidate> {
    candidates.iter().copied().min_by(by_rank)
}

fn add_bias(logits: &mut [f32], bias: &[(u32, f32)]) {
    for &(token, bias) in bias {
        if let Some(x) = logits.get_mut(token as usize) {
            *x += bias;
        }
    }
}

fn add_penalties(logits: &mut [f32], history: &[u32], sampling: &Sampling) {
    let Sampling { repetition_penalty, presence_penalty, frequency_penalty, .. } = *sampling;
    if (repetition_penalty, presence_penalty, frequency_penalty) == (1.0, 0.0, 0.0) {
        return;
    }
    for (token, count) in counts(history, sampling.penalty_window) {
        if let Some(x) = logits.get_mut(token as usize) {
            *x = if *x > 0.0 { *x / repetition_penalty } else { *x * repetition_penalty };
            *x -= presence_penalty + frequency_penalty * count;
        }
    }
}

/// How often each token occurs in the last `window` of `history`.
fn counts(history: &[u32], window: usize) -> BTreeMap<u32, f32> {
    let mut counts = BTreeMap::new();
    for &token in history.iter().rev().take(window) {
        *counts.entry(token).or_insert(0.0) += 1.0;
    }
    counts
}

/// Keeps the `k` best and whatever equals the last of them.
fn top_k(candidates: &mut Vec<Candidate>, k: usize) {
    if k == 0 || k >= candidates.len() {
        return;
    }
    let (_, &mut kth, _) = candidates.select_nth_unstable_by(k - 1, by_rank);
    candidates.retain(|c| c.logit >= kth.logit);
}

fn set_weights(candidates: &mut [Candidate], max_logit: f32, temperature: f32) {
    for c in candidates {
        c.weight = ((f64::from(c.logit) - f64::from(max_logit)) / f64::from(temperature)).exp();
    }
}

/// Keeps the best candidates up to and including the one whose weight brings their share to `p`.
///
/// Few candidates usually suffice, so it ranks a short head first and a longer one only where that falls short.
fn top_p(candidates: &mut Vec<Candidate>, p: f64) {
    if p >= 1.0 {
        return;
    }
    let target = p * candidates.iter().map(|c| c.weight).sum::<f64>();
    let mut n_head = 64;
    while n_head < candidates.len() {
        candidates.select_nth_unstable_by(n_head, by_rank);
        if let Some(n) = n_reaching(&mut candidates[..n_head], target) {
            return candidates.truncate(n);
        }
        n_head *= 8;
    }
    if let Some(n) = n_reaching(candidates, target) {
        candidates.truncate(n);
    }
}

/// Ranks `head`; how many of its first reach `target` together, if all of them do.
fn n_reaching(head: &mut [Candidate], target: f64) -> Option<usize> {
    head.sort_unstable_by(by_rank);
    let mut sum = 0.0;
    let crossing = head.iter().position(|c| {
        sum += c.weight;
        sum >= target
    });
    crossing.map(|idx| idx + 1)
}

/// The candidate in whose share of the total weight `draw` falls, shares laid out by id.
///
/// Laying them out by id makes the choice independent of how the filters left the list ordered.
fn choose(mut candidates: Vec<Candidate>, draw: f64) -> Option<u32> {
    candidates.sort_unstable_by_key(|c| c.id);
    let mut left = draw * candidates.iter().map(|c| c.weight).sum::<f64>();
    let chosen = candidates.iter().find(|c| {
        left -= c.weight;
        left < 0.0
    });
    // Rounding can leave a rest of the draw after the last share.
    chosen.or_else(|| candidates.iter().rev().find(|c| c.weight > 0.0)).map(|c| c.id)
}

#[cfg(test)]
mod tests;
