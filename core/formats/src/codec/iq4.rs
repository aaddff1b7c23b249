//! Blocks whose four bits are looked up in a table: IQ4_NL, IQ4_XS, MXFP4.

use bytemuck::AnyBitPattern;

use super::round::each_nibble;
use super::{Block, f16};

/// Steps that are finer near zero.
const NON_LINEAR: [i8; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

/// Twice the values of a float with one sign, two exponent and one mantissa bit.
const E2M1_DOUBLED: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

fn look_up(table: &[i8; 16], nibble: u8) -> f32 {
    table.get(usize::from(nibble & 15)).map_or(0.0, |value| f32::from(*value))
}

/// `y = d table[q]`
#[derive(Clone, Copy, AnyBitPattern)]
#[repr(C)]
pub(super) struct Iq4Nl {
    d: [u8; 2],
    qs: [u8; 16],
}

impl Block<32> for Iq4Nl {
    fn unpack(&self, values: &mut [f32; 32]) {
        let d = f16(self.d);
        each_nibble(&self.qs, values, |q, _| d * look_up(&NON_LINEAR, q));
    }

    fn split(&self, codes: &mut [u8; 32], scales: &mut Vec<u8>) {
        each_nibble(&self.qs, codes, |q, _| q);
        scales.extend(self.d);
    }
}

/// `y = d (s - 32) table[q]`: sub-blocks of 32, the six bits of each `s` split over two fields.
#[derive(Clone, Copy, AnyBitPattern)]
#[repr(C)]
pub(super) struct Iq4Xs {
    d: [u8; 2],
    scales_high: [u8; 2],
    scales_low: [u8; 4],
    qs: [u8; 128],
}

impl Iq4Xs {
    fn scales(&self) -> impl Iterator<Item = i8> {
        let high = u16::from_le_bytes(self.scales_high);
        let low = self.scales_low.into_iter().flat_map(|byte| [byte & 15, byte >> 4]);
        low.enumerate().map(move |(i, low)| (low | ((high >> (2 * i) & 3) as u8) << 4) as i8 - 32)
    }
}

impl Block<256> for Iq4Xs {
    fn unpack(&self, values: &mut [f32; 256]) {
        let d = f16(self.d);
        let groups = values.as_chunks_mut::<32>().0.iter_mut().zip(self.qs.as_chunks::<16>().0);
        for ((values, qs), scale) in groups.zip(self.scales()) {
            each_nibble(qs, values, |q, _| d * f32::from(scale) * look_up(&NON_LINEAR, q));
        }
    }

    fn split(&self, codes: &mut [u8; 256], scales: &mut Vec<u8>) {
        for (codes, qs) in codes.as_chunks_mut::<32>().0.iter_mut().zip(self.qs.as_chunks::<16>().0) {
            each_nibble(qs, codes, |q, _| q);
        }
        scales.extend([self.d, [0; 2]].as_flattened());
        scales.extend(self.scales().map(i8::cast_unsigned));
    }
}

/// `y = 2^(e - 128) table[q]`
#[derive(Clone, Copy, AnyBitPattern)]
#[repr(C)]
pub(super) struct Mxfp4 {
    e: u8,
    qs: [u8; 16],
}

impl Block<32> for Mxfp4 {
    fn unpack(&self, values: &mut [f32; 32]) {
        let d = half_power(self.e);
        each_nibble(&self.qs, values, |q, _| d * look_up(&E2M1_DOUBLED, q));
    }

    fn split(&self, codes: &mut [u8; 32], scales: &mut Vec<u8>) {
        each_nibble(&self.qs, codes, |q, _| q);
        scales.extend([self.e, 0]);
    }
}

/// `2^(e - 128)`; the two smallest are subnormal.
fn half_power(e: u8) -> f32 {
    f32::from_bits(match e {
        0 | 1 => 0x0020_0000 << e,
        _ => (u32::from(e) - 1) << 23,
    })
}
