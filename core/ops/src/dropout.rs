//! Dropout from a seed: which values are dropped is a hash of the seed and their place, so nothing is stored.

use crate::gradient::{Backward, Gradient, Target, Value};
use crate::operation::{Host, HostMut, Launch, Operation};
use crate::run::{empty, float, into_float, run};
use burn::tensor::Tensor;
use samara_shaders::{DROPOUT_F32, DropoutParams};

/// `y = x / (1 - rate)` where the hash falls above the rate, else 0.
#[derive(Debug, Clone, Copy)]
struct Dropout(DropoutParams);

/// Drops each value of `x` with probability `rate` and scales the rest by `1 / (1 - rate)` (Srivastava et al. 2014).
///
/// # Shapes
/// - x `[T, D]`
/// - result `[T, D]`
///
/// # Panics
/// If `rate` is not in `0.0..1.0`.
pub fn dropout(x: &Tensor<2>, rate: f32, seed: u32) -> Tensor<2> {
    assert!((0.0..1.0).contains(&rate), "dropout: a rate of {rate}");
    let [n_tokens, width] = x.dims();
    let n = (n_tokens * width) as u32;
    let params = DropoutParams { n, seed, threshold: threshold(rate), scale: 1.0 / (1.0 - rate) };
    run(Dropout(params), vec![float(x)], vec![into_float(empty(x.dims(), &x.device()))]).float()
}

impl Operation for Dropout {
    fn reference(&self, inputs: &[Host<'_>], outputs: &mut [HostMut<'_>]) {
        let DropoutParams { seed, threshold, scale, .. } = self.0;
        for (i, (x, y)) in inputs[0].f32().iter().zip(outputs[0].f32()).enumerate() {
            *y = if hash(hash(i as u32) ^ seed) >= threshold { scale * x } else { 0.0 };
        }
    }

    fn launch(&self) -> Launch {
        Launch { kernel: &DROPOUT_F32, groups: u64::from(self.0.n).div_ceil(64), params: self.0.words() }
    }

    /// The same values are dropped from the gradient.
    fn gradients(&self) -> Vec<Gradient> {
        vec![Gradient::of_first([Backward::new(*self, [Value::Incoming], [Target::Of(Value::Input(0))])])]
    }
}

/// What a hash falls below with probability `rate`.
pub(crate) fn threshold(rate: f32) -> u32 {
    (f64::from(rate) * 2.0f64.powi(32)) as u32
}

/// PCG's output permutation of a counter (O'Neill 2014).
pub(crate) fn hash(value: u32) -> u32 {
    let state = value.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
    let word = ((state >> ((state >> 28) + 4)) ^ state).wrapping_mul(277_803_737);
    (word >> 22) ^ word
}
