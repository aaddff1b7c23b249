//! The gradients of a product: of its input, straight from stored rows, and of its weight where that is dense.

use crate::family::{Family, Kernels, Task};
use crate::gradient::{Backward, Gradient, Target, Value};
use crate::linear::product_flops;
use crate::operation::{Host, HostMut, Launch, Operation};
use crate::run::{empty, float, into_float, run};
use crate::weight::{Weight, n_buffers, rows};
use burn::tensor::{DType, Tensor};
use samara_shaders::{
    BACKWARD_LANES, BACKWARD_TILE, Format, LINEAR_WEIGHT_BACKWARD_F32, LinearWeightBackwardParams, MATMUL_BACKWARD,
    MatmulBackwardParams, MatvecParams,
};

/// Tokens that a workgroup of `matmul_backward` takes, with one block of a row.
const MATMUL_TOKENS: u32 = 32;
/// Tokens that an invocation takes with one block of a row, and how many invocations a workgroup has.
const TILE_TOKENS: u32 = 4;
const LANES_TOKENS: u32 = 8;
const WORKGROUP: u32 = 8;
/// Edge of the tile that an invocation of `linear_weight_backward` takes.
const EDGE: u32 = 4;

/// `dx[t, k] = sum_n dy[t, first_column + n] w[n, k]`.
#[derive(Debug, Clone, Copy)]
struct OfInput {
    format: Format,
    kernels: Kernels,
    params: MatmulBackwardParams,
}

/// `dw[n, k] = sum_t dy[t, first_column + n] x[t, k]`.
#[derive(Debug, Clone, Copy)]
struct OfWeight(LinearWeightBackwardParams);

/// Those of one part of a weight.
pub(super) fn gradients(format: Format, kernels: Kernels, params: MatvecParams) -> Vec<Gradient> {
    let MatvecParams { n_tokens, n_in, n_rows, n_out, first_column } = params;
    let of_input =
        OfInput { format, kernels, params: MatmulBackwardParams { n_tokens, n_in, n_rows, n_out, first_column } };
    let weight = (0..n_buffers(format)).map(|i| Value::Input(1 + i));
    let reads: Vec<Value> = std::iter::once(Value::Incoming).chain(weight).collect();
    let of_weight = OfWeight(LinearWeightBackwardParams { n_tokens, n_in, n_rows, n_out, first_column });
    vec![Gradient::of_first([
        Backward::new(of_input, reads, [Target::Of(Value::Input(0))]),
        Backward::new(of_weight, [Value::Incoming, Value::Input(0)], [Target::Of(Value::Input(1))]),
    ])]
}

/// The gradients of `x wᵀ` given that of the result: of x, and of w where that is dense and `of_weight` asks for it.
///
/// # Shapes
/// - x `[T, D]`, w `[N, D]`, dy `[T, N]`
/// - results `[T, D]`, `[N, D]`
pub(crate) fn linear_gradients(
    x: &Tensor<2>,
    w: &Weight,
    dy: &Tensor<2>,
    of_weight: bool,
) -> (Tensor<2>, Option<Tensor<2>>) {
    let ([n_tokens, n_in], [_, n_out]) = (x.dims(), dy.dims());
    let mut of_input: Option<Tensor<2>> = None;
    for part in w.parts() {
        let params = MatmulBackwardParams {
            n_tokens: n_tokens as u32,
            n_in: n_in as u32,
            n_rows: part.n_rows as u32,
            n_out: n_out as u32,
            first_column: part.first_row as u32,
        };
        let inputs = std::iter::once(float(dy)).chain(part.buffers()).collect();
        let operation = OfInput { format: part.format, kernels: w.kernels(), params };
        let dx = run(operation, inputs, vec![into_float(empty([n_tokens, n_in], &x.device()))]).float();
        of_input = Some(of_input.map_or_else(|| dx.clone(), |sum| sum + dx.clone()));
    }
    let of_weight = w.as_dense().filter(|_| of_weight).map(|rows| {
        let [n_rows, _] = rows.dims();
        let params = LinearWeightBackwardParams {
            n_tokens: n_tokens as u32,
            n_in: n_in as u32,
            n_rows: n_rows as u32,
            n_out: n_out as u32,
            first_column: 0,
        };
        let dw = empty([n_rows, n_in], &x.device());
        run(OfWeight(params), vec![float(dy), float(x)], vec![into_float(dw)]).float()
    });
    (of_input.unwrap_or_else(|| Tensor::zeros([n_tokens, n_in], (&x.device(), DType::F32))), of_weight)
}

impl Operation for OfInput {
    fn reference(&self, inputs: &[Host<'_>], outputs: &mut [HostMut<'_>]) {
        let MatmulBackwardParams { n_in, n_rows, n_out, first_column, .. } = self.params;
        let (dy, dx) = (inputs[0].f32(), outputs[0].f32());
        let (w, _) = rows(self.format, n_in, &inputs[1..]);
        dx.fill(0.0);
        for row in 0..n_rows as usize {
            let w = w.decode(row);
            for (dx, dy) in dx.chunks_exact_mut(n_in as usize).zip(dy.chunks_exact(n_out as usize)) {
                let g = dy[first_column as usize + row];
                dx.iter_mut().zip(w.iter()).for_each(|(dx, w)| *dx += g * w);
            }
        }
    }

    fn launch(&self) -> Launch {
        let MatmulBackwardParams { n_tokens, n_in, .. } = self.params;
        let tiles = |tokens: u32, blocks: u32| u64::from(n_tokens.div_ceil(tokens)) * u64::from(blocks);
        let blocks = n_in.div_ceil(32);
        let (kernels, groups) = match self.kernels.of(Task::Matmul) {
            Family::Workgroup => (&MATMUL_BACKWARD, tiles(MATMUL_TOKENS, blocks)),
            Family::Invocation => (&BACKWARD_TILE, tiles(TILE_TOKENS, blocks).div_ceil(u64::from(WORKGROUP))),
            Family::Subgroup => (&BACKWARD_LANES, tiles(LANES_TOKENS, blocks.div_ceil(WORKGROUP))),
        };
        Launch { kernel: kernels[self.format as usize], groups, params: self.params.words() }
    }

    fn flops(&self) -> u64 {
        product_flops(self.params.n_tokens, self.params.n_rows, self.params.n_in)
    }
}

impl Operation for OfWeight {
    fn reference(&self, inputs: &[Host<'_>], outputs: &mut [HostMut<'_>]) {
        let LinearWeightBackwardParams { n_in, n_out, first_column, .. } = self.0;
        let (dy, x, dw) = (inputs[0].f32(), inputs[1].f32(), outputs[0].f32());
        dw.fill(0.0);
        for (dy, x) in dy.chunks_exact(n_out as usize).zip(x.chunks_exact(n_in as usize)) {
            for (dw, g) in dw.chunks_exact_mut(n_in as usize).zip(&dy[first_column as usize..]) {
                dw.iter_mut().zip(x).for_each(|(dw, x)| *dw += g * x);
            }
        }
    }

    fn launch(&self) -> Launch {
        let tiles = u64::from(self.0.n_rows.div_ceil(EDGE)) * u64::from(self.0.n_in.div_ceil(EDGE));
        Launch { kernel: &LINEAR_WEIGHT_BACKWARD_F32, groups: tiles.div_ceil(64), params: self.0.words() }
    }

    fn flops(&self) -> u64 {
        product_flops(self.0.n_tokens, self.0.n_rows, self.0.n_in)
    }
}
