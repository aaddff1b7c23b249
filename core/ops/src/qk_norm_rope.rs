//! What lies between the fused QKV product and attention: QK-norm, clipping, RoPE and the write to the KV cache.

use crate::attention::n_part_words;
use crate::kv::{KvFormats, Side};
use crate::operation::{Host, HostMut, Launch, Operation};
use crate::run::{Buffer, empty, float, int, into_float, into_int, run};
use crate::step::Step;
use crate::weight::vector;
use burn::tensor::{DType, Device, Int, Tensor};
use samara_shaders::{QK_NORM_ROPE, QkNormRopeParams};

/// How a projection divides into heads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadShape {
    /// H.
    pub n_heads: usize,
    /// K; a divisor of H.
    pub n_kv_heads: usize,
    /// C, even.
    pub head_dim: usize,
}

/// What the RMSNorm of queries and keys spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QkNorm {
    /// There is none (Llama, OLMo 1).
    None,
    /// The whole projection, all heads together (OLMo 2, Olmo 3, OLMoE); weight `[H * C + K * C]`: q, then k.
    Full,
    /// Each head by itself (Gemma 3); weight `[2 * C]`: q, then k.
    PerHead,
}

/// What happens to queries, keys and values before attention.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QkSpec {
    /// Heads.
    pub heads: HeadShape,
    /// Norm of queries and keys.
    pub norm: QkNorm,
    /// Added to the norm's variance.
    pub eps: f32,
    /// Queries, keys and values are clamped to plus or minus this after the norm (OLMo 1's `clip_qkv`).
    pub clip: Option<f32>,
}

/// Cosines and sines of every position.
#[derive(Debug, Clone)]
pub struct RopeTable(Tensor<2>);

/// Keys and values of one layer; position p lies in slot `p % n_slots`.
#[derive(Debug, Clone)]
pub struct LayerCache {
    n_slots: usize,
    heads: HeadShape,
    formats: KvFormats,
    /// The words of keys and values; away while an operation writes them.
    tensors: Option<[Tensor<1, Int>; 2]>,
    /// Where workgroups that share a token's keys leave their parts; see `splits.wgsl`.
    parts: Tensor<1, Int>,
}

/// One launch over all tokens.
#[derive(Debug, Clone, Copy)]
struct QkNormRope {
    norm: QkNorm,
    formats: KvFormats,
    params: QkNormRopeParams,
}

impl HeadShape {
    /// H * C.
    pub fn q_width(&self) -> usize {
        self.n_heads * self.head_dim
    }

    /// K * C.
    pub fn kv_width(&self) -> usize {
        self.n_kv_heads * self.head_dim
    }
}

impl RopeTable {
    /// `cos(p * inv_freq) | sin(p * inv_freq)`, each times `attention_factor`, for `capacity` positions.
    ///
    /// Computed on the host, because WGSL promises little of `sin` and `cos` at large arguments.
    ///
    /// # Shapes
    /// - inv_freq `[C / 2]`
    pub fn new(inv_freq: &[f32], attention_factor: f32, capacity: usize, device: &Device) -> Self {
        let width = 2 * inv_freq.len();
        let mut table = Vec::with_capacity(capacity * width);
        for position in 0..capacity {
            let angles = inv_freq.iter().map(|frequency| position as f32 * frequency);
            table.extend(angles.clone().map(|angle| angle.cos() * attention_factor));
            table.extend(angles.map(|angle| angle.sin() * attention_factor));
        }
        Self(vector(&table, device).reshape([capacity, width]))
    }

    pub(crate) fn buffer(&self) -> Buffer {
        float(&self.0)
    }
}

impl LayerCache {
    /// Room for `n_slots` positions.
    pub fn new(n_slots: usize, heads: &HeadShape, formats: impl Into<KvFormats>, device: &Device) -> Self {
        let zeros = |n_words: usize| Tensor::zeros([n_words], (device, DType::U32));
        let parts = zeros(n_part_words(heads));
        let mut cache = Self { n_slots, heads: *heads, formats: formats.into(), tensors: None, parts };
        cache.tensors = Some(cache.sides().map(|side| zeros(side.n_words())));
        cache
    }

    /// How many positions it holds.
    pub fn n_slots(&self) -> usize {
        self.n_slots
    }

    /// How its numbers lie in memory.
    pub fn formats(&self) -> KvFormats {
        self.formats
    }

    /// Bytes in device memory.
    pub fn n_bytes(&self) -> u64 {
        self.sides().iter().map(|side| 4 * side.n_words() as u64).sum()
    }

    fn sides(&self) -> [Side; 2] {
        self.formats.sides(self.n_slots * self.heads.n_kv_heads, self.heads.head_dim)
    }

    /// Keys and values, to be read.
    pub(crate) fn buffers(&self) -> Vec<Buffer> {
        self.tensors.iter().flatten().map(int).collect()
    }

    /// Room for the parts of splits.
    pub(crate) fn parts(&self) -> Buffer {
        int(&self.parts)
    }

    /// The words of keys and values.
    #[cfg(test)]
    pub(crate) fn words(self) -> [Vec<u32>; 2] {
        let read = |side: Tensor<1, Int>| side.into_data().try_into_vec().unwrap_or_default();
        self.tensors.map(|sides| sides.map(read)).unwrap_or_default()
    }

    /// Keys and values, given away so that they can be written without a copy.
    fn take(&mut self) -> Vec<Buffer> {
        self.tensors.take().into_iter().flatten().map(into_int).collect()
    }
}

/// Normed, clipped and rotated queries; keys (likewise) and clipped values go to the cache's slots of this step,
/// rounded to its formats.
///
/// # Shapes
/// - qkv `[T, (H + 2K) * C]`
/// - qk_weight: see [`QkNorm`]; any one value where there is no norm
/// - result `[T, H * C]`
///
/// RoPE is the rotate-half form: `x * cos + (-x[C/2..], x[..C/2]) * sin` (Su et al. 2021).
pub fn qk_norm_rope(
    qkv: &Tensor<2>,
    qk_weight: &Tensor<1>,
    rope: &RopeTable,
    step: &Step,
    cache: &mut LayerCache,
    spec: &QkSpec,
) -> Tensor<2> {
    let operation = QkNormRope::new(qkv, qk_weight, cache, spec);
    let [n_tokens, _] = qkv.dims();
    let q = empty([n_tokens, spec.heads.q_width()], &qkv.device());
    let inputs = vec![float(qkv), float(qk_weight), rope.buffer(), step.buffer()];
    let mut written = vec![into_float(q)];
    written.extend(cache.take());
    let mut outputs = run(operation, inputs, written);
    let q = outputs.float();
    cache.tensors = Some([outputs.int(), outputs.int()]);
    q
}

impl QkNormRope {
    fn new(qkv: &Tensor<2>, weight: &Tensor<1>, cache: &LayerCache, spec: &QkSpec) -> Self {
        let heads = spec.heads;
        let [n_tokens, width] = qkv.dims();
        assert_eq!(width, heads.q_width() + 2 * heads.kv_width(), "qk_norm_rope: width of qkv");
        let n_weights = match spec.norm {
            QkNorm::None => weight.dims()[0],
            QkNorm::Full => heads.q_width() + heads.kv_width(),
            QkNorm::PerHead => 2 * heads.head_dim,
        };
        assert_eq!(weight.dims(), [n_weights], "qk_norm_rope: weight of the norm");
        let params = QkNormRopeParams {
            n_tokens: n_tokens as u32,
            n_heads: heads.n_heads as u32,
            n_kv_heads: heads.n_kv_heads as u32,
            head_dim: heads.head_dim as u32,
            n_slots: cache.n_slots() as u32,
            eps: spec.eps,
            clip: spec.clip.unwrap_or(f32::MAX),
        };
        Self { norm: spec.norm, formats: cache.formats(), params }
    }

    /// One row of queries or keys: norm, clip and rotate.
    fn rotate(&self, x: &[f32], weight: &[f32], rope: &[f32], y: &mut [f32]) {
        let width = self.params.head_dim as usize;
        let full = self.inverse_norm(x);
        let (cos, sin) = rope.split_at(width / 2);
        for (head, (x, y)) in x.chunks_exact(width).zip(y.chunks_exact_mut(width)).enumerate() {
            let at = |i: usize| {
                let normed = match self.norm {
                    QkNorm::None => x[i],
                    QkNorm::Full => weight[head * width + i] * (x[i] * full),
                    QkNorm::PerHead => weight[i] * (x[i] * self.inverse_norm(x)),
                };
                self.clip(normed)
            };
            for i in 0..width / 2 {
                let (a, b) = (at(i), at(i + width / 2));
                y[i] = a * cos[i] - b * sin[i];
                y[i + width / 2] = b * cos[i] + a * sin[i];
            }
        }
    }

    fn inverse_norm(&self, x: &[f32]) -> f32 {
        let squares: f32 = x.iter().map(|x| x * x).sum();
        1.0 / (squares / x.len() as f32 + self.params.eps).sqrt()
    }

    /// Stores the heads of one slot.
    fn put(&self, row: &[f32], slot: usize, side: Side, words: &mut [u32]) {
        for (head, values) in row.chunks_exact(side.head_dim).enumerate() {
            side.encode(head * self.params.n_slots as usize + slot, values, words);
        }
    }

    fn clip(&self, x: f32) -> f32 {
        x.clamp(-self.params.clip, self.params.clip)
    }
}

impl Operation for QkNormRope {
    fn reference(&self, inputs: &[Host<'_>], outputs: &mut [HostMut<'_>]) {
        let (qkv, weight, rope, step) = (inputs[0].f32(), inputs[1].f32(), inputs[2].f32(), inputs[3].u32());
        let head_dim = self.params.head_dim as usize;
        let q_width = self.params.n_heads as usize * head_dim;
        let kv_width = self.params.n_kv_heads as usize * head_dim;
        let (q_weight, k_weight) = match self.norm {
            QkNorm::None => (weight, weight),
            QkNorm::Full => weight.split_at(q_width),
            QkNorm::PerHead => weight.split_at(head_dim),
        };
        let [q_out, keys, values] = outputs else { return };
        let [of_keys, of_values] =
            self.formats.sides((self.params.n_kv_heads * self.params.n_slots) as usize, head_dim);
        let (mut rotated, mut clipped) = (vec![0.0; kv_width], vec![0.0; kv_width]);
        for (token, row) in qkv.chunks_exact(q_width + 2 * kv_width).enumerate() {
            let position = step[0] as usize + token;
            let rope = &rope[position * head_dim..][..head_dim];
            let slot = position % self.params.n_slots as usize;
            let (q, kv) = row.split_at(q_width);
            let (k, v) = kv.split_at(kv_width);
            self.rotate(q, q_weight, rope, &mut q_out.f32()[token * q_width..][..q_width]);
            self.rotate(k, k_weight, rope, &mut rotated);
            clipped.iter_mut().zip(v).for_each(|(y, v)| *y = self.clip(*v));
            self.put(&rotated, slot, of_keys, keys.u32());
            self.put(&clipped, slot, of_values, values.u32());
        }
    }

    fn launch(&self) -> Launch {
        let norm = match self.norm {
            QkNorm::None => 0,
            QkNorm::Full => 1,
            QkNorm::PerHead => 2,
        };
        let kernel = QK_NORM_ROPE[self.formats.variant(norm)];
        Launch { kernel, groups: 3 * u64::from(self.params.n_tokens), params: self.params.words() }
    }
}
