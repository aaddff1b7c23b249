//! Rows of a weight as words: how each [`Format`] is laid out, and read back.
//!
//! [`pack_codes`] is what a loader calls, [`Rows::decode`] is the reference twin of `quantised.wgsl`, `floats.wgsl` and
//! `ragged.wgsl`. Nothing here knows a device.

use samara_shaders::{Book, Format, Layout, Scales};
use std::borrow::Cow;

/// Values of a block of codes.
const BLOCK: usize = 32;
/// What the codes of IQ4_NL stand for.
const NON_LINEAR: [i8; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];
/// What the codes of MXFP4 stand for, doubled.
const E2M1: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

/// Words of a row in the first and in the second buffer.
pub(super) fn row_words(format: Format, n_in: usize) -> [usize; 2] {
    let Layout { main_bits, extra_bits, scales, .. } = format.layout();
    let n_blocks = n_in / BLOCK;
    let record_bytes = n_in / scales.block_len() * scales.record_bytes();
    [n_in * main_bits as usize / 32, n_blocks * extra_bits as usize + record_bytes.div_ceil(4)]
}

/// Codes and scales of whole rows as the words of both buffers.
pub(super) fn pack_codes(format: Format, n_in: usize, codes: &[u8], scales: &[u8]) -> [Vec<u32>; 2] {
    let Layout { main_bits, extra_bits, .. } = format.layout();
    let n_rows = codes.len() / n_in;
    let [_, second_words] = row_words(format, n_in);
    let mut second = Vec::with_capacity(n_rows * second_words);
    for (codes, scales) in codes.chunks_exact(n_in).zip(scales.chunks_exact(scales.len() / n_rows.max(1))) {
        if extra_bits > 0 {
            pack_bits(codes.iter().map(|code| code >> main_bits), extra_bits, &mut second);
        }
        second.extend(words(scales));
    }
    let mut first = Vec::with_capacity(codes.len() * main_bits as usize / 32);
    pack_bits(codes.iter().copied(), main_bits, &mut first);
    [first, second]
}

/// Little-endian words; the last is filled up with zeros.
pub(super) fn words(bytes: &[u8]) -> impl Iterator<Item = u32> {
    let (whole, rest) = bytes.as_chunks::<4>();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    let last = (!rest.is_empty()).then_some(last);
    whole.iter().copied().chain(last).map(u32::from_le_bytes)
}

/// The lowest `bits` of each code, the first in the lowest bits of a word.
fn pack_bits(codes: impl Iterator<Item = u8>, bits: u32, words: &mut Vec<u32>) {
    let (mut word, mut filled) = (0, 0);
    for code in codes {
        word |= (u32::from(code) & ((1 << bits) - 1)) << filled;
        filled += bits;
        if filled == u32::BITS {
            words.push(word);
            (word, filled) = (0, 0);
        }
    }
}

/// The rows of one part in host memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rows<'a> {
    pub format: Format,
    pub n_in: usize,
    pub quants: &'a [u32],
    /// Empty where the format has no scales.
    pub scales: &'a [u32],
}

impl<'a> Rows<'a> {
    /// The values of one row; borrowed where they are stored as such.
    pub fn decode(&self, row: usize) -> Cow<'a, [f32]> {
        let [n_quants, n_scales] = row_words(self.format, self.n_in);
        let quants = &self.quants[row * n_quants..][..n_quants];
        if n_quants == self.n_in {
            return Cow::Borrowed(bytemuck::cast_slice(quants));
        }
        let mut values = vec![0.0; self.n_in];
        let layout = self.format.layout();
        match layout.book {
            Book::Float => decode_halves(layout.offset == 1, quants, &mut values),
            _ => decode_codes(layout, quants, &self.scales[row * n_scales..][..n_scales], &mut values),
        }
        Cow::Owned(values)
    }
}

fn decode_halves(is_bfloat: bool, quants: &[u32], values: &mut [f32]) {
    let halves: &[[u8; 2]] = bytemuck::cast_slice(quants);
    for (value, half) in values.iter_mut().zip(halves) {
        *value = if is_bfloat { half::bf16::from_le_bytes(*half).to_f32() } else { f16(*half) };
    }
}

fn decode_codes(layout: Layout, quants: &[u32], scales: &[u32], values: &mut [f32]) {
    let n_blocks = values.len() / BLOCK;
    let (extra, records) = scales.split_at(n_blocks * layout.extra_bits as usize);
    let records: &[u8] = bytemuck::cast_slice(records);
    let quants: &[u8] = bytemuck::cast_slice(quants);
    let block_bytes = BLOCK / 8 * layout.main_bits as usize;
    for (block, (values, quants)) in values.chunks_exact_mut(BLOCK).zip(quants.chunks_exact(block_bytes)).enumerate() {
        let mut codes = [0; BLOCK];
        match layout.main_bits {
            2 => unpack::<4>(quants, &mut codes),
            4 => unpack::<2>(quants, &mut codes),
            _ => unpack::<1>(quants, &mut codes),
        }
        add_extra_bits(layout, &extra[block * layout.extra_bits as usize..], &mut codes);
        let halves = values.chunks_exact_mut(BLOCK / 2).zip(codes.chunks_exact(BLOCK / 2));
        for (half, (values, codes)) in halves.enumerate() {
            let (scale, minimum) = scale_and_minimum(layout.scales, records, block, half);
            let offset = layout.offset as i32;
            match layout.book {
                Book::NonLinear => of_codes(values, codes, |code| scale * f32::from(NON_LINEAR[usize::from(code)])),
                Book::E2m1 => of_codes(values, codes, |code| scale * f32::from(E2M1[usize::from(code)])),
                Book::Signed => of_codes(values, codes, |code| scale * f32::from(code as i8)),
                Book::Unsigned | Book::Float => {
                    of_codes(values, codes, |code| scale * (i32::from(code) - offset) as f32 + minimum);
                }
            }
        }
    }
}

fn of_codes(values: &mut [f32], codes: &[u8], value_of: impl Fn(u8) -> f32) {
    values.iter_mut().zip(codes).for_each(|(value, code)| *value = value_of(*code));
}

/// Codes of which a byte holds `PER_BYTE`.
fn unpack<const PER_BYTE: usize>(bytes: &[u8], codes: &mut [u8; BLOCK]) {
    let bits = 8 / PER_BYTE;
    let mask = u8::MAX >> (8 - bits);
    for (codes, byte) in codes.as_chunks_mut::<PER_BYTE>().0.iter_mut().zip(bytes) {
        for (place, code) in codes.iter_mut().enumerate() {
            *code = byte >> (bits * place) & mask;
        }
    }
}

fn add_extra_bits(layout: Layout, extra: &[u32], codes: &mut [u8; BLOCK]) {
    let bits = layout.extra_bits as usize;
    if bits == 0 {
        return;
    }
    for (i, code) in codes.iter_mut().enumerate() {
        let higher = extra[i * bits / 32] >> (i * bits % 32) & ((1 << bits) - 1);
        *code |= (higher as u8) << layout.main_bits;
    }
}

/// Of the first or the second half of a block.
fn scale_and_minimum(scales: Scales, records: &[u8], block: usize, half: usize) -> (f32, f32) {
    let record = &records[block * BLOCK / scales.block_len() * scales.record_bytes()..][..scales.record_bytes()];
    let part = block % 8;
    let half_float = |at: usize| f16([record[at], record[at + 1]]);
    let signed = |at: usize| f32::from(record[at] as i8);
    match scales {
        Scales::None => (1.0, 0.0),
        Scales::Half => (half_float(0), 0.0),
        Scales::Power => (half_power(record[0]), 0.0),
        Scales::Pair => (half_float(0), half_float(2)),
        Scales::Bytes32 => {
            (half_float(0) * f32::from(record[4 + part]), -(half_float(2) * f32::from(record[12 + part])))
        }
        Scales::Signed32 => (half_float(0) * signed(4 + part), 0.0),
        Scales::Signed16 => (half_float(0) * signed(4 + 2 * part + half), 0.0),
        Scales::Nibbles16 => {
            let nibbles = record[4 + 2 * part + half];
            (half_float(0) * f32::from(nibbles & 15), -(half_float(2) * f32::from(nibbles >> 4)))
        }
    }
}

fn f16(bytes: [u8; 2]) -> f32 {
    half::f16::from_le_bytes(bytes).to_f32()
}

/// `2^(exponent - 128)`; the two smallest are subnormal.
fn half_power(exponent: u8) -> f32 {
    f32::from_bits(match exponent {
        0 | 1 => 0x0020_0000 << exponent,
        _ => (u32::from(exponent) - 1) << 23,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_take_the_bytes_of_the_file_and_at_most_a_tenth_more() {
        let file_bytes = |format| match format {
            Format::Q4_0 | Format::Iq4Nl => 8 * 18,
            Format::Q4_1 => 8 * 20,
            Format::Q5_0 => 8 * 22,
            Format::Q5_1 => 8 * 24,
            Format::Q8_0 => 8 * 34,
            Format::Mxfp4 => 8 * 17,
            Format::Q2K => 84,
            Format::Q3K => 110,
            Format::Q4K => 144,
            Format::Q5K => 176,
            Format::Q6K => 210,
            Format::Iq4Xs => 136,
            Format::F16 | Format::Bf16 => 512,
            Format::Ragged | Format::F32 => 1024,
        };
        for format in Format::ALL {
            let n_bytes = 4 * row_words(format, 256).iter().sum::<usize>();
            let most = file_bytes(format) + file_bytes(format) / 10;
            assert!((file_bytes(format)..=most).contains(&n_bytes), "{format:?}: {n_bytes} bytes");
        }
    }

    #[test]
    fn codes_come_back_in_order() {
        let codes: Vec<u8> = (0..64).map(|i| (i * 37 % 64) as u8).collect();
        let scales: Vec<u8> = [0x00, 0x3c, 0, 0].into_iter().chain([1; 16]).collect();
        let all: Vec<u8> = codes.iter().copied().cycle().take(256).collect();
        let [quants, scales] = pack_codes(Format::Q6K, 256, &all, &scales);
        let rows = Rows { format: Format::Q6K, n_in: 256, quants: &quants, scales: &scales };
        let expected: Vec<f32> = all.iter().map(|code| f32::from(*code) - 32.0).collect();
        assert_eq!(rows.decode(0), expected);
    }
}
