//! New files: written beside their place, made durable, then renamed, so that a kill or a full disk leaves either
//! the old file or the whole new one.
//!
//! The unfinished file is `NAME.part`, always the same, so what a kill leaves behind is overwritten by the next try.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::FormatError;

/// A file that does not exist under its name before [`Self::finish`].
pub(crate) struct NewFile {
    path: PathBuf,
    /// `None` once renamed.
    part: Option<PathBuf>,
    out: BufWriter<File>,
}

impl NewFile {
    pub fn create(path: &Path) -> Result<Self, FormatError> {
        let part = beside(path, ".part");
        let file = File::create(&part).map_err(|cause| error(&part, cause))?;
        Ok(Self { path: path.to_owned(), part: Some(part), out: BufWriter::with_capacity(1 << 20, file) })
    }

    pub fn put(&mut self, bytes: &[u8]) -> Result<(), FormatError> {
        self.out.write_all(bytes).map_err(|cause| error(&self.path, cause))
    }

    /// Puts the file in its place.
    pub fn finish(mut self) -> Result<(), FormatError> {
        self.out.flush().and_then(|()| self.out.get_ref().sync_all()).map_err(|cause| error(&self.path, cause))?;
        if let Some(part) = &self.part {
            rename(part, &self.path)?;
        }
        self.part = None;
        sync_folder(self.path.parent())
    }
}

/// What is not finished leaves nothing behind.
impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            // The caller hears of the failure that led here; a file that cannot be removed is overwritten later.
            let _ = fs::remove_file(part);
        }
    }
}

/// A folder of files that does not exist under its name before [`Self::finish`].
///
/// It grows as `NAME.part`, which a kill leaves behind and the next try overwrites.
pub struct NewFolder {
    path: PathBuf,
    /// `None` once moved.
    part: Option<PathBuf>,
}

impl NewFolder {
    /// Begins the folder `path`.
    ///
    /// # Errors
    /// The place cannot be written to.
    pub fn create(path: &Path) -> Result<Self, FormatError> {
        let part = beside(path, ".part");
        create_folder(&part)?;
        Ok(Self { path: path.to_owned(), part: Some(part) })
    }

    /// Where its files are written until then.
    pub fn path(&self) -> &Path {
        self.part.as_deref().unwrap_or(&self.path)
    }

    /// Puts the folder in its place. Where there is one already, its files of the same names are replaced one by one and
    /// all others stay.
    ///
    /// # Errors
    /// A file cannot be moved.
    pub fn finish(mut self) -> Result<(), FormatError> {
        let Some(part) = self.part.clone() else { return Ok(()) };
        if self.path.is_dir() {
            for entry in fs::read_dir(&part).map_err(|cause| error(&part, cause))? {
                let entry = entry.map_err(|cause| error(&part, cause))?;
                rename(&entry.path(), &self.path.join(entry.file_name()))?;
            }
            sync_folder(Some(&self.path))?;
        } else {
            rename(&part, &self.path)?;
            self.part = None;
        }
        sync_folder(self.path.parent())
    }
}

/// What is not finished leaves nothing behind.
impl Drop for NewFolder {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            // As for a file: the caller hears of the failure that led here.
            let _ = fs::remove_dir_all(part);
        }
    }
}

/// Writes a whole file at once; it appears under its name when it is whole.
///
/// # Errors
/// The place cannot be written to.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), FormatError> {
    let mut file = NewFile::create(path)?;
    file.put(bytes)?;
    file.finish()
}

pub(crate) fn create_folder(path: &Path) -> Result<(), FormatError> {
    fs::create_dir_all(path).map_err(|cause| error(path, cause))
}

pub(crate) fn rename(from: &Path, to: &Path) -> Result<(), FormatError> {
    fs::rename(from, to).map_err(|cause| error(to, cause))
}

pub(crate) fn remove(path: &Path) -> Result<(), FormatError> {
    fs::remove_file(path).map_err(|cause| error(path, cause))
}

/// Makes renames in a folder durable. Only Unix opens folders; elsewhere the file system sees to it.
pub(crate) fn sync_folder(path: Option<&Path>) -> Result<(), FormatError> {
    let path = path.filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if cfg!(unix) {
        File::open(path).and_then(|folder| folder.sync_all()).map_err(|cause| error(path, cause))?;
    }
    Ok(())
}

/// The path with more at the end of its name.
fn beside(path: &Path, ending: &str) -> PathBuf {
    // A path that ends in a separator has its name before that.
    let mut name = path.components().as_path().as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

fn error(path: &Path, cause: io::Error) -> FormatError {
    FormatError::Io { file: path.display().to_string(), cause }
}
