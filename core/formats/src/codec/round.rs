//! Blocks of 32 values with one scale: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0.
//!
//! Nibble `i` of the low half is value `i`, nibble `i` of the high half is value `i + 16`.

use bytemuck::AnyBitPattern;

use super::{Block, f16};

/// `y = d (q - 8)`
#[derive(Clone, Copy, AnyBitPattern)]
#[repr(C)]
pub(super) struct Q4_0 {
    d: [u8; 2],
    qs: [u8; 16],
}

impl Block<32> for Q4_0 {
    fn unpack(&self, values: &mut [f32; 32]) {
        let d = f16(self.d);
        each_nibble(&self.qs, values, |q, _| d * (f32::from(q) - 8.0));
    }

    fn split(&self, codes: &mut [u8; 32], scales: &mut Vec<u8>) {
        each_nibble(&self.qs, codes, |q, _| q);
        scales.extend(self.d);
    }
}

/// `y = d q + m`
#[derive(Clone, Copy, AnyBitPattern)]
#[repr(C)]
pub(super) struct Q4_1 {
    d: [u8; 2],
    m: [u8; 2],
    qs: [u8; 16],
}

impl Block<32> for Q4_1 {
    fn unpack(&self, values: &mut [f32; 32]) {
        let (d, m) = (f16(self.d), f16(self.m));
        each_nibble(&self.qs, values, |q, _| d * f32::from(q) + m);
    }

    fn split(&self, codes: &mut [u8; 32], scales: &mut Vec<u8>) {
        each_nibble(&self.qs, codes, |q, _| q);
        scales.extend([self.d, self.m].as_flattened());
    }
}

/// `y = d (q - 16)`, where bit `i` of `qh` is the fifth bit of value `i`.
#[derive(Clone, Copy, AnyBitPattern)]
#[repr(C)]
pub(super) struct Q5_0 {
    d: [u8; 2],
    qh: [u8; 4],
    qs: [u8; 16],
}

impl Block<32> for Q5_0 {
    fn unpack(&self, values: &mut [f32; 32]) {
        let (d, qh) = (f16(self.d), u32::from_le_bytes(self.qh));
        each_nibble(&self.qs, values, |q, i| d * (f32::from(five_bits(q, qh, i)) - 16.0));
    }

    fn split(&self, codes: &mut [u8; 32], scales: &mut Vec<u8>) {
        let qh = u32::from_le_bytes(self.qh);
        each_nibble(&self.qs, codes, |q, i| five_bits(q, qh, i));
        scales.extend(self.d);
    }
}

/// `y = d q + m`, with the fifth bits as in [`Q5_0`].
#[derive(Clone, Copy, AnyBitPattern)]
#[repr(C)]
pub(super) struct Q5_1 {
    d: [u8; 2],
    m: [u8; 2],
    qh: [u8; 4],
    qs: [u8; 16],
}

impl Block<32> for Q5_1 {
    fn unpack(&self, values: &mut [f32; 32]) {
        let (d, m, qh) = (f16(self.d), f16(self.m), u32::from_le_bytes(self.qh));
        each_nibble(&self.qs, values, |q, i| d * f32::from(five_bits(q, qh, i)) + m);
    }

    fn split(&self, codes: &mut [u8; 32], scales: &mut Vec<u8>) {
        let qh = u32::from_le_bytes(self.qh);
        each_nibble(&self.qs, codes, |q, i| five_bits(q, qh, i));
        scales.extend([self.d, self.m].as_flattened());
    }
}

/// `y = d q`, where `q` is signed.
#[derive(Clone, Copy, AnyBitPattern)]
#[repr(C)]
pub(super) struct Q8_0 {
    d: [u8; 2],
    qs: [i8; 32],
}

impl Block<32> for Q8_0 {
    fn unpack(&self, values: &mut [f32; 32]) {
        let d = f16(self.d);
        for (value, q) in values.iter_mut().zip(self.qs) {
            *value = d * f32::from(q);
        }
    }

    fn split(&self, codes: &mut [u8; 32], scales: &mut Vec<u8>) {
        *codes = self.qs.map(i8::cast_unsigned);
        scales.extend(self.d);
    }
}

/// Sets every value from its nibble and its number.
pub(super) fn each_nibble<T>(qs: &[u8; 16], values: &mut [T; 32], value_of: impl Fn(u8, u32) -> T) {
    let (low, high) = values.split_at_mut(16);
    for (((i, low), high), q) in (0..).zip(low).zip(high).zip(qs) {
        *low = value_of(q & 15, i);
        *high = value_of(q >> 4, i + 16);
    }
}

fn five_bits(nibble: u8, qh: u32, i: u32) -> u8 {
    nibble | ((qh >> i & 1) as u8) << 4
}
