//! The unfinished file on disk, and the note beside it that says what it is a part of.

use std::fs::{self, File};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use ureq::http::StatusCode;

use super::HubError;
use super::client::{Answer, text};

/// The unfinished file on disk; locked, so that two downloads never write to it.
pub(super) struct Part {
    path: PathBuf,
    file: File,
    pub(super) len: u64,
}

impl Part {
    pub(super) fn open(final_path: &Path) -> Result<Self, HubError> {
        let path = with_suffix(final_path, ".part");
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(|source| HubError::File { path: folder.to_owned(), source })?;
        let opened = File::options().read(true).append(true).create(true).open(&path);
        let file = opened.map_err(|source| HubError::File { path: path.clone(), source })?;
        match file.try_lock() {
            Err(fs::TryLockError::WouldBlock) => return Err(HubError::Busy { path }),
            // Folders without locks (some network drives) are used without.
            Ok(()) | Err(fs::TryLockError::Error(_)) => {}
        }
        let len = file.metadata().map_err(|source| HubError::File { path: path.clone(), source })?.len();
        Ok(Self { path, file, len })
    }

    /// Whether the answer's bytes belong right behind what is here.
    pub(super) fn continues_with(&self, answer: &Answer) -> bool {
        match answer.response.status() {
            StatusCode::OK => self.len == 0,
            StatusCode::PARTIAL_CONTENT => {
                let starts_here = text(answer.response.headers(), "content-range")
                    .is_some_and(|range| range.trim_start().starts_with(&format!("bytes {}-", self.len)));
                starts_here && self.len > 0 && answer.etag.is_some() && self.etag() == answer.etag
            }
            _ => false,
        }
    }

    pub(super) fn append(&mut self, bytes: &[u8], total: Option<u64>) -> Result<(), HubError> {
        let written = self.file.write_all(bytes);
        written.map_err(|source| self.write_error(source, total))?;
        self.len += bytes.len() as u64;
        Ok(())
    }

    fn write_error(&self, source: io::Error, total: Option<u64>) -> HubError {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                let missing = total.unwrap_or(self.len).saturating_sub(self.len);
                HubError::DiskFull { path: self.path.clone(), missing }
            }
            _ => self.error(source),
        }
    }

    pub(super) fn sha256(&mut self) -> Result<String, HubError> {
        let mut hasher = Sha256::new();
        self.file.rewind().map_err(|source| self.error(source))?;
        io::copy(&mut self.file, &mut hasher).map_err(|source| self.error(source))?;
        Ok(format!("{:x}", hasher.finalize()))
    }

    pub(super) fn clear(&mut self) -> Result<(), HubError> {
        self.file.set_len(0).map_err(|source| self.error(source))?;
        self.len = 0;
        self.set_etag(None)
    }

    pub(super) fn finish(self, final_path: &Path) -> Result<(), HubError> {
        self.file.sync_all().map_err(|source| self.error(source))?;
        fs::rename(&self.path, final_path).map_err(|source| self.error(source))?;
        self.set_etag(None)
    }

    fn etag(&self) -> Option<String> {
        fs::read_to_string(self.etag_path()).ok()
    }

    pub(super) fn set_etag(&self, etag: Option<&str>) -> Result<(), HubError> {
        let path = self.etag_path();
        let done = match etag {
            Some(etag) => fs::write(&path, etag),
            None if path.exists() => fs::remove_file(&path),
            None => Ok(()),
        };
        done.map_err(|source| HubError::File { path, source })
    }

    fn etag_path(&self) -> PathBuf {
        with_suffix(&self.path, ".etag")
    }

    fn error(&self, source: io::Error) -> HubError {
        HubError::File { path: self.path.clone(), source }
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
