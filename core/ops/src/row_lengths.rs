//! How long the rows of a weight are with a low-rank adapter in them, without the merged rows.

use crate::operation::{Host, HostMut, Launch, Operation};
use crate::run::{empty, float, into_float, run};
use crate::weight::{Weight, n_buffers, rows};
use burn::tensor::Tensor;
use samara_shaders::{Format, ROW_LENGTHS, RowLengthsParams};
use std::ops::Range;

/// Rows that one workgroup takes.
const ROWS_PER_GROUP: u32 = 8;

/// `lengths[n] = |w[n] + scale * sum_j b[n, j] a[j]|`, for rows of one part of the weight.
#[derive(Debug, Clone, Copy)]
struct RowLengths {
    format: Format,
    params: RowLengthsParams,
}

/// The lengths of some rows of `w + scale * b a` (the norm of Liu et al. 2024, which takes it for a constant: there is no
/// gradient).
///
/// # Shapes
/// - w `[N, D]`, a `[r, D]`, b `[n, r]` for the n `columns` of what w gives
/// - result `[n]`
///
/// # Panics
/// If the shapes do not fit together, or one of them is on a tape.
pub fn row_lengths(w: &Weight, columns: Range<usize>, [a, b]: [&Tensor<2>; 2], scale: f32) -> Tensor<1> {
    let ([rank, n_in], n) = (a.dims(), columns.len());
    assert!(n_in == w.n_in() && b.dims() == [n, rank] && columns.end <= w.n_out(), "row_lengths: shapes");
    let mut lengths = empty([n], &a.device());
    for part in w.parts() {
        let first = columns.start.max(part.first_row);
        let end = columns.end.min(part.first_row + part.n_rows);
        if first >= end {
            continue;
        }
        let params = RowLengthsParams {
            n_in: n_in as u32,
            rank: rank as u32,
            n_rows: (end - first) as u32,
            first_row: (first - part.first_row) as u32,
            first_length: (first - columns.start) as u32,
            scale,
        };
        let inputs = std::iter::once(float(a)).chain(part.buffers()).chain([float(b)]).collect();
        lengths = run(RowLengths { format: part.format, params }, inputs, vec![into_float(lengths)]).float();
    }
    lengths
}

impl Operation for RowLengths {
    fn reference(&self, inputs: &[Host<'_>], outputs: &mut [HostMut<'_>]) {
        let RowLengthsParams { n_in, rank, n_rows, first_row, first_length, scale } = self.params;
        let (a, b) = (inputs[0].f32(), inputs[1 + n_buffers(self.format)].f32());
        let (w, _) = rows(self.format, n_in, &inputs[1..]);
        let (n_in, rank, first) = (n_in as usize, rank as usize, first_length as usize);
        let factors = b[first * rank..].chunks_exact(rank);
        let lengths = outputs[0].f32()[first..].iter_mut().zip(factors).take(n_rows as usize);
        for (index, (length, factors)) in lengths.enumerate() {
            let mut row = w.decode(first_row as usize + index).into_owned();
            for (a, factor) in a.chunks_exact(n_in).zip(factors) {
                row.iter_mut().zip(a).for_each(|(w, a)| *w += scale * factor * a);
            }
            *length = row.iter().map(|w| w * w).sum::<f32>().sqrt();
        }
    }

    fn launch(&self) -> Launch {
        let groups = self.params.n_rows.div_ceil(ROWS_PER_GROUP).into();
        Launch { kernel: ROW_LENGTHS[self.format as usize], groups, params: self.params.words() }
    }
}
