//! Products with a weight matrix: a matvec for a few tokens, a tiled matmul for many.

use crate::operation::{Host, HostMut, Launch, Operation};
use crate::run::{float, into_float, run};
use crate::weight::Weight;
use burn::tensor::Tensor;
use samara_shaders::{MATMUL_F32, MATVEC_SCALAR, MATVEC_VEC4, MatvecParams};

/// Up to this many tokens each read the weights for themselves.
const MATVEC_TOKENS: u32 = 4;
/// Rows of the weight that one workgroup of the matvec takes.
const MATVEC_ROWS: u32 = 8;
/// Edge of the matmul's square tile.
const MATMUL_TILE: u32 = 32;

/// `y[t, first_column + n] = sum_k x[t, k] w[n, k]`, for the rows of one part of the weight.
#[derive(Debug, Clone, Copy)]
struct Linear(MatvecParams);

/// `x wᵀ`.
///
/// # Shapes
/// - x `[T, D]`, w `[N, D]`
/// - result `[T, N]`
///
/// # Panics
/// If the widths differ.
pub fn linear(x: &Tensor<2>, w: &Weight) -> Tensor<2> {
    let [n_tokens, n_in] = x.dims();
    assert_eq!(n_in, w.n_in(), "linear: x is [{n_tokens}, {n_in}], the weight has rows of {}", w.n_in());
    let mut y = Tensor::empty([n_tokens, w.n_out()], (&x.device(), x.dtype()));
    for part in w.parts() {
        let operation = Linear(MatvecParams {
            n_tokens: n_tokens as u32,
            n_in: n_in as u32,
            n_rows: part.n_rows as u32,
            n_out: w.n_out() as u32,
            first_column: part.first_row as u32,
        });
        y = run(operation, vec![float(x), part.buffer()], vec![into_float(y)]).float();
    }
    y
}

impl Operation for Linear {
    fn reference(&self, inputs: &[Host<'_>], outputs: &mut [HostMut<'_>]) {
        let (x, w, y) = (inputs[0].f32(), inputs[1].f32(), outputs[0].f32());
        let width = self.0.n_in as usize;
        let columns = self.0.first_column as usize..(self.0.first_column + self.0.n_rows) as usize;
        for (x, y) in x.chunks_exact(width).zip(y.chunks_exact_mut(self.0.n_out as usize)) {
            matvec(x, w, &mut y[columns.clone()]);
        }
    }

    fn launch(&self) -> Launch {
        let Linear(params) = *self;
        let words = params.words();
        if params.n_tokens > MATVEC_TOKENS {
            let tiles = |n: u32| u64::from(n.div_ceil(MATMUL_TILE));
            return Launch {
                kernel: &MATMUL_F32,
                groups: tiles(params.n_tokens) * tiles(params.n_rows),
                params: words,
            };
        }
        let kernel = if params.n_in.is_multiple_of(4) { &MATVEC_VEC4 } else { &MATVEC_SCALAR };
        let groups = u64::from(params.n_tokens) * u64::from(params.n_rows.div_ceil(MATVEC_ROWS));
        Launch { kernel, groups, params: words }
    }
}

/// `y[n] = x · w[n]`, spread over the cores where there are threads.
pub(crate) fn matvec(x: &[f32], w: &[f32], y: &mut [f32]) {
    let rows = |first: usize, y: &mut [f32]| {
        let w = w[first * x.len()..].chunks_exact(x.len());
        y.iter_mut().zip(w).for_each(|(y, w)| *y = dot(x, w));
    };
    #[cfg(not(target_arch = "wasm32"))]
    {
        use rayon::prelude::*;
        let rows_per_task = (1 << 16) / x.len() + 1;
        y.par_chunks_mut(rows_per_task).enumerate().for_each(|(task, y)| rows(task * rows_per_task, y));
    }
    #[cfg(target_arch = "wasm32")]
    rows(0, y);
}

/// Sixteen running sums: rounding grows with n / 16, and the compiler can keep them in vector registers.
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0f32; 16];
    let (a_blocks, a_rest) = a.as_chunks::<16>();
    let (b_blocks, b_rest) = b.as_chunks::<16>();
    for (a, b) in a_blocks.iter().zip(b_blocks) {
        for i in 0..16 {
            sums[i] += a[i] * b[i];
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f32>() + rest
}
