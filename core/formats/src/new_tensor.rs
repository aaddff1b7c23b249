//! A tensor that is to be written, and its bytes from rows that somebody else computes.
//!
//! The one idea: a writer asks for a few rows at a time and forgets them, so a model of any size is written in the
//! memory of one block of rows.

use std::ops::Range;

use crate::error::shown;
use crate::{DType, FormatError, TensorInfo, codec};

/// The most values asked for at once, unless a single row has more: 4 MiB of `f32`.
const BLOCK_VALUES: usize = 1 << 20;

/// Name, shape and type of a tensor in a new file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTensor {
    pub name: String,
    /// Dimensions, outermost first.
    pub shape: Vec<usize>,
    pub dtype: DType,
}

/// The same tensor once more.
impl From<&TensorInfo> for NewTensor {
    fn from(tensor: &TensorInfo) -> Self {
        Self { name: tensor.name.clone(), shape: tensor.shape.clone(), dtype: tensor.dtype }
    }
}

impl NewTensor {
    /// Values in a row, the innermost dimension.
    pub fn row_len(&self) -> usize {
        self.shape.last().copied().unwrap_or(1)
    }

    /// Number of rows, the product of the outer dimensions.
    pub fn n_rows(&self) -> usize {
        self.shape.iter().rev().skip(1).product()
    }

    /// Bytes in the file, once the type is known to be one that is written and rows to be whole blocks.
    pub(crate) fn checked_bytes(&self) -> Result<usize, FormatError> {
        let n_values = self.shape.iter().try_fold(1usize, |n, dim| n.checked_mul(*dim));
        let is_whole = codec::can_encode(self.dtype) && self.row_len().is_multiple_of(self.dtype.block_len());
        n_values.filter(|_| is_whole).and_then(|n| self.dtype.n_bytes(n)).ok_or_else(|| FormatError::Unwritable {
            tensor: shown(&self.name),
            dtype: self.dtype,
            shape: self.shape.clone(),
        })
    }

    /// Asks for all rows in order, a block at a time, and puts their bytes.
    pub(crate) fn put_rows<E: From<FormatError>>(
        &self,
        rows: &mut impl FnMut(&Self, Range<usize>) -> Result<Vec<f32>, E>,
        mut put: impl FnMut(&[u8]) -> Result<(), FormatError>,
    ) -> Result<(), E> {
        let n_rows = self.n_rows();
        let step = (BLOCK_VALUES / self.row_len().max(1)).max(1);
        for start in (0..n_rows).step_by(step) {
            let block = start..n_rows.min(start + step);
            let values = rows(self, block.clone())?;
            put(&self.encode(&values, block)?)?;
        }
        Ok(())
    }

    fn encode(&self, values: &[f32], rows: Range<usize>) -> Result<Vec<u8>, FormatError> {
        let expected = rows.len() * self.row_len();
        if values.len() != expected {
            return Err(FormatError::RowValues { tensor: shown(&self.name), rows, found: values.len(), expected });
        }
        match values.iter().find(|value| value.is_finite() && value.abs() >= largest(self.dtype)) {
            Some(value) => Err(FormatError::Overflow { tensor: shown(&self.name), value: *value, dtype: self.dtype }),
            None => codec::encode(self.dtype, values),
        }
    }
}

/// Where a finite value becomes infinite: at half a step beyond the largest `f16`, which also scales Q8_0's codes.
fn largest(dtype: DType) -> f32 {
    const F16: f32 = 65520.0;
    match dtype {
        DType::F16 => F16,
        DType::Q8_0 => 127.0 * F16,
        _ => f32::INFINITY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(shape: &[usize], dtype: DType) -> NewTensor {
        NewTensor { name: "w".into(), shape: shape.to_vec(), dtype }
    }

    /// The first row of each block that was asked for, and the bytes put.
    fn written(tensor: &NewTensor, value: f32) -> Result<(Vec<usize>, usize), FormatError> {
        let (mut starts, mut n_bytes) = (Vec::new(), 0);
        let mut rows = |tensor: &NewTensor, rows: Range<usize>| {
            starts.push(rows.start);
            Ok::<_, FormatError>(vec![value; rows.len() * tensor.row_len()])
        };
        tensor.put_rows(&mut rows, |bytes| {
            n_bytes += bytes.len();
            Ok(())
        })?;
        Ok((starts, n_bytes))
    }

    #[test]
    fn rows_are_asked_for_in_blocks() {
        let big = tensor(&[5, 1 << 19], DType::BF16);
        assert_eq!(written(&big, 1.0).unwrap(), (vec![0, 2, 4], big.checked_bytes().unwrap()));
        assert_eq!(written(&tensor(&[], DType::F32), 1.0).unwrap(), (vec![0], 4));
        assert_eq!(written(&tensor(&[3, 0], DType::F32), 1.0).unwrap().1, 0);
        assert_eq!(written(&tensor(&[2, 2, 32], DType::Q8_0), 1.0).unwrap(), (vec![0], 4 * 34));
    }

    #[test]
    fn values_that_would_become_infinite_are_refused() {
        let f16 = tensor(&[1, 2], DType::F16);
        assert!(written(&f16, -65519.0).is_ok() && written(&f16, f32::INFINITY).is_ok());
        let text = written(&f16, -65520.0).unwrap_err().to_string();
        assert_eq!(text, "tensor w has the value -65520, which F16 cannot hold");
        assert!(written(&tensor(&[1], DType::BF16), 1e38).is_ok());
    }

    #[test]
    fn what_cannot_be_written_is_refused_before_anything_is() {
        assert!(tensor(&[2, 31], DType::Q8_0).checked_bytes().is_err());
        assert!(tensor(&[usize::MAX, 2], DType::F16).checked_bytes().is_err());
        let text = tensor(&[2, 32], DType::Q4_0).checked_bytes().unwrap_err().to_string();
        assert_eq!(text, "tensor w cannot be written as Q4_0 with the shape [2, 32]");
    }
}
