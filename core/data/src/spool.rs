//! Token ids in an unnamed temporary file, so that memory holds one document at a time however many there are.
//!
//! A token is four bytes: its id, and in the highest bit whether it is to be predicted. The system removes the file
//! when the process ends, however it ends.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use sha2::{Digest, Sha256};

use crate::document::Document;
use crate::error::DataError;

const TOKEN_BYTES: u64 = 4;
const TRAINED: u32 = 1 << 31;

/// Ids lie below this, so that one bit is left.
pub(crate) const MAX_VOCAB_SIZE: usize = TRAINED as usize;

/// A file that is being filled.
pub(crate) struct SpoolWriter {
    file: BufWriter<File>,
    digest: Sha256,
    n_tokens: u64,
}

impl SpoolWriter {
    /// An empty file in this folder, or where the system keeps temporary files.
    pub fn new(folder: Option<&Path>) -> Result<Self, DataError> {
        let file = folder.map_or_else(tempfile::tempfile, tempfile::tempfile_in).map_err(failed("create"))?;
        Ok(Self { file: BufWriter::new(file), digest: Sha256::new(), n_tokens: 0 })
    }

    /// Appends a document and gives its place, counted in tokens.
    pub fn push(&mut self, document: &Document) -> Result<u64, DataError> {
        let place = self.n_tokens;
        self.digest.update((document.ids.len() as u64).to_le_bytes());
        for (id, trained) in document.ids.iter().zip(&document.trained) {
            let word = if *trained { id | TRAINED } else { *id };
            self.digest.update(word.to_le_bytes());
            self.file.write_all(&word.to_le_bytes()).map_err(failed("write"))?;
            self.n_tokens += 1;
        }
        Ok(place)
    }

    pub fn finish(self) -> Result<Spool, DataError> {
        let file = self.file.into_inner().map_err(|error| failed("write")(error.into_error()))?;
        let digest = self.digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Spool { file: Mutex::new(file), digest })
    }
}

/// A file that is read.
#[derive(Debug)]
pub(crate) struct Spool {
    file: Mutex<File>,
    digest: String,
}

impl Spool {
    /// SHA-256 of all documents, in hexadecimal digits.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The `n_tokens` tokens from this place on.
    pub fn read(&self, place: u64, n_tokens: u32) -> Result<Document, DataError> {
        let mut bytes = vec![0; (u64::from(n_tokens) * TOKEN_BYTES) as usize];
        {
            // A thread that panics between seek and read leaves nothing behind that the next seek does not mend.
            let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
            file.seek(SeekFrom::Start(place * TOKEN_BYTES)).map_err(failed("read"))?;
            file.read_exact(&mut bytes).map_err(failed("read"))?;
        }
        let (words, _) = bytes.as_chunks();
        let words = words.iter().map(|word| u32::from_le_bytes(*word));
        let (ids, trained) = words.map(|word| (word & !TRAINED, word & TRAINED != 0)).unzip();
        Ok(Document { ids, trained })
    }
}

fn failed(action: &'static str) -> impl Fn(io::Error) -> DataError {
    move |source| DataError::Spool { action, source }
}
