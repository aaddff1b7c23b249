//! Draws a token from a row of logits: temperature, top-k, top-p, min-p, one random number.

mod reference;

use crate::error::SampleError;
use crate::greedy::log_prob;
use crate::operation::{Host, HostMut, Launch, Operation};
use crate::pick::{Picked, packs};
use crate::run::{empty_int, float, int, into_int, run};
use crate::step::{DRAW_WORD, HEADER_WORDS, Step};
use burn::tensor::{Int, Tensor};
use samara_shaders::{SAMPLE_SCALAR, SAMPLE_VEC4, SampleParams};

/// How a token is drawn. The settings apply in the order of the fields; each keeps what equals the lowest that it keeps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Draw {
    /// Divides the logits; above 0.
    pub temperature: f32,
    /// Keeps the highest logits; 0 keeps all.
    pub top_k: usize,
    /// Keeps the fewest highest logits whose probabilities reach this (Holtzman et al. 2020); 1 keeps all.
    pub top_p: f32,
    /// Keeps tokens at least so many times as likely as the likeliest; 0 keeps all.
    pub min_p: f32,
    /// Where in `[0, 1)`, over the shares of the tokens laid end to end, the choice falls. On a device it comes with the
    /// [`Step`], so that nothing else changes from token to token.
    pub uniform: f64,
}

/// A draw from one row of `n_logits`.
#[derive(Debug, Clone, Copy)]
struct Sample {
    draw: Draw,
    limit: usize,
    n_logits: usize,
}

/// A token below `limit` drawn from `softmax(adjusted / temperature)`; for [`crate::Picking`].
///
/// `step` brings the draw and gets the token as its first id. `likeliest` is what [`crate::greedy`] gave for the same rows; where that is an error, so is this. The log-probability
/// is the model's own, under the softmax of the whole row of `logits`.
///
/// # Shapes
/// - logits, adjusted `[1, V]`, likeliest `[2]`
/// - result `[2]`
pub fn sample(
    logits: &Tensor<2>,
    adjusted: &Tensor<2>,
    likeliest: &Tensor<1, Int>,
    step: &mut Step,
    limit: usize,
    draw: &Draw,
) -> Tensor<1, Int> {
    let n_logits = logits.dims()[1];
    assert_eq!(logits.dims(), adjusted.dims(), "sample: two forms of one row");
    let operation = Sample { draw: *draw, limit: limit.min(n_logits), n_logits };
    let picked = empty_int([2], &logits.device());
    let inputs = vec![float(logits), float(adjusted), int(likeliest)];
    let mut written = run(operation, inputs, vec![into_int(picked), step.take()]);
    let picked = written.int();
    step.put_back(written.int());
    picked
}

/// [`sample`] on a row in host memory.
pub(crate) fn drawn(logits: &[f32], adjusted: &[f32], likeliest: Picked, limit: usize, draw: &Draw) -> Picked {
    let token = reference::draw(&adjusted[..limit.min(adjusted.len())], draw).unwrap_or(likeliest.token);
    Picked { token, logprob: log_prob(logits, token) as f32 }
}

impl Sample {
    /// Floats that a device might flush to zero or take to infinity are kept within the normal ones.
    fn params(&self) -> SampleParams {
        let Draw { temperature, top_k, top_p, min_p, .. } = self.draw;
        SampleParams {
            n_packs: packs(self.n_logits),
            limit: self.limit as u32,
            top_k: if top_k < self.n_logits { top_k as u32 } else { 0 },
            top_p,
            min_p_gap: (-min_p.ln() * temperature).clamp(0.0, f32::MAX),
            inverse_temperature: temperature.recip().clamp(f32::MIN_POSITIVE, f32::MAX),
        }
    }
}

impl Operation for Sample {
    fn reference(&self, inputs: &[Host<'_>], outputs: &mut [HostMut<'_>]) {
        let (logits, adjusted, likeliest) = (inputs[0].f32(), inputs[1].f32(), inputs[2].u32());
        let draw = Draw { uniform: f64::from(f32::from_bits(outputs[1].u32()[DRAW_WORD])), ..self.draw };
        let picked: Result<Picked, SampleError> =
            Picked::from_words(likeliest).map(|likeliest| drawn(logits, adjusted, likeliest, self.limit, &draw));
        outputs[0].u32().copy_from_slice(&Picked::words(picked));
        outputs[1].u32()[HEADER_WORDS] = picked.map_or(0, |picked| picked.token);
    }

    fn launch(&self) -> Launch {
        let kernel = if self.n_logits.is_multiple_of(4) { &SAMPLE_VEC4 } else { &SAMPLE_SCALAR };
        Launch { kernel, groups: 1, params: self.params().words() }
    }
}
