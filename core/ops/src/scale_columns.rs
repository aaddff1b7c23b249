//! Columns brought to other magnitudes: what a DoRA does to a product after its low-rank part.

use crate::gradient::{Backward, Gradient, Target, Value};
use crate::operation::{Host, HostMut, Launch, Operation};
use crate::run::{empty, float, into_float, run};
use burn::tensor::Tensor;
use samara_shaders::{
    SCALE_COLUMNS_BACKWARD_F32, SCALE_COLUMNS_F32, SCALE_COLUMNS_WEIGHT_BACKWARD_F32, ScaleColumnsBackwardParams,
    ScaleColumnsParams, ScaleColumnsWeightBackwardParams,
};

/// `y[t, first_column + n] *= m[n] / lengths[n]`.
#[derive(Debug, Clone, Copy)]
struct ScaleColumns(ScaleColumnsParams);

/// The gradient of what y was.
#[derive(Debug, Clone, Copy)]
struct OfBefore(ScaleColumnsBackwardParams);

/// `dm`.
#[derive(Debug, Clone, Copy)]
struct OfMagnitudes(ScaleColumnsWeightBackwardParams);

/// `y` with its columns from `first_column` on times `magnitudes / lengths`, in place (Liu et al. 2024). The lengths are
/// constants. A tape keeps the old values of these columns, and no other.
///
/// # Shapes
/// - y `[T, N]`, magnitudes `[n]`, lengths `[n]` with `first_column + n <= N`
/// - result `[T, N]`
///
/// # Panics
/// If the shapes do not fit together.
pub fn scale_columns(y: Tensor<2>, magnitudes: &Tensor<1>, lengths: &Tensor<1>, first_column: usize) -> Tensor<2> {
    let ([n_tokens, n_out], [n_columns]) = (y.dims(), magnitudes.dims());
    assert!(lengths.dims() == [n_columns] && first_column + n_columns <= n_out, "scale_columns: shapes");
    let operation = ScaleColumns(ScaleColumnsParams {
        n_tokens: n_tokens as u32,
        n_columns: n_columns as u32,
        n_out: n_out as u32,
        first_column: first_column as u32,
    });
    let before = empty([n_tokens, n_columns], &y.device());
    run(operation, vec![float(magnitudes), float(lengths)], vec![into_float(y), into_float(before)]).float()
}

impl Operation for ScaleColumns {
    fn reference(&self, inputs: &[Host<'_>], outputs: &mut [HostMut<'_>]) {
        let ScaleColumnsParams { n_columns, n_out, first_column, .. } = self.0;
        let factors = factors(inputs[0].f32(), inputs[1].f32());
        let [y, before] = outputs else { return };
        let rows = y.f32().chunks_exact_mut(n_out as usize).zip(before.f32().chunks_exact_mut(n_columns as usize));
        for (y, before) in rows {
            for ((y, before), factor) in y[first_column as usize..].iter_mut().zip(before).zip(factors.clone()) {
                *before = *y;
                *y *= factor;
            }
        }
    }

    fn launch(&self) -> Launch {
        let groups = groups(self.0.n_tokens, self.0.n_columns);
        Launch { kernel: &SCALE_COLUMNS_F32, groups, params: self.0.words() }
    }

    fn gradients(&self) -> Vec<Gradient> {
        let ScaleColumnsParams { n_tokens, n_columns, n_out, first_column } = self.0;
        let (magnitudes, lengths, before) = (Value::Input(0), Value::Input(1), Value::Output(1));
        let of_before = OfBefore(ScaleColumnsBackwardParams { n_tokens, n_columns, n_out, first_column });
        let of_magnitudes = OfMagnitudes(ScaleColumnsWeightBackwardParams { n_tokens, n_columns, n_out, first_column });
        vec![Gradient::of_first([
            Backward::new(of_before, [Value::Incoming, magnitudes, lengths], [Target::Of(Value::Before)]),
            Backward::new(of_magnitudes, [Value::Incoming, before, lengths], [Target::Of(magnitudes)]),
        ])]
    }
}

impl Operation for OfBefore {
    fn reference(&self, inputs: &[Host<'_>], outputs: &mut [HostMut<'_>]) {
        let ScaleColumnsBackwardParams { n_out, first_column, .. } = self.0;
        let (dy, dx) = (inputs[0].f32(), outputs[0].f32());
        let factors = factors(inputs[1].f32(), inputs[2].f32());
        dx.copy_from_slice(dy);
        for dx in dx.chunks_exact_mut(n_out as usize) {
            dx[first_column as usize..].iter_mut().zip(factors.clone()).for_each(|(dx, factor)| *dx *= factor);
        }
    }

    fn launch(&self) -> Launch {
        let groups = groups(self.0.n_tokens, self.0.n_out);
        Launch { kernel: &SCALE_COLUMNS_BACKWARD_F32, groups, params: self.0.words() }
    }
}

impl Operation for OfMagnitudes {
    fn reference(&self, inputs: &[Host<'_>], outputs: &mut [HostMut<'_>]) {
        let ScaleColumnsWeightBackwardParams { n_columns, n_out, first_column, .. } = self.0;
        let (dy, before, lengths, dm) = (inputs[0].f32(), inputs[1].f32(), inputs[2].f32(), outputs[0].f32());
        dm.fill(0.0);
        for (dy, before) in dy.chunks_exact(n_out as usize).zip(before.chunks_exact(n_columns as usize)) {
            let own = dy[first_column as usize..].iter().zip(before);
            dm.iter_mut().zip(own).for_each(|(dm, (dy, before))| *dm += dy * before);
        }
        dm.iter_mut().zip(lengths).for_each(|(dm, length)| *dm /= divisor(*length));
    }

    fn launch(&self) -> Launch {
        let groups = groups(1, self.0.n_columns);
        Launch { kernel: &SCALE_COLUMNS_WEIGHT_BACKWARD_F32, groups, params: self.0.words() }
    }
}

fn factors<'a>(magnitudes: &'a [f32], lengths: &'a [f32]) -> impl Iterator<Item = f32> + Clone + 'a {
    magnitudes.iter().zip(lengths).map(|(magnitude, length)| magnitude / divisor(*length))
}

/// A row of zeros has no direction: its products are zeros whatever they are multiplied with.
fn divisor(length: f32) -> f32 {
    if length == 0.0 { 1.0 } else { length }
}

/// Workgroups for a matrix, one invocation an element.
fn groups(n_rows: u32, width: u32) -> u64 {
    (u64::from(n_rows) * u64::from(width)).div_ceil(64)
}
