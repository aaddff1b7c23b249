//! What an operation cannot do without: bytes that must move, arithmetic that must happen, and the error it may make.

use super::Subject;
use crate::kv::KvFormat;
use crate::weight::row_bytes;

/// Of each value of [`crate::ceiling_multiply_add`]: four steps of eight chains, and two for each.
const FLOPS_PER_ROUND: usize = 64;

/// How far a value lies from the expected one at most, over the root mean square of those: what [`Subject::bound`] bounds. NaN,
/// which is within no bound, where a value is NaN or one is missing.
pub fn largest_error(found: &[f32], expected: &[f32]) -> f64 {
    let squares = expected.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>();
    let scale = (squares / expected.len() as f64).sqrt().max(f64::MIN_POSITIVE);
    let errors = found.iter().zip(expected).map(|(found, expected)| (f64::from(*found) - f64::from(*expected)).abs());
    // The total order puts NaN above all numbers.
    let largest = errors.max_by(f64::total_cmp).filter(|_| found.len() == expected.len());
    largest.map_or(f64::NAN, |largest| largest / scale)
}

/// The least work of one call, however it is launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// Bytes of every input read once and every output written once.
    pub n_bytes: u64,
    /// Multiplications and additions; of the other functions only an estimate, they never bind.
    pub n_flops: u64,
}

impl Subject {
    /// Its least work.
    pub fn work(&self) -> Work {
        let floats = |n_values: usize| 4 * n_values as u64;
        let work = |n_bytes: u64, n_flops: usize| Work { n_bytes, n_flops: n_flops as u64 };
        match *self {
            Self::CeilingCopy { n_values } => work(floats(2 * n_values), 0),
            Self::CeilingMultiplyAdd { n_values, n_rounds } => {
                work(floats(2 * n_values), FLOPS_PER_ROUND * n_values * n_rounds as usize)
            }
            Self::Linear { format, n_tokens, n_out, n_in, .. } => {
                let weights = n_out as u64 * row_bytes(format, n_in);
                work(weights + floats(n_tokens * (n_in + n_out)), 2 * n_tokens * n_out * n_in)
            }
            Self::GatedLinear { format, n_out, n_in, .. } => {
                work(2 * n_out as u64 * row_bytes(format, n_in) + floats(n_in + n_out), 4 * n_out * n_in + 5 * n_out)
            }
            Self::StockMatmul { n_tokens, n_out, n_in } => {
                work(floats(n_out * n_in + n_tokens * (n_in + n_out)), 2 * n_tokens * n_out * n_in)
            }
            Self::Embed { format, n_tokens, n_in, .. } => {
                work(n_tokens as u64 * row_bytes(format, n_in) + floats(n_tokens * n_in), n_tokens * n_in)
            }
            Self::Experts { format, n_tokens, n_experts, n_out, n_in } => {
                let weights = (n_out * n_experts.min(2 * n_tokens)) as u64 * row_bytes(format, n_in);
                work(weights + floats(n_tokens * (n_in + 5 * n_out)), 4 * n_tokens * n_out * n_in)
            }
            Self::Norm { n_tokens, width, .. } => work(floats((2 * n_tokens + 1) * width), 4 * n_tokens * width),
            Self::NormAdd { n_tokens, width, .. } => work(floats((3 * n_tokens + 1) * width), 5 * n_tokens * width),
            Self::AddNorm { n_tokens, width, .. } => work(floats((4 * n_tokens + 1) * width), 5 * n_tokens * width),
            Self::Glu { n_tokens, d_ff, .. } => work(floats(3 * n_tokens * d_ff), 5 * n_tokens * d_ff),
            Self::QkNormRope { heads, n_tokens, .. } => {
                let (q, kv) = (heads.q_width(), heads.kv_width());
                work(floats(2 * n_tokens * (q + 2 * kv) + q + kv), 7 * n_tokens * (q + kv))
            }
            Self::Attention { kv, heads, n_tokens, n_keys, .. } => {
                let cached = kv.bytes(n_keys, &heads);
                let n_seen = n_tokens * n_keys - n_tokens * (n_tokens - 1) / 2;
                work(cached + floats(2 * n_tokens * heads.q_width()), 4 * n_seen * heads.q_width())
            }
            Self::Penalise { vocab_size } => work(floats(2 * vocab_size), vocab_size / 37),
            Self::Greedy { vocab_size } => work(floats(vocab_size), 2 * vocab_size),
            Self::Sample { vocab_size } => work(floats(2 * vocab_size), 4 * vocab_size),
        }
    }

    /// How far a device's value may lie from the reference's, over the root mean square of the reference's values.
    ///
    /// A sum of n rounded products in two orders differs by about `2 sqrt(n) eps` of itself; the factor before it allows
    /// for the few further roundings of an operation and for values that stand above the mean. Ids are equal or wrong.
    pub fn bound(&self) -> f64 {
        let of = |factor: f64, n: usize| factor * (n as f64).sqrt() * f64::from(f32::EPSILON);
        match *self {
            Self::CeilingCopy { .. } | Self::Greedy { .. } | Self::Sample { .. } => 0.0,
            // Errors of earlier steps shrink by 0.75 a step, so four roundings are left of each of the eight chains.
            Self::CeilingMultiplyAdd { .. } => of(8.0, 8),
            Self::Linear { n_in, .. } | Self::StockMatmul { n_in, .. } => of(8.0, n_in),
            Self::Experts { n_in, .. } => of(16.0, n_in),
            Self::Embed { .. } | Self::Penalise { .. } => of(8.0, 1),
            Self::Norm { width, .. } | Self::NormAdd { width, .. } | Self::AddNorm { width, .. } => of(8.0, width),
            // As `glu`, of sums that are off as those of `linear`.
            Self::GatedLinear { n_in, .. } => of(32.0, n_in) + of(64.0, 1),
            // `exp` and `tanh` may be off by a few units in the last place, more at larger arguments.
            Self::Glu { .. } => of(64.0, 1),
            Self::QkNormRope { heads, .. } => of(8.0, heads.q_width()),
            // A score's error moves a weight by as much, relatively, and scores are as large as a head is wide.
            Self::Attention { kv, heads, n_keys, .. } => {
                let step = match kv.keys {
                    KvFormat::F32 | KvFormat::F16 => 0.0,
                    KvFormat::Q8 => 4.0 / 127.0,
                    KvFormat::Q4 => 8.0 / 15.0,
                };
                // A channel on the border of two codes may fall to either. It moves a score by a step times the query's
                // channel, and the weight, one of many, by as much.
                of(16.0, n_keys + heads.q_width()) + 4.0 * step / ((heads.head_dim * n_keys) as f64).sqrt()
            }
        }
    }
}
