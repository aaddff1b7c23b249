//! Blocks of 256 values in sub-blocks with scales of their own: Q2_K to Q6_K.

use bytemuck::AnyBitPattern;

use super::{Block, f16};

/// `y = d s q - dmin m`: sub-blocks of 16, scale in the low and minimum in the high nibble of `scales`.
#[derive(Clone, Copy, AnyBitPattern)]
#[repr(C)]
pub(super) struct Q2K {
    scales: [u8; 16],
    qs: [u8; 64],
    d: [u8; 2],
    dmin: [u8; 2],
}

impl Block<256> for Q2K {
    fn unpack(&self, values: &mut [f32; 256]) {
        let (d, dmin) = (f16(self.d), f16(self.dmin));
        each_two_bits(&self.qs, &self.scales, values, |q, scale, _, _| {
            d * f32::from(scale & 15) * f32::from(q) - dmin * f32::from(scale >> 4)
        });
    }

    fn split(&self, codes: &mut [u8; 256], scales: &mut Vec<u8>) {
        each_two_bits(&self.qs, &self.scales, codes, |q, _, _, _| q);
        scales.extend([self.d, self.dmin].as_flattened());
        scales.extend(self.scales);
    }
}

/// `y = d s (q - 4)`: sub-blocks of 16, six-bit signed scales; bit `j` of `hmask[i]` is the third bit of value `i` of group `j`.
#[derive(Clone, Copy, AnyBitPattern)]
#[repr(C)]
pub(super) struct Q3K {
    hmask: [u8; 32],
    qs: [u8; 64],
    scales_low: [u8; 8],
    scales_high: [u8; 4],
    d: [u8; 2],
}

impl Q3K {
    /// The scale of each sub-block: four low bits from one array, two high bits from the other, less 32.
    fn scales(&self) -> [i8; 16] {
        let mut scales = [0; 16];
        let low = self.scales_low.iter().map(|byte| byte & 15).chain(self.scales_low.iter().map(|byte| byte >> 4));
        let high = (0..4).flat_map(|k| self.scales_high.iter().map(move |byte| byte >> (2 * k) & 3));
        for ((scale, low), high) in scales.iter_mut().zip(low).zip(high) {
            *scale = (low | high << 4) as i8 - 32;
        }
        scales
    }
}

impl Q3K {
    fn third_bit(&self, group: usize, place: usize) -> u8 {
        self.hmask.get(place).map_or(0, |byte| byte >> group & 1)
    }
}

impl Block<256> for Q3K {
    fn unpack(&self, values: &mut [f32; 256]) {
        let d = f16(self.d);
        each_two_bits(&self.qs, &self.scales(), values, |q, scale, group, place| {
            d * f32::from(scale) * (f32::from(q | self.third_bit(group, place) << 2) - 4.0)
        });
    }

    fn split(&self, codes: &mut [u8; 256], scales: &mut Vec<u8>) {
        each_two_bits(&self.qs, &[(); 16], codes, |q, _, group, place| q | self.third_bit(group, place) << 2);
        scales.extend([self.d, [0; 2]].as_flattened());
        scales.extend(self.scales().map(i8::cast_unsigned));
    }
}

/// Sets every value from its two bits, its sub-block's scale, its group of 32 and its place in the group.
///
/// Each half of the values has 32 bytes, and its group `j` lies in the bits `2j` and `2j + 1` of all of them.
fn each_two_bits<S: Copy, T>(
    qs: &[u8; 64],
    scales: &[S; 16],
    values: &mut [T; 256],
    value_of: impl Fn(u8, S, usize, usize) -> T,
) {
    let bytes = qs.as_chunks::<32>().0.iter().flat_map(|bytes| [bytes; 4]);
    let groups = values.as_chunks_mut::<32>().0.iter_mut().zip(bytes).zip(scales.as_chunks::<2>().0);
    for (group, ((values, bytes), [first, second])) in groups.enumerate() {
        for (place, (value, byte)) in values.iter_mut().zip(bytes).enumerate() {
            let scale = if place < 16 { *first } else { *second };
            *value = value_of(byte >> (2 * (group % 4)) & 3, scale, group, place);
        }
    }
}

/// Eight pairs of six-bit scale and minimum. The first four lie in the low bits of `scale` and `min`; the others have
/// their low nibbles in `low` and their upper two bits above the first four.
#[derive(Clone, Copy, AnyBitPattern)]
#[repr(C)]
struct SixBitPairs {
    scale: [u8; 4],
    min: [u8; 4],
    low: [u8; 4],
}

impl SixBitPairs {
    fn unpack(&self) -> [(u8, u8); 8] {
        let mut pairs = [(0, 0); 8];
        let (first, second) = pairs.split_at_mut(4);
        let fields = self.scale.iter().zip(&self.min).zip(&self.low);
        for ((first, second), ((scale, min), low)) in first.iter_mut().zip(second).zip(fields) {
            *first = (scale & 63, min & 63);
            *second = (low & 15 | scale >> 6 << 4, low >> 4 | min >> 6 << 4);
        }
        pairs
    }

    /// Eight scales, then eight minima.
    fn append_to(&self, scales: &mut Vec<u8>) {
        let pairs = self.unpack();
        scales.extend(pairs.map(|(scale, _)| scale));
        scales.extend(pairs.map(|(_, min)| min));
    }
}

/// `y = d s q - dmin m`: sub-blocks of 32.
#[derive(Clone, Copy, AnyBitPattern)]
#[repr(C)]
pub(super) struct Q4K {
    d: [u8; 2],
    dmin: [u8; 2],
    pairs: SixBitPairs,
    qs: [u8; 128],
}

impl Block<256> for Q4K {
    fn unpack(&self, values: &mut [f32; 256]) {
        let (d, dmin) = (f16(self.d), f16(self.dmin));
        each_sub_block(&self.qs, values, &self.pairs, |q, _, _, (scale, min)| {
            d * f32::from(scale) * f32::from(q) - dmin * f32::from(min)
        });
    }

    fn split(&self, codes: &mut [u8; 256], scales: &mut Vec<u8>) {
        each_sub_block(&self.qs, codes, &self.pairs, |q, _, _, _| q);
        scales.extend([self.d, self.dmin].as_flattened());
        self.pairs.append_to(scales);
    }
}

/// As [`Q4K`], with a fifth bit: bit `j` of `qh[i]` belongs to value `i` of sub-block `j`.
#[derive(Clone, Copy, AnyBitPattern)]
#[repr(C)]
pub(super) struct Q5K {
    d: [u8; 2],
    dmin: [u8; 2],
    pairs: SixBitPairs,
    qh: [u8; 32],
    qs: [u8; 128],
}

impl Q5K {
    fn fifth_bit(&self, group: usize, place: usize) -> u8 {
        self.qh.get(place).map_or(0, |byte| byte >> group & 1)
    }
}

impl Block<256> for Q5K {
    fn unpack(&self, values: &mut [f32; 256]) {
        let (d, dmin) = (f16(self.d), f16(self.dmin));
        each_sub_block(&self.qs, values, &self.pairs, |q, group, place, (scale, min)| {
            d * f32::from(scale) * f32::from(q | self.fifth_bit(group, place) << 4) - dmin * f32::from(min)
        });
    }

    fn split(&self, codes: &mut [u8; 256], scales: &mut Vec<u8>) {
        each_sub_block(&self.qs, codes, &self.pairs, |q, group, place, _| q | self.fifth_bit(group, place) << 4);
        scales.extend([self.d, self.dmin].as_flattened());
        self.pairs.append_to(scales);
    }
}

/// Sets every value from its nibble, its sub-block, its place there and the sub-block's pair.
///
/// 32 bytes hold two sub-blocks: the low nibbles are the first, the high nibbles the second.
fn each_sub_block<T>(
    qs: &[u8; 128],
    values: &mut [T; 256],
    pairs: &SixBitPairs,
    value_of: impl Fn(u8, usize, usize, (u8, u8)) -> T,
) {
    let bytes = qs.as_chunks::<32>().0.iter().flat_map(|bytes| [bytes; 2]);
    let groups = values.as_chunks_mut::<32>().0.iter_mut().zip(bytes).zip(pairs.unpack());
    for (group, ((values, bytes), pair)) in groups.enumerate() {
        for (place, (value, byte)) in values.iter_mut().zip(bytes).enumerate() {
            *value = value_of(byte >> (4 * (group % 2)) & 15, group, place, pair);
        }
    }
}

/// `y = d s (q - 32)`: sub-blocks of 16 with signed scales.
///
/// Each half of 128 values has 64 bytes of low nibbles and 32 bytes of upper bits. Its group `k` of 32 takes the
/// nibbles `k / 2` of the bytes `32 (k % 2)..`, and the bits `2k` and `2k + 1` of the upper bytes.
#[derive(Clone, Copy, AnyBitPattern)]
#[repr(C)]
pub(super) struct Q6K {
    ql: [u8; 128],
    qh: [u8; 64],
    scales: [i8; 16],
    d: [u8; 2],
}

impl Block<256> for Q6K {
    fn unpack(&self, values: &mut [f32; 256]) {
        let d = f16(self.d);
        self.each(values, |q, scale| d * f32::from(scale) * (f32::from(q) - 32.0));
    }

    fn split(&self, codes: &mut [u8; 256], scales: &mut Vec<u8>) {
        self.each(codes, |q, _| q);
        scales.extend([self.d, [0; 2]].as_flattened());
        scales.extend(self.scales.map(i8::cast_unsigned));
    }
}

impl Q6K {
    /// Sets every value from its six bits and its sub-block's scale.
    fn each<T>(&self, values: &mut [T; 256], value_of: impl Fn(u8, i8) -> T) {
        let halves = values.as_chunks_mut::<128>().0.iter_mut();
        let halves = halves.zip(self.ql.as_chunks::<64>().0).zip(self.qh.as_chunks::<32>().0);
        for (((values, ql), qh), scales) in halves.zip(self.scales.as_chunks::<8>().0) {
            let groups = values.as_chunks_mut::<32>().0.iter_mut();
            let groups = groups.zip(ql.as_chunks::<32>().0.iter().cycle()).zip(scales.as_chunks::<2>().0);
            for (k, ((values, ql), [first, second])) in groups.enumerate() {
                for (place, ((value, ql), qh)) in values.iter_mut().zip(ql).zip(qh).enumerate() {
                    let q = (ql >> (4 * (k / 2)) & 15) | (qh >> (2 * k) & 3) << 4;
                    *value = value_of(q, if place < 16 { *first } else { *second });
                }
            }
        }
    }
}
