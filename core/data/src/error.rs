//! What can go wrong between a file of rows and a batch.

use std::path::PathBuf;

use crate::report::{BadRow, Place, Report};

/// Why there is no data.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// A file cannot be opened.
    #[error("{}: cannot open: {source}", path.display())]
    Open { path: PathBuf, source: std::io::Error },
    /// A file ends early, is not what it is compressed as, or the disk fails.
    #[error("{}: cannot read after line {line}: {source}", path.display())]
    Read { path: PathBuf, line: u64, source: std::io::Error },
    /// A row cannot be used, and rows that cannot are to be refused.
    #[error("{place}: {kind}: {}", place.reason)]
    Row { place: Place, kind: BadRow },
    /// Every row fell out.
    #[error("no row is left of {} lines: {}", report.n_lines, report.reasons())]
    NothingLeft { report: Box<Report> },
    /// Token ids cannot be kept in, or read back from, the temporary file.
    #[error("temporary file of token ids: cannot {action}: {source}")]
    Spool { action: &'static str, source: std::io::Error },
    /// An option has a value that cannot be meant.
    #[error("{option} is {found}, expected {expected}")]
    Option { option: &'static str, found: String, expected: String },
    /// There is no such document.
    #[error("document {document_idx} of {n_documents}: there is none")]
    NoDocument { document_idx: usize, n_documents: usize },
    /// A document does not fit into a batch.
    #[error("document {document_idx} has {n_tokens} tokens, more than the {tokens_per_batch} of a batch")]
    TooLong { document_idx: usize, n_tokens: usize, tokens_per_batch: usize },
    /// A cursor that belongs to other data or other options.
    #[error(
        "the cursor is at batch {batch_idx} of epoch {epoch}, which has {n_batches} batches; was the data changed?"
    )]
    Cursor { epoch: u64, batch_idx: u64, n_batches: u64 },
    /// Too few documents for two sets.
    #[error("{n_documents} documents cannot give {n_validation} for validation and leave one for training")]
    Split { n_documents: usize, n_validation: usize },
}
