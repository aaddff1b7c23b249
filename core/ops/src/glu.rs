//! The gated activation of the feed-forward part.

mod backward;

use crate::gradient::Gradient;
use crate::operation::{Host, HostMut, Launch, Operation};
use crate::run::{empty, float, into_float, run};
use burn::tensor::Tensor;
use samara_shaders::{GLU_GELU_TANH, GLU_SILU, GluParams};

/// The gate's activation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// `x * sigmoid(x)`: SwiGLU, of Llama and OLMo.
    Silu,
    /// GELU in its tanh form: GeGLU, of Gemma.
    GeluTanh,
}

/// `act(gate) * up`.
#[derive(Debug, Clone, Copy)]
struct Glu {
    activation: Activation,
    params: GluParams,
}

/// `act(x[.., ..F]) * x[.., F..]` (Shazeer 2020).
///
/// # Shapes
/// - x `[T, 2F]`: gate, then up
/// - result `[T, F]`
pub fn glu(x: &Tensor<2>, activation: Activation) -> Tensor<2> {
    let [n_tokens, width] = x.dims();
    let params = GluParams { n_tokens: n_tokens as u32, d_ff: width as u32 / 2 };
    let y = empty([n_tokens, width / 2], &x.device());
    run(Glu { activation, params }, vec![float(x)], vec![into_float(y)]).float()
}

impl Operation for Glu {
    fn reference(&self, inputs: &[Host<'_>], outputs: &mut [HostMut<'_>]) {
        let d_ff = self.params.d_ff as usize;
        let rows = inputs[0].f32().chunks_exact(2 * d_ff);
        for (x, y) in rows.zip(outputs[0].f32().chunks_exact_mut(d_ff)) {
            let (gate, up) = x.split_at(d_ff);
            y.iter_mut().zip(gate).zip(up).for_each(|((y, gate), up)| *y = self.activation.of(*gate) * up);
        }
    }

    fn launch(&self) -> Launch {
        let kernel = match self.activation {
            Activation::Silu => &GLU_SILU,
            Activation::GeluTanh => &GLU_GELU_TANH,
        };
        let n_elements = u64::from(self.params.n_tokens) * u64::from(self.params.d_ff);
        Launch { kernel, groups: n_elements.div_ceil(64), params: self.params.words() }
    }

    fn gradients(&self) -> Vec<Gradient> {
        backward::gradients(self.activation, self.params)
    }
}

impl Activation {
    pub(crate) fn of(self, x: f32) -> f32 {
        match self {
            Self::Silu => x / (1.0 + (-x).exp()),
            Self::GeluTanh => {
                let inner = (2.0 / std::f32::consts::PI).sqrt() * (x + 0.044_715 * x * x * x);
                0.5 * x * (1.0 + inner.tanh())
            }
        }
    }
}
