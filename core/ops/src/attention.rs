//! Causal attention over the KV cache, full or sliding, with grouped query heads.

use crate::family::{Family, Kernels, Task};
use crate::kv::{KvFormats, Side};
use crate::linear::{dot, product_flops};
use crate::operation::{Host, HostMut, Launch, Operation};
use crate::qk_norm_rope::{HeadShape, LayerCache};
use crate::run::{empty, float, into_float, run};
use crate::step::Step;
use burn::tensor::Tensor;
use samara_shaders::{ATTENTION, ATTENTION_KEYS, ATTENTION_LANES, ATTENTION_TILE, AttentionParams, Kernel};
use std::ops::Range;

/// The widest head that the kernel holds.
pub(crate) const MAX_HEAD_DIM: usize = 256;
/// The most workgroups that share the keys of one token and head.
const MAX_SPLITS: u32 = 16;
/// Workgroups in all that a software adapter, which has a few cores, is given for one token.
const WORKGROUPS_OF_SOFTWARE: u32 = 12;
/// Rows of queries that a workgroup of `attention` takes, by variant.
const ROWS: [u32; 3] = [1, 4, 8];
/// Width and number of heads that the variants of `attention_keys` take.
const HEADS: [(u32, u32); 7] = [(64, 1), (64, 2), (64, 3), (64, 4), (128, 1), (128, 2), (256, 1)];
/// Width of heads and rows of queries that a workgroup of `attention_tile` takes, by variant.
const TILES: [(u32, u32); 3] = [(64, 64), (128, 32), (256, 16)];

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
    formats: KvFormats,
    params: AttentionParams,
}

/// Words in which the splits of one token leave their parts: a counter for each workgroup that joins them, and for each head
/// and split the largest score, the sum of weights and the sums of values.
pub(crate) fn n_part_words(heads: &HeadShape) -> usize {
    heads.n_heads * (1 + MAX_SPLITS as usize * (2 + heads.head_dim.next_multiple_of(8)))
}

/// Bytes that attention needs beside each layer's keys and values.
pub fn attention_scratch_bytes(heads: &HeadShape) -> u64 {
    4 * n_part_words(heads) as u64
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
        n_splits: n_splits(n_tokens, spec),
    };
    let operation = Attention { kernels: spec.kernels, formats: cache.formats(), params };
    let mut inputs = vec![float(q)];
    inputs.extend(cache.buffers());
    inputs.push(step.buffer());
    let y = into_float(empty(q.dims(), &q.device()));
    if !operation.has_parts() {
        return run(operation, inputs, vec![y]).float();
    }
    let mut outputs = run(operation, inputs, vec![cache.parts(), y]);
    drop(outputs.int::<1>());
    outputs.float()
}

/// Among how many workgroups the keys of a token are split. It is the same however many keys there are, so that a recorded
/// launch serves them all; where there are few, some of the workgroups have nothing to do.
fn n_splits(n_tokens: usize, spec: &AttentionSpec) -> u32 {
    match (n_tokens, spec.kernels.of(Task::TokenAttention)) {
        (1, Family::Workgroup) => MAX_SPLITS,
        (1, Family::Invocation | Family::Subgroup) => {
            WORKGROUPS_OF_SOFTWARE.div_ceil(spec.heads.n_kv_heads as u32).min(MAX_SPLITS)
        }
        _ => 1,
    }
}

impl Attention {
    /// The kernel, and over how many workgroups.
    fn kernel(&self) -> (&'static Kernel, u32) {
        let AttentionParams { n_tokens, n_heads, n_kv_heads, head_dim, n_splits, .. } = self.params;
        let sharing = n_heads / n_kv_heads;
        let n_rows = n_tokens * sharing;
        let of = |kernels: &[&'static Kernel], variant: usize| kernels[self.formats.variant(variant)];
        if n_tokens == 1 && self.kernels.of(Task::TokenAttention) != Family::Workgroup {
            let fits = |&(width, heads): &(u32, u32)| width == head_dim && sharing.is_multiple_of(heads);
            if let Some(variant) = HEADS.iter().rposition(fits) {
                return (of(&ATTENTION_KEYS, variant), n_heads / HEADS[variant].1 * n_splits);
            }
        }
        let tile = TILES.iter().position(|(width, _)| *width == head_dim);
        let tiles = match self.kernels.of(Task::PromptAttention) {
            Family::Workgroup => None,
            Family::Invocation => Some(&ATTENTION_TILE),
            Family::Subgroup => Some(&ATTENTION_LANES),
        };
        if let (Some(kernels), 2.., Some(variant)) = (tiles, n_tokens, tile) {
            return (of(kernels, variant), n_kv_heads * n_rows.div_ceil(TILES[variant].1));
        }
        let variant = ROWS.iter().position(|rows| *rows >= n_rows).unwrap_or(ROWS.len() - 1);
        (of(&ATTENTION, variant), n_kv_heads * n_rows.div_ceil(ROWS[variant]) * n_splits)
    }

    /// Whether its workgroups share the keys of a token.
    fn has_parts(&self) -> bool {
        self.kernel().0.bindings.iter().any(|binding| binding.name == "parts")
    }

    /// What one side of the cache holds of a key head at these positions.
    fn rows(&self, side: Side, words: &[u32], positions: Range<usize>, kv_head: usize) -> Vec<f32> {
        let n_slots = self.params.n_slots as usize;
        let mut rows = vec![0.0; positions.len() * side.head_dim];
        for (position, values) in positions.zip(rows.chunks_exact_mut(side.head_dim)) {
            side.decode(kv_head * n_slots + position % n_slots, words, values);
        }
        rows
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
        let (q, step) = (inputs[0].f32(), inputs[3].u32());
        let Some(y) = outputs.last_mut() else { return };
        let n_heads = self.params.n_heads as usize;
        let head_dim = self.params.head_dim as usize;
        let sharing = n_heads / self.params.n_kv_heads as usize;
        let n_tokens = q.len() / (n_heads * head_dim);
        let seen = |token: usize| {
            let position = step[0] as usize + token;
            (position + 1).saturating_sub(self.params.window as usize)..position + 1
        };
        let all = seen(0).start..seen(n_tokens - 1).end;
        let [of_keys, of_values] =
            self.formats.sides((self.params.n_kv_heads * self.params.n_slots) as usize, head_dim);
        for kv_head in 0..n_heads / sharing {
            let keys = self.rows(of_keys, inputs[1].u32(), all.clone(), kv_head);
            let values = self.rows(of_values, inputs[2].u32(), all.clone(), kv_head);
            for (token, head) in (0..n_tokens).flat_map(|token| (0..sharing).map(move |head| (token, head))) {
                let range = (seen(token).start - all.start) * head_dim..(seen(token).end - all.start) * head_dim;
                let [keys, values] = [&keys, &values].map(|rows| rows[range.clone()].chunks_exact(head_dim));
                let start = (token * n_heads + kv_head * sharing + head) * head_dim;
                self.one_head(&q[start..][..head_dim], keys, values, &mut y.f32()[start..][..head_dim]);
            }
        }
    }

    fn launch(&self) -> Launch {
        let (kernel, groups) = self.kernel();
        Launch { kernel, groups: u64::from(groups), params: self.params.words() }
    }

    /// As if the cache were full.
    fn flops(&self) -> u64 {
        let AttentionParams { n_tokens, n_heads, head_dim, n_slots, window, .. } = self.params;
        2 * product_flops(n_tokens, n_heads * head_dim, n_slots.min(window))
    }
}
