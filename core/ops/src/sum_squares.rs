//! The squared length of tensors, gathered on the device, so that one readback tells of all gradients.

use crate::operation::{Host, HostMut, Launch, Operation};
use crate::run::{empty, float, into_float, run};
use burn::tensor::{Device, Tensor};
use samara_shaders::{SUM_SQUARES_F32, SumSquaresParams};

/// `sums[slot] = sum x²`.
#[derive(Debug, Clone, Copy)]
struct SumSquares(SumSquaresParams);

/// The squared length of each tensor, `[n]`; not a finite number where one holds such a value.
pub fn sum_squares<'a>(tensors: impl ExactSizeIterator<Item = &'a Tensor<2>>, device: &Device) -> Tensor<1> {
    let mut sums = empty([tensors.len().max(1)], device);
    for (slot, x) in tensors.enumerate() {
        let params = SumSquaresParams { n: x.shape().num_elements() as u32, slot: slot as u32 };
        sums = run(SumSquares(params), vec![float(x)], vec![into_float(sums)]).float();
    }
    sums
}

impl Operation for SumSquares {
    fn reference(&self, inputs: &[Host<'_>], outputs: &mut [HostMut<'_>]) {
        let sum = inputs[0].f32().iter().map(|x| x * x).sum();
        if let Some(slot) = outputs[0].f32().get_mut(self.0.slot as usize) {
            *slot = sum;
        }
    }

    fn launch(&self) -> Launch {
        Launch { kernel: &SUM_SQUARES_F32, groups: 1, params: self.0.words() }
    }
}
