//! Low-rank adapters on the side of the activations: `y += scale * (x aᵀ) bᵀ`, without a dense copy of any weight.

use crate::family::Kernels;
use crate::gradient::{Backward, Gradient, Target, Value};
use crate::linear::{dot, linear};
use crate::operation::{Host, HostMut, Launch, Operation};
use crate::run::{float, into_float, run};
use crate::weight::Weight;
use burn::tensor::Tensor;
use samara_shaders::{
    LOW_RANK_ADD_F32, LOW_RANK_BACKWARD_F32, LOW_RANK_WEIGHT_BACKWARD_F32, LowRankAddParams, LowRankBackwardParams,
    LowRankWeightBackwardParams,
};

/// `y[t, first_column + n] += scale * sum_j h[t, j] b[n, j]`.
#[derive(Debug, Clone, Copy)]
struct Add(LowRankAddParams);

/// `dh`.
#[derive(Debug, Clone, Copy)]
struct OfHidden(LowRankBackwardParams);

/// `db`.
#[derive(Debug, Clone, Copy)]
struct OfRows(LowRankWeightBackwardParams);

/// `y` with `scale * (x aᵀ) bᵀ` added to its columns from `first_column` on, in place (Hu et al. 2021).
///
/// # Shapes
/// - y `[T, N]`, x `[T, D]`, a `[r, D]`, b `[n, r]` with `first_column + n <= N`
/// - result `[T, N]`
///
/// # Panics
/// If the shapes do not fit together.
pub fn low_rank(
    y: Tensor<2>,
    x: &Tensor<2>,
    [a, b]: [&Tensor<2>; 2],
    scale: f32,
    first_column: usize,
    kernels: Kernels,
) -> Tensor<2> {
    let ([n_tokens, n_out], [n_rows, rank]) = (y.dims(), b.dims());
    assert!(first_column + n_rows <= n_out && a.dims()[0] == rank, "low_rank: shapes");
    let h = linear(x, &Weight::dense(a.clone(), kernels));
    let operation = Add(LowRankAddParams {
        n_tokens: n_tokens as u32,
        rank: rank as u32,
        n_rows: n_rows as u32,
        n_out: n_out as u32,
        first_column: first_column as u32,
        scale,
    });
    run(operation, vec![float(&h), float(b)], vec![into_float(y)]).float()
}

impl Operation for Add {
    fn reference(&self, inputs: &[Host<'_>], outputs: &mut [HostMut<'_>]) {
        let LowRankAddParams { rank, n_out, first_column, scale, .. } = self.0;
        let (h, b, y) = (inputs[0].f32(), inputs[1].f32(), outputs[0].f32());
        for (h, y) in h.chunks_exact(rank as usize).zip(y.chunks_exact_mut(n_out as usize)) {
            let y = y[first_column as usize..].iter_mut();
            y.zip(b.chunks_exact(rank as usize)).for_each(|(y, b)| *y += scale * dot(h, b));
        }
    }

    fn launch(&self) -> Launch {
        Launch { kernel: &LOW_RANK_ADD_F32, groups: groups(self.0.n_tokens, self.0.n_rows), params: self.0.words() }
    }

    fn gradients(&self) -> Vec<Gradient> {
        let LowRankAddParams { n_tokens, rank, n_rows, n_out, first_column, scale } = self.0;
        let (h, b) = (Value::Input(0), Value::Input(1));
        let of_hidden = OfHidden(LowRankBackwardParams { n_tokens, rank, n_rows, n_out, first_column, scale });
        let of_rows = OfRows(LowRankWeightBackwardParams { n_tokens, rank, n_rows, n_out, first_column, scale });
        vec![Gradient::of_first([
            Backward::new(of_hidden, [Value::Incoming, b], [Target::Of(h)]),
            Backward::new(of_rows, [Value::Incoming, h], [Target::Of(b)]),
        ])]
    }
}

impl Operation for OfHidden {
    fn reference(&self, inputs: &[Host<'_>], outputs: &mut [HostMut<'_>]) {
        let LowRankBackwardParams { rank, n_out, first_column, scale, .. } = self.0;
        let (dy, b, dh) = (inputs[0].f32(), inputs[1].f32(), outputs[0].f32());
        for (dy, dh) in dy.chunks_exact(n_out as usize).zip(dh.chunks_exact_mut(rank as usize)) {
            dh.fill(0.0);
            for (g, b) in dy[first_column as usize..].iter().zip(b.chunks_exact(rank as usize)) {
                dh.iter_mut().zip(b).for_each(|(dh, b)| *dh += g * b);
            }
            dh.iter_mut().for_each(|dh| *dh *= scale);
        }
    }

    fn launch(&self) -> Launch {
        Launch { kernel: &LOW_RANK_BACKWARD_F32, groups: groups(self.0.n_tokens, self.0.rank), params: self.0.words() }
    }
}

impl Operation for OfRows {
    fn reference(&self, inputs: &[Host<'_>], outputs: &mut [HostMut<'_>]) {
        let LowRankWeightBackwardParams { rank, n_out, first_column, scale, .. } = self.0;
        let (dy, h, db) = (inputs[0].f32(), inputs[1].f32(), outputs[0].f32());
        db.fill(0.0);
        for (dy, h) in dy.chunks_exact(n_out as usize).zip(h.chunks_exact(rank as usize)) {
            for (g, db) in dy[first_column as usize..].iter().zip(db.chunks_exact_mut(rank as usize)) {
                db.iter_mut().zip(h).for_each(|(db, h)| *db += g * h);
            }
        }
        db.iter_mut().for_each(|db| *db *= scale);
    }

    fn launch(&self) -> Launch {
        let kernel = &LOW_RANK_WEIGHT_BACKWARD_F32;
        Launch { kernel, groups: groups(self.0.n_rows, self.0.rank), params: self.0.words() }
    }
}

/// Workgroups for a matrix, one invocation an element.
fn groups(n_rows: u32, width: u32) -> u64 {
    (u64::from(n_rows) * u64::from(width)).div_ceil(64)
}
