//! Products with a weight matrix: a matvec for a few tokens, a tiled matmul for many.

mod backward;

use crate::family::{Family, Kernels, Task};
use crate::gradient::Gradient;
use crate::operation::{Host, HostMut, Launch, Operation};
use crate::run::{empty, float, into_float, run};
use crate::weight::{Rows, Weight, rows};
pub(crate) use backward::linear_gradients;
use burn::tensor::Tensor;
use samara_shaders::{
    Format, Kernel, MATMUL, MATMUL_LANES, MATMUL_TILE, MATMUL_WIDE, MATVEC, MATVEC_LANES, MATVEC_TILE, MatvecParams,
};

/// Up to this many tokens each read the weights for themselves.
const MATVEC_TOKENS: u32 = 4;
/// Rows of the weight that one workgroup of `matvec` takes.
const MATVEC_ROWS: u32 = 8;
/// Edges of the square tiles of `matmul` and `matmul_wide`.
const MATMUL_EDGES: [u32; 2] = [32, 64];
/// Workgroups of 64 invocations that occupy a GPU.
const ENOUGH_TILES: u64 = 128;
/// Rows that an invocation of `matvec_tile` takes, and how many invocations a workgroup has.
pub(crate) const MATVEC_TILE_ROWS: u32 = 8;
pub(crate) const MATVEC_TILES_PER_GROUP: u64 = 16;
/// Tokens and rows that an invocation of `matmul_tile` takes, and how many invocations a workgroup has. Larger tiles reuse more
/// of what they read; these take two to three seconds to compile on a software adapter, which keeps them on disk.
const MATMUL_TILE_TOKENS: u32 = 16;
const MATMUL_TILE_ROWS: u32 = 16;
const MATMUL_TILES_PER_GROUP: u64 = 8;
/// Rows that a workgroup of `matvec_lanes` takes.
pub(crate) const MATVEC_LANES_ROWS: u32 = 64;
/// Tokens and rows that a workgroup of `matmul_lanes` takes.
const MATMUL_LANES_TOKENS: u32 = 32;
const MATMUL_LANES_ROWS: u32 = 64;

/// `y[t, first_column + n] = sum_k x[t, k] w[n, k]`, for the rows of one part of the weight.
#[derive(Debug, Clone, Copy)]
struct Linear {
    format: Format,
    kernels: Kernels,
    params: MatvecParams,
}

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
    let mut y = empty([n_tokens, w.n_out()], &x.device());
    for part in w.parts() {
        let params = MatvecParams {
            n_tokens: n_tokens as u32,
            n_in: n_in as u32,
            n_rows: part.n_rows as u32,
            n_out: w.n_out() as u32,
            first_column: part.first_row as u32,
        };
        let operation = Linear { format: part.format, kernels: w.kernels(), params };
        let inputs = std::iter::once(float(x)).chain(part.buffers()).collect();
        y = run(operation, inputs, vec![into_float(y)]).float();
    }
    y
}

impl Operation for Linear {
    fn reference(&self, inputs: &[Host<'_>], outputs: &mut [HostMut<'_>]) {
        let MatvecParams { n_in, n_rows, n_out, first_column, .. } = self.params;
        let (x, y) = (inputs[0].f32(), outputs[0].f32());
        let (w, _) = rows(self.format, n_in, &inputs[1..]);
        let products = products(x, w, n_rows as usize);
        let n_tokens = x.len() / n_in as usize;
        for (row, sums) in products.chunks_exact(n_tokens).enumerate() {
            for (token, sum) in sums.iter().enumerate() {
                y[token * n_out as usize + first_column as usize + row] = *sum;
            }
        }
    }

    fn launch(&self) -> Launch {
        let MatvecParams { n_tokens, n_rows, .. } = self.params;
        let tiles = |tokens: u32, rows: u32| u64::from(n_tokens.div_ceil(tokens)) * u64::from(n_rows.div_ceil(rows));
        let task = if n_tokens == 1 { Task::Matvec } else { Task::Matmul };
        let of = |kernels: &[&'static Kernel]| kernels[self.format as usize];
        let (kernel, groups) = match (self.kernels.of(task), n_tokens) {
            (Family::Workgroup, ..=MATVEC_TOKENS) => (of(&MATVEC), tiles(1, MATVEC_ROWS)),
            (Family::Workgroup, _) => {
                let [small, wide] = MATMUL_EDGES.map(|edge| tiles(edge, edge));
                // Where there are enough of them for a GPU, and few results past the end, large tiles read less.
                if wide >= ENOUGH_TILES && 16 * wide <= 5 * small {
                    (of(&MATMUL_WIDE), wide)
                } else {
                    (of(&MATMUL), small)
                }
            }
            (Family::Invocation, 1) => (of(&MATVEC_TILE), tiles(1, MATVEC_TILE_ROWS).div_ceil(MATVEC_TILES_PER_GROUP)),
            (Family::Invocation, _) => {
                (of(&MATMUL_TILE), tiles(MATMUL_TILE_TOKENS, MATMUL_TILE_ROWS).div_ceil(MATMUL_TILES_PER_GROUP))
            }
            (Family::Subgroup, 1) => (of(&MATVEC_LANES), tiles(1, MATVEC_LANES_ROWS)),
            (Family::Subgroup, _) => (of(&MATMUL_LANES), tiles(MATMUL_LANES_TOKENS, MATMUL_LANES_ROWS)),
        };
        Launch { kernel, groups, params: self.params.words() }
    }

    fn flops(&self) -> u64 {
        let MatvecParams { n_tokens, n_rows, n_in, .. } = self.params;
        product_flops(n_tokens, n_rows, n_in)
    }

    fn gradients(&self) -> Vec<Gradient> {
        backward::gradients(self.format, self.kernels, self.params)
    }
}

/// Multiplications and additions of a product.
pub(crate) fn product_flops(n_tokens: u32, n_rows: u32, n_in: u32) -> u64 {
    2 * u64::from(n_tokens) * u64::from(n_rows) * u64::from(n_in)
}

/// `w xᵀ`, `[rows, tokens]`, spread over the cores where there are threads.
fn products(x: &[f32], w: Rows<'_>, n_rows: usize) -> Vec<f32> {
    let n_tokens = x.len() / w.n_in;
    let mut products = vec![0.0; n_rows * n_tokens];
    let some_rows = |first: usize, products: &mut [f32]| {
        for (row, sums) in products.chunks_exact_mut(n_tokens).enumerate() {
            let w = w.decode(first + row);
            sums.iter_mut().zip(x.chunks_exact(x.len() / n_tokens)).for_each(|(sum, x)| *sum = dot(x, &w));
        }
    };
    #[cfg(not(target_arch = "wasm32"))]
    {
        use rayon::prelude::*;
        let rows_per_task = (1 << 16) / x.len() + 1;
        let tasks = products.par_chunks_mut(rows_per_task * n_tokens).enumerate();
        tasks.for_each(|(task, products)| some_rows(task * rows_per_task, products));
    }
    #[cfg(target_arch = "wasm32")]
    some_rows(0, &mut products);
    products
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
