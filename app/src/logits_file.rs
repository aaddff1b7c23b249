//! A safetensors file with one tensor, `logits` f32 `[T, V]`, written row by row as rows are computed.
//!
//! The size is known before the first row, so the header goes first and nothing is kept in memory. The file is written beside its place and renamed.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::json;
use tempfile::NamedTempFile;

/// A file on its way.
pub(crate) struct LogitsFile {
    path: PathBuf,
    out: BufWriter<NamedTempFile>,
}

impl LogitsFile {
    /// Begins a file of `n_tokens` rows of `vocab_size` values.
    ///
    /// # Errors
    /// The folder cannot be written to.
    pub(crate) fn create(path: &Path, n_tokens: usize, vocab_size: usize) -> anyhow::Result<Self> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let file = NamedTempFile::new_in(folder).with_context(|| folder.display().to_string())?;
        let mut out = BufWriter::new(file);
        write_header(&mut out, n_tokens, vocab_size).with_context(|| path.display().to_string())?;
        Ok(Self { path: path.to_owned(), out })
    }

    /// Appends one row `[V]`.
    ///
    /// # Errors
    /// The disk refuses.
    pub(crate) fn push(&mut self, row: &[f32]) -> anyhow::Result<()> {
        let mut write = || row.iter().try_for_each(|value| self.out.write_all(&value.to_le_bytes()));
        write().with_context(|| self.path.display().to_string())
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// The disk refuses.
    pub(crate) fn finish(self) -> anyhow::Result<()> {
        let named = || self.path.display().to_string();
        let file = self.out.into_inner().map_err(std::io::IntoInnerError::into_error).with_context(named)?;
        file.as_file().sync_all().with_context(named)?;
        file.persist(&self.path).map_err(|error| error.error).with_context(named)?;
        Ok(())
    }
}

/// Eight bytes of length, then JSON padded with spaces so that the values are aligned.
fn write_header(out: &mut impl Write, n_tokens: usize, vocab_size: usize) -> std::io::Result<()> {
    let n_bytes = n_tokens as u64 * vocab_size as u64 * 4;
    let mut header =
        json!({ "logits": { "dtype": "F32", "shape": [n_tokens, vocab_size], "data_offsets": [0, n_bytes] } })
            .to_string();
    header.extend(std::iter::repeat_n(' ', header.len().next_multiple_of(8) - header.len()));
    out.write_all(&(header.len() as u64).to_le_bytes())?;
    out.write_all(header.as_bytes())
}

#[cfg(test)]
mod tests {
    use safetensors::SafeTensors;

    use super::*;

    #[test]
    fn the_library_reads_what_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("logits.safetensors");
        let mut file = LogitsFile::create(&path, 2, 3).unwrap();
        file.push(&[1.0, 2.0, 3.0]).unwrap();
        assert!(!path.exists(), "it has no name before it is whole");
        file.push(&[4.0, 5.0, f32::MIN]).unwrap();
        file.finish().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let tensors = SafeTensors::deserialize(&bytes).unwrap();
        let logits = tensors.tensor("logits").unwrap();
        assert_eq!((logits.shape(), logits.dtype()), ([2, 3].as_slice(), safetensors::Dtype::F32));
        assert_eq!(logits.data()[20..], f32::MIN.to_le_bytes());
    }
}
