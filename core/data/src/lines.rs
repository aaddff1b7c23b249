//! The lines of a file, plain or compressed by gzip or zstd, none of them longer in memory than a limit.
//!
//! How a file is compressed is told by its first bytes, not by its name. A byte order mark at the start and the carriage
//! return of Windows line ends are no part of a line.

mod zstd;

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

const GZIP: &[u8] = &[0x1f, 0x8b];
const BYTE_ORDER_MARK: &[u8] = &[0xef, 0xbb, 0xbf];

/// One line after another, by number.
pub(crate) struct Lines {
    reader: Box<dyn BufRead>,
    line: Vec<u8>,
    number: u64,
    max_line_bytes: usize,
}

/// A line without its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    Bytes(&'a [u8]),
    /// It has this many bytes, which is more than the limit.
    TooLong(u64),
}

impl Lines {
    pub fn open(path: &Path, max_line_bytes: usize) -> io::Result<Self> {
        Self::new(BufReader::new(File::open(path)?), max_line_bytes)
    }

    pub fn new(reader: impl BufRead + 'static, max_line_bytes: usize) -> io::Result<Self> {
        let mut reader = decompressed(reader)?;
        if reader.fill_buf()?.starts_with(BYTE_ORDER_MARK) {
            reader.consume(BYTE_ORDER_MARK.len());
        }
        Ok(Self { reader, line: Vec::new(), number: 0, max_line_bytes })
    }

    /// The number of the last line that was read, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The next line; none after the last.
    pub fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.line.clear();
        let mut n_bytes = 0;
        loop {
            let buffer = self.reader.fill_buf()?;
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let piece = buffer.get(..end.unwrap_or(buffer.len())).unwrap_or_default();
            let (n_piece, at_end) = (piece.len(), buffer.is_empty());
            let room = self.max_line_bytes.saturating_add(1).saturating_sub(self.line.len());
            self.line.extend(piece.iter().take(room));
            n_bytes += n_piece as u64;
            self.reader.consume(n_piece + usize::from(end.is_some()));
            match end {
                None if at_end && n_bytes == 0 => return Ok(None),
                None if !at_end => {}
                _ => break,
            }
        }
        self.number += 1;
        Ok(Some(self.bounded(n_bytes)))
    }

    fn bounded(&self, n_bytes: u64) -> Line<'_> {
        match self.line.strip_suffix(b"\r").unwrap_or(&self.line) {
            line if line.len() <= self.max_line_bytes && n_bytes == self.line.len() as u64 => Line::Bytes(line),
            _ => Line::TooLong(n_bytes),
        }
    }
}

fn decompressed(mut reader: impl BufRead + 'static) -> io::Result<Box<dyn BufRead>> {
    // A file of a single byte is not compressed, and what is not a file gives its first bytes together.
    let start = reader.fill_buf()?;
    Ok(if start.starts_with(GZIP) {
        Box::new(BufReader::new(MultiGzDecoder::new(reader)))
    } else if zstd::is_frame(start) {
        Box::new(BufReader::new(zstd::Frames::new(reader)))
    } else {
        Box::new(reader)
    })
}
