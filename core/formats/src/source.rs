//! Where bytes come from: a mapped file, an embedded slice, a download.
//!
//! Readers see only [`ByteSource`], so a source that fetches ranges needs no change in them. [`Folder`] is the same
//! seam one level up: several files under one roof, on disk or in memory.

use std::borrow::Cow;
use std::io;
use std::ops::Range;

use crate::FormatError;

/// Bytes of known length that can be read in ranges.
pub(crate) trait ByteSource: Send + Sync {
    /// Length in bytes.
    fn n_bytes(&self) -> u64;

    /// The bytes of `range`, borrowed where the source holds them in memory.
    ///
    /// # Errors
    /// Fails when `range` is not inside the source, or when fetching it fails.
    fn read(&self, range: Range<u64>) -> io::Result<Cow<'_, [u8]>>;
}

impl ByteSource for Cow<'static, [u8]> {
    fn n_bytes(&self) -> u64 {
        self.len() as u64
    }

    fn read(&self, range: Range<u64>) -> io::Result<Cow<'_, [u8]>> {
        slice(self, range)
    }
}

/// The part of `bytes` that `range` names.
pub(crate) fn slice(bytes: &[u8], range: Range<u64>) -> io::Result<Cow<'_, [u8]>> {
    let start = usize::try_from(range.start).ok();
    let end = usize::try_from(range.end).ok();
    start
        .zip(end)
        .and_then(|(start, end)| bytes.get(start..end))
        .map(Cow::Borrowed)
        .ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

/// A source with the name that messages call it by.
pub(crate) struct SourceFile {
    pub name: String,
    pub source: Box<dyn ByteSource>,
}

impl SourceFile {
    pub fn new(name: impl Into<String>, source: impl ByteSource + 'static) -> Self {
        Self { name: name.into(), source: Box::new(source) }
    }

    pub fn n_bytes(&self) -> u64 {
        self.source.n_bytes()
    }

    /// The bytes of `range`; a failure names the file.
    pub fn read(&self, range: Range<u64>) -> Result<Cow<'_, [u8]>, FormatError> {
        self.source.read(range).map_err(|cause| FormatError::Io { file: self.name.clone(), cause })
    }

    /// The first bytes, at most `n`.
    pub fn head(&self, n: u64) -> Result<Cow<'_, [u8]>, FormatError> {
        self.read(0..n.min(self.n_bytes()))
    }

    /// Everything, refused beyond `limit` bytes.
    pub fn read_all(&self, limit: u64) -> Result<Cow<'_, [u8]>, FormatError> {
        let n_bytes = self.n_bytes();
        if n_bytes > limit {
            return Err(FormatError::TooLarge { file: self.name.clone(), n_bytes, limit });
        }
        self.read(0..n_bytes)
    }
}

/// Files under one roof.
pub(crate) trait Folder {
    /// What messages call the folder.
    fn label(&self) -> &str;

    /// The names of its files, sorted.
    fn names(&self) -> Result<Vec<String>, FormatError>;

    /// Takes the file of this name out of the folder (an in-memory folder gives its bytes away), `None` if absent.
    fn take(&mut self, name: &str) -> Result<Option<SourceFile>, FormatError>;
}
