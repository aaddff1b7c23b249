//! `f32` values to stored blocks, for the few types that are written: plain floats and Q8_0.
//!
//! Q8_0 follows the `gguf` Python package bit for bit. Smaller types need a search for good scales, which is not here.

use super::{to_bf16, to_f16, to_f32};
use crate::{DType, FormatError};

/// Whether [`encode`] knows the type.
pub const fn can_encode(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F16 | DType::BF16 | DType::Q8_0)
}

/// Packs whole blocks.
///
/// # Errors
/// A type that is not written, or values that are no whole number of blocks.
pub fn encode(dtype: DType, values: &[f32]) -> Result<Vec<u8>, FormatError> {
    match dtype {
        DType::F32 => Ok(to_f32(values)),
        DType::F16 => Ok(to_f16(values)),
        DType::BF16 => Ok(to_bf16(values)),
        DType::Q8_0 if values.len().is_multiple_of(dtype.block_len()) => Ok(to_q8_0(values)),
        _ => Err(FormatError::Unwritable { tensor: "of no name".into(), dtype, shape: vec![values.len()] }),
    }
}

/// `d = max |x| / 127` as `f16`, then `q = x / d` to the nearest, halves away from zero.
fn to_q8_0(values: &[f32]) -> Vec<u8> {
    let blocks = values.as_chunks::<32>().0;
    let mut out = Vec::with_capacity(blocks.len() * DType::Q8_0.block_bytes());
    for block in blocks {
        let d = block.iter().fold(0.0f32, |most, x| most.max(x.abs())) / 127.0;
        // The codes follow from the exact scale, though the file keeps it rounded.
        let per_step = if d == 0.0 { 0.0 } else { 1.0 / d };
        out.extend(half::f16::from_f32(d).to_le_bytes());
        out.extend(block.iter().map(|x| ((x * per_step).round() as i8).cast_unsigned()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q8_0_keeps_the_largest_and_zeros() {
        let mut values = [0.0; 64];
        values[3] = -254.0;
        values[4] = 1.0;
        let bytes = encode(DType::Q8_0, &values).unwrap();
        let mut back = [9.0; 64];
        super::super::dequantize(DType::Q8_0, &bytes, &mut back).unwrap();
        assert_eq!((back[3], back[4], back[5]), (-254.0, 2.0, 0.0));
        assert_eq!(back[32..], [0.0; 32]);
    }

    #[test]
    fn types_and_lengths_that_are_not_written_are_refused() {
        assert!(encode(DType::Q4_0, &[0.0; 32]).is_err());
        assert!(encode(DType::Q8_0, &[0.0; 31]).is_err());
        assert!(DType::ALL.iter().all(|dtype| can_encode(*dtype) == encode(*dtype, &[0.0; 256]).is_ok()));
    }
}
