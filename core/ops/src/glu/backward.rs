//! The gradient of the gated activation.

use super::Activation;
use crate::gradient::{Backward, Gradient, Target, Value};
use crate::operation::{Host, HostMut, Launch, Operation};
use samara_shaders::{GLU_BACKWARD_GELU_TANH, GLU_BACKWARD_SILU, GluBackwardParams, GluParams};

/// `dx` of gate and up.
#[derive(Debug, Clone, Copy)]
struct OfInput {
    activation: Activation,
    params: GluBackwardParams,
}

pub(super) fn gradients(activation: Activation, params: GluParams) -> Vec<Gradient> {
    let GluParams { n_tokens, d_ff } = params;
    let of_input = OfInput { activation, params: GluBackwardParams { n_tokens, d_ff } };
    let x = Value::Input(0);
    vec![Gradient::of_first([Backward::new(of_input, [x, Value::Incoming], [Target::Of(x)])])]
}

impl Operation for OfInput {
    fn reference(&self, inputs: &[Host<'_>], outputs: &mut [HostMut<'_>]) {
        let d_ff = self.params.d_ff as usize;
        let rows = inputs[0].f32().chunks_exact(2 * d_ff).zip(inputs[1].f32().chunks_exact(d_ff));
        for ((x, dy), dx) in rows.zip(outputs[0].f32().chunks_exact_mut(2 * d_ff)) {
            let ((gate, up), (dgate, dup)) = (x.split_at(d_ff), dx.split_at_mut(d_ff));
            for (i, dy) in dy.iter().enumerate() {
                dgate[i] = dy * self.activation.slope(gate[i]) * up[i];
                dup[i] = dy * self.activation.of(gate[i]);
            }
        }
    }

    fn launch(&self) -> Launch {
        let kernel = match self.activation {
            Activation::Silu => &GLU_BACKWARD_SILU,
            Activation::GeluTanh => &GLU_BACKWARD_GELU_TANH,
        };
        let n_elements = u64::from(self.params.n_tokens) * u64::from(self.params.d_ff);
        Launch { kernel, groups: n_elements.div_ceil(64), params: self.params.words() }
    }
}

impl Activation {
    /// The derivative.
    fn slope(self, x: f32) -> f32 {
        match self {
            Self::Silu => {
                let sigmoid = 1.0 / (1.0 + (-x).exp());
                sigmoid * (1.0 + x * (1.0 - sigmoid))
            }
            Self::GeluTanh => {
                let factor = (2.0 / std::f32::consts::PI).sqrt();
                let tanh = (factor * (x + 0.044_715 * x * x * x)).tanh();
                // Where tanh is saturated its slope is 0, however steep its argument is.
                let rest = 1.0 - tanh * tanh;
                let bend = if rest == 0.0 { 0.0 } else { rest * factor * (1.0 + 3.0 * 0.044_715 * x * x) };
                0.5 * (1.0 + tanh) + 0.5 * x * bend
            }
        }
    }
}
