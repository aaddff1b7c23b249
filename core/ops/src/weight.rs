//! Weight matrices as row parts, each of which fits one storage binding.
//!
//! WebGPU's default limits allow 128 MiB a binding, and the embedding of a 1B model has 411 MB in f16, so a matrix is
//! a list of row blocks from the day it is loaded. Operations launch once a part.

use crate::device::OpenDevice;
use crate::run;
use burn::tensor::{DType, Device, Tensor, TensorData};

/// One matrix `[N, D]`, row-major; the matrices of E experts are `[E * N, D]`.
#[derive(Debug, Clone)]
pub struct Weight {
    n_in: usize,
    parts: Vec<Part>,
}

/// A block of rows.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub first_row: usize,
    pub n_rows: usize,
    data: Tensor<1>,
}

impl Weight {
    /// N, the number of rows.
    pub fn n_out(&self) -> usize {
        self.parts.last().map_or(0, |part| part.first_row + part.n_rows)
    }

    /// D, the width of a row.
    pub fn n_in(&self) -> usize {
        self.n_in
    }

    /// Bytes in device memory.
    pub fn n_bytes(&self) -> u64 {
        4 * self.n_out() as u64 * self.n_in as u64
    }

    pub(crate) fn parts(&self) -> &[Part] {
        &self.parts
    }
}

impl Part {
    pub fn buffer(&self) -> run::Buffer {
        run::float(&self.data)
    }
}

/// Gathers rows into parts and uploads each as it fills.
#[derive(Debug)]
pub struct WeightBuilder {
    n_in: usize,
    rows_per_part: usize,
    device: Device,
    pending: Vec<f32>,
    parts: Vec<Part>,
}

impl WeightBuilder {
    /// For rows of `n_in` values on `open`, whose binding limit decides where the matrix is cut.
    ///
    /// # Panics
    /// If `n_in` is 0.
    pub fn new(n_in: usize, open: &OpenDevice) -> Self {
        assert!(n_in > 0, "a weight's rows have a width");
        let row_bytes = 4 * n_in as u64;
        let rows_per_part = (open.max_binding_bytes / row_bytes).max(1) as usize;
        Self { n_in, rows_per_part, device: open.device.clone(), pending: Vec::new(), parts: Vec::new() }
    }

    /// How many rows one part holds at most.
    pub fn rows_per_part(&self) -> usize {
        self.rows_per_part
    }

    /// Appends whole rows.
    ///
    /// # Panics
    /// If `rows` is not a whole number of rows.
    pub fn push_rows_f32(&mut self, mut rows: &[f32]) {
        assert_eq!(rows.len() % self.n_in, 0, "rows of {} values", self.n_in);
        let part_values = self.rows_per_part * self.n_in;
        while !rows.is_empty() {
            let (now, later) = rows.split_at(rows.len().min(part_values - self.pending.len()));
            self.pending.extend_from_slice(now);
            rows = later;
            if self.pending.len() == part_values {
                self.upload();
            }
        }
    }

    /// The finished matrix.
    pub fn finish(mut self) -> Weight {
        if !self.pending.is_empty() {
            self.upload();
        }
        Weight { n_in: self.n_in, parts: self.parts }
    }

    fn upload(&mut self) {
        let first_row = self.parts.last().map_or(0, |part| part.first_row + part.n_rows);
        let n_rows = self.pending.len() / self.n_in;
        let data = vector(&std::mem::take(&mut self.pending), &self.device);
        self.parts.push(Part { first_row, n_rows, data });
    }
}

/// A vector in device memory, such as the weight of a norm.
pub fn vector(values: &[f32], device: &Device) -> Tensor<1> {
    Tensor::from_data(TensorData::new(values.to_vec(), [values.len()]), (device, DType::F32))
}
