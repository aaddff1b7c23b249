//! Attention of documents laid end to end, for training: no cache, no batch, no matrix of scores.
//!
//! Two operations, as in inference: [`rope_rows`] makes rotated queries and keys and clipped values from the fused
//! projection, `attention_rows` attends. Both have one output with a gradient, so that each is one node of the tape.

mod backward;
mod rotate;

use crate::Documents;
use crate::attention::AttentionSpec;
use crate::gradient::Gradient;
use crate::linear::{dot, product_flops};
use crate::operation::{Host, HostMut, Launch, Operation};
use crate::qk_norm_rope::{QkSpec, RopeTable};
use crate::run::{empty, float, into_float, run};
use burn::tensor::Tensor;
use rotate::rope_rows;
use samara_shaders::{
    ATTENTION_ROWS_C64, ATTENTION_ROWS_C128, ATTENTION_ROWS_TO64, ATTENTION_ROWS_TO256, AttentionRowsParams, Kernel,
};

/// Invocations of a workgroup.
const WORKGROUP: u64 = 8;

/// One launch over all tokens and heads.
#[derive(Debug, Clone, Copy)]
struct AttentionRows(AttentionRowsParams);

/// `softmax(scale * q Kᵀ) V` of every token over its document up to itself, from the fused projection of queries, keys and
/// values.
///
/// # Shapes
/// - qkv `[T, (H + 2K) * C]`
/// - qk_weight: see [`crate::QkNorm`]
/// - result `[T, H * C]`
///
/// # Panics
/// If a head is wider than 256 channels, or not a multiple of four.
pub fn self_attention(
    qkv: &Tensor<2>,
    qk_weight: &Tensor<1>,
    rope: &RopeTable,
    documents: &Documents,
    qk: &QkSpec,
    spec: &AttentionSpec,
) -> Tensor<2> {
    let heads = spec.heads;
    assert!(heads.head_dim <= 256 && heads.head_dim.is_multiple_of(4), "self_attention: {} channels", heads.head_dim);
    let rotated = rope_rows(qkv, qk_weight, rope, documents, qk);
    let [n_tokens, _] = qkv.dims();
    let operation = AttentionRows(AttentionRowsParams {
        n_tokens: n_tokens as u32,
        n_heads: heads.n_heads as u32,
        n_kv_heads: heads.n_kv_heads as u32,
        head_dim: heads.head_dim as u32,
        window: spec.window.map_or(u32::MAX, |window| window as u32),
        scale: spec.scale,
    });
    let device = qkv.device();
    let (y, log_sums) = (empty([n_tokens, heads.q_width()], &device), empty([n_tokens, heads.n_heads], &device));
    run(operation, vec![float(&rotated), documents.positions()], vec![into_float(y), into_float(log_sums)]).float()
}

/// Where the queries, keys and values of a row lie, and which tokens see which.
#[derive(Debug, Clone, Copy)]
struct Rows {
    head_dim: usize,
    n_heads: usize,
    n_kv_heads: usize,
    window: usize,
}

impl Rows {
    /// Values of a row of qkv.
    fn width(&self) -> usize {
        (self.n_heads + 2 * self.n_kv_heads) * self.head_dim
    }

    fn query(&self, token: usize, head: usize) -> usize {
        token * self.width() + head * self.head_dim
    }

    fn key(&self, token: usize, head: usize) -> usize {
        let kv_head = head / (self.n_heads / self.n_kv_heads);
        token * self.width() + (self.n_heads + kv_head) * self.head_dim
    }

    fn value(&self, token: usize, head: usize) -> usize {
        self.key(token, head) + self.n_kv_heads * self.head_dim
    }

    /// The tokens that `token`, which stands at `position` of its document, attends to.
    fn seen(&self, token: usize, position: u32) -> std::ops::RangeInclusive<usize> {
        token - (position as usize).min(self.window - 1)..=token
    }
}

impl From<AttentionRowsParams> for Rows {
    fn from(params: AttentionRowsParams) -> Self {
        let AttentionRowsParams { n_heads, n_kv_heads, head_dim, window, .. } = params;
        Self {
            head_dim: head_dim as usize,
            n_heads: n_heads as usize,
            n_kv_heads: n_kv_heads as usize,
            window: window as usize,
        }
    }
}

impl Operation for AttentionRows {
    fn reference(&self, inputs: &[Host<'_>], outputs: &mut [HostMut<'_>]) {
        let (qkv, positions) = (inputs[0].f32(), inputs[1].u32());
        let [y, log_sums] = outputs else { return };
        let rows = Rows::from(self.0);
        let heads = y.f32().chunks_exact_mut(rows.head_dim).zip(log_sums.f32());
        for (index, (y, log_sum)) in heads.enumerate() {
            let (token, head) = (index / rows.n_heads, index % rows.n_heads);
            let q = &qkv[rows.query(token, head)..][..rows.head_dim];
            let seen = rows.seen(token, positions[token]);
            let keys = seen.clone().map(|s| &qkv[rows.key(s, head)..][..rows.head_dim]);
            let scores: Vec<f32> = keys.map(|key| self.0.scale * dot(q, key)).collect();
            let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let total: f32 = scores.iter().map(|score| (score - largest).exp()).sum();
            y.fill(0.0);
            for (s, score) in seen.zip(&scores) {
                let weight = (score - largest).exp() / total;
                let value = &qkv[rows.value(s, head)..][..rows.head_dim];
                y.iter_mut().zip(value).for_each(|(y, value)| *y += weight * value);
            }
            *log_sum = largest + total.ln();
        }
    }

    fn launch(&self) -> Launch {
        let AttentionRowsParams { n_tokens, n_heads, head_dim, .. } = self.0;
        let kernels = [&ATTENTION_ROWS_C64, &ATTENTION_ROWS_C128, &ATTENTION_ROWS_TO64, &ATTENTION_ROWS_TO256];
        let groups = (u64::from(n_tokens) * u64::from(n_heads)).div_ceil(WORKGROUP);
        Launch { kernel: for_width(kernels, head_dim), groups, params: self.0.words() }
    }

    fn flops(&self) -> u64 {
        flops(&self.0)
    }

    fn gradients(&self) -> Vec<Gradient> {
        backward::gradients(self.0)
    }
}

/// As if all tokens were one document.
fn flops(params: &AttentionRowsParams) -> u64 {
    let AttentionRowsParams { n_tokens, n_heads, head_dim, window, .. } = *params;
    2 * product_flops(n_tokens, n_heads * head_dim, n_tokens.min(window))
}

/// The kernel for exactly this width of a head, or the narrowest that holds it.
fn for_width(kernels: [&'static Kernel; 4], head_dim: u32) -> &'static Kernel {
    let [exactly_64, exactly_128, up_to_64, up_to_256] = kernels;
    match head_dim {
        64 => exactly_64,
        128 => exactly_128,
        ..=64 => up_to_64,
        _ => up_to_256,
    }
}
