//! The likeliest token of a row of logits, and what every choice says of itself: its own log-probability.

use crate::error::SampleError;
use crate::operation::{Host, HostMut, Launch, Operation};
use crate::pick::{Picked, packs};
use crate::run::{empty_int, float, into_int, run};
use crate::step::{HEADER_WORDS, Step};
use burn::tensor::{Int, Tensor};
use samara_shaders::{GREEDY_SCALAR, GREEDY_VEC4, GreedyParams};

/// The highest of `adjusted`.
#[derive(Debug, Clone, Copy)]
struct Greedy {
    params: GreedyParams,
    n_logits: u32,
}

/// The token below `limit` whose `adjusted` logit is highest, the lower of equals; for [`crate::Picking`].
///
/// Its log-probability is the model's own, under the softmax of the whole row of `logits`. `step` gets it as its first id.
///
/// # Shapes
/// - logits, adjusted `[1, V]`
/// - result `[2]`
pub fn greedy(logits: &Tensor<2>, adjusted: &Tensor<2>, limit: usize, step: &mut Step) -> Tensor<1, Int> {
    let n_logits = logits.dims()[1];
    assert_eq!(logits.dims(), adjusted.dims(), "greedy: two forms of one row");
    let params = GreedyParams { n_packs: packs(n_logits), limit: limit.min(n_logits) as u32 };
    let picked = empty_int([2], &logits.device());
    let operation = Greedy { params, n_logits: n_logits as u32 };
    let mut written = run(operation, vec![float(logits), float(adjusted)], vec![into_int(picked), step.take()]);
    let picked = written.int();
    step.put_back(written.int());
    picked
}

/// The log-probability of `token` under the softmax of `logits` `[V]`, summed in f64. NaN where `token >= V`.
pub fn log_prob(logits: &[f32], token: u32) -> f64 {
    let max = f64::from(logits.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    let sum: f64 = logits.iter().map(|&x| (f64::from(x) - max).exp()).sum();
    logits.get(token as usize).map_or(f64::NAN, |&x| f64::from(x) - max - sum.ln())
}

/// Refuses a row in which a number has broken down. -inf is a number: it says "never".
///
/// # Errors
/// The first logit that is NaN or +inf.
pub fn check_finite(logits: &[f32]) -> Result<(), SampleError> {
    match logits.iter().position(|x| x.is_nan() || *x == f32::INFINITY) {
        Some(token) => Err(SampleError::NotFinite { token }),
        None => Ok(()),
    }
}

/// [`greedy`] on a row in host memory.
pub(crate) fn likeliest(logits: &[f32], adjusted: &[f32], limit: usize) -> Result<Picked, SampleError> {
    check_finite(logits)?;
    let candidates = (0..).zip(adjusted).take(limit).filter(|(_, logit)| **logit > f32::NEG_INFINITY);
    let best = candidates.reduce(|best, next| if next.1.total_cmp(best.1).is_gt() { next } else { best });
    let (token, _) = best.ok_or(SampleError::NothingLeft)?;
    Ok(Picked { token, logprob: log_prob(logits, token) as f32 })
}

impl Operation for Greedy {
    fn reference(&self, inputs: &[Host<'_>], outputs: &mut [HostMut<'_>]) {
        let picked = likeliest(inputs[0].f32(), inputs[1].f32(), self.params.limit as usize);
        outputs[0].u32().copy_from_slice(&Picked::words(picked));
        outputs[1].u32()[HEADER_WORDS] = picked.map_or(0, |picked| picked.token);
    }

    fn launch(&self) -> Launch {
        let kernel = if self.n_logits.is_multiple_of(4) { &GREEDY_VEC4 } else { &GREEDY_SCALAR };
        Launch { kernel, groups: 1, params: self.params.words() }
    }
}
