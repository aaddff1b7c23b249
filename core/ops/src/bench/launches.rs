//! How each subject is launched, on inputs of its own.

use super::ready::{Launches, Output};
use super::{Subject, fill};
use crate::attention::{AttentionSpec, attention};
use crate::ceilings::{ceiling_copy, ceiling_multiply_add, stock_matmul};
use crate::device::OpenDevice;
use crate::embed::embed;
use crate::family::Kernels;
use crate::gated_linear::gated_linear;
use crate::glu::{Activation, glu};
use crate::greedy::greedy;
use crate::kv::KvFormats;
use crate::linear::linear;
use crate::moe::{moe_combine, moe_linear, moe_route};
use crate::norm::{Norm, NormKind, add_norm, norm, norm_add};
use crate::penalise::{Adjustment, Adjustments, penalise};
use crate::qk_norm_rope::{HeadShape, LayerCache, QkNorm, QkSpec, RopeTable, qk_norm_rope};
use crate::sample::{Draw, sample};
use crate::step::Step;
use crate::weight::{Weight, vector};
use burn::tensor::{Device, Tensor};
use samara_shaders::Format;

/// The most copies of a weight that are made to keep it out of caches.
const MAX_COPIES: u64 = 256;

/// The launches of `subject`; see [`Subject::ready`].
pub(super) fn of(subject: &Subject, open: &OpenDevice, cold_bytes: u64) -> Launches {
    let device = &open.device;
    let n_copies = (cold_bytes / subject.work().n_bytes.max(1)).clamp(1, MAX_COPIES);
    match *subject {
        Subject::CeilingCopy { n_values } => {
            let x = vector(&fill::values(1, n_values), device);
            Box::new(move || Output::of(ceiling_copy(&x)))
        }
        Subject::CeilingMultiplyAdd { n_values, n_rounds } => {
            let x = vector(&fill::values(1, n_values), device);
            Box::new(move || Output::of(ceiling_multiply_add(&x, n_rounds)))
        }
        Subject::Linear { format, family, n_tokens, n_out, n_in } => {
            let mut open = open.clone();
            open.kernels = Kernels::all(family);
            let rows = fill::Rows::new(2, format, n_out * n_in);
            let x = fill::matrix(1, n_tokens, n_in, device);
            let mut weights = Turns::new(n_copies, || rows.weight(format, n_in, &open));
            Box::new(move || Output::of(linear(&x, weights.next())))
        }
        Subject::GatedLinear { format, family, activation, n_out, n_in } => {
            let mut open = open.clone();
            open.kernels = Kernels::all(family);
            let rows = fill::Rows::new(2, format, 2 * n_out * n_in);
            let x = fill::matrix(1, 1, n_in, device);
            let mut weights = Turns::new(n_copies, || rows.weight(format, n_in, &open));
            Box::new(move || Output::of(gated_linear(&x, weights.next(), activation)))
        }
        Subject::StockMatmul { n_tokens, n_out, n_in } => {
            let values = fill::values(2, n_out * n_in);
            let x = fill::matrix(1, n_tokens, n_in, device);
            let mut weights = Turns::new(n_copies, || vector(&values, device).reshape([n_out, n_in]));
            Box::new(move || Output::of(stock_matmul(&x, weights.next())))
        }
        Subject::Embed { format, n_tokens, n_rows, n_in } => {
            let table = weight(format, n_rows, n_in, open);
            let step = step(0, n_tokens, n_rows, device);
            Box::new(move || Output::of(embed(&step, &table, 1.5)))
        }
        Subject::Experts { format, n_tokens, n_experts, n_out, n_in } => {
            let scores = fill::matrix(4, n_tokens, n_experts, device);
            let x = fill::matrix(1, n_tokens, n_in, device);
            let w = weight(format, n_experts * n_out, n_in, open);
            Box::new(move || {
                let routes = moe_route(&scores, 2, true);
                Output::of(moe_combine(&moe_linear(&x, &w, &routes, n_experts), &routes))
            })
        }
        Subject::Norm { kind, n_tokens, width } => {
            normalising(kind, n_tokens, width, device, |x, _, weight| norm(x, weight))
        }
        Subject::NormAdd { kind, n_tokens, width } => {
            normalising(kind, n_tokens, width, device, |x, residual, weight| norm_add(x, weight, residual))
        }
        Subject::AddNorm { kind, n_tokens, width } => {
            normalising(kind, n_tokens, width, device, |x, residual, weight| add_norm(x, residual, weight).1)
        }
        Subject::Glu { activation, n_tokens, d_ff } => gating(activation, n_tokens, d_ff, device),
        Subject::QkNormRope { norm, heads, n_tokens } => {
            let mut keys = Keys::new(norm, heads, KvFormats::default(), n_tokens, device);
            let step = step(0, n_tokens, 1, device);
            Box::new(move || Output::of(keys.append(&step)))
        }
        Subject::Attention { family, kv, heads, n_tokens, n_keys } => {
            attending(Kernels::all(family), kv, heads, n_tokens, n_keys, device)
        }
        Subject::Penalise { vocab_size } => penalising(vocab_size, device),
        Subject::Greedy { vocab_size } => {
            let logits = logits(vocab_size, device);
            let mut step = step(0, 1, vocab_size, device);
            Box::new(move || Output::Picked(greedy(&logits, &logits, vocab_size, &mut step)))
        }
        Subject::Sample { vocab_size } => sampling(vocab_size, device),
    }
}

fn normalising(
    kind: NormKind,
    n_tokens: usize,
    width: usize,
    device: &Device,
    operation: fn(&Tensor<2>, &Tensor<2>, &Norm) -> Tensor<2>,
) -> Launches {
    let x = fill::matrix(1, n_tokens, width, device);
    let residual = fill::matrix(6, n_tokens, width, device);
    let weight = Norm { kind, weight: vector(&fill::values(5, width), device), eps: 1e-5 };
    Box::new(move || Output::of(operation(&x, &residual, &weight)))
}

/// Gates reach to where the activation is all or nothing.
fn gating(activation: Activation, n_tokens: usize, d_ff: usize, device: &Device) -> Launches {
    let x = fill::matrix(1, n_tokens, 2 * d_ff, device).mul_scalar(8.0);
    Box::new(move || Output::of(glu(&x, activation)))
}

fn attending(
    kernels: Kernels,
    kv: KvFormats,
    heads: HeadShape,
    n_tokens: usize,
    n_keys: usize,
    device: &Device,
) -> Launches {
    let mut keys = Keys::new(QkNorm::Full, heads, kv, n_keys, device);
    drop(keys.append(&step(0, n_keys, 1, device)));
    let q = fill::matrix(10, n_tokens, heads.q_width(), device);
    let step = step(n_keys - n_tokens, n_tokens, 1, device);
    let spec = AttentionSpec { heads, window: None, scale: 1.0 / (heads.head_dim as f32).sqrt(), kernels };
    Box::new(move || Output::of(attention(&q, &keys.cache, &step, &spec)))
}

fn penalising(vocab_size: usize, device: &Device) -> Launches {
    let logits = logits(vocab_size, device);
    let every_37th = (0..vocab_size as u32).step_by(37);
    let list: Vec<_> = every_37th.map(|token| Adjustment { repetition: 1.3, ..Adjustment::none(token) }).collect();
    let list = Adjustments::upload(&list, device);
    Box::new(move || Output::of(list.as_ref().map_or_else(|| logits.clone(), |list| penalise(&logits, list))))
}

/// A draw in which every setting has work to do.
const DRAW: Draw = Draw { temperature: 0.8, top_k: 40, top_p: 0.95, min_p: 0.0, uniform: 0.4321 };

fn sampling(vocab_size: usize, device: &Device) -> Launches {
    let logits = logits(vocab_size, device);
    let mut step = step(0, 1, vocab_size, device);
    Box::new(move || {
        let likeliest = greedy(&logits, &logits, vocab_size, &mut step);
        Output::Picked(sample(&logits, &logits, &likeliest, &mut step, vocab_size, &DRAW))
    })
}

/// Equal things that take turns.
struct Turns<T> {
    all: Vec<T>,
    next: usize,
}

impl<T> Turns<T> {
    fn new(n: u64, one: impl Fn() -> T) -> Self {
        Self { all: (0..n).map(|_| one()).collect(), next: 0 }
    }

    fn next(&mut self) -> &T {
        self.next = (self.next + 1) % self.all.len();
        &self.all[self.next]
    }
}

fn weight(format: Format, n_rows: usize, n_in: usize, open: &OpenDevice) -> Weight {
    fill::Rows::new(3, format, n_rows * n_in).weight(format, n_in, open)
}

/// `n_tokens` ids below `n_rows`, from `position` on.
fn step(position: usize, n_tokens: usize, n_rows: usize, device: &Device) -> Step {
    let ids: Vec<u32> = (0..n_tokens).map(|token| (token * 37 % n_rows) as u32).collect();
    let mut step = Step::new(n_tokens, device);
    step.set(position, &ids, DRAW.uniform as f32);
    step
}

fn logits(vocab_size: usize, device: &Device) -> Tensor<2> {
    fill::matrix(7, 1, vocab_size, device).mul_scalar(8.0)
}

/// A layer's cache and what fills it.
struct Keys {
    qkv: Tensor<2>,
    weight: Tensor<1>,
    rope: RopeTable,
    cache: LayerCache,
    spec: QkSpec,
}

impl Keys {
    fn new(norm: QkNorm, heads: HeadShape, kv: KvFormats, n_tokens: usize, device: &Device) -> Self {
        let n_weights = match norm {
            QkNorm::PerHead => 2 * heads.head_dim,
            QkNorm::None | QkNorm::Full => heads.q_width() + heads.kv_width(),
        };
        let inv_freq: Vec<f32> = (0..heads.head_dim / 2).map(|pair| 1.0 / (pair as f32 + 1.0)).collect();
        Self {
            qkv: fill::matrix(8, n_tokens, heads.q_width() + 2 * heads.kv_width(), device),
            weight: vector(&fill::values(9, n_weights), device),
            rope: RopeTable::new(&inv_freq, 1.0, n_tokens, device),
            cache: LayerCache::new(n_tokens, &heads, kv, device),
            spec: QkSpec { heads, norm, eps: 1e-6, clip: None },
        }
    }

    /// Puts keys and values into the cache, and gives the queries.
    fn append(&mut self, step: &Step) -> Tensor<2> {
        qk_norm_rope(&self.qkv, &self.weight, &self.rope, step, &mut self.cache, &self.spec)
    }
}
