//! In which batches an epoch meets the documents.
//!
//! The batches of an epoch follow from the seed, the number of the epoch and the lengths, and from nothing else. So two
//! numbers say where a run is, and a run that goes on from there meets what it would have met.

mod pack;

use serde::{Deserialize, Serialize};

use crate::error::DataError;
use crate::random::{Purpose, generator, shuffle};

/// How documents are put into batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderOptions {
    pub seed: u64,
    /// Tokens that a batch has room for.
    pub tokens_per_batch: usize,
    /// Whether each epoch has its own random order, or all have that of the files.
    pub shuffle: bool,
    /// Whether a batch takes as many documents as fit, or one.
    pub packing: bool,
}

/// The batches of one epoch: each document is in exactly one of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    batches: Vec<Vec<u32>>,
}

impl Plan {
    /// The batches of this epoch over documents of these lengths.
    ///
    /// Documents are shuffled and then packed one by one, each into the batch with the least room that is enough, in
    /// `O(n log n)`. They are not sorted by length before, which would fill batches better but with documents of one length.
    ///
    /// # Errors
    /// A document is longer than a batch, or there are more documents than 32 bits can count.
    pub fn new(lengths: &[u32], options: &OrderOptions, epoch: u64) -> Result<Self, DataError> {
        check(lengths, options.tokens_per_batch)?;
        let mut documents: Vec<(u32, u32)> = (0..).zip(lengths.iter().copied()).collect();
        let mut rng = generator(Purpose::Shuffle, options.seed, epoch, 0);
        if options.shuffle {
            shuffle(&mut documents, &mut rng);
        }
        let mut batches = match options.packing {
            true => pack::best_fit(&documents, options.tokens_per_batch),
            false => documents.iter().map(|(document_idx, _)| vec![*document_idx]).collect(),
        };
        if options.shuffle {
            // Batches that were opened last are the emptiest; they shall not all come last.
            shuffle(&mut batches, &mut rng);
        }
        Ok(Self { batches })
    }

    pub fn n_batches(&self) -> usize {
        self.batches.len()
    }

    /// The documents of a batch, by number.
    pub fn batch(&self, batch_idx: usize) -> Option<&[u32]> {
        self.batches.get(batch_idx).map(Vec::as_slice)
    }

    /// The documents of each batch, by number.
    pub fn batches(&self) -> impl Iterator<Item = &[u32]> {
        self.batches.iter().map(Vec::as_slice)
    }
}

fn check(lengths: &[u32], tokens_per_batch: usize) -> Result<(), DataError> {
    if let Some((document_idx, length)) = lengths.iter().enumerate().find(|(_, it)| **it as usize > tokens_per_batch) {
        return Err(DataError::TooLong { document_idx, n_tokens: *length as usize, tokens_per_batch });
    }
    if u32::try_from(lengths.len()).is_err() {
        let (found, expected) = (lengths.len().to_string(), format!("at most {}", u32::MAX));
        return Err(DataError::Option { option: "number of documents", found, expected });
    }
    Ok(())
}

/// Where a run is: the next batch it takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cursor {
    /// Counted from 0.
    pub epoch: u64,
    /// The batch of that epoch, from 0.
    pub batch_idx: u64,
}

/// One batch after another, epoch after epoch, without end.
#[derive(Debug, Clone)]
pub struct Order {
    lengths: Vec<u32>,
    options: OrderOptions,
    plan: Plan,
    cursor: Cursor,
}

impl Order {
    /// The order from this cursor on; a new run begins at the default one.
    ///
    /// # Errors
    /// As [`Plan::new`]; there are no documents; the cursor is beyond the end of its epoch.
    pub fn new(lengths: Vec<u32>, options: OrderOptions, cursor: Cursor) -> Result<Self, DataError> {
        let plan = Plan::new(&lengths, &options, cursor.epoch)?;
        let n_batches = plan.n_batches() as u64;
        if n_batches == 0 {
            return Err(DataError::NoDocument { document_idx: 0, n_documents: 0 });
        }
        if cursor.batch_idx > n_batches {
            let Cursor { epoch, batch_idx } = cursor;
            return Err(DataError::Cursor { epoch, batch_idx, n_batches });
        }
        Ok(Self { lengths, options, plan, cursor })
    }

    /// Where the run is. Between two epochs it is at the start of the second.
    pub fn cursor(&self) -> Cursor {
        if self.is_epoch_over() { Cursor { epoch: self.cursor.epoch + 1, batch_idx: 0 } } else { self.cursor }
    }

    /// The documents of the next batch, by number.
    ///
    /// # Errors
    /// None that [`Self::new`] would not have given.
    pub fn next_batch(&mut self) -> Result<&[u32], DataError> {
        if self.is_epoch_over() {
            self.cursor = self.cursor();
            self.plan = Plan::new(&self.lengths, &self.options, self.cursor.epoch)?;
        }
        let batch_idx = self.cursor.batch_idx as usize;
        self.cursor.batch_idx += 1;
        Ok(self.plan.batch(batch_idx).unwrap_or_default())
    }

    /// Batches of the epoch that the last batch came from. Epochs differ a little, since packing depends on the order.
    pub fn n_batches(&self) -> usize {
        self.plan.n_batches()
    }

    fn is_epoch_over(&self) -> bool {
        self.cursor.batch_idx >= self.plan.n_batches() as u64
    }
}
