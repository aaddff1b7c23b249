//! What no operation can be faster than: a copy and a chain of multiply-adds. And Burn's own product, to compare with.
//!
//! A rate means little by itself; its share of what the same device does at best, in the same run, means the same
//! everywhere. Models use nothing of this.

use crate::operation::{Host, HostMut, Launch, Operation};
use crate::run::{float, into_float, run};
use burn::tensor::Tensor;
use samara_shaders::{CEILING_COPY_F32, CEILING_MULTIPLY_ADD_F32, CeilingCopyParams, CeilingMultiplyAddParams};

/// Values that one workgroup of `ceiling_copy` copies.
const COPIED_PER_GROUP: u64 = 4 * 16 * 64;
/// Values that one workgroup of `ceiling_multiply_add` computes.
const COMPUTED_PER_GROUP: u64 = 64;
/// Independent chains of each value of `ceiling_multiply_add`, and steps of each in a round.
const CHAINS: u32 = 8;
const STEPS: u32 = 4;

/// `y = x`.
#[derive(Debug, Clone, Copy)]
struct Copying(CeilingCopyParams);

/// Rounds of four `z <- factor z + summand`, in eight chains.
#[derive(Debug, Clone, Copy)]
struct MultiplyAdd(CeilingMultiplyAddParams);

/// A copy of `x`: `8 N` bytes read and written, and no arithmetic.
///
/// # Shapes
/// - x `[N]`, result `[N]`
///
/// # Panics
/// If N is not a multiple of 4.
pub fn ceiling_copy(x: &Tensor<1>) -> Tensor<1> {
    let [n_values] = x.dims();
    assert!(n_values.is_multiple_of(4), "ceiling_copy: {n_values} values are no whole vectors of four");
    let operation = Copying(CeilingCopyParams { n_quads: n_values as u32 / 4 });
    run(operation, vec![float(x)], vec![into_float(x.empty_like())]).float()
}

/// `sum_c z_c` after `4 n_rounds` of `z_c <- 0.75 z_c + 0.5`, from `z_c = x + c` for c in 0..8: `64 N n_rounds` operations,
/// a multiplication and an addition counted as two, and `8 N` bytes.
///
/// # Shapes
/// - x `[N]`, result `[N]`
pub fn ceiling_multiply_add(x: &Tensor<1>, n_rounds: u32) -> Tensor<1> {
    let [n_values] = x.dims();
    let params = CeilingMultiplyAddParams { n_values: n_values as u32, n_rounds, factor: 0.75, summand: 0.5 };
    run(MultiplyAdd(params), vec![float(x)], vec![into_float(x.empty_like())]).float()
}

/// `x wᵀ` by Burn's own kernels.
///
/// # Shapes
/// - x `[T, D]`, w `[N, D]`
/// - result `[T, N]`
pub fn stock_matmul(x: &Tensor<2>, w: &Tensor<2>) -> Tensor<2> {
    x.clone().matmul(w.clone().transpose())
}

impl Operation for Copying {
    fn reference(&self, inputs: &[Host<'_>], outputs: &mut [HostMut<'_>]) {
        outputs[0].f32().copy_from_slice(inputs[0].f32());
    }

    fn launch(&self) -> Launch {
        let n_values = 4 * u64::from(self.0.n_quads);
        Launch { kernel: &CEILING_COPY_F32, groups: n_values.div_ceil(COPIED_PER_GROUP), params: self.0.words() }
    }
}

impl Operation for MultiplyAdd {
    fn reference(&self, inputs: &[Host<'_>], outputs: &mut [HostMut<'_>]) {
        let CeilingMultiplyAddParams { n_rounds, factor, summand, .. } = self.0;
        for (y, x) in outputs[0].f32().iter_mut().zip(inputs[0].f32()) {
            let chain = |start: f32| (0..STEPS * n_rounds).fold(start, |z, _| z * factor + summand);
            *y = (0..CHAINS).map(|c| chain(x + c as f32)).sum();
        }
    }

    fn launch(&self) -> Launch {
        let groups = u64::from(self.0.n_values).div_ceil(COMPUTED_PER_GROUP);
        Launch { kernel: &CEILING_MULTIPLY_ADD_F32, groups, params: self.0.words() }
    }
}
