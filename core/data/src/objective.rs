//! What a model is asked to do with a document. Off by default: then it predicts the next token everywhere.
//!
//! A document keeps its objective in all epochs, so that its length is known before a batch is planned. Which one it has
//! follows from the seed and its number.

mod spans;

pub use spans::SpanCorruption;

use crate::document::Document;
use crate::random::{Purpose, below, generator, uniform};

/// A task made of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Objective {
    /// Predict each token from those before it.
    NextToken,
    /// Give back the spans that were cut out of the text.
    SpanCorruption,
    /// Tell the document from others; the document stays as it is, and [`negatives`] names the others.
    Contrastive,
}

/// How often each objective is chosen; only the proportions matter. The default is the next token alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weights {
    pub next_token: f64,
    pub span_corruption: f64,
    pub contrastive: f64,
}

impl Default for Weights {
    fn default() -> Self {
        Self { next_token: 1.0, span_corruption: 0.0, contrastive: 0.0 }
    }
}

impl Weights {
    /// The objective at `place` in `[0, 1)` of the three laid end to end. A weight that is no positive number counts as 0.
    fn at(&self, place: f64) -> Objective {
        let weight = |weight: f64| if weight.is_finite() { weight.max(0.0) } else { 0.0 };
        let (next, spans, contrastive) =
            (weight(self.next_token), weight(self.span_corruption), weight(self.contrastive));
        match place * (next + spans + contrastive) {
            place if place < next || spans + contrastive == 0.0 => Objective::NextToken,
            place if place < next + spans || contrastive == 0.0 => Objective::SpanCorruption,
            _ => Objective::Contrastive,
        }
    }
}

/// The objectives of a run.
#[derive(Debug, Clone, Default)]
pub struct Objectives {
    pub seed: u64,
    pub weights: Weights,
    pub span_corruption: SpanCorruption,
    /// Tokens that a batch has room for: a document that would grow beyond keeps the next token as its objective.
    pub tokens_per_batch: usize,
}

impl Objectives {
    /// What is asked of this document, which has so many tokens.
    pub fn of(&self, document_idx: usize, n_tokens: usize) -> Objective {
        let mut rng = generator(Purpose::Objective, self.seed, document_idx as u64, 0);
        match self.weights.at(uniform(&mut rng)) {
            Objective::SpanCorruption if !self.can_corrupt(n_tokens) => Objective::NextToken,
            objective => objective,
        }
    }

    fn can_corrupt(&self, n_tokens: usize) -> bool {
        let length = self.span_corruption.length(n_tokens);
        length.is_some_and(|length| length <= self.tokens_per_batch)
    }

    /// Tokens that each document has as a task, from those that it has as a text; for [`crate::Order`].
    pub fn lengths(&self, lengths: &[u32]) -> Vec<u32> {
        let length = |(document_idx, n_tokens): (usize, &u32)| match self.of(document_idx, *n_tokens as usize) {
            Objective::SpanCorruption => {
                let length = self.span_corruption.length(*n_tokens as usize);
                length.and_then(|length| u32::try_from(length).ok()).unwrap_or(*n_tokens)
            }
            Objective::NextToken | Objective::Contrastive => *n_tokens,
        };
        lengths.iter().enumerate().map(length).collect()
    }

    /// The document as its task. Spans differ from epoch to epoch, their number does not.
    pub fn apply(&self, document: Document, document_idx: usize, epoch: u64) -> Document {
        match self.of(document_idx, document.ids.len()) {
            Objective::SpanCorruption => {
                let mut rng = generator(Purpose::Spans, self.seed, epoch, document_idx as u64);
                self.span_corruption.apply(document, &mut rng)
            }
            Objective::NextToken | Objective::Contrastive => document,
        }
    }
}

/// Up to `n_negatives` other documents, each another one, drawn for this document in this epoch.
pub fn negatives(seed: u64, epoch: u64, document_idx: u32, n_documents: u32, n_negatives: usize) -> Vec<u32> {
    let mut rng = generator(Purpose::Negatives, seed, epoch, u64::from(document_idx));
    let n_others = n_documents.saturating_sub(1) as usize;
    let mut found: Vec<u32> = Vec::new();
    while found.len() < n_negatives.min(n_others) {
        let drawn = below(&mut rng, u64::from(n_documents)) as u32;
        if drawn != document_idx && !found.contains(&drawn) {
            found.push(drawn);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objectives(weights: Weights) -> Objectives {
        let span_corruption = SpanCorruption { sentinels: (900..910).collect(), ..SpanCorruption::default() };
        Objectives { seed: 5, weights, span_corruption, tokens_per_batch: 200 }
    }

    const MIXED: Weights = Weights { next_token: 0.6, span_corruption: 0.3, contrastive: 0.1 };

    #[test]
    fn objectives_are_as_frequent_as_their_weights() {
        let objectives = objectives(MIXED);
        let count = |wanted| (0..10_000).filter(|idx| objectives.of(*idx, 100) == wanted).count();
        let counts = [Objective::NextToken, Objective::SpanCorruption, Objective::Contrastive].map(count);
        // Five standard deviations of a count of 10 000 are at most 250.
        for (count, expected) in counts.into_iter().zip([6000usize, 3000, 1000]) {
            assert!(count.abs_diff(expected) < 250, "{counts:?}");
        }
    }

    #[test]
    fn weights_that_say_nothing_mean_the_next_token() {
        let (zero, nan) = (0.0, f64::NAN);
        let cases = [(zero, zero, zero), (nan, nan, nan), (-1.0, -1.0, -1.0), (1.0, 0.0, 0.0)];
        for (next_token, span_corruption, contrastive) in cases {
            let objectives = objectives(Weights { next_token, span_corruption, contrastive });
            assert!((0..50).all(|idx| objectives.of(idx, 100) == Objective::NextToken));
        }
    }

    #[test]
    fn lengths_are_those_of_the_tasks_in_every_epoch() {
        let objectives = objectives(MIXED);
        let lengths: Vec<u32> = (0..190).collect();
        let planned = objectives.lengths(&lengths);
        assert!(planned.iter().all(|length| *length <= 200));
        assert_ne!(planned, lengths);
        for (epoch, (document_idx, n_tokens)) in
            (0..4).flat_map(|epoch| lengths.iter().enumerate().map(move |it| (epoch, it)))
        {
            let document = Document::all_trained((0..*n_tokens).collect());
            let task = objectives.apply(document, document_idx, epoch);
            assert_eq!(task.ids.len(), planned[document_idx] as usize);
            assert_eq!(task.ids.len(), task.trained.len());
        }
    }

    #[test]
    fn negatives_are_other_documents_each_once() {
        for n_documents in [0, 1, 2, 4, 50] {
            let mut found = negatives(1, 2, 0, n_documents, 5);
            assert_eq!(found, negatives(1, 2, 0, n_documents, 5));
            assert_eq!(found.len(), n_documents.saturating_sub(1).min(5) as usize);
            found.sort_unstable();
            found.dedup();
            assert!(found.len() == n_documents.saturating_sub(1).min(5) as usize && !found.contains(&0));
        }
    }
}
