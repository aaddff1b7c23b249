//! A file of zstd frames as one stream; a file may hold several, and frames that carry no data.

use std::io::{self, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

const FRAME: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Whether these bytes start a zstd frame, with data or without.
pub(super) fn is_frame(start: &[u8]) -> bool {
    let without_data = |magic: &[u8; 4]| matches!(magic, [0x50..=0x5f, 0x2a, 0x4d, 0x18]);
    start.first_chunk().is_some_and(|magic| *magic == FRAME || without_data(magic))
}

/// What the frames of a stream hold, one after the other.
pub(super) struct Frames<R> {
    source: R,
    decoder: FrameDecoder,
    inside: bool,
}

impl<R: io::BufRead> Frames<R> {
    pub fn new(source: R) -> Self {
        Self { source, decoder: FrameDecoder::new(), inside: false }
    }

    /// Enters the next frame with data; false at the end of the stream.
    fn enter(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                    io::copy(&mut (&mut self.source).take(u64::from(length)), &mut io::sink())?;
                }
                Err(error) => return Err(invalid(error)),
            }
        }
        Ok(false)
    }

    fn check_sum(&self) -> io::Result<()> {
        let written = self.decoder.get_checksum_from_data();
        if written.is_some() && written != self.decoder.get_calculated_checksum() {
            return Err(invalid("the checksum of a zstd frame is wrong"));
        }
        Ok(())
    }
}

impl<R: io::BufRead> Read for Frames<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.inside {
                self.inside = self.enter()?;
            }
            if !self.inside {
                return Ok(0);
            }
            let n_bytes = self.decoder.read(out)?;
            if n_bytes > 0 {
                return Ok(n_bytes);
            }
            if self.decoder.is_finished() {
                self.check_sum()?;
                self.inside = false;
            } else {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                self.decoder.decode_blocks(&mut self.source, one).map_err(invalid)?;
            }
        }
    }
}

fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
