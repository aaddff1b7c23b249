//! Reads files of rows into a dataset and counts what falls out.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use samara_text::{ChatTemplate, Tokenizer};

use super::{DataOptions, Dataset, Entry, OnBadRow};
use crate::encode::Encoder;
use crate::error::DataError;
use crate::lines::{Line, Lines};
use crate::report::{BadRow, Place, Report};
use crate::row::{Fault, Row};
use crate::spool::SpoolWriter;

pub(super) fn dataset<P: AsRef<Path>>(
    paths: &[P],
    tokenizer: &Tokenizer,
    template: Option<&ChatTemplate>,
    options: &DataOptions,
) -> Result<Dataset, DataError> {
    let mut reader = Reader {
        encoder: Encoder { tokenizer, template, options },
        paths: paths.iter().map(|path| path.as_ref().to_owned()).collect(),
        spool: SpoolWriter::new(options.spool_folder.as_deref())?,
        rows: Vec::new(),
        report: Report::default(),
    };
    for path_idx in 0..paths.len() {
        reader.read(path_idx)?;
    }
    reader.finish()
}

struct Reader<'a> {
    encoder: Encoder<'a>,
    paths: Vec<PathBuf>,
    spool: SpoolWriter,
    rows: Vec<Spooled>,
    report: Report,
}

/// A document and what must be known of it until the longest length is.
struct Spooled {
    entry: Entry,
    /// The first token that is to be predicted.
    first_trained: u32,
    path_idx: u32,
    line: u64,
}

impl Reader<'_> {
    fn read(&mut self, path_idx: usize) -> Result<(), DataError> {
        let path = self.paths.get(path_idx).cloned().unwrap_or_default();
        let max_line_bytes = self.encoder.options.max_line_bytes;
        let mut lines =
            Lines::open(&path, max_line_bytes).map_err(|source| DataError::Open { path: path.clone(), source })?;
        loop {
            let line = lines.number();
            let failed = |source| DataError::Read { path: path.clone(), line, source };
            let Some(bytes) = lines.next().map_err(failed)? else { return Ok(()) };
            self.report.n_lines += 1;
            match document(&self.encoder, bytes) {
                Ok((document, first_trained)) => {
                    let n_tokens = u32::try_from(document.ids.len()).unwrap_or(u32::MAX);
                    let entry = Entry { place: self.spool.push(&document)?, n_tokens };
                    self.rows.push(Spooled { entry, first_trained, path_idx: path_idx as u32, line: line + 1 });
                }
                Err(fault) => self.fall(path_idx, line + 1, fault)?,
            }
        }
    }

    fn fall(&mut self, path_idx: usize, line: u64, fault: Fault) -> Result<(), DataError> {
        let Fault { kind, reason } = fault;
        let path = self.paths.get(path_idx).map(|path| path.display().to_string()).unwrap_or_default();
        let place = Place { path, line, reason };
        if self.encoder.options.on_bad_row == OnBadRow::Fail && kind.may_be_refused() {
            return Err(DataError::Row { place, kind });
        }
        self.report.add(kind, place);
        Ok(())
    }

    fn finish(mut self) -> Result<Dataset, DataError> {
        let max_length = max_length(&self.rows, self.encoder.options);
        let (kept, lost): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.rows).into_iter().partition(|row| row.first_trained < max_length);
        for row in lost {
            let reason = format!("the first of {max_length} tokens are not to be predicted");
            self.fall(row.path_idx as usize, row.line, Fault::new(BadRow::TruncatedAway, reason))?;
        }
        let index: Vec<Entry> = kept.iter().map(|row| row.entry).collect();
        self.report.n_documents = index.len() as u64;
        self.report.n_truncated = index.iter().filter(|entry| entry.n_tokens > max_length).count() as u64;
        self.report.n_tokens = index.iter().map(|entry| u64::from(entry.n_tokens.min(max_length))).sum();
        self.report.max_length = u64::from(max_length);
        if index.is_empty() {
            return Err(DataError::NothingLeft { report: Box::new(self.report) });
        }
        Ok(Dataset { spool: Arc::new(self.spool.finish()?), index, max_length, report: self.report })
    }
}

/// The document on a line and the first of its tokens that is to be predicted.
fn document(encoder: &Encoder<'_>, line: Line<'_>) -> Result<(crate::Document, u32), Fault> {
    let row = match line {
        Line::Bytes(bytes) => Row::parse(bytes)?,
        Line::TooLong(n_bytes) => return Err(Fault::new(BadRow::LineTooLong, format!("{n_bytes} bytes"))),
    };
    let document = encoder.document(&row)?;
    let mut trained = document.trained.iter().zip(0u32..).skip(1).filter(|(trained, _)| **trained);
    let first = trained.next().map_or(u32::MAX, |(_, token_idx)| token_idx);
    Ok((document, first))
}

fn max_length(rows: &[Spooled], options: &DataOptions) -> u32 {
    let n_rows = rows.len() as u64;
    let n_tokens: u64 = rows.iter().map(|row| u64::from(row.entry.n_tokens)).sum();
    // 1.5 times the mean in whole numbers, so that it is the same everywhere.
    let by_mean = (3 * n_tokens).div_ceil((2 * n_rows).max(1)).max(2);
    let wanted = options.max_length.map_or(by_mean, |tokens| tokens as u64);
    let room = options.tokens_per_batch.map_or(u64::MAX, |tokens| tokens as u64);
    u32::try_from(wanted.min(room)).unwrap_or(u32::MAX)
}
