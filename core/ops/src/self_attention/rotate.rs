//! From the fused projection to rotated queries and keys and clipped values, each token at its own position.

use crate::Documents;
use crate::gradient::{Backward, Gradient, Target, Value};
use crate::operation::{Host, HostMut, Launch, Operation};
use crate::qk_norm_rope::{QkNorm, QkSpec, RopeTable};
use crate::run::{empty, float, into_float, run};
use burn::tensor::Tensor;
use samara_shaders::{
    ROPE_ROWS_BACKWARD_FULL, ROPE_ROWS_BACKWARD_NONE, ROPE_ROWS_BACKWARD_PER_HEAD, ROPE_ROWS_FULL, ROPE_ROWS_NONE,
    ROPE_ROWS_PER_HEAD, ROPE_ROWS_WEIGHT_BACKWARD_FULL, ROPE_ROWS_WEIGHT_BACKWARD_NONE,
    ROPE_ROWS_WEIGHT_BACKWARD_PER_HEAD, RopeRowsBackwardParams, RopeRowsParams, RopeRowsWeightBackwardParams,
};

/// `rope(clip(norm(q))) | rope(clip(norm(k))) | clip(v)`, and what the norms multiplied by.
#[derive(Debug, Clone, Copy)]
struct RopeRows {
    norm: QkNorm,
    params: RopeRowsParams,
}

/// Of the projection.
#[derive(Debug, Clone, Copy)]
struct OfInput(RopeRows);

/// Of the norm's weight.
#[derive(Debug, Clone, Copy)]
struct OfWeight(RopeRows);

/// See [`crate::qk_norm_rope`]; keys and values stay in the row.
///
/// # Shapes
/// - qkv and result `[T, (H + 2K) * C]`
pub(super) fn rope_rows(
    qkv: &Tensor<2>,
    weight: &Tensor<1>,
    rope: &RopeTable,
    documents: &Documents,
    spec: &QkSpec,
) -> Tensor<2> {
    let heads = spec.heads;
    let [n_tokens, width] = qkv.dims();
    assert_eq!(width, heads.q_width() + 2 * heads.kv_width(), "rope_rows: width of qkv");
    let params = RopeRowsParams {
        n_tokens: n_tokens as u32,
        n_heads: heads.n_heads as u32,
        n_kv_heads: heads.n_kv_heads as u32,
        head_dim: heads.head_dim as u32,
        eps: spec.eps,
        clip: spec.clip.unwrap_or(f32::MAX),
    };
    let device = qkv.device();
    let inverses = empty([n_tokens, heads.n_heads + heads.n_kv_heads], &device);
    let inputs = vec![float(qkv), float(weight), rope.buffer(), documents.positions()];
    let outputs = vec![into_float(empty(qkv.dims(), &device)), into_float(inverses)];
    run(RopeRows { norm: spec.norm, params }, inputs, outputs).float()
}

impl RopeRows {
    fn head_dim(&self) -> usize {
        self.params.head_dim as usize
    }

    /// Values of queries, keys and all of a row.
    fn widths(&self) -> [usize; 3] {
        let RopeRowsParams { n_heads, n_kv_heads, head_dim, .. } = self.params;
        [n_heads * head_dim, n_kv_heads * head_dim, (n_heads + 2 * n_kv_heads) * head_dim].map(|width| width as usize)
    }

    fn n_norms(&self) -> usize {
        (self.params.n_heads + self.params.n_kv_heads) as usize
    }

    /// Queries and keys of a row: the first value, how many there are, the first head, the norm's weights.
    fn parts<'a>(&self, weight: &'a [f32]) -> [(usize, usize, usize, &'a [f32]); 2] {
        let [q_width, k_width, _] = self.widths();
        let (q_weight, k_weight) = match self.norm {
            QkNorm::None => (weight, weight),
            QkNorm::Full => weight.split_at(q_width),
            QkNorm::PerHead => weight.split_at(self.head_dim()),
        };
        [(0, q_width, 0, q_weight), (q_width, k_width, self.params.n_heads as usize, k_weight)]
    }

    /// The weight of value `i` of queries or keys.
    fn weight(&self, weights: &[f32], i: usize) -> f32 {
        match self.norm {
            QkNorm::None => 1.0,
            QkNorm::Full => weights[i],
            QkNorm::PerHead => weights[i % self.head_dim()],
        }
    }

    /// What each head of `x` is multiplied by.
    fn inverses(&self, x: &[f32]) -> Vec<f32> {
        let inverse = |x: &[f32]| {
            let squares: f32 = x.iter().map(|x| x * x).sum();
            1.0 / (squares / x.len() as f32 + self.params.eps).sqrt()
        };
        let heads = x.chunks_exact(self.head_dim());
        match self.norm {
            QkNorm::None => heads.map(|_| 1.0).collect(),
            QkNorm::Full => vec![inverse(x); heads.len()],
            QkNorm::PerHead => heads.map(inverse).collect(),
        }
    }

    /// The gradient of normed and clipped values `x`, from that of the rotated ones.
    fn turned(&self, x: &[f32], weights: &[f32], inverses: &[f32], rope: &[f32], dy: &[f32]) -> Vec<f32> {
        let width = self.head_dim();
        let (cos, sin) = rope.split_at(width / 2);
        let of_value = |i: usize| {
            if (self.weight(weights, i) * (x[i] * inverses[i / width])).abs() > self.params.clip {
                return 0.0;
            }
            let (at, half) = (i % width, width / 2);
            if at < half {
                dy[i] * cos[at] + dy[i + half] * sin[at]
            } else {
                dy[i] * cos[at - half] - dy[i - half] * sin[at - half]
            }
        };
        (0..x.len()).map(of_value).collect()
    }
}

impl Operation for RopeRows {
    fn reference(&self, inputs: &[Host<'_>], outputs: &mut [HostMut<'_>]) {
        let (qkv, weight, rope, positions) = (inputs[0].f32(), inputs[1].f32(), inputs[2].f32(), inputs[3].u32());
        let [rotated, inverses] = outputs else { return };
        let ([q_width, k_width, row_width], head_dim) = (self.widths(), self.head_dim());
        let rows = qkv.chunks_exact(row_width).zip(rotated.f32().chunks_exact_mut(row_width));
        let rows = rows.zip(inverses.f32().chunks_exact_mut(self.n_norms()));
        for (((row, rotated), inverses), position) in rows.zip(positions) {
            let (cos, sin) = rope[*position as usize * head_dim..][..head_dim].split_at(head_dim / 2);
            for (start, width, first_head, weights) in self.parts(weight) {
                let x = &row[start..][..width];
                let own = &mut inverses[first_head..][..width / head_dim];
                own.copy_from_slice(&self.inverses(x));
                let clipped = |i: usize| {
                    let normed = self.weight(weights, i) * (x[i] * own[i / head_dim]);
                    normed.clamp(-self.params.clip, self.params.clip)
                };
                for (first, i) in
                    (0..width).step_by(head_dim).flat_map(|first| (0..head_dim / 2).map(move |i| (first, i)))
                {
                    let (a, b) = (clipped(first + i), clipped(first + i + head_dim / 2));
                    rotated[start + first + i] = a * cos[i] - b * sin[i];
                    rotated[start + first + i + head_dim / 2] = b * cos[i] + a * sin[i];
                }
            }
            let values = rotated[q_width + k_width..].iter_mut().zip(&row[q_width + k_width..]);
            values.for_each(|(y, v)| *y = v.clamp(-self.params.clip, self.params.clip));
        }
    }

    fn launch(&self) -> Launch {
        let kernel = match self.norm {
            QkNorm::None => &ROPE_ROWS_NONE,
            QkNorm::Full => &ROPE_ROWS_FULL,
            QkNorm::PerHead => &ROPE_ROWS_PER_HEAD,
        };
        Launch { kernel, groups: 3 * u64::from(self.params.n_tokens), params: self.params.words() }
    }

    fn gradients(&self) -> Vec<Gradient> {
        let (qkv, weight, inverses) = (Value::Input(0), Value::Input(1), Value::Output(1));
        let reads = [qkv, weight, Value::Input(2), Value::Input(3), inverses, Value::Incoming];
        let of_input = Backward::new(OfInput(*self), reads, [Target::Of(qkv)]);
        let of_weight = Backward::new(OfWeight(*self), reads, [Target::Of(weight)]);
        // Without a norm the weight is a stand-in.
        let has_weight = self.norm != QkNorm::None;
        vec![Gradient::of_first([of_input].into_iter().chain(has_weight.then_some(of_weight)).collect::<Vec<_>>())]
    }
}

impl Operation for OfInput {
    fn reference(&self, inputs: &[Host<'_>], outputs: &mut [HostMut<'_>]) {
        let (qkv, weight, rope, positions) = (inputs[0].f32(), inputs[1].f32(), inputs[2].f32(), inputs[3].u32());
        let (inverses, dy, dqkv) = (inputs[4].f32(), inputs[5].f32(), outputs[0].f32());
        let ([q_width, k_width, row_width], head_dim) = (self.0.widths(), self.0.head_dim());
        for (token, position) in positions.iter().enumerate() {
            let rope = &rope[*position as usize * head_dim..][..head_dim];
            let rows = token * row_width..(token + 1) * row_width;
            let (row, dy, dqkv) = (&qkv[rows.clone()], &dy[rows.clone()], &mut dqkv[rows]);
            let inverses = &inverses[token * self.0.n_norms()..][..self.0.n_norms()];
            for (start, width, first_head, weights) in self.0.parts(weight) {
                let (x, inverses) = (&row[start..][..width], &inverses[first_head..]);
                let turned = self.0.turned(x, weights, inverses, rope, &dy[start..][..width]);
                let scaled: Vec<f32> = turned.iter().enumerate().map(|(i, g)| self.0.weight(weights, i) * g).collect();
                let span = if self.0.norm == QkNorm::PerHead { head_dim } else { width };
                for first in (0..width).step_by(span) {
                    let inverse = inverses[first / head_dim];
                    let normed = |i: usize| x[i] * inverse;
                    let along: f32 = (first..first + span).map(|i| scaled[i] * normed(i)).sum::<f32>() / span as f32;
                    let along = if self.0.norm == QkNorm::None { 0.0 } else { along };
                    (first..first + span).for_each(|i| dqkv[start + i] = inverse * (scaled[i] - normed(i) * along));
                }
            }
            for i in q_width + k_width..row_width {
                dqkv[i] = if row[i].abs() <= self.0.params.clip { dy[i] } else { 0.0 };
            }
        }
    }

    fn launch(&self) -> Launch {
        let RopeRowsParams { n_tokens, n_heads, n_kv_heads, head_dim, eps, clip } = self.0.params;
        let kernel = match self.0.norm {
            QkNorm::None => &ROPE_ROWS_BACKWARD_NONE,
            QkNorm::Full => &ROPE_ROWS_BACKWARD_FULL,
            QkNorm::PerHead => &ROPE_ROWS_BACKWARD_PER_HEAD,
        };
        let params = RopeRowsBackwardParams { n_tokens, n_heads, n_kv_heads, head_dim, eps, clip };
        Launch { kernel, groups: 3 * u64::from(n_tokens), params: params.words() }
    }
}

impl Operation for OfWeight {
    fn reference(&self, inputs: &[Host<'_>], outputs: &mut [HostMut<'_>]) {
        let (qkv, weight, rope, positions) = (inputs[0].f32(), inputs[1].f32(), inputs[2].f32(), inputs[3].u32());
        let (inverses, dy, dweight) = (inputs[4].f32(), inputs[5].f32(), outputs[0].f32());
        let ([q_width, _, row_width], head_dim) = (self.0.widths(), self.0.head_dim());
        dweight.fill(0.0);
        let (of_q, of_k) = dweight.split_at_mut(if self.0.norm == QkNorm::PerHead { head_dim } else { q_width });
        let sums = [of_q, of_k];
        for ((start, width, first_head, weights), sums) in self.0.parts(weight).into_iter().zip(sums) {
            let n_weights = sums.len();
            for (token, position) in positions.iter().enumerate() {
                let rope = &rope[*position as usize * head_dim..][..head_dim];
                let x = &qkv[token * row_width + start..][..width];
                let inverses = &inverses[token * self.0.n_norms() + first_head..];
                let turned = self.0.turned(x, weights, inverses, rope, &dy[token * row_width + start..][..width]);
                (0..width).for_each(|i| sums[i % n_weights] += turned[i] * (x[i] * inverses[i / head_dim]));
            }
        }
    }

    fn launch(&self) -> Launch {
        let RopeRowsParams { n_tokens, n_heads, n_kv_heads, head_dim, eps, clip } = self.0.params;
        let kernel = match self.0.norm {
            QkNorm::None => &ROPE_ROWS_WEIGHT_BACKWARD_NONE,
            QkNorm::Full => &ROPE_ROWS_WEIGHT_BACKWARD_FULL,
            QkNorm::PerHead => &ROPE_ROWS_WEIGHT_BACKWARD_PER_HEAD,
        };
        let n_weights = if self.0.norm == QkNorm::PerHead { 2 * head_dim } else { (n_heads + n_kv_heads) * head_dim };
        let params = RopeRowsWeightBackwardParams { n_tokens, n_heads, n_kv_heads, head_dim, eps, clip };
        Launch { kernel, groups: u64::from(n_weights.div_ceil(64)), params: params.words() }
    }
}
