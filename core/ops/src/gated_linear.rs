//! The first half of a gated feed-forward part in one launch: both products of a token, and the activation between them.

use crate::family::{Family, Kernels, Task};
use crate::glu::{Activation, glu};
use crate::linear::{MATVEC_LANES_ROWS, MATVEC_TILE_ROWS, MATVEC_TILES_PER_GROUP, dot, linear};
use crate::operation::{Host, HostMut, Launch, Operation};
use crate::run::{empty, float, into_float, run};
use crate::weight::{Weight, rows};
use burn::tensor::Tensor;
use samara_shaders::{Format, GATED_LANES, GATED_MATVEC, GATED_TILE, GatedMatvecParams};

/// Results that one workgroup of `gated_matvec` takes.
const MATVEC_RESULTS: u32 = 8;

/// `y[f] = act(x w[f]) * x w[F + f]` for one token.
#[derive(Debug, Clone, Copy)]
struct GatedLinear {
    format: Format,
    kernels: Kernels,
    activation: Activation,
    params: GatedMatvecParams,
}

/// `act(x w[..F]ᵀ) * (x w[F..]ᵀ)` (Shazeer 2020): one launch for one token where the weight lies in one part, else as many as
/// [`linear`] takes and one more. It has no gradient; a tape takes [`linear`] and [`glu`].
///
/// # Shapes
/// - x `[T, D]`, w `[2F, D]`: gate, then up
/// - result `[T, F]`
///
/// # Panics
/// If the widths differ.
pub fn gated_linear(x: &Tensor<2>, w: &Weight, activation: Activation) -> Tensor<2> {
    let [n_tokens, n_in] = x.dims();
    let part = match w.parts() {
        [part] if n_tokens == 1 => part,
        _ => return glu(&linear(x, w), activation),
    };
    assert_eq!(n_in, w.n_in(), "gated_linear: x is [1, {n_in}], the weight has rows of {}", w.n_in());
    let n_results = w.n_out() / 2;
    let params = GatedMatvecParams {
        n_tokens: 1,
        n_in: n_in as u32,
        n_rows: w.n_out() as u32,
        n_out: n_results as u32,
        first_column: 0,
        gelu: u32::from(activation == Activation::GeluTanh),
    };
    let operation = GatedLinear { format: part.format, kernels: w.kernels(), activation, params };
    let inputs = std::iter::once(float(x)).chain(part.buffers()).collect();
    run(operation, inputs, vec![into_float(empty([1, n_results], &x.device()))]).float()
}

impl Operation for GatedLinear {
    fn reference(&self, inputs: &[Host<'_>], outputs: &mut [HostMut<'_>]) {
        let x = inputs[0].f32();
        let (w, _) = rows(self.format, self.params.n_in, &inputs[1..]);
        let n_results = self.params.n_out as usize;
        for (f, y) in outputs[0].f32().iter_mut().enumerate() {
            let [gate, up] = [f, n_results + f].map(|row| dot(x, &w.decode(row)));
            *y = self.activation.of(gate) * up;
        }
    }

    fn launch(&self) -> Launch {
        let n_results = self.params.n_out;
        let groups = |results: u32| u64::from(n_results.div_ceil(results));
        let format = self.format as usize;
        let (kernel, groups) = match self.kernels.of(Task::Matvec) {
            Family::Workgroup => (GATED_MATVEC[format], groups(MATVEC_RESULTS)),
            Family::Invocation => (GATED_TILE[format], groups(MATVEC_TILE_ROWS / 2).div_ceil(MATVEC_TILES_PER_GROUP)),
            Family::Subgroup => (GATED_LANES[format], groups(MATVEC_LANES_ROWS / 2)),
        };
        Launch { kernel, groups, params: self.params.words() }
    }
}
