//! Random inputs from fixed seeds.

use crate::device::OpenDevice;
use crate::weight::{Weight, WeightBuilder, vector};
use burn::tensor::{Device, Tensor};
use samara_shaders::{Book, Format};

/// Uniform in -1 to 1 (SplitMix64).
pub fn values(seed: u64, n_values: usize) -> Vec<f32> {
    bits(seed).map(|z| (z >> 40) as f32 / (1u64 << 23) as f32 - 1.0).take(n_values).collect()
}

pub fn matrix(seed: u64, n_rows: usize, width: usize, device: &Device) -> Tensor<2> {
    vector(&values(seed, n_rows * width), device).reshape([n_rows, width])
}

/// Rows of a format as loaders hand them over, all values between -1 and 1, and enough of them to fill `weight` often.
pub enum Rows {
    Floats(Vec<f32>),
    Halves(Vec<u8>),
    Codes(Vec<u8>, Vec<u8>),
}

impl Rows {
    pub fn new(seed: u64, format: Format, n_values: usize) -> Self {
        let layout = format.layout();
        match (format, layout.book) {
            (Format::F16 | Format::Bf16, _) => Self::Halves(halves(format, &values(seed, n_values))),
            (_, Book::Float) => Self::Floats(values(seed, n_values)),
            _ => {
                let spare_bits = 8 - layout.main_bits - layout.extra_bits;
                let codes = bytes(seed, n_values).map(|byte| byte >> spare_bits).collect();
                let record_bytes = layout.scales.record_bytes();
                let mut records: Vec<u8> = bytes(!seed, n_values / layout.scales.block_len() * record_bytes).collect();
                records.chunks_exact_mut(record_bytes).for_each(set_scales);
                Self::Codes(codes, records)
            }
        }
    }

    pub fn weight(&self, format: Format, n_in: usize, open: &OpenDevice) -> Weight {
        let mut builder = WeightBuilder::new(n_in, open);
        match self {
            Self::Floats(values) => builder.push_rows_f32(values),
            Self::Halves(bytes) => builder.push_rows_halves(format, bytes),
            Self::Codes(codes, records) => builder.push_rows_codes(format, codes, records),
        }
        builder.finish()
    }
}

fn halves(format: Format, values: &[f32]) -> Vec<u8> {
    let bytes_of = |value: &f32| match format {
        Format::F16 => half::f16::from_f32(*value).to_le_bytes(),
        _ => half::bf16::from_f32(*value).to_le_bytes(),
    };
    values.iter().flat_map(bytes_of).collect()
}

/// Replaces the `f16` numbers of a record, which may be NaN, by small ones; MXFP4 reads an exponent of -8 there.
fn set_scales(record: &mut [u8]) {
    let numbers = [0x78, 0x04 | record[0] & 3, record[1], 0x01];
    let n_numbers = record.len().min(numbers.len());
    record[..n_numbers].copy_from_slice(&numbers[..n_numbers]);
}

fn bytes(seed: u64, n_bytes: usize) -> impl Iterator<Item = u8> {
    bits(seed).flat_map(u64::to_le_bytes).take(n_bytes)
}

fn bits(seed: u64) -> impl Iterator<Item = u64> {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut state = seed.wrapping_mul(GOLDEN);
    std::iter::repeat_with(move || {
        state = state.wrapping_add(GOLDEN);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    })
}
