//! Stored blocks to `f32` values: the reference that the GPU's own unpacking is tested against.
//!
//! A block type is a struct of byte arrays in the order of the file, so that a slice of bytes can be viewed as a slice
//! of blocks. Arithmetic is in `f32` and in the order of the `gguf` Python package, value for value.

mod encode;
mod float;
mod iq4;
mod k_quants;
mod round;

pub use encode::{can_encode, encode};

use bytemuck::AnyBitPattern;

use crate::{DType, FormatError};

/// Quantised rows taken apart: nothing of the blocks is lost, only their order in the file.
///
/// A block's scales are little-endian bytes, in the words of the block structs:
///
/// | types | scales of a block |
/// |---|---|
/// | Q4_0, Q5_0, Q8_0, IQ4_NL | d |
/// | Q4_1, Q5_1 | d, m |
/// | MXFP4 | e, 0 |
/// | Q2_K | d, dmin, 16 bytes with a scale and a minimum in their nibbles |
/// | Q3_K, Q6_K | d, two zeros, 16 signed bytes |
/// | Q4_K, Q5_K | d, dmin, 8 bytes of scales, 8 of minima |
/// | IQ4_XS | d, two zeros, 8 signed bytes |
/// | F32, F16, BF16 | the value itself, and its code is 0 |
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Codes {
    /// One number a value, all its bits together.
    pub codes: Vec<u8>,
    /// The scales of all blocks.
    pub scales: Vec<u8>,
}

/// A block of `N` values.
trait Block<const N: usize>: AnyBitPattern {
    /// Writes the block's values.
    fn unpack(&self, values: &mut [f32; N]);

    /// Writes the block's codes in the order of the values, and appends its scales.
    fn split(&self, codes: &mut [u8; N], scales: &mut Vec<u8>);
}

/// Calls a function that is generic over the block type with the type of `$dtype`.
macro_rules! with_block_type {
    ($dtype:expr, $function:ident, $($argument:expr),*) => {
        match $dtype {
            DType::F32 => $function::<float::F32, _>($($argument),*),
            DType::F16 => $function::<float::F16, _>($($argument),*),
            DType::BF16 => $function::<float::BF16, _>($($argument),*),
            DType::Q4_0 => $function::<round::Q4_0, _>($($argument),*),
            DType::Q4_1 => $function::<round::Q4_1, _>($($argument),*),
            DType::Q5_0 => $function::<round::Q5_0, _>($($argument),*),
            DType::Q5_1 => $function::<round::Q5_1, _>($($argument),*),
            DType::Q8_0 => $function::<round::Q8_0, _>($($argument),*),
            DType::Q2K => $function::<k_quants::Q2K, _>($($argument),*),
            DType::Q3K => $function::<k_quants::Q3K, _>($($argument),*),
            DType::Q4K => $function::<k_quants::Q4K, _>($($argument),*),
            DType::Q5K => $function::<k_quants::Q5K, _>($($argument),*),
            DType::Q6K => $function::<k_quants::Q6K, _>($($argument),*),
            DType::Iq4Nl => $function::<iq4::Iq4Nl, _>($($argument),*),
            DType::Iq4Xs => $function::<iq4::Iq4Xs, _>($($argument),*),
            DType::Mxfp4 => $function::<iq4::Mxfp4, _>($($argument),*),
        }
    };
}

/// Unpacks whole blocks.
///
/// # Errors
/// `bytes` is not exactly the blocks that `values` asks for.
pub fn dequantize(dtype: DType, bytes: &[u8], values: &mut [f32]) -> Result<(), FormatError> {
    check_whole(dtype, bytes, values.len())?;
    with_block_type!(dtype, unpack, bytes, values);
    Ok(())
}

/// Takes whole blocks apart without loss.
///
/// # Errors
/// `bytes` is not exactly the blocks of `n_values`.
pub fn split(dtype: DType, bytes: &[u8], n_values: usize) -> Result<Codes, FormatError> {
    check_whole(dtype, bytes, n_values)?;
    let mut codes = Codes { codes: vec![0; n_values], scales: Vec::new() };
    with_block_type!(dtype, split_blocks, bytes, &mut codes);
    Ok(codes)
}

fn check_whole(dtype: DType, bytes: &[u8], n_values: usize) -> Result<(), FormatError> {
    if n_values.is_multiple_of(dtype.block_len()) && dtype.n_bytes(n_values) == Some(bytes.len()) {
        return Ok(());
    }
    Err(FormatError::Blocks { dtype, n_bytes: bytes.len(), n_values })
}

/// Unpacks blocks of one type; the lengths have been checked.
fn unpack<B: Block<N>, const N: usize>(bytes: &[u8], values: &mut [f32]) {
    let blocks: &[B] = bytemuck::try_cast_slice(bytes).unwrap_or_default();
    for (block, values) in blocks.iter().zip(values.as_chunks_mut::<N>().0) {
        block.unpack(values);
    }
}

/// Takes blocks of one type apart; the lengths have been checked.
fn split_blocks<B: Block<N>, const N: usize>(bytes: &[u8], out: &mut Codes) {
    let blocks: &[B] = bytemuck::try_cast_slice(bytes).unwrap_or_default();
    for (block, codes) in blocks.iter().zip(out.codes.as_chunks_mut::<N>().0) {
        block.split(codes, &mut out.scales);
    }
}

/// Little-endian `f16` bytes, nearest even; beyond 65504 the result is infinite, and NaN stays NaN.
pub fn to_f16(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| half::f16::from_f32(*value).to_le_bytes()).collect()
}

/// Little-endian `bf16` bytes, nearest even; NaN stays NaN.
pub fn to_bf16(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| half::bf16::from_f32(*value).to_le_bytes()).collect()
}

/// Little-endian `f32` bytes.
pub fn to_f32(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// An `f16` field.
fn f16(bytes: [u8; 2]) -> f32 {
    half::f16::from_le_bytes(bytes).to_f32()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_structs_have_the_stated_sizes() {
        fn check<B: Block<N>, const N: usize>(dtype: DType) {
            assert_eq!((size_of::<B>(), N), (dtype.block_bytes(), dtype.block_len()), "{dtype}");
            assert_eq!(align_of::<B>(), 1, "{dtype}");
        }
        check::<float::F32, _>(DType::F32);
        check::<float::F16, _>(DType::F16);
        check::<float::BF16, _>(DType::BF16);
        check::<round::Q4_0, _>(DType::Q4_0);
        check::<round::Q4_1, _>(DType::Q4_1);
        check::<round::Q5_0, _>(DType::Q5_0);
        check::<round::Q5_1, _>(DType::Q5_1);
        check::<round::Q8_0, _>(DType::Q8_0);
        check::<k_quants::Q2K, _>(DType::Q2K);
        check::<k_quants::Q3K, _>(DType::Q3K);
        check::<k_quants::Q4K, _>(DType::Q4K);
        check::<k_quants::Q5K, _>(DType::Q5K);
        check::<k_quants::Q6K, _>(DType::Q6K);
        check::<iq4::Iq4Nl, _>(DType::Iq4Nl);
        check::<iq4::Iq4Xs, _>(DType::Iq4Xs);
        check::<iq4::Mxfp4, _>(DType::Mxfp4);
    }

    #[test]
    fn wrong_lengths_are_refused() {
        let error = dequantize(DType::Q4_0, &[0; 17], &mut [0.0; 32]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "17 bytes of Q4_0 for 32 values, expected whole blocks of 18 bytes for 32 values"
        );
        assert!(dequantize(DType::Q4_0, &[0; 18], &mut [0.0; 33]).is_err());
        assert!(dequantize(DType::Q4K, &[], &mut []).is_ok());
    }

    #[test]
    fn half_floats_keep_their_extremes() {
        let values = [f32::INFINITY, f32::NEG_INFINITY, 0.0, -0.0, 65504.0, 6e-8, 1.0];
        for (dtype, bytes) in
            [(DType::F16, to_f16(&values)), (DType::BF16, to_bf16(&values)), (DType::F32, to_f32(&values))]
        {
            let mut back = [1.0; 7];
            dequantize(dtype, &bytes, &mut back).unwrap();
            for (value, back) in values.iter().zip(back) {
                let bound = if dtype == DType::BF16 { value.abs() / 256.0 } else { 1e-8 };
                assert!(*value == back || (value - back).abs() <= bound, "{dtype} {value} {back}");
                assert_eq!(value.is_sign_negative(), back.is_sign_negative());
            }
        }
    }

    #[test]
    fn half_float_nan_and_overflow() {
        let mut back = [0.0; 3];
        dequantize(DType::F16, &to_f16(&[f32::NAN, 65520.0, -1e6]), &mut back).unwrap();
        assert!(back[0].is_nan());
        assert_eq!(back[1..], [f32::INFINITY, f32::NEG_INFINITY]);
        dequantize(DType::BF16, &to_bf16(&[f32::NAN, 65520.0, -1e6]), &mut back).unwrap();
        assert!(back[0].is_nan() && back[1].is_finite() && back[2].is_finite());
    }
}
