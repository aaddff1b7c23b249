//! Some channels of a head as words, and back: the twin of `kv_out.wgsl` and `kv.wgsl`.
//!
//! Both sides round by the same arithmetic of integers, so that they store the same bits.

use super::{BLOCK, KvFormat};
use half::slice::HalfFloatSliceExt;

const MAGNITUDE: u32 = 0x7fff_ffff;

/// An octet of floats, or a block of codes and its scale record.
#[derive(Default)]
pub(super) struct Packed {
    pub words: [u32; 8],
    pub record: u32,
}

/// Packs an octet or a block; channels that are missing are zeros.
pub(super) fn pack(format: KvFormat, values: &[f32]) -> Packed {
    let mut bits = [0; BLOCK];
    bits.iter_mut().zip(values).for_each(|(bits, value)| *bits = value.to_bits());
    match format {
        KvFormat::F32 => Packed { words: std::array::from_fn(|w| bits[w]), record: 0 },
        KvFormat::F16 => halves(values),
        KvFormat::Q8 => bytes(&bits),
        KvFormat::Q4 => nibbles(&bits),
    }
}

/// Reads what [`pack`] stored.
pub(super) fn unpack(format: KvFormat, words: &[u32], record: u32, values: &mut [f32]) {
    match format {
        KvFormat::F32 => values.iter_mut().zip(words).for_each(|(value, word)| *value = f32::from_bits(*word)),
        KvFormat::F16 => {
            let halves: &[half::f16] = bytemuck::cast_slice(words);
            halves[..values.len()].convert_to_f32_slice(values);
        }
        KvFormat::Q8 => {
            let step = f32::from_bits(record) * (1.0 / 127.0);
            let codes: &[i8] = bytemuck::cast_slice(words);
            values.iter_mut().zip(codes).for_each(|(value, code)| *value = step * f32::from(*code));
        }
        KvFormat::Q4 => {
            let [a, b] = [f32::from_bits(record << 16), f32::from_bits(record & 0xffff_0000)];
            let step = (b - a) * (1.0 / 15.0);
            for (i, value) in values.iter_mut().enumerate() {
                *value = step * (words[i / 8] >> (i % 8 * 4) & 15) as f32 + a;
            }
        }
    }
}

/// The nearest f16, ties to even.
fn halves(values: &[f32]) -> Packed {
    let mut packed = Packed::default();
    for (word, pair) in packed.words.iter_mut().zip(values.chunks(2)) {
        *word = pair.iter().rev().fold(0, |word, value| word << 16 | u32::from(half_of(*value)));
    }
    packed
}

fn half_of(value: f32) -> u16 {
    let most = half::f16::MAX.to_f32();
    half::f16::from_f32(if value.is_finite() { value.clamp(-most, most) } else { value }).to_bits()
}

/// The nearest 127ths of the largest magnitude, ties away from zero.
fn bytes(bits: &[u32; BLOCK]) -> Packed {
    let record = bits.iter().fold(0, |most, bits| most.max(bits & MAGNITUDE));
    let most = fixed(record, record);
    let code = |bits: u32| {
        let number = fixed(bits, record);
        ((127 * number + number.signum() * (most / 2)) / most.max(1)) as u32 & 0xff
    };
    Packed { words: std::array::from_fn(|w| joined(&bits[4 * w..][..4], 8, code)), record }
}

/// The nearest 15ths of the way from the least to the largest value, both rounded outwards to bf16; ties up.
fn nibbles(bits: &[u32; BLOCK]) -> Packed {
    const MOST: i32 = 0x7fff_0000;
    let (mut least, mut largest) = (MOST, -MOST);
    for bits in bits {
        // Whole numbers in the order of the floats, NaN outside.
        let magnitude = (bits & MAGNITUDE) as i32;
        let number = if *bits > MAGNITUDE { -magnitude } else { magnitude };
        (least, largest) = (least.min(number), largest.max(number));
    }
    let ends = [least.max(-MOST) >> 16, (largest.min(MOST) + 0xffff) >> 16];
    let most = ends[0].unsigned_abs().max(ends[1].unsigned_abs()) << 16;
    let end_bits = ends.map(|end| end.unsigned_abs() | if end < 0 { 0x8000 } else { 0 });
    let [a, b] = end_bits.map(|end| fixed(end << 16, most));
    let code = |bits: u32| ((15 * (fixed(bits, most) - a) + (b - a) / 2) / (b - a).max(1)) as u32;
    let words = std::array::from_fn(|w| {
        let quad = |quad: usize| bits.chunks_exact(4).nth(quad).map_or(0, |four| joined(four, 4, code));
        quad(2 * w) | quad(2 * w + 1) << 16
    });
    Packed { words, record: end_bits[0] | end_bits[1] << 16 }
}

/// The number of some bits, in fixed point such that `most`, the largest magnitude, takes 24 bits.
fn fixed(bits: u32, most: u32) -> i32 {
    let exponent = |magnitude: u32| (magnitude >> 23).max(1);
    let magnitude = bits & MAGNITUDE;
    let mantissa = magnitude & 0x7f_ffff | if magnitude >= 0x80_0000 { 0x80_0000 } else { 0 };
    let number = (mantissa >> (exponent(most) - exponent(magnitude)).min(31)) as i32;
    if bits > MAGNITUDE { -number } else { number }
}

/// The codes of four channels, the first in the lowest bits.
fn joined(four: &[u32], n_bits: usize, code: impl Fn(u32) -> u32) -> u32 {
    four.iter().enumerate().fold(0, |word, (i, bits)| word | code(*bits) << (n_bits * i))
}
