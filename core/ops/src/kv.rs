//! How keys and values lie in device memory: [`KvFormat`], its rows as words, and back.
//!
//! The twins of `kv_*.wgsl` and `kv_out_*.wgsl`; both sides round alike, bit for bit. Nothing here knows a device.

use crate::qk_norm_rope::HeadShape;
use half::slice::HalfFloatSliceExt;
use std::fmt;

/// Heads are filled up with zeros to whole octets of channels.
const OCTET: usize = 8;

/// How keys and values lie in device memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KvFormat {
    /// As they were computed.
    F32,
    /// In half the memory. Finite values beyond 65504 become that, infinities and NaN stay what they are.
    #[default]
    F16,
}

impl KvFormat {
    /// All of them, in the order of the kernels' variants.
    pub const ALL: [Self; 2] = [Self::F32, Self::F16];

    /// As people write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
        }
    }

    /// Bytes of one position's keys, or of its values.
    pub fn row_bytes(self, heads: &HeadShape) -> u64 {
        4 * (heads.n_kv_heads * self.head_words(heads.head_dim)) as u64
    }

    /// Words of one head of one position.
    pub(crate) fn head_words(self, head_dim: usize) -> usize {
        let n_channels = head_dim.next_multiple_of(OCTET);
        match self {
            Self::F32 => n_channels,
            Self::F16 => n_channels / 2,
        }
    }

    /// Stores one head.
    pub(crate) fn encode(self, values: &[f32], words: &mut [u32]) {
        words.fill(0);
        match self {
            Self::F32 => words.iter_mut().zip(values).for_each(|(word, value)| *word = value.to_bits()),
            Self::F16 => {
                for (word, pair) in words.iter_mut().zip(values.chunks(2)) {
                    *word = pair.iter().rev().fold(0, |word, value| word << 16 | u32::from(half_of(*value)));
                }
            }
        }
    }

    /// Reads one head back.
    pub(crate) fn decode(self, words: &[u32], values: &mut [f32]) {
        match self {
            Self::F32 => values.iter_mut().zip(words).for_each(|(value, word)| *value = f32::from_bits(*word)),
            Self::F16 => {
                let halves: &[half::f16] = bytemuck::cast_slice(words);
                halves[..values.len()].convert_to_f32_slice(values);
            }
        }
    }
}

/// The bits of the nearest f16, ties to even.
fn half_of(value: f32) -> u16 {
    let most = half::f16::MAX.to_f32();
    half::f16::from_f32(if value.is_finite() { value.clamp(-most, most) } else { value }).to_bits()
}

impl fmt::Display for KvFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back(format: KvFormat, values: &[f32]) -> Vec<f32> {
        let mut words = vec![u32::MAX; format.head_words(values.len())];
        format.encode(values, &mut words);
        let mut found = vec![f32::NAN; values.len()];
        format.decode(&words, &mut found);
        found
    }

    #[test]
    fn f32_stays_what_it_is() {
        let values = [1.0, -0.0, f32::MAX, f32::MIN_POSITIVE / 2.0, f32::INFINITY];
        assert_eq!(there_and_back(KvFormat::F32, &values), values);
    }

    #[test]
    fn f16_rounds_to_even_and_stays_finite() {
        let values = [1.0 + 1.0 / 2048.0, 1.0 + 3.0 / 2048.0, 65520.0, -1e30, 3e-8, 2e-8, f32::NEG_INFINITY];
        let expected = [1.0, 1.0 + 1.0 / 512.0, 65504.0, -65504.0, 5.960_464_5e-8, 0.0, f32::NEG_INFINITY];
        assert_eq!(there_and_back(KvFormat::F16, &values), expected);
        assert!(there_and_back(KvFormat::F16, &[f32::NAN])[0].is_nan());
    }
}
