//! Stored blocks to `f32` values: the reference that the GPU's own unpacking is tested against.
//!
//! A block type is a struct of byte arrays in the order of the file, so that a slice of bytes can be viewed as a slice
//! of blocks. Arithmetic is in `f32` and in the order of the `gguf` Python package, value for value.

mod float;
mod iq4;
mod k_quants;
mod round;

use bytemuck::AnyBitPattern;

use crate::{DType, FormatError};

/// A block of `N` values.
trait Block<const N: usize>: AnyBitPattern {
    /// Writes the block's values.
    fn unpack(&self, values: &mut [f32; N]);
}

/// Unpacks whole blocks.
///
/// # Errors
/// `bytes` is not exactly the blocks that `values` asks for.
pub fn dequantize(dtype: DType, bytes: &[u8], values: &mut [f32]) -> Result<(), FormatError> {
    let is_whole = values.len().is_multiple_of(dtype.block_len());
    if !is_whole || dtype.n_bytes(values.len()) != Some(bytes.len()) {
        return Err(FormatError::Blocks { dtype, n_bytes: bytes.len(), n_values: values.len() });
    }
    match dtype {
        DType::F32 => unpack::<float::F32, _>(bytes, values),
        DType::F16 => unpack::<float::F16, _>(bytes, values),
        DType::BF16 => unpack::<float::BF16, _>(bytes, values),
        DType::Q4_0 => unpack::<round::Q4_0, _>(bytes, values),
        DType::Q4_1 => unpack::<round::Q4_1, _>(bytes, values),
        DType::Q5_0 => unpack::<round::Q5_0, _>(bytes, values),
        DType::Q5_1 => unpack::<round::Q5_1, _>(bytes, values),
        DType::Q8_0 => unpack::<round::Q8_0, _>(bytes, values),
        DType::Q2K => unpack::<k_quants::Q2K, _>(bytes, values),
        DType::Q3K => unpack::<k_quants::Q3K, _>(bytes, values),
        DType::Q4K => unpack::<k_quants::Q4K, _>(bytes, values),
        DType::Q5K => unpack::<k_quants::Q5K, _>(bytes, values),
        DType::Q6K => unpack::<k_quants::Q6K, _>(bytes, values),
        DType::Iq4Nl => unpack::<iq4::Iq4Nl, _>(bytes, values),
        DType::Iq4Xs => unpack::<iq4::Iq4Xs, _>(bytes, values),
        DType::Mxfp4 => unpack::<iq4::Mxfp4, _>(bytes, values),
    }
    Ok(())
}

/// Unpacks blocks of one type; the lengths have been checked.
fn unpack<B: Block<N>, const N: usize>(bytes: &[u8], values: &mut [f32]) {
    let blocks: &[B] = bytemuck::try_cast_slice(bytes).unwrap_or_default();
    for (block, values) in blocks.iter().zip(values.as_chunks_mut::<N>().0) {
        block.unpack(values);
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
