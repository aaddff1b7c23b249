//! Mixture of experts: route each token, multiply with the chosen experts' matrices, add up.

mod backward;

use crate::gradient::Gradient;
use crate::linear::{dot, product_flops};
use crate::operation::{Host, HostMut, Launch, Operation};
use crate::run::{empty, empty_int, float, int, into_float, into_int, run};
use crate::weight::{Weight, rows};
use burn::tensor::{Int, Tensor};
use samara_shaders::{
    Format, MOE_COMBINE_F32, MOE_LINEAR, MOE_ROUTE_F32, MoeCombineParams, MoeLinearParams, MoeRouteParams,
};

/// Rows of an expert's matrix that one workgroup takes.
const LINEAR_ROWS: u32 = 8;

/// The experts that each token goes to.
#[derive(Debug, Clone)]
pub struct Routes {
    /// `[T, k]`, the most probable first.
    pub experts: Tensor<2, Int>,
    /// `[T, k]`, their probabilities.
    pub weights: Tensor<2>,
}

/// Softmax and top-k.
#[derive(Debug, Clone, Copy)]
struct Route(MoeRouteParams);

/// A product with each pick's own matrix, for the rows of one part of the weight.
#[derive(Debug, Clone, Copy)]
struct ExpertLinear {
    format: Format,
    params: MoeLinearParams,
}

/// The weighted sum over picks.
#[derive(Debug, Clone, Copy)]
struct Combine(MoeCombineParams);

/// The `top_k` most probable experts of each token under `softmax(logits)`; ties go to the lower expert.
///
/// With `renormalise` their probabilities are scaled to sum to 1 (Shazeer et al. 2017; OLMoE does not).
///
/// # Shapes
/// - router_logits `[T, E]`
///
/// # Panics
/// If `top_k` is 0 or more than E.
pub fn moe_route(router_logits: &Tensor<2>, top_k: usize, renormalise: bool) -> Routes {
    let [n_tokens, n_experts] = router_logits.dims();
    assert!((1..=n_experts).contains(&top_k), "moe_route: {top_k} of {n_experts} experts");
    let operation = Route(MoeRouteParams {
        n_tokens: n_tokens as u32,
        n_experts: n_experts as u32,
        top_k: top_k as u32,
        renormalise: u32::from(renormalise),
    });
    let device = router_logits.device();
    let experts = empty_int([n_tokens, top_k], &device);
    let weights = empty([n_tokens, top_k], &device);
    let mut outputs = run(operation, vec![float(router_logits)], vec![into_int(experts), into_float(weights)]);
    Routes { experts: outputs.int(), weights: outputs.float() }
}

/// `x wᵀ` with the matrix of each pick's expert.
///
/// # Shapes
/// - x `[T, D]`, shared by a token's picks, or `[T * k, D]`, a row for each pick
/// - w `[E * N, D]`, expert after expert
/// - result `[T * k, N]`
///
/// # Panics
/// If the shapes do not fit together.
pub fn moe_linear(x: &Tensor<2>, w: &Weight, routes: &Routes, n_experts: usize) -> Tensor<2> {
    let [n_rows, n_in] = x.dims();
    let [n_tokens, top_k] = routes.experts.dims();
    let n_picks = n_tokens * top_k;
    let n_out = w.n_out() / n_experts;
    assert_eq!(n_in, w.n_in(), "moe_linear: widths");
    assert!(n_rows == n_tokens || n_rows == n_picks, "moe_linear: {n_rows} rows for {n_tokens} x {top_k} picks");
    let mut y = empty([n_picks, n_out], &x.device());
    for part in w.parts() {
        let params = MoeLinearParams {
            n_picks: n_picks as u32,
            picks_per_row: (n_picks / n_rows) as u32,
            n_in: n_in as u32,
            n_out: n_out as u32,
            first_row: part.first_row as u32,
            n_rows: part.n_rows as u32,
        };
        let inputs = std::iter::once(float(x)).chain(part.buffers()).chain([int(&routes.experts)]).collect();
        y = run(ExpertLinear { format: part.format, params }, inputs, vec![into_float(y)]).float();
    }
    y
}

/// `y[t] = sum_k weights[t, k] x[t, k]`.
///
/// # Shapes
/// - x `[T * k, D]`
/// - result `[T, D]`
pub fn moe_combine(x: &Tensor<2>, routes: &Routes) -> Tensor<2> {
    let [n_tokens, top_k] = routes.weights.dims();
    let [_, d_model] = x.dims();
    let params = MoeCombineParams { n_tokens: n_tokens as u32, d_model: d_model as u32, top_k: top_k as u32 };
    let y = empty([n_tokens, d_model], &x.device());
    run(Combine(params), vec![float(x), float(&routes.weights)], vec![into_float(y)]).float()
}

impl Operation for Route {
    fn reference(&self, inputs: &[Host<'_>], outputs: &mut [HostMut<'_>]) {
        let [experts, weights] = outputs else { return };
        let top_k = self.0.top_k as usize;
        let picks = experts.u32().chunks_exact_mut(top_k).zip(weights.f32().chunks_exact_mut(top_k));
        for (logits, (experts, weights)) in inputs[0].f32().chunks_exact(self.0.n_experts as usize).zip(picks) {
            let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let total: f32 = logits.iter().map(|logit| (logit - largest).exp()).sum();
            let mut order: Vec<usize> = (0..logits.len()).collect();
            order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]));
            for (i, &expert) in order.iter().take(top_k).enumerate() {
                experts[i] = expert as u32;
                weights[i] = (logits[expert] - largest).exp() / total;
            }
            if self.0.renormalise != 0 {
                let chosen: f32 = weights.iter().sum();
                weights.iter_mut().for_each(|weight| *weight /= chosen);
            }
        }
    }

    fn launch(&self) -> Launch {
        Launch { kernel: &MOE_ROUTE_F32, groups: u64::from(self.0.n_tokens).div_ceil(64), params: self.0.words() }
    }

    fn gradients(&self) -> Vec<Gradient> {
        backward::of_route(self.0)
    }
}

impl Operation for ExpertLinear {
    fn reference(&self, inputs: &[Host<'_>], outputs: &mut [HostMut<'_>]) {
        let MoeLinearParams { picks_per_row, n_in, n_out, first_row, n_rows, .. } = self.params;
        let (x, y) = (inputs[0].f32(), outputs[0].f32());
        let (w, rest) = rows(self.format, n_in, &inputs[1..]);
        for (pick, (&expert, y)) in rest[0].u32().iter().zip(y.chunks_exact_mut(n_out as usize)).enumerate() {
            let x = &x[pick / picks_per_row as usize * n_in as usize..][..n_in as usize];
            for (column, y) in y.iter_mut().enumerate() {
                let row = (expert * n_out + column as u32).wrapping_sub(first_row);
                if row < n_rows {
                    *y = dot(x, &w.decode(row as usize));
                }
            }
        }
    }

    fn launch(&self) -> Launch {
        let groups = u64::from(self.params.n_picks) * u64::from(self.params.n_out.div_ceil(LINEAR_ROWS));
        Launch { kernel: MOE_LINEAR[self.format as usize], groups, params: self.params.words() }
    }

    fn flops(&self) -> u64 {
        product_flops(self.params.n_picks, self.params.n_out, self.params.n_in)
    }

    fn gradients(&self) -> Vec<Gradient> {
        backward::of_linear(self.format, self.params)
    }
}

impl Operation for Combine {
    fn reference(&self, inputs: &[Host<'_>], outputs: &mut [HostMut<'_>]) {
        let (x, weights, y) = (inputs[0].f32(), inputs[1].f32(), outputs[0].f32());
        let (width, top_k) = (self.0.d_model as usize, self.0.top_k as usize);
        let tokens = x.chunks_exact(top_k * width).zip(weights.chunks_exact(top_k));
        for ((x, weights), y) in tokens.zip(y.chunks_exact_mut(width)) {
            y.fill(0.0);
            for (x, weight) in x.chunks_exact(width).zip(weights) {
                y.iter_mut().zip(x).for_each(|(y, x)| *y += weight * x);
            }
        }
    }

    fn launch(&self) -> Launch {
        let n_elements = u64::from(self.0.n_tokens) * u64::from(self.0.d_model);
        Launch { kernel: &MOE_COMBINE_F32, groups: n_elements.div_ceil(64), params: self.0.words() }
    }

    fn gradients(&self) -> Vec<Gradient> {
        backward::of_combine(self.0)
    }
}
