//! A position in a GGUF file that only moves over bytes that exist.

use std::borrow::Cow;

use crate::FormatError;
use crate::source::SourceFile;

/// Reads little-endian fields one after the other.
pub(super) struct Cursor<'a> {
    pub file: &'a SourceFile,
    pub offset: u64,
}

impl<'a> Cursor<'a> {
    pub fn new(file: &'a SourceFile) -> Self {
        Self { file, offset: 0 }
    }

    /// The next `n` bytes. `what` says what they are, for the message when the file ends first.
    pub fn take(&mut self, n: u64, what: &str) -> Result<Cow<'a, [u8]>, FormatError> {
        if n > self.n_left() {
            return Err(self.truncated(n, what));
        }
        let start = self.offset;
        self.offset += n;
        self.file.read(start..self.offset)
    }

    pub fn u8(&mut self, what: &str) -> Result<u8, FormatError> {
        self.array(what).map(u8::from_le_bytes)
    }

    pub fn u32(&mut self, what: &str) -> Result<u32, FormatError> {
        self.array(what).map(u32::from_le_bytes)
    }

    pub fn u64(&mut self, what: &str) -> Result<u64, FormatError> {
        self.array(what).map(u64::from_le_bytes)
    }

    /// `N` bytes by value.
    pub fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], FormatError> {
        let bytes = self.take(N as u64, what)?;
        <[u8; N]>::try_from(&*bytes).map_err(|_| self.truncated(N as u64, what))
    }

    /// A count of things that take at least `min_bytes` each, refused when the rest of the file cannot hold them.
    pub fn count(&mut self, what: &str, min_bytes: u64) -> Result<usize, FormatError> {
        let offset = self.offset;
        let count = self.u64(what)?;
        let limit = self.n_left() / min_bytes;
        match usize::try_from(count) {
            Ok(count) if count as u64 <= limit => Ok(count),
            _ => Err(FormatError::Count { file: self.name(), what: what.into(), offset, count, limit }),
        }
    }

    /// A string: its length, then its UTF-8 bytes.
    pub fn string(&mut self, what: &str) -> Result<String, FormatError> {
        let n = self.u64(what)?;
        let offset = self.offset;
        let bytes = self.take(n, what)?;
        match str::from_utf8(&bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(error) => Err(FormatError::Utf8 {
                file: self.name(),
                what: what.into(),
                offset: offset + error.valid_up_to() as u64,
            }),
        }
    }

    /// `n` numbers of `N` bytes each.
    pub fn numbers<T, const N: usize>(
        &mut self,
        n: usize,
        what: &str,
        from: fn([u8; N]) -> T,
    ) -> Result<Vec<T>, FormatError> {
        let n_bytes = (n as u64).saturating_mul(N as u64);
        let bytes = self.take(n_bytes, what)?;
        Ok(bytes.as_chunks::<N>().0.iter().map(|chunk| from(*chunk)).collect())
    }

    pub fn name(&self) -> String {
        self.file.name.clone()
    }

    fn n_left(&self) -> u64 {
        self.file.n_bytes() - self.offset
    }

    fn truncated(&self, needed: u64, what: &str) -> FormatError {
        FormatError::Truncated {
            file: self.name(),
            what: what.into(),
            offset: self.offset,
            needed,
            left: self.n_left(),
        }
    }
}
