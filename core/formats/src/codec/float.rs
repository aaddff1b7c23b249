//! Plain floats, as blocks of one value.

use bytemuck::AnyBitPattern;

use super::Block;

#[derive(Clone, Copy, AnyBitPattern)]
#[repr(C)]
pub(super) struct F32([u8; 4]);

impl Block<1> for F32 {
    fn unpack(&self, [value]: &mut [f32; 1]) {
        *value = f32::from_le_bytes(self.0);
    }

    fn split(&self, _: &mut [u8; 1], scales: &mut Vec<u8>) {
        scales.extend(self.0);
    }
}

#[derive(Clone, Copy, AnyBitPattern)]
#[repr(C)]
pub(super) struct F16([u8; 2]);

impl Block<1> for F16 {
    fn unpack(&self, [value]: &mut [f32; 1]) {
        *value = super::f16(self.0);
    }

    fn split(&self, _: &mut [u8; 1], scales: &mut Vec<u8>) {
        scales.extend(self.0);
    }
}

/// The upper half of an `f32`.
#[derive(Clone, Copy, AnyBitPattern)]
#[repr(C)]
pub(super) struct BF16([u8; 2]);

impl Block<1> for BF16 {
    fn unpack(&self, [value]: &mut [f32; 1]) {
        let [low, high] = self.0;
        *value = f32::from_le_bytes([0, 0, low, high]);
    }

    fn split(&self, _: &mut [u8; 1], scales: &mut Vec<u8>) {
        scales.extend(self.0);
    }
}
