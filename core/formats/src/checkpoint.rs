//! The one type that readers of a model see: metadata, tensors by name, bytes and values on demand.

use std::borrow::Cow;
use std::ops::Range;

use crate::error::shown;
use crate::gguf::{self, GgufMetadata};
use crate::huggingface::{self, HuggingFaceFiles, HuggingFaceMetadata};
use crate::source::SourceFile;
use crate::{FormatError, TensorInfo, codec};

/// An opened model. Opening reads only the description; tensor bytes stay in the file until asked for.
pub struct Checkpoint {
    source: String,
    metadata: Metadata,
    files: Vec<SourceFile>,
    /// Sorted by name, names unique.
    tensors: Vec<TensorInfo>,
}

/// What a model says about itself, in the words of its format.
#[derive(Debug, Clone)]
#[allow(
    clippy::large_enum_variant,
    reason = "an open model has one; whether it is large hangs on features of serde_json"
)]
pub enum Metadata {
    Gguf(GgufMetadata),
    HuggingFace(HuggingFaceMetadata),
}

impl Checkpoint {
    /// Opens a `.gguf` file (any part of a split set), a `.safetensors` file with its `config.json` beside it, or a
    /// folder with either. Files are mapped, so they must not be cut short while the checkpoint lives.
    ///
    /// # Errors
    /// Says what is wrong with which file, and where in it.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn open(path: &std::path::Path) -> Result<Self, FormatError> {
        crate::disk::open(path)
    }

    /// Reads a GGUF file that is already in memory. `name` stands for it in messages.
    ///
    /// # Errors
    /// Says what is wrong and where; one part of a split set is an error, since the others are out of reach.
    pub fn from_gguf(name: &str, bytes: impl Into<Cow<'static, [u8]>>) -> Result<Self, FormatError> {
        let mut folder = HuggingFaceFiles::new("memory").with(name, bytes);
        gguf::load(&mut folder, name, name.to_owned())
    }

    /// Reads a Hugging Face model whose files are already in memory.
    ///
    /// # Errors
    /// As [`Self::open`] for a folder with these files.
    pub fn from_huggingface(mut files: HuggingFaceFiles) -> Result<Self, FormatError> {
        let source = files.source().to_owned();
        huggingface::load(&mut files, None, source)
    }

    pub(crate) fn new(source: String, metadata: Metadata, files: Vec<SourceFile>, tensors: Vec<TensorInfo>) -> Self {
        Self { source, metadata, files, tensors }
    }

    /// What the model says about itself.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Every tensor, sorted by name.
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = &TensorInfo> {
        self.tensors.iter()
    }

    /// The tensor of this name.
    pub fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        let idx = self.tensors.binary_search_by(|tensor| tensor.name.as_str().cmp(name)).ok()?;
        self.tensors.get(idx)
    }

    /// The path or name that messages call the model by.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// A tensor's bytes as stored, borrowed where the file is mapped or embedded.
    ///
    /// # Errors
    /// Reading fails, or the tensor is from another checkpoint.
    pub fn bytes(&self, tensor: &TensorInfo) -> Result<Cow<'_, [u8]>, FormatError> {
        self.file_of(tensor)?.read(tensor.place.range.clone())
    }

    /// The values of some rows, dequantised: `rows.len() * row_len` of them. A row is the innermost dimension, and
    /// rows are counted over the outer ones.
    ///
    /// # Errors
    /// Rows that the tensor does not have; otherwise as [`Self::bytes`].
    pub fn rows_f32(&self, tensor: &TensorInfo, rows: Range<usize>) -> Result<Vec<f32>, FormatError> {
        let bytes = self.rows(tensor, rows.clone())?;
        let mut values = vec![0.0; rows.len() * tensor.row_len()];
        codec::dequantize(tensor.dtype, &bytes, &mut values)?;
        Ok(values)
    }

    /// Some rows as stored.
    ///
    /// # Errors
    /// As [`Self::rows_f32`].
    pub fn rows(&self, tensor: &TensorInfo, rows: Range<usize>) -> Result<Cow<'_, [u8]>, FormatError> {
        if rows.start > rows.end || rows.end > tensor.n_rows() {
            return Err(FormatError::Rows { tensor: shown(&tensor.name), n_rows: tensor.n_rows(), rows });
        }
        let start = tensor.place.range.start + rows.start as u64 * tensor.row_bytes() as u64;
        let end = tensor.place.range.start + rows.end as u64 * tensor.row_bytes() as u64;
        self.file_of(tensor)?.read(start..end)
    }

    fn file_of(&self, tensor: &TensorInfo) -> Result<&SourceFile, FormatError> {
        self.files
            .get(tensor.place.file_idx)
            .filter(|file| tensor.place.range.end <= file.n_bytes())
            .ok_or_else(|| self.foreign(tensor))
    }

    fn foreign(&self, tensor: &TensorInfo) -> FormatError {
        FormatError::ForeignTensor { tensor: shown(&tensor.name), source_name: self.source.clone() }
    }
}

impl std::fmt::Debug for Checkpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Checkpoint").field("source", &self.source).field("n_tensors", &self.tensors.len()).finish()
    }
}

/// Sorts by name and refuses a name that appears twice.
pub(crate) fn sorted(mut tensors: Vec<TensorInfo>, files: &[SourceFile]) -> Result<Vec<TensorInfo>, FormatError> {
    tensors.sort_by(|a, b| a.name.cmp(&b.name).then(a.place.file_idx.cmp(&b.place.file_idx)));
    let twice = tensors.array_windows().find(|[a, b]| a.name == b.name);
    match twice {
        None => Ok(tensors),
        Some([a, b]) => Err(duplicate(a, b, files)),
    }
}

fn duplicate(a: &TensorInfo, b: &TensorInfo, files: &[SourceFile]) -> FormatError {
    let file_name = |tensor: &TensorInfo| files.get(tensor.place.file_idx).map(|file| file.name.clone());
    let other = (a.place.file_idx != b.place.file_idx).then(|| file_name(b)).flatten();
    FormatError::DuplicateTensor { file: file_name(a).unwrap_or_default(), tensor: shown(&a.name), other }
}

/// Sorts the tensors of one file by position and refuses two that share bytes.
pub(crate) fn check_overlap(tensors: &mut [TensorInfo], file: &str) -> Result<(), FormatError> {
    tensors.sort_by_key(|tensor| tensor.place.range.start);
    let overlap = tensors.array_windows().find(|[a, b]| b.place.range.start < a.place.range.end);
    match overlap {
        None => Ok(()),
        Some([a, b]) => Err(FormatError::Overlap {
            file: file.to_owned(),
            first: shown(&a.name),
            second: shown(&b.name),
            offset: b.place.range.start,
        }),
    }
}
