//! RMSNorm and LayerNorm, alone and with the residual that stands before or after them.

mod backward;

use crate::gradient::{Gradient, Value};
use crate::operation::{Host, HostMut, Launch, Operation};
use crate::run::{empty, float, into_float, run};
use burn::tensor::Tensor;
use samara_shaders::{
    ADD_NORM_LAYER, ADD_NORM_RMS, Kernel, NORM_ADD_LAYER, NORM_ADD_RMS, NORM_LAYER, NORM_RMS, NormParams,
};

/// Which moments a norm uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NormKind {
    /// `x / sqrt(mean(x²) + eps)` (Zhang & Sennrich 2019).
    Rms,
    /// `(x - mean(x)) / sqrt(var(x) + eps)` (Ba et al. 2016).
    Layer,
}

/// A norm over the last dimension.
#[derive(Debug, Clone)]
pub struct Norm {
    /// Which moments.
    pub kind: NormKind,
    /// `[D]`; ones where the model has no weight (OLMo 1).
    pub weight: Tensor<1>,
    /// Added to the variance.
    pub eps: f32,
}

impl Norm {
    /// Bytes in device memory.
    pub fn n_bytes(&self) -> u64 {
        4 * self.weight.dims()[0] as u64
    }
}

/// Where the residual stands.
#[derive(Debug, Clone, Copy)]
enum Placement {
    /// `norm(x)`.
    Alone,
    /// `residual + norm(x)`.
    Inside,
    /// `norm(residual + x)`, and the sum.
    Before,
}

/// One launch of a norm.
#[derive(Debug, Clone, Copy)]
struct Normalise {
    kind: NormKind,
    placement: Placement,
    params: NormParams,
}

/// `w * (x - mean) / sqrt(variance + eps)`.
///
/// # Shapes
/// - x `[R, D]`
/// - result `[R, D]`
pub fn norm(x: &Tensor<2>, n: &Norm) -> Tensor<2> {
    let operation = Normalise::new(x, n, Placement::Alone);
    run(operation, vec![float(x), float(&n.weight)], vec![into_float(empty(x.dims(), &x.device()))]).float()
}

/// `residual + norm(x)`: the post-norm block of OLMo 2 and 3, whose residual skips the norm.
///
/// # Shapes
/// - x, residual `[R, D]`
/// - result `[R, D]`
pub fn norm_add(x: &Tensor<2>, n: &Norm, residual: &Tensor<2>) -> Tensor<2> {
    let operation = Normalise::new(x, n, Placement::Inside);
    run(operation, vec![float(x), float(&n.weight), float(residual)], vec![into_float(empty(x.dims(), &x.device()))])
        .float()
}

/// `(s, norm(s))` with `s = residual + x`: what a pre-norm block carries on, and what its next part reads.
///
/// # Shapes
/// - x, residual `[R, D]`
/// - results `[R, D]`
pub fn add_norm(x: &Tensor<2>, residual: &Tensor<2>, n: &Norm) -> (Tensor<2>, Tensor<2>) {
    let operation = Normalise::new(x, n, Placement::Before);
    let outputs = vec![into_float(empty(x.dims(), &x.device())), into_float(empty(x.dims(), &x.device()))];
    let mut outputs = run(operation, vec![float(x), float(&n.weight), float(residual)], outputs);
    (outputs.float(), outputs.float())
}

impl Normalise {
    fn new(x: &Tensor<2>, n: &Norm, placement: Placement) -> Self {
        let [n_rows, width] = x.dims();
        assert_eq!(n.weight.dims(), [width], "norm: x is [{n_rows}, {width}]");
        Self { kind: n.kind, placement, params: NormParams { n_rows: n_rows as u32, width: width as u32, eps: n.eps } }
    }

    fn kernel(&self) -> &'static Kernel {
        match (self.placement, self.kind) {
            (Placement::Alone, NormKind::Rms) => &NORM_RMS,
            (Placement::Alone, NormKind::Layer) => &NORM_LAYER,
            (Placement::Inside, NormKind::Rms) => &NORM_ADD_RMS,
            (Placement::Inside, NormKind::Layer) => &NORM_ADD_LAYER,
            (Placement::Before, NormKind::Rms) => &ADD_NORM_RMS,
            (Placement::Before, NormKind::Layer) => &ADD_NORM_LAYER,
        }
    }
}

impl Operation for Normalise {
    fn reference(&self, inputs: &[Host<'_>], outputs: &mut [HostMut<'_>]) {
        let (x, w) = (inputs[0].f32(), inputs[1].f32());
        let one_row = |x: &[f32], y: &mut [f32]| normalise(self.kind, x, w, self.params.eps, y);
        let width = w.len();
        match self.placement {
            Placement::Alone => rows(x, outputs[0].f32(), width, one_row),
            Placement::Inside => {
                rows(x, outputs[0].f32(), width, one_row);
                outputs[0].f32().iter_mut().zip(inputs[2].f32()).for_each(|(y, residual)| *y += residual);
            }
            Placement::Before => {
                let sum: Vec<f32> = x.iter().zip(inputs[2].f32()).map(|(x, residual)| residual + x).collect();
                rows(&sum, outputs[1].f32(), width, one_row);
                outputs[0].f32().copy_from_slice(&sum);
            }
        }
    }

    fn launch(&self) -> Launch {
        Launch { kernel: self.kernel(), groups: u64::from(self.params.n_rows), params: self.params.words() }
    }

    fn gradients(&self) -> Vec<Gradient> {
        let of_norm = |of, x| Gradient { of, passes_to: Vec::new(), launches: backward::launches(self, x) };
        let residual = Value::Input(2);
        match self.placement {
            Placement::Alone => vec![of_norm(0, Value::Input(0))],
            Placement::Inside => vec![Gradient { passes_to: vec![residual], ..of_norm(0, Value::Input(0)) }],
            Placement::Before => {
                let sum = Gradient { of: 0, passes_to: vec![Value::Input(0), residual], launches: Vec::new() };
                vec![sum, of_norm(1, Value::Output(0))]
            }
        }
    }
}

fn rows(x: &[f32], y: &mut [f32], width: usize, one_row: impl Fn(&[f32], &mut [f32])) {
    x.chunks_exact(width).zip(y.chunks_exact_mut(width)).for_each(|(x, y)| one_row(x, y));
}

fn normalise(kind: NormKind, x: &[f32], w: &[f32], eps: f32, y: &mut [f32]) {
    let mean = match kind {
        NormKind::Rms => 0.0,
        NormKind::Layer => x.iter().sum::<f32>() / x.len() as f32,
    };
    let variance = x.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / x.len() as f32;
    let inverse = 1.0 / (variance + eps).sqrt();
    y.iter_mut().zip(x).zip(w).for_each(|((y, x), w)| *y = w * ((x - mean) * inverse));
}
