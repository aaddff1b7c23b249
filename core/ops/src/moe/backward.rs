//! The gradients of routing, of the experts' products and of their sum.
//!
//! Which experts were picked has no gradient; their weights do, and so reaches the router.

use crate::gradient::{Backward, Gradient, Target, Value};
use crate::linear::product_flops;
use crate::operation::{Host, HostMut, Launch, Operation};
use crate::weight::{n_buffers, rows};
use samara_shaders::{
    Format, MOE_COMBINE_BACKWARD_F32, MOE_LINEAR_BACKWARD, MOE_LINEAR_WEIGHT_BACKWARD_F32, MOE_ROUTE_BACKWARD_F32,
    MoeCombineBackwardParams, MoeCombineParams, MoeLinearBackwardParams, MoeLinearParams,
    MoeLinearWeightBackwardParams, MoeRouteBackwardParams, MoeRouteParams,
};

/// Of the router's logits.
#[derive(Debug, Clone, Copy)]
struct OfLogits(MoeRouteBackwardParams);

/// Of the input of the experts' products.
#[derive(Debug, Clone, Copy)]
struct OfInput {
    format: Format,
    params: MoeLinearBackwardParams,
}

/// Of dense experts' matrices.
#[derive(Debug, Clone, Copy)]
struct OfWeight(MoeLinearWeightBackwardParams);

/// Of the terms of a weighted sum, and of their weights.
#[derive(Debug, Clone, Copy)]
struct OfTerms(MoeCombineBackwardParams);

pub(super) fn of_route(params: MoeRouteParams) -> Vec<Gradient> {
    let MoeRouteParams { n_tokens, n_experts, top_k, renormalise } = params;
    let operation = OfLogits(MoeRouteBackwardParams { n_tokens, n_experts, top_k, renormalise });
    let logits = Value::Input(0);
    let reads = [logits, Value::Output(0), Value::Output(1), Value::Incoming];
    let launches = vec![Backward::new(operation, reads, [Target::Of(logits)])];
    vec![Gradient { of: 1, passes_to: Vec::new(), launches }]
}

pub(super) fn of_linear(format: Format, params: MoeLinearParams) -> Vec<Gradient> {
    let MoeLinearParams { n_picks, picks_per_row, n_in, n_out, first_row, n_rows } = params;
    let of_input =
        OfInput { format, params: MoeLinearBackwardParams { n_picks, picks_per_row, n_in, n_out, first_row, n_rows } };
    let of_weight = OfWeight(MoeLinearWeightBackwardParams { n_picks, picks_per_row, n_in, n_out, first_row, n_rows });
    let (x, weight, experts) = (Value::Input(0), Value::Input(1), Value::Input(1 + n_buffers(format)));
    let stored = (0..n_buffers(format)).map(|i| Value::Input(1 + i));
    let reads: Vec<Value> = std::iter::once(Value::Incoming).chain(stored).chain([experts]).collect();
    vec![Gradient::of_first([
        Backward::new(of_input, reads, [Target::Of(x)]),
        Backward::new(of_weight, [Value::Incoming, x, experts], [Target::Of(weight)]),
    ])]
}

pub(super) fn of_combine(params: MoeCombineParams) -> Vec<Gradient> {
    let MoeCombineParams { n_tokens, d_model, top_k } = params;
    let operation = OfTerms(MoeCombineBackwardParams { n_tokens, d_model, top_k });
    let (x, weights) = (Value::Input(0), Value::Input(1));
    let targets = [Target::Of(x), Target::Of(weights)];
    vec![Gradient::of_first([Backward::new(operation, [x, weights, Value::Incoming], targets)])]
}

impl Operation for OfLogits {
    fn reference(&self, inputs: &[Host<'_>], outputs: &mut [HostMut<'_>]) {
        let (n_experts, top_k) = (self.0.n_experts as usize, self.0.top_k as usize);
        let (experts, weights, dy) = (inputs[1].u32(), inputs[2].f32(), inputs[3].f32());
        let picks = experts.chunks_exact(top_k).zip(weights.chunks_exact(top_k)).zip(dy.chunks_exact(top_k));
        let rows = inputs[0].f32().chunks_exact(n_experts).zip(outputs[0].f32().chunks_exact_mut(n_experts));
        for ((logits, dlogits), ((experts, weights), dy)) in rows.zip(picks) {
            let along: f32 = weights.iter().zip(dy).map(|(weight, dy)| weight * dy).sum();
            let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let total: f32 = logits.iter().map(|logit| (logit - largest).exp()).sum();
            for (dlogit, logit) in dlogits.iter_mut().zip(logits) {
                *dlogit = if self.0.renormalise == 0 { -(logit - largest).exp() / total * along } else { 0.0 };
            }
            for ((&expert, weight), dy) in experts.iter().zip(weights).zip(dy) {
                dlogits[expert as usize] = weight * (dy - along);
            }
        }
    }

    fn launch(&self) -> Launch {
        let groups = u64::from(self.0.n_tokens).div_ceil(64);
        Launch { kernel: &MOE_ROUTE_BACKWARD_F32, groups, params: self.0.words() }
    }
}

impl Operation for OfInput {
    fn reference(&self, inputs: &[Host<'_>], outputs: &mut [HostMut<'_>]) {
        let MoeLinearBackwardParams { picks_per_row, n_in, n_out, first_row, n_rows, .. } = self.params;
        let (dy, dx) = (inputs[0].f32(), outputs[0].f32());
        let (w, rest) = rows(self.format, n_in, &inputs[1..]);
        dx.fill(0.0);
        for (pick, (&expert, dy)) in rest[0].u32().iter().zip(dy.chunks_exact(n_out as usize)).enumerate() {
            let dx = &mut dx[pick / picks_per_row as usize * n_in as usize..][..n_in as usize];
            for (column, g) in dy.iter().enumerate() {
                let row = (expert * n_out + column as u32).wrapping_sub(first_row);
                if row < n_rows {
                    dx.iter_mut().zip(w.decode(row as usize).iter()).for_each(|(dx, w)| *dx += g * w);
                }
            }
        }
    }

    fn launch(&self) -> Launch {
        let MoeLinearBackwardParams { n_picks, picks_per_row, n_in, .. } = self.params;
        let blocks = u64::from(n_picks / picks_per_row) * u64::from(n_in.div_ceil(32));
        let kernel = MOE_LINEAR_BACKWARD[self.format as usize];
        Launch { kernel, groups: blocks.div_ceil(64), params: self.params.words() }
    }

    fn flops(&self) -> u64 {
        product_flops(self.params.n_picks, self.params.n_out, self.params.n_in)
    }
}

impl Operation for OfWeight {
    fn reference(&self, inputs: &[Host<'_>], outputs: &mut [HostMut<'_>]) {
        let MoeLinearWeightBackwardParams { picks_per_row, n_in, n_out, first_row, n_rows, .. } = self.0;
        let (dy, x, experts, dw) = (inputs[0].f32(), inputs[1].f32(), inputs[2].u32(), outputs[0].f32());
        dw.fill(0.0);
        for (pick, (&expert, dy)) in experts.iter().zip(dy.chunks_exact(n_out as usize)).enumerate() {
            let x = &x[pick / picks_per_row as usize * n_in as usize..][..n_in as usize];
            for (column, g) in dy.iter().enumerate() {
                let row = (expert * n_out + column as u32).wrapping_sub(first_row);
                if row < n_rows {
                    let dw = &mut dw[row as usize * n_in as usize..][..n_in as usize];
                    dw.iter_mut().zip(x).for_each(|(dw, x)| *dw += g * x);
                }
            }
        }
    }

    fn launch(&self) -> Launch {
        let n_elements = u64::from(self.0.n_rows) * u64::from(self.0.n_in);
        Launch { kernel: &MOE_LINEAR_WEIGHT_BACKWARD_F32, groups: n_elements.div_ceil(64), params: self.0.words() }
    }

    fn flops(&self) -> u64 {
        product_flops(self.0.n_picks, self.0.n_out, self.0.n_in)
    }
}

impl Operation for OfTerms {
    fn reference(&self, inputs: &[Host<'_>], outputs: &mut [HostMut<'_>]) {
        let (x, weights, dy) = (inputs[0].f32(), inputs[1].f32(), inputs[2].f32());
        let [dx, dweights] = outputs else { return };
        let (width, top_k) = (self.0.d_model as usize, self.0.top_k as usize);
        let picks = x.chunks_exact(width).zip(dx.f32().chunks_exact_mut(width));
        for (pick, ((x, dx), dweight)) in picks.zip(dweights.f32()).enumerate() {
            let dy = &dy[pick / top_k * width..][..width];
            dx.iter_mut().zip(dy).for_each(|(dx, dy)| *dx = weights[pick] * dy);
            *dweight = x.iter().zip(dy).map(|(x, dy)| x * dy).sum();
        }
    }

    fn launch(&self) -> Launch {
        let groups = u64::from(self.0.n_tokens) * u64::from(self.0.top_k);
        Launch { kernel: &MOE_COMBINE_BACKWARD_F32, groups, params: self.0.words() }
    }
}
