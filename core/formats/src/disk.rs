//! Models on disk: what a path means, and the folder around it.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::foreign::{Kind, has_pickle_ending, identify};
use crate::mmap::Mapped;
use crate::source::{Folder, SourceFile};
use crate::{Checkpoint, Foreign, FormatError, gguf, huggingface};

/// Opens what the path names.
pub(crate) fn open(path: &Path) -> Result<Checkpoint, FormatError> {
    let kind = fs::metadata(path).map_err(|error| io_error(path, error))?;
    if kind.is_dir() { open_folder(path) } else { open_file(path) }
}

fn open_file(path: &Path) -> Result<Checkpoint, FormatError> {
    let source = path.display().to_string();
    let file = map(path)?.ok_or_else(|| FormatError::NotFound { path: source.clone() })?;
    let kind = identify(&file)?;
    let mut folder = DiskFolder::of(path.parent().unwrap_or(Path::new("")));
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    match kind {
        Kind::Gguf => gguf::load(&mut folder, &name, source),
        Kind::Safetensors => huggingface::load(&mut folder, Some(&name), source),
    }
}

/// Safetensors where there are any, else the one GGUF model.
fn open_folder(path: &Path) -> Result<Checkpoint, FormatError> {
    let source = path.display().to_string();
    let mut folder = DiskFolder::of(path);
    let names = folder.names()?;
    if names.iter().any(|name| huggingface::is_weights(name)) {
        return huggingface::load(&mut folder, None, source);
    }
    if let Some(name) = single_gguf(&names, &source)? {
        return gguf::load(&mut folder, &name, source);
    }
    match names.iter().find(|name| has_pickle_ending(name)) {
        Some(pickle) => Err(FormatError::NotAModel { file: format!("{source}/{pickle}"), found: Foreign::Pickle }),
        None if names.iter().any(|name| name == "config.json") => Err(FormatError::NoWeights { folder: source }),
        None => Err(FormatError::MissingConfig { folder: source }),
    }
}

/// The folder's GGUF file; of a split set, its first part.
fn single_gguf(names: &[String], source: &str) -> Result<Option<String>, FormatError> {
    let is_model = |name: &&String| name.ends_with(".gguf") && !gguf::is_later_part(name);
    match names.iter().filter(is_model).collect::<Vec<_>>().as_slice() {
        [] => Ok(None),
        [name] => Ok(Some((*name).clone())),
        [first, second, ..] => {
            Err(FormatError::SeveralModels { folder: source.to_owned(), names: format!("{first}, {second}") })
        }
    }
}

/// A folder on disk.
pub(crate) struct DiskFolder {
    path: PathBuf,
    label: String,
}

impl DiskFolder {
    pub fn of(path: &Path) -> Self {
        let label = if path.as_os_str().is_empty() { ".".to_owned() } else { path.display().to_string() };
        Self { path: path.to_owned(), label }
    }
}

impl Folder for DiskFolder {
    fn label(&self) -> &str {
        &self.label
    }

    fn names(&self) -> Result<Vec<String>, FormatError> {
        let path = if self.path.as_os_str().is_empty() { Path::new(".") } else { &self.path };
        let entries = fs::read_dir(path).map_err(|error| io_error(path, error))?;
        let mut names: Vec<_> =
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        Ok(names)
    }

    fn take(&mut self, name: &str) -> Result<Option<SourceFile>, FormatError> {
        map(&self.path.join(name))
    }
}

/// Maps a file; `None` when there is none of this name.
fn map(path: &Path) -> Result<Option<SourceFile>, FormatError> {
    match fs::metadata(path) {
        Ok(kind) if !kind.is_file() => return Err(FormatError::NotAFile { path: path.display().to_string() }),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error(path, error)),
        Ok(_) => {}
    }
    let mapped = Mapped::open(path).map_err(|error| io_error(path, error))?;
    Ok(Some(SourceFile::new(path.display().to_string(), mapped)))
}

fn io_error(path: &Path, cause: std::io::Error) -> FormatError {
    let path = path.display().to_string();
    match cause.kind() {
        ErrorKind::NotFound => FormatError::NotFound { path },
        _ => FormatError::Io { file: path, cause },
    }
}
