//! Weight matrices as row parts, each of which fits one storage binding and has one [`Format`].
//!
//! WebGPU's default limits allow 128 MiB a binding, and the embedding of a 1B model has 411 MB in f16, so a matrix is
//! a list of row blocks from the day it is loaded. A fused matrix whose pieces are quantised differently is the same list.
//! Operations launch once a part. Rows stay as they were quantised; no dense copy is ever made.

mod packed;

use crate::device::OpenDevice;
use crate::family::Kernels;
use crate::operation::Host;
use crate::run;
use burn::tensor::{DType, Device, Int, Tensor, TensorData};
pub(crate) use packed::Rows;
use samara_shaders::Format;

/// One matrix `[N, D]`, row-major; the matrices of E experts are `[E * N, D]`.
#[derive(Debug, Clone)]
pub struct Weight {
    n_in: usize,
    kernels: Kernels,
    parts: Vec<Part>,
}

/// A block of rows.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub first_row: usize,
    pub n_rows: usize,
    pub format: Format,
    rows: PartRows,
}

/// Where the rows of a part lie.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "a model has a few hundred of these, and each stands for megabytes")]
enum PartRows {
    /// As they were stored.
    Stored { quants: Tensor<1, Int>, scales: Option<Tensor<1, Int>> },
    /// As a tensor `[N, D]` that can be trained.
    Dense(Tensor<2>),
}

impl Weight {
    /// The rows of a tensor, which may need a gradient. They must fit one binding.
    ///
    /// # Shapes
    /// - rows `[N, D]`
    pub fn dense(rows: Tensor<2>, kernels: Kernels) -> Self {
        let [n_rows, n_in] = rows.dims();
        let part = Part { first_row: 0, n_rows, format: float_format(n_in), rows: PartRows::Dense(rows) };
        Self { n_in, kernels, parts: vec![part] }
    }

    /// The tensor of a weight that [`Weight::dense`] made.
    pub fn as_dense(&self) -> Option<&Tensor<2>> {
        match self.parts.as_slice() {
            [Part { rows: PartRows::Dense(rows), .. }] => Some(rows),
            _ => None,
        }
    }

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
        self.parts.iter().map(|part| row_bytes(part.format, self.n_in) * part.n_rows as u64).sum()
    }

    pub(crate) fn kernels(&self) -> Kernels {
        self.kernels
    }

    pub(crate) fn parts(&self) -> &[Part] {
        &self.parts
    }
}

impl Part {
    /// The inputs that hold its rows.
    pub fn buffers(&self) -> impl Iterator<Item = run::Buffer> {
        let [first, second] = match &self.rows {
            PartRows::Stored { quants, scales } => [Some(run::int(quants)), scales.as_ref().map(run::int)],
            PartRows::Dense(rows) => [Some(run::float(rows)), None],
        };
        first.into_iter().chain(second)
    }
}

/// Bytes that a row of `n_in` values takes in device memory.
pub fn row_bytes(format: Format, n_in: usize) -> u64 {
    4 * packed::row_words(format, n_in).iter().sum::<usize>() as u64
}

/// The rows in the inputs of an operation that begin with a weight's, and the inputs after them.
pub(crate) fn rows<'a, 'b>(format: Format, n_in: u32, inputs: &'b [Host<'a>]) -> (Rows<'a>, &'b [Host<'a>]) {
    let n_buffers = n_buffers(format);
    let quants = inputs[0].words();
    let scales = if n_buffers == 2 { inputs[1].u32() } else { &[] };
    (Rows { format, n_in: n_in as usize, quants, scales }, &inputs[n_buffers..])
}

pub(crate) fn n_buffers(format: Format) -> usize {
    packed::row_words(format, 256).iter().filter(|n_words| **n_words > 0).count()
}

/// Gathers rows into parts and uploads each as it fills, or as the format changes.
#[derive(Debug)]
pub struct WeightBuilder {
    n_in: usize,
    max_binding_bytes: u64,
    kernels: Kernels,
    device: Device,
    pending: Pending,
    parts: Vec<Part>,
}

/// Rows that are not yet on the device.
#[derive(Debug)]
struct Pending {
    format: Format,
    quants: Vec<u32>,
    scales: Vec<u32>,
}

impl WeightBuilder {
    /// For rows of `n_in` values on `open`, whose binding limit decides where the matrix is cut.
    ///
    /// # Panics
    /// If `n_in` is 0.
    pub fn new(n_in: usize, open: &OpenDevice) -> Self {
        assert!(n_in > 0, "a weight's rows have a width");
        let OpenDevice { device, max_binding_bytes, kernels, .. } = open.clone();
        let pending = Pending { format: Format::F32, quants: Vec::new(), scales: Vec::new() };
        Self { n_in, max_binding_bytes, kernels, device, pending, parts: Vec::new() }
    }

    /// Appends whole rows of `f32`.
    ///
    /// # Panics
    /// If `rows` is not a whole number of rows.
    pub fn push_rows_f32(&mut self, rows: &[f32]) {
        self.push(float_format(self.n_in), rows.iter().map(|value| value.to_bits()).collect(), Vec::new());
    }

    /// Appends whole rows of 16-bit floats, little-endian: `F16` or `Bf16`.
    ///
    /// # Panics
    /// If `rows` is not a whole number of rows, or their width is not a multiple of 32.
    pub fn push_rows_halves(&mut self, format: Format, rows: &[u8]) {
        assert!(self.n_in.is_multiple_of(32), "{format:?} in rows of {}", self.n_in);
        self.push(format, packed::words(rows).collect(), Vec::new());
    }

    /// Appends whole rows of codes, with the scale records that [`samara_shaders::Scales`] describes.
    ///
    /// # Panics
    /// If `codes` is not a whole number of rows, or their width is not a multiple of the format's blocks.
    pub fn push_rows_codes(&mut self, format: Format, codes: &[u8], scales: &[u8]) {
        assert_eq!(self.n_in % format.layout().scales.block_len(), 0, "{format:?} in rows of {}", self.n_in);
        let [quants, scales] = packed::pack_codes(format, self.n_in, codes, scales);
        self.push(format, quants, scales);
    }

    /// The finished matrix.
    pub fn finish(mut self) -> Weight {
        self.upload();
        Weight { n_in: self.n_in, kernels: self.kernels, parts: self.parts }
    }

    fn push(&mut self, format: Format, mut quants: Vec<u32>, mut scales: Vec<u32>) {
        let [n_quants, n_scales] = packed::row_words(format, self.n_in);
        assert_eq!(quants.len() % n_quants, 0, "whole rows of {} values", self.n_in);
        if format != self.pending.format {
            self.upload();
            self.pending.format = format;
        }
        let rows_per_part = (self.max_binding_bytes / (4 * n_quants.max(n_scales)) as u64).max(1) as usize;
        while !quants.is_empty() {
            let room = rows_per_part - self.pending.quants.len() / n_quants;
            let n_rows = room.min(quants.len() / n_quants);
            self.pending.quants.extend(quants.drain(..n_rows * n_quants));
            self.pending.scales.extend(scales.drain(..n_rows * n_scales));
            if n_rows == room {
                self.upload();
            }
        }
    }

    /// Moves what is pending to the device, as one part.
    fn upload(&mut self) {
        let Pending { format, ref mut quants, ref mut scales } = self.pending;
        let [n_quants, _] = packed::row_words(format, self.n_in);
        let n_rows = quants.len() / n_quants;
        if n_rows == 0 {
            return;
        }
        let first_row = self.parts.last().map_or(0, |part| part.first_row + part.n_rows);
        let quants = word_buffer(std::mem::take(quants), &self.device);
        let scales = (!scales.is_empty()).then(|| word_buffer(std::mem::take(scales), &self.device));
        self.parts.push(Part { first_row, n_rows, format, rows: PartRows::Stored { quants, scales } });
    }
}

/// The format of `f32` rows.
fn float_format(n_in: usize) -> Format {
    if n_in.is_multiple_of(32) { Format::F32 } else { Format::Ragged }
}

fn word_buffer(words: Vec<u32>, device: &Device) -> Tensor<1, Int> {
    let n_words = words.len();
    Tensor::from_data(TensorData::new(words, [n_words]), (device, DType::U32))
}

/// A matrix of so many rows in device memory.
///
/// # Panics
/// If `values` is not a whole number of rows.
pub fn matrix(values: Vec<f32>, n_rows: usize, device: &Device) -> Tensor<2> {
    let shape = [n_rows, values.len() / n_rows.max(1)];
    Tensor::from_data(TensorData::new(values, shape), (device, DType::F32))
}

/// A vector in device memory, such as the weight of a norm.
pub fn vector(values: &[f32], device: &Device) -> Tensor<1> {
    Tensor::from_data(TensorData::new(values.to_vec(), [values.len()]), (device, DType::F32))
}
