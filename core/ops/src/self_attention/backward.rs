//! The gradient of attention: scores are computed again, from what the forward pass kept of each row (Dao et al. 2022).

use super::{Rows, WORKGROUP, flops, for_width};
use crate::gradient::{Backward, Gradient, Target, Value};
use crate::linear::dot;
use crate::operation::{Host, HostMut, Launch, Operation};
use samara_shaders::{
    ATTENTION_ROWS_BACKWARD_KV_C64, ATTENTION_ROWS_BACKWARD_KV_C128, ATTENTION_ROWS_BACKWARD_KV_TO64,
    ATTENTION_ROWS_BACKWARD_KV_TO256, ATTENTION_ROWS_BACKWARD_Q_C64, ATTENTION_ROWS_BACKWARD_Q_C128,
    ATTENTION_ROWS_BACKWARD_Q_TO64, ATTENTION_ROWS_BACKWARD_Q_TO256, AttentionRowsBackwardKvParams,
    AttentionRowsBackwardQParams, AttentionRowsParams,
};

/// Of queries, and what the other two need: the product of each result with its gradient.
#[derive(Debug, Clone, Copy)]
struct OfQueries(AttentionRowsParams);

/// Of keys and values.
#[derive(Debug, Clone, Copy)]
struct OfKeysValues(AttentionRowsParams);

pub(super) fn gradients(params: AttentionRowsParams) -> Vec<Gradient> {
    let (qkv, positions, y, log_sums) = (Value::Input(0), Value::Input(1), Value::Output(0), Value::Output(1));
    let n_deltas = (params.n_tokens * params.n_heads) as usize;
    vec![Gradient::of_first([
        Backward::new(
            OfQueries(params),
            [qkv, positions, y, log_sums, Value::Incoming],
            [Target::Of(qkv), Target::Scratch(0, n_deltas)],
        ),
        Backward::new(
            OfKeysValues(params),
            [qkv, positions, log_sums, Value::Incoming, Value::Scratch(0)],
            [Target::Of(qkv)],
        ),
    ])]
}

impl Operation for OfQueries {
    fn reference(&self, inputs: &[Host<'_>], outputs: &mut [HostMut<'_>]) {
        let (qkv, positions, y) = (inputs[0].f32(), inputs[1].u32(), inputs[2].f32());
        let (log_sums, dy) = (inputs[3].f32(), inputs[4].f32());
        let [dqkv, deltas] = outputs else { return };
        let (rows, scale) = (Rows::from(self.0), self.0.scale);
        let width = rows.head_dim;
        let results = y.chunks_exact(width).zip(dy.chunks_exact(width)).zip(log_sums).zip(deltas.f32());
        for (index, (((y, dy), log_sum), delta)) in results.enumerate() {
            let (token, head) = (index / rows.n_heads, index % rows.n_heads);
            let q = &qkv[rows.query(token, head)..][..width];
            let dq = &mut dqkv.f32()[rows.query(token, head)..][..width];
            *delta = dot(y, dy);
            dq.fill(0.0);
            for s in rows.seen(token, positions[token]) {
                let key = &qkv[rows.key(s, head)..][..width];
                let weight = (scale * dot(q, key) - log_sum).exp();
                let slope = scale * weight * (dot(dy, &qkv[rows.value(s, head)..][..width]) - *delta);
                dq.iter_mut().zip(key).for_each(|(dq, key)| *dq += slope * key);
            }
        }
    }

    fn launch(&self) -> Launch {
        let AttentionRowsParams { n_tokens, n_heads, n_kv_heads, head_dim, window, scale } = self.0;
        let kernels = [
            &ATTENTION_ROWS_BACKWARD_Q_C64,
            &ATTENTION_ROWS_BACKWARD_Q_C128,
            &ATTENTION_ROWS_BACKWARD_Q_TO64,
            &ATTENTION_ROWS_BACKWARD_Q_TO256,
        ];
        let params = AttentionRowsBackwardQParams { n_tokens, n_heads, n_kv_heads, head_dim, window, scale };
        let groups = (u64::from(n_tokens) * u64::from(n_heads)).div_ceil(WORKGROUP);
        Launch { kernel: for_width(kernels, head_dim), groups, params: params.words() }
    }

    fn flops(&self) -> u64 {
        2 * flops(&self.0)
    }
}

impl Operation for OfKeysValues {
    fn reference(&self, inputs: &[Host<'_>], outputs: &mut [HostMut<'_>]) {
        let (qkv, positions, log_sums) = (inputs[0].f32(), inputs[1].u32(), inputs[2].f32());
        let (dy, deltas, dqkv) = (inputs[3].f32(), inputs[4].f32(), outputs[0].f32());
        let (rows, scale) = (Rows::from(self.0), self.0.scale);
        let width = rows.head_dim;
        for token in 0..positions.len() {
            dqkv[token * rows.width()..][rows.n_heads * width..rows.width()].fill(0.0);
        }
        for (index, (dy, (log_sum, delta))) in dy.chunks_exact(width).zip(log_sums.iter().zip(deltas)).enumerate() {
            let (token, head) = (index / rows.n_heads, index % rows.n_heads);
            let q = &qkv[rows.query(token, head)..][..width];
            for s in rows.seen(token, positions[token]) {
                let (key, value) = (rows.key(s, head), rows.value(s, head));
                let weight = (scale * dot(q, &qkv[key..][..width]) - log_sum).exp();
                let slope = scale * weight * (dot(dy, &qkv[value..][..width]) - delta);
                dqkv[key..][..width].iter_mut().zip(q).for_each(|(dk, q)| *dk += slope * q);
                dqkv[value..][..width].iter_mut().zip(dy).for_each(|(dv, dy)| *dv += weight * dy);
            }
        }
    }

    fn launch(&self) -> Launch {
        let AttentionRowsParams { n_tokens, n_heads, n_kv_heads, head_dim, window, scale } = self.0;
        let kernels = [
            &ATTENTION_ROWS_BACKWARD_KV_C64,
            &ATTENTION_ROWS_BACKWARD_KV_C128,
            &ATTENTION_ROWS_BACKWARD_KV_TO64,
            &ATTENTION_ROWS_BACKWARD_KV_TO256,
        ];
        let params = AttentionRowsBackwardKvParams { n_tokens, n_heads, n_kv_heads, head_dim, window, scale };
        let groups = (u64::from(n_tokens) * u64::from(n_kv_heads)).div_ceil(WORKGROUP);
        Launch { kernel: for_width(kernels, head_dim), groups, params: params.words() }
    }

    fn flops(&self) -> u64 {
        2 * flops(&self.0)
    }
}
