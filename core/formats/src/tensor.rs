//! A tensor as the file describes it: name, shape, type, and where its bytes lie.

use std::ops::Range;

use crate::DType;

/// What a checkpoint knows of one tensor without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorInfo {
    /// The file's own name.
    pub name: String,
    /// Dimensions, outermost first: a weight is `[out, in]`. Empty for a scalar.
    pub shape: Vec<usize>,
    /// How the values are stored.
    pub dtype: DType,
    pub(crate) place: Place,
}

/// Where a tensor's bytes lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// Which of the checkpoint's files.
    pub file_idx: usize,
    /// Bytes from the start of that file. Always inside it, and short enough to index memory.
    pub range: Range<u64>,
}

impl TensorInfo {
    /// Number of values.
    pub fn n_elements(&self) -> usize {
        self.shape.iter().fold(1, |n, dim| n.saturating_mul(*dim))
    }

    /// Bytes in the file.
    pub fn n_bytes(&self) -> usize {
        (self.place.range.end - self.place.range.start) as usize
    }

    /// Values in a row, the innermost dimension.
    pub fn row_len(&self) -> usize {
        self.shape.last().copied().unwrap_or(1)
    }

    /// Number of rows, the product of the outer dimensions.
    pub fn n_rows(&self) -> usize {
        self.n_elements() / self.row_len().max(1)
    }

    /// Bytes of a row in the file.
    pub fn row_bytes(&self) -> usize {
        self.row_len() / self.dtype.block_len() * self.dtype.block_bytes()
    }
}
