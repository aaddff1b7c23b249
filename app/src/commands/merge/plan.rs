//! What a merge will write, decided and checked before anything is.

use std::fs;
use std::path::Path;

use anyhow::bail;
use clap::ValueEnum;
use samara_chat::Source;
use samara_formats::{Checkpoint, DType, FormatError, Metadata, NewTensor, codec, gguf};
use serde::Serialize;

use crate::output;

/// `--dtype`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum DtypeArg {
    /// Each tensor as it is
    Source,
    F32,
    F16,
    Bf16,
    /// 8.5 bits a weight; GGUF only
    #[value(name = "q8_0")]
    #[serde(rename = "q8_0")]
    Q8_0,
}

/// The tensors of the new model.
pub(super) struct NewModel {
    pub(super) format: &'static str,
    pub(super) tensors: Vec<NewTensor>,
}

impl DtypeArg {
    /// The one type; `None` leaves each tensor its own.
    pub(super) fn kind(self) -> Option<DType> {
        match self {
            Self::Source => None,
            Self::F32 => Some(DType::F32),
            Self::F16 => Some(DType::F16),
            Self::Bf16 => Some(DType::BF16),
            Self::Q8_0 => Some(DType::Q8_0),
        }
    }
}

impl NewModel {
    /// Every tensor of the checkpoint with its new type.
    ///
    /// # Errors
    /// The type does not exist in this kind of file, or the source's own cannot be written.
    pub(super) fn new(checkpoint: &Checkpoint, dtype: DtypeArg) -> anyhow::Result<Self> {
        let is_gguf = matches!(checkpoint.metadata(), Metadata::Gguf(_));
        if dtype == DtypeArg::Q8_0 && !is_gguf {
            bail!("{}: safetensors hold no q8_0; take --dtype f32, f16 or bf16", checkpoint.source());
        }
        let of_kind = |tensor: &NewTensor, kind| match is_gguf {
            true => gguf::merged_dtype(&tensor.name, &tensor.shape, kind),
            false => kind,
        };
        let tensors = checkpoint.tensors().map(|info| {
            let tensor = NewTensor::from(info);
            let dtype = dtype.kind().map_or(tensor.dtype, |kind| of_kind(&tensor, kind));
            NewTensor { dtype, ..tensor }
        });
        let tensors: Vec<_> = tensors.collect();
        if let Some(tensor) = tensors.iter().find(|tensor| !codec::can_encode(tensor.dtype)) {
            bail!(
                "{}: {} is {}, which is read but not written; take --dtype f16, bf16 or q8_0",
                checkpoint.source(),
                tensor.name,
                tensor.dtype
            );
        }
        Ok(Self { format: if is_gguf { "GGUF" } else { "safetensors" }, tensors })
    }

    /// Bytes of all tensors in the new file.
    pub(super) fn n_bytes(&self) -> u64 {
        self.tensors.iter().map(|tensor| bytes_of(tensor, tensor.n_rows())).sum()
    }
}

/// Bytes of some rows of a tensor in the new file.
pub(super) fn bytes_of(tensor: &NewTensor, n_rows: usize) -> u64 {
    (n_rows * (tensor.row_len() / tensor.dtype.block_len()) * tensor.dtype.block_bytes()) as u64
}

/// Refuses a place of the wrong kind, one where something is, and always the model's own.
///
/// # Errors
/// Says which.
pub(super) fn check_output(source: &Source, checkpoint: &Checkpoint, to: &Path, force: bool) -> anyhow::Result<()> {
    let shown = to.display();
    let is_gguf = matches!(checkpoint.metadata(), Metadata::Gguf(_));
    let ends_gguf = to.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gguf"));
    match (is_gguf, ends_gguf) {
        (true, false) => bail!("{shown}: the model is a GGUF, so --output must be a file whose name ends in .gguf"),
        (false, true) => bail!("{shown}: the model is in safetensors, so --output must be a folder"),
        (true, true) if to.is_dir() => bail!("{shown}: a folder is there; --output must be a file"),
        (false, false) if to.is_file() => bail!("{shown}: a file is there; --output must be a folder"),
        _ => {}
    }
    if is_own_place(source, is_gguf, to) {
        return Err(FormatError::OverSource { path: shown.to_string() }.into());
    }
    output::check_free(to, force)
}

/// Whether the model's own file lies there, or its folder does.
fn is_own_place(source: &Source, is_gguf: bool, to: &Path) -> bool {
    let Source::Path(path) = source else { return false };
    let (Ok(own), Ok(to)) = (fs::canonicalize(path), fs::canonicalize(to)) else { return false };
    let is_beside = |folder: &Path, file: &Path| file.parent() == Some(folder);
    to == own || if is_gguf { is_beside(&own, &to) } else { is_beside(&to, &own) }
}
