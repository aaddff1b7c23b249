//! The gradients of a norm, of its input and of its weight.

use super::{NormKind, Normalise};
use crate::gradient::{Backward, Target, Value};
use crate::operation::{Host, HostMut, Launch, Operation};
use samara_shaders::{
    NORM_BACKWARD_LAYER, NORM_BACKWARD_RMS, NORM_WEIGHT_BACKWARD_F32, NormBackwardParams, NormWeightBackwardParams,
};

/// `dx`, and mean and inverse of each row.
#[derive(Debug, Clone, Copy)]
struct OfInput {
    kind: NormKind,
    params: NormBackwardParams,
}

/// `dw`.
#[derive(Debug, Clone, Copy)]
struct OfWeight(NormWeightBackwardParams);

/// Those of a norm of `x`, whose weight is input 1.
pub(super) fn launches(norm: &Normalise, x: Value) -> Vec<Backward> {
    let samara_shaders::NormParams { n_rows, width, eps } = norm.params;
    let (weight, moments) = (Value::Input(1), 0);
    let of_input = OfInput { kind: norm.kind, params: NormBackwardParams { n_rows, width, eps } };
    let of_weight = OfWeight(NormWeightBackwardParams { n_rows, width, eps });
    vec![
        Backward::new(
            of_input,
            [x, weight, Value::Incoming],
            [Target::Of(x), Target::Scratch(moments, 2 * n_rows as usize)],
        ),
        Backward::new(of_weight, [x, Value::Incoming, Value::Scratch(moments)], [Target::Of(weight)]),
    ]
}

impl Operation for OfInput {
    fn reference(&self, inputs: &[Host<'_>], outputs: &mut [HostMut<'_>]) {
        let (x, w, dy) = (inputs[0].f32(), inputs[1].f32(), inputs[2].f32());
        let [dx, moments] = outputs else { return };
        let width = w.len();
        let rows = x.chunks_exact(width).zip(dy.chunks_exact(width)).zip(dx.f32().chunks_exact_mut(width));
        for (((x, dy), dx), moments) in rows.zip(moments.f32().chunks_exact_mut(2)) {
            let mean_of = |values: &mut dyn Iterator<Item = f32>| values.sum::<f32>() / width as f32;
            let centers = self.kind == NormKind::Layer;
            let mean = if centers { mean_of(&mut x.iter().copied()) } else { 0.0 };
            let inverse = 1.0 / (mean_of(&mut x.iter().map(|x| (x - mean) * (x - mean))) + self.params.eps).sqrt();
            let normed = || x.iter().map(|x| (x - mean) * inverse);
            let scaled = || w.iter().zip(dy).map(|(w, dy)| w * dy);
            let total = if centers { mean_of(&mut scaled()) } else { 0.0 };
            let along = mean_of(&mut scaled().zip(normed()).map(|(u, n)| u * n));
            dx.iter_mut().zip(scaled().zip(normed())).for_each(|(dx, (u, n))| *dx = inverse * (u - total - n * along));
            moments.copy_from_slice(&[mean, inverse]);
        }
    }

    fn launch(&self) -> Launch {
        let kernel = match self.kind {
            NormKind::Rms => &NORM_BACKWARD_RMS,
            NormKind::Layer => &NORM_BACKWARD_LAYER,
        };
        Launch { kernel, groups: u64::from(self.params.n_rows), params: self.params.words() }
    }
}

impl Operation for OfWeight {
    fn reference(&self, inputs: &[Host<'_>], outputs: &mut [HostMut<'_>]) {
        let (x, dy, moments, dw) = (inputs[0].f32(), inputs[1].f32(), inputs[2].f32(), outputs[0].f32());
        dw.fill(0.0);
        let rows = x.chunks_exact(dw.len()).zip(dy.chunks_exact(dw.len())).zip(moments.chunks_exact(2));
        for ((x, dy), moments) in rows {
            let (mean, inverse) = (moments[0], moments[1]);
            dw.iter_mut().zip(x.iter().zip(dy)).for_each(|(dw, (x, dy))| *dw += dy * ((x - mean) * inverse));
        }
    }

    fn launch(&self) -> Launch {
        let groups = u64::from(self.0.width.div_ceil(64));
        Launch { kernel: &NORM_WEIGHT_BACKWARD_F32, groups, params: self.0.words() }
    }
}
