//! Documents to batches: rows of JSON Lines are read, checked, tokenized and packed for fine-tuning.
//!
//! One way: a line becomes a [`Document`] of token ids with a mark on those to be predicted; a [`Dataset`] keeps them out of
//! memory; an [`Order`] says which of them make up a batch; a [`Batch`] is what a model trains on. What cannot be used
//! is counted by kind in a [`Report`]. [`Objectives`] may make another task of a document before it is batched.
//!
//! Deliberately absent: models, devices, threads, padding. Whatever is random follows from a seed, so that a [`Cursor`] of
//! two numbers is enough to go on with a run.
#![deny(clippy::indexing_slicing)]

mod dataset;
mod document;
mod encode;
mod error;
mod lines;
mod objective;
mod order;
mod random;
mod report;
mod row;
mod spool;
mod turns;

pub use dataset::{DataOptions, Dataset, OnBadRow, TrainOn, Validation};
pub use document::{Batch, Document, IGNORE};
pub use error::DataError;
pub use objective::{Objective, Objectives, SpanCorruption, Weights, negatives};
pub use order::{Cursor, Order, OrderOptions, Plan};
pub use random::chance;
pub use report::{BadRow, Fallen, Place, Report};
