//! Causal attention over the KV cache, full or sliding, with grouped query heads.

use crate::device::Kernels;
use crate::linear::dot;
use crate::operation::{Host, HostMut, Launch, Operation};
use crate::qk_norm_rope::{HeadShape, LayerCache};
use crate::run::{empty, float, into_float, run};
use crate::step::Step;
use burn::tensor::Tensor;
use samara_shaders::{
    ATTENTION_F32, ATTENTION_KEYS_C64_H1, ATTENTION_KEYS_C64_H2, ATTENTION_KEYS_C64_H3, ATTENTION_KEYS_C64_H4,
    ATTENTION_KEYS_C128_H1, ATTENTION_KEYS_C128_H2, ATTENTION_KEYS_C256_H1, AttentionParams, Kernel,
};

/// The widest head that the kernel holds.
pub(crate) const MAX_HEAD_DIM: usize = 256;

/// What a layer attends to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AttentionSpec {
    /// Heads.
    pub heads: HeadShape,
    /// How many keys a query sees, itself included; `None` for all before it.
    pub window: Option<usize>,
    /// Multiplies the scores, usually `1 / sqrt(C)`.
    pub scale: f32,
    /// Which kernels the device is fast with.
    pub kernels: Kernels,
}

/// One launch over all tokens and heads.
#[derive(Debug, Clone, Copy)]
struct Attention {
    kernels: Kernels,
    params: AttentionParams,
}

/// `softmax(scale * q Kᵀ) V` for the tokens of this step, whose keys and values the cache already holds.
///
/// # Shapes
/// - q `[T, H * C]`
/// - result `[T, H * C]`
///
/// # Panics
/// If a head is wider than 256.
pub fn attention(q: &Tensor<2>, cache: &LayerCache, step: &Step, spec: &AttentionSpec) -> Tensor<2> {
    let [n_tokens, width] = q.dims();
    assert_eq!(width, spec.heads.q_width(), "attention: width of q");
    assert!(spec.heads.head_dim <= MAX_HEAD_DIM, "attention: heads of {} channels", spec.heads.head_dim);
    let params = AttentionParams {
        n_tokens: n_tokens as u32,
        n_heads: spec.heads.n_heads as u32,
        n_kv_heads: spec.heads.n_kv_heads as u32,
        head_dim: spec.heads.head_dim as u32,
        n_slots: cache.n_slots() as u32,
        window: spec.window.map_or(u32::MAX, |window| window as u32),
        scale: spec.scale,
    };
    let operation = Attention { kernels: spec.kernels, params };
    let mut inputs = vec![float(q)];
    inputs.extend(cache.buffers());
    inputs.push(step.buffer());
    run(operation, inputs, vec![into_float(empty(q.dims(), &q.device()))]).float()
}

impl Attention {
    /// The kernel, and how many heads each of its workgroups takes: as many as share their keys, up to what it is built for.
    fn kernel(&self) -> (&'static Kernel, u32) {
        let sharing = self.params.n_heads / self.params.n_kv_heads;
        let divides = |n_heads: u32| sharing.is_multiple_of(n_heads);
        match (self.kernels, self.params.head_dim) {
            (Kernels::Invocation, 64) if divides(4) => (&ATTENTION_KEYS_C64_H4, 4),
            (Kernels::Invocation, 64) if divides(3) => (&ATTENTION_KEYS_C64_H3, 3),
            (Kernels::Invocation, 64) if divides(2) => (&ATTENTION_KEYS_C64_H2, 2),
            (Kernels::Invocation, 64) => (&ATTENTION_KEYS_C64_H1, 1),
            (Kernels::Invocation, 128) if divides(2) => (&ATTENTION_KEYS_C128_H2, 2),
            (Kernels::Invocation, 128) => (&ATTENTION_KEYS_C128_H1, 1),
            (Kernels::Invocation, 256) => (&ATTENTION_KEYS_C256_H1, 1),
            _ => (&ATTENTION_F32, 1),
        }
    }

    /// One head of one token: `keys` and `values` give the cached rows of the head, oldest first.
    fn one_head<'a>(
        &self,
        q: &[f32],
        keys: impl Iterator<Item = &'a [f32]>,
        values: impl Iterator<Item = &'a [f32]>,
        y: &mut [f32],
    ) {
        let scores: Vec<f32> = keys.map(|key| self.params.scale * dot(q, key)).collect();
        let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let weights: Vec<f32> = scores.iter().map(|score| (score - largest).exp()).collect();
        let total: f32 = weights.iter().sum();
        y.fill(0.0);
        for (weight, value) in weights.iter().zip(values) {
            y.iter_mut().zip(value).for_each(|(y, value)| *y += weight / total * value);
        }
    }
}

impl Operation for Attention {
    fn reference(&self, inputs: &[Host<'_>], outputs: &mut [HostMut<'_>]) {
        let (q, keys, values, step) = (inputs[0].f32(), inputs[1].f32(), inputs[2].f32(), inputs[3].u32());
        let head_dim = self.params.head_dim as usize;
        let kv_width = self.params.n_kv_heads as usize * head_dim;
        let group = (self.params.n_heads / self.params.n_kv_heads) as usize;
        let heads = q.chunks_exact(head_dim).zip(outputs[0].f32().chunks_exact_mut(head_dim));
        for (index, (q, y)) in heads.enumerate() {
            let position = step[0] as usize + index / self.params.n_heads as usize;
            let first = (position + 1).saturating_sub(self.params.window as usize);
            let offset = index % self.params.n_heads as usize / group * head_dim;
            let rows = (first..=position).map(|p| p % self.params.n_slots as usize * kv_width + offset);
            let keys = rows.clone().map(|start| &keys[start..][..head_dim]);
            let values = rows.map(|start| &values[start..][..head_dim]);
            self.one_head(q, keys, values, y);
        }
    }

    fn launch(&self) -> Launch {
        let (kernel, n_heads) = self.kernel();
        let groups = u64::from(self.params.n_tokens) * u64::from(self.params.n_heads / n_heads);
        Launch { kernel, groups, params: self.params.words() }
    }
}
