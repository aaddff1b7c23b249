//! Documents from files of rows, by number.
//!
//! Opening reads every row once: it is parsed, tokenized and spooled, and what cannot be used is counted. Afterwards any
//! document can be read in any order, and memory holds sixteen bytes for each.

mod read;
mod split;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use samara_text::{ChatTemplate, RenderOptions, Tokenizer};
use serde::{Deserialize, Serialize};

use crate::document::{Batch, Document};
use crate::error::DataError;
use crate::report::Report;
use crate::spool::{MAX_VOCAB_SIZE, Spool};

pub use split::Validation;

/// What becomes of a row that cannot be used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnBadRow {
    /// It is counted and left out.
    #[default]
    Skip,
    /// It is an error that names the line.
    Fail,
}

/// Which tokens of prompts and conversations are to be predicted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrainOn {
    /// What the assistant says, and completions.
    #[default]
    Assistant,
    /// Everything.
    All,
}

/// How rows become documents.
#[derive(Debug, Clone)]
pub struct DataOptions {
    pub on_bad_row: OnBadRow,
    pub train_on: TrainOn,
    /// The longest that a document may be, in tokens; the end of a longer one is cut off. By default 1.5 times the mean, rounded up.
    pub max_length: Option<usize>,
    /// Tokens that a batch has room for; no document may be longer, whatever `max_length` says.
    pub tokens_per_batch: Option<usize>,
    /// The longest that a line may be, in bytes.
    pub max_line_bytes: usize,
    /// What follows a text and a completion: the end-of-sequence token, or nothing.
    pub end_ids: Vec<u32>,
    /// Token ids lie below this.
    pub vocab_size: usize,
    /// What every conversation is rendered with. A row's own tools come after these.
    pub render: RenderOptions,
    /// Where the temporary file of token ids lies; by default where the system keeps such files.
    pub spool_folder: Option<PathBuf>,
}

impl DataOptions {
    /// The defaults, for a model with so many tokens.
    pub fn new(vocab_size: usize) -> Self {
        Self {
            on_bad_row: OnBadRow::default(),
            train_on: TrainOn::default(),
            max_length: None,
            tokens_per_batch: None,
            max_line_bytes: 64 << 20,
            end_ids: Vec::new(),
            vocab_size,
            render: RenderOptions::default(),
            spool_folder: None,
        }
    }

    fn check(&self) -> Result<(), DataError> {
        in_range("vocab_size", self.vocab_size, 1, MAX_VOCAB_SIZE)?;
        in_range("max_line_bytes", self.max_line_bytes, 1, usize::MAX)?;
        // One token predicts nothing.
        in_range("max_length", self.max_length.unwrap_or(2), 2, u32::MAX as usize)?;
        in_range("tokens_per_batch", self.tokens_per_batch.unwrap_or(2), 2, u32::MAX as usize)
    }
}

fn in_range(option: &'static str, found: usize, least: usize, most: usize) -> Result<(), DataError> {
    if (least..=most).contains(&found) {
        return Ok(());
    }
    let expected = if found < least { format!("at least {least}") } else { format!("at most {most}") };
    Err(DataError::Option { option, found: found.to_string(), expected })
}

/// Documents by number, from 0.
#[derive(Debug, Clone)]
pub struct Dataset {
    spool: Arc<Spool>,
    index: Vec<Entry>,
    max_length: u32,
    report: Report,
}

/// Where a document is spooled. Its length is the one before truncation.
#[derive(Debug, Clone, Copy)]
struct Entry {
    place: u64,
    n_tokens: u32,
}

impl Dataset {
    /// The documents of these files, in the order of files and lines. Files may be compressed by gzip or zstd.
    ///
    /// # Errors
    /// A file cannot be read, no row is left, a row cannot be used and `on_bad_row` is `Fail`, an option is out of range,
    /// or there is no room for the temporary file.
    pub fn open<P: AsRef<Path>>(
        paths: &[P],
        tokenizer: &Tokenizer,
        template: Option<&ChatTemplate>,
        options: &DataOptions,
    ) -> Result<Self, DataError> {
        options.check()?;
        read::dataset(paths, tokenizer, template, options)
    }

    pub fn n_documents(&self) -> usize {
        self.index.len()
    }

    /// Tokens of all documents, after truncation.
    pub fn n_tokens(&self) -> u64 {
        self.lengths().iter().map(|length| u64::from(*length)).sum()
    }

    /// Tokens of each document, after truncation.
    pub fn lengths(&self) -> Vec<u32> {
        self.index.iter().map(|entry| entry.n_tokens.min(self.max_length)).collect()
    }

    /// The longest that a document may be, in tokens: as set, or as follows from the mean.
    pub fn max_length(&self) -> usize {
        self.max_length as usize
    }

    /// SHA-256 of the tokens of all documents before truncation and splitting, and of which of them are to be predicted.
    /// Equal digests, options and seeds give equal batches, so a run that goes on can see whether its data are the same.
    pub fn digest(&self) -> &str {
        self.spool.digest()
    }

    /// What was read and what fell out. Both parts of a split have the report of the whole.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// A document.
    ///
    /// # Errors
    /// There is none of this number, or the temporary file cannot be read.
    pub fn document(&self, document_idx: usize) -> Result<Document, DataError> {
        let n_documents = self.index.len();
        let entry = self.index.get(document_idx).ok_or(DataError::NoDocument { document_idx, n_documents })?;
        self.spool.read(entry.place, entry.n_tokens.min(self.max_length))
    }

    /// The batch of these documents.
    ///
    /// # Errors
    /// As [`Self::document`].
    pub fn batch(&self, document_idxs: &[u32]) -> Result<Batch, DataError> {
        let documents = document_idxs.iter().map(|document_idx| self.document(*document_idx as usize));
        Ok(Batch::from_documents(&documents.collect::<Result<Vec<_>, _>>()?))
    }
}
