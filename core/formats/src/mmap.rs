//! Maps a file into memory: the only unsafe code of this crate.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;

use crate::source::{ByteSource, slice};

/// A file mapped for reading.
pub(crate) struct Mapped(memmap2::Mmap);

impl Mapped {
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        map(&file).map(Self)
    }
}

impl ByteSource for Mapped {
    fn n_bytes(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&self, range: Range<u64>) -> io::Result<Cow<'_, [u8]>> {
        slice(&self.0, range)
    }
}

#[allow(unsafe_code, reason = "a mapping is memory that another process could change; nothing safe offers one")]
fn map(file: &File) -> io::Result<memmap2::Mmap> {
    // SAFETY: The map is private and read-only, and its bytes are only ever read as plain numbers or checked again as
    // UTF-8, so a file that changes underneath gives wrong values, not an invalid type. A file that is cut short
    // underneath stops the process with a signal; `Checkpoint::open` says so.
    unsafe { memmap2::Mmap::map(file) }
}
