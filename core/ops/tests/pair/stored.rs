//! Weights of every format, as loaders hand them over.

use crate::pair::random;
use samara_ops::device::OpenDevice;
use samara_ops::*;

/// Rows as a file holds them: floats, or random codes with scales that keep the values near 1.
pub enum Stored {
    F32(Vec<f32>),
    Halves(Vec<u8>),
    Codes(Vec<u8>, Vec<u8>),
}

pub fn stored_rows(format: Format, n_rows: usize, n_in: usize) -> Stored {
    let bytes = |seed, n| -> Vec<u8> { random(seed, n, 1.0).iter().map(|x| (x.abs() * 255.9) as u8).collect() };
    let layout = format.layout();
    let halves = random(23, n_rows * n_in, 1.0);
    match format {
        Format::Ragged | Format::F32 => Stored::F32(halves),
        Format::Bf16 => Stored::Halves(halves.iter().flat_map(|x| [x.to_le_bytes()[2], x.to_le_bytes()[3]]).collect()),
        Format::F16 => Stored::Halves(bytes(24, n_rows * n_in * 2).into_iter().map(|byte| byte & 0x3b).collect()),
        _ => {
            let n_bits = layout.main_bits + layout.extra_bits;
            let codes = bytes(25, n_rows * n_in).into_iter().map(|code| code >> (8 - n_bits)).collect();
            let record_bytes = layout.scales.record_bytes();
            let mut records = bytes(26, n_rows * n_in / layout.scales.block_len() * record_bytes);
            for record in records.chunks_exact_mut(record_bytes) {
                set_scales(record);
            }
            Stored::Codes(codes, records)
        }
    }
}

/// The f16 numbers at the start of a record: small ones, one of them subnormal. MXFP4 reads an exponent of 2^-8 instead.
fn set_scales(record: &mut [u8]) {
    let d = [0x78, 0x04 | record[0] & 3];
    let minimum = [record[1], 0x01];
    let numbers = [d, minimum].concat();
    let n_numbers = record.len().min(4);
    record[..n_numbers].copy_from_slice(&numbers[..n_numbers]);
}

pub fn stored_weight(format: Format, n_in: usize, rows: &Stored, rows_per_part: usize, open: &OpenDevice) -> Weight {
    let mut narrow = open.clone();
    narrow.max_binding_bytes = rows_per_part as u64 * row_bytes(format, n_in);
    let mut builder = WeightBuilder::new(n_in, &narrow);
    match rows {
        Stored::F32(values) => builder.push_rows_f32(values),
        Stored::Halves(bytes) => builder.push_rows_halves(format, bytes),
        Stored::Codes(codes, scales) => builder.push_rows_codes(format, codes, scales),
    }
    builder.finish()
}
