//! Checkpoint to device weights, a few rows at a time.
//!
//! All shapes are proven before the first byte is read. Rows are read in blocks, put in the order
//! the decoder wants and pushed on; no tensor is ever whole in main memory.

use std::ops::Range;

use samara_formats::{Checkpoint, DType, TensorInfo, codec};
use samara_ops::{Format, Weight, WeightBuilder, device::OpenDevice, matrix};

use crate::{
    ModelError,
    names::{MatrixPlan, Piece, Plan, RowOrder, VectorPlan},
};

/// Values read at once: 4 MiB of them.
const BLOCK_VALUES: usize = 1 << 20;

/// How far loading has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadProgress<'a> {
    /// The tensor being read.
    pub tensor: &'a str,
    /// Bytes of the checkpoint read so far.
    pub done_bytes: u64,
    /// Bytes of the checkpoint that will be read.
    pub total_bytes: u64,
}

/// Reads weights and tells how far it is.
pub(crate) struct Loader<'a> {
    pub checkpoint: &'a Checkpoint,
    pub open: &'a OpenDevice,
    pub progress: &'a mut dyn FnMut(LoadProgress<'_>),
    pub done_bytes: u64,
    pub total_bytes: u64,
    pub matrices: Matrices,
}

/// How matrices are kept on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Matrices {
    /// As they are stored.
    AsStored,
    /// As tensors of `f32`, which can be trained.
    Dense,
}

impl<'a> Loader<'a> {
    /// One device matrix from all its pieces.
    pub fn matrix(&mut self, plan: &MatrixPlan) -> Result<Weight, ModelError> {
        match self.matrices {
            Matrices::AsStored => self.stored(plan),
            Matrices::Dense => self.dense(plan),
        }
    }

    fn dense(&mut self, plan: &MatrixPlan) -> Result<Weight, ModelError> {
        let mut values = Vec::new();
        for piece in &plan.pieces {
            let info = self.info(&piece.tensor, &piece.shape)?;
            let rows = self.checkpoint.rows_f32(info, piece.rows.clone())?;
            values.extend(in_order(rows, info.row_len(), piece.order));
            self.advance(info, piece.rows.len());
        }
        let n_rows = values.len() / plan.n_in;
        let rows = matrix(values, n_rows, &self.open.device);
        Ok(Weight::dense(rows, self.open.kernels))
    }

    fn stored(&mut self, plan: &MatrixPlan) -> Result<Weight, ModelError> {
        let mut builder = WeightBuilder::new(plan.n_in, self.open);
        for piece in &plan.pieces {
            self.push(piece, &mut builder)?;
        }
        Ok(builder.finish())
    }

    /// One vector; all ones where no tensor holds it.
    pub fn vector(&mut self, plan: &VectorPlan) -> Result<Vec<f32>, ModelError> {
        if plan.tensors.is_empty() {
            return Ok(vec![1.0; plan.len]);
        }
        let mut values = Vec::with_capacity(plan.len);
        for (name, len) in &plan.tensors {
            let info = self.info(name, &[*len])?;
            values.extend(self.checkpoint.rows_f32(info, 0..1)?.iter().map(|value| value + plan.add));
            self.advance(info, 1);
        }
        Ok(values)
    }

    fn push(&mut self, piece: &Piece, builder: &mut WeightBuilder) -> Result<(), ModelError> {
        let info = self.info(&piece.tensor, &piece.shape)?;
        let n_rows = block_rows(info.row_len(), piece.order);
        for start in piece.rows.clone().step_by(n_rows) {
            let rows = start..piece.rows.end.min(start + n_rows);
            self.push_rows(info, rows.clone(), piece.order, builder)?;
            self.advance(info, rows.len());
        }
        Ok(())
    }

    /// Rows as they are stored: quantised ones stay so.
    fn push_rows(
        &self,
        info: &TensorInfo,
        rows: Range<usize>,
        order: RowOrder,
        builder: &mut WeightBuilder,
    ) -> Result<(), ModelError> {
        let width = info.row_len();
        match format_of(info) {
            Format::F32 | Format::Ragged => {
                builder.push_rows_f32(&in_order(self.checkpoint.rows_f32(info, rows)?, width, order));
            }
            format @ (Format::F16 | Format::Bf16) => {
                let bytes = self.checkpoint.rows(info, rows)?.into_owned();
                builder.push_rows_halves(format, &in_order(bytes, info.row_bytes(), order));
            }
            format => {
                let n_rows = rows.len();
                let split = codec::split(info.dtype, &self.checkpoint.rows(info, rows)?, n_rows * width)?;
                let scale_bytes = split.scales.len() / n_rows;
                let codes = in_order(split.codes, width, order);
                builder.push_rows_codes(format, &codes, &in_order(split.scales, scale_bytes, order));
            }
        }
        Ok(())
    }

    fn info(&self, name: &str, expected: &[usize]) -> Result<&'a TensorInfo, ModelError> {
        self.checkpoint.tensor(name).ok_or_else(|| ModelError::MissingTensor {
            source_name: self.checkpoint.source().to_owned(),
            tensor: name.to_owned(),
            expected: expected.to_vec(),
        })
    }

    fn advance(&mut self, info: &TensorInfo, n_rows: usize) {
        self.done_bytes += bytes_of_rows(info, n_rows);
        (self.progress)(LoadProgress {
            tensor: &info.name,
            done_bytes: self.done_bytes,
            total_bytes: self.total_bytes,
        });
    }
}

/// How rows of a tensor lie on the device: as in the file, but for 16-bit floats of a width that is not whole blocks.
pub(crate) fn format_of(info: &TensorInfo) -> Format {
    if info.dtype.is_float() && !info.row_len().is_multiple_of(32) {
        return Format::Ragged;
    }
    match info.dtype {
        DType::F32 => Format::F32,
        DType::F16 => Format::F16,
        DType::BF16 => Format::Bf16,
        DType::Q4_0 => Format::Q4_0,
        DType::Q4_1 => Format::Q4_1,
        DType::Q5_0 => Format::Q5_0,
        DType::Q5_1 => Format::Q5_1,
        DType::Q8_0 => Format::Q8_0,
        DType::Q2K => Format::Q2K,
        DType::Q3K => Format::Q3K,
        DType::Q4K => Format::Q4K,
        DType::Q5K => Format::Q5K,
        DType::Q6K => Format::Q6K,
        DType::Iq4Nl => Format::Iq4Nl,
        DType::Iq4Xs => Format::Iq4Xs,
        DType::Mxfp4 => Format::Mxfp4,
    }
}

/// Bytes of the checkpoint that a plan reads.
pub(crate) fn planned_bytes(plan: &Plan, checkpoint: &Checkpoint) -> u64 {
    let of = |name: &str, n_rows: usize| checkpoint.tensor(name).map_or(0, |info| bytes_of_rows(info, n_rows));
    let pieces = plan.matrices().flat_map(|matrix| &matrix.pieces);
    let vectors = plan.vectors().flat_map(|vector| &vector.tensors);
    pieces.map(|piece| of(&piece.tensor, piece.rows.len())).sum::<u64>()
        + vectors.map(|(name, _)| of(name, 1)).sum::<u64>()
}

fn bytes_of_rows(info: &TensorInfo, n_rows: usize) -> u64 {
    (info.n_bytes() / info.n_rows().max(1) * n_rows) as u64
}

/// Rows per block; whole heads where heads are re-ordered.
fn block_rows(row_len: usize, order: RowOrder) -> usize {
    let n_rows = (BLOCK_VALUES / row_len.max(1)).max(1);
    match order {
        RowOrder::AsStored => n_rows,
        RowOrder::Interleaved { head_dim } => n_rows.next_multiple_of(head_dim),
    }
}

/// Rows in the order the decoder wants: of each head the even rows, then the odd ones.
fn in_order<T: Copy>(values: Vec<T>, row_len: usize, order: RowOrder) -> Vec<T> {
    let RowOrder::Interleaved { head_dim } = order else { return values };
    let mut ordered = Vec::with_capacity(values.len());
    for head in values.chunks(row_len * head_dim) {
        for first in [0, 1] {
            head.chunks(row_len).skip(first).step_by(2).for_each(|row| ordered.extend(row));
        }
    }
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interleaved_rows_go_back_to_halves() {
        let order = RowOrder::Interleaved { head_dim: 4 };
        assert_eq!(in_order(vec![0, 2, 1, 3, 4, 6, 5, 7], 1, order), [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn stored_order_is_kept() {
        assert_eq!(in_order(vec![1., 2., 3.], 1, RowOrder::AsStored), [1., 2., 3.]);
    }

    #[test]
    fn blocks_hold_whole_heads() {
        let order = RowOrder::Interleaved { head_dim: 96 };
        assert_eq!(block_rows(2048, order) % 96, 0);
        assert_eq!(block_rows(1 << 22, RowOrder::AsStored), 1);
    }
}
