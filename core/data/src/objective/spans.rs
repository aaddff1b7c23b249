//! Span corruption for a model that reads from left to right, after T5 (arXiv 1910.10683).
//!
//! Spans are cut out of the text and a sentinel left for each; after the text each sentinel comes again with what it stands for,
//! and a last one ends the list. Only this list is to be predicted.

use rand_chacha::ChaCha8Rng;

use crate::document::Document;
use crate::random::shuffle;

/// How much is cut out.
#[derive(Debug, Clone, PartialEq)]
pub struct SpanCorruption {
    /// The part of all tokens that is cut out.
    pub masked_fraction: f64,
    /// Tokens of a span, on average.
    pub mean_span_tokens: f64,
    /// Ids that stand for spans, in the order of spans. With fewer than two nothing is cut out, and there is one span less than ids.
    pub sentinels: Vec<u32>,
}

impl Default for SpanCorruption {
    fn default() -> Self {
        Self { masked_fraction: 0.15, mean_span_tokens: 3.0, sentinels: Vec::new() }
    }
}

/// Tokens that are cut out, and the number of spans they lie in.
struct Amount {
    n_masked: usize,
    n_spans: usize,
}

impl SpanCorruption {
    /// Tokens of the task made of a text of `n_tokens`; none where the text is too short or there are no sentinels.
    pub fn length(&self, n_tokens: usize) -> Option<usize> {
        self.amount(n_tokens).map(|amount| n_tokens + 2 * amount.n_spans + 1)
    }

    fn amount(&self, n_tokens: usize) -> Option<Amount> {
        if n_tokens < 2 || self.sentinels.len() < 2 {
            return None;
        }
        // What is no number becomes 0 in the cast, and so 1 by the bounds.
        let n_masked = ((n_tokens as f64 * self.masked_fraction).round() as usize).clamp(1, n_tokens - 1);
        let most = (self.sentinels.len() - 1).min(n_masked).min(n_tokens - n_masked);
        let n_spans = ((n_masked as f64 / self.mean_span_tokens).round() as usize).clamp(1, most);
        Some(Amount { n_masked, n_spans })
    }

    /// The task made of a text; the text itself where none can be.
    pub(super) fn apply(&self, text: Document, rng: &mut ChaCha8Rng) -> Document {
        let Some(Amount { n_masked, n_spans }) = self.amount(text.ids.len()) else { return text };
        let kept = parts(text.ids.len() - n_masked, n_spans, rng);
        let masked = parts(n_masked, n_spans, rng);
        let (mut ids, mut targets) = (Vec::new(), Vec::new());
        let mut rest = text.ids.as_slice();
        for ((n_kept, n_masked), sentinel) in kept.into_iter().zip(masked).zip(&self.sentinels) {
            ids.extend(take(&mut rest, n_kept));
            ids.push(*sentinel);
            targets.push(*sentinel);
            targets.extend(take(&mut rest, n_masked));
        }
        targets.extend(self.sentinels.get(n_spans));
        // That the list begins cannot be foreseen; only from its first sentinel on is there something to learn.
        let trained = (0..ids.len() + targets.len()).map(|token_idx| token_idx > ids.len()).collect();
        ids.extend(targets);
        Document { ids, trained }
    }
}

/// `n_items` in `n_parts` of at least one, each such partition equally likely.
fn parts(n_items: usize, n_parts: usize, rng: &mut ChaCha8Rng) -> Vec<usize> {
    let mut cuts: Vec<bool> = (1..n_items).map(|place| place < n_parts).collect();
    shuffle(&mut cuts, rng);
    let mut parts = vec![1];
    for cut in cuts {
        match parts.last_mut() {
            Some(part) if !cut => *part += 1,
            _ => parts.push(1),
        }
    }
    parts
}

fn take<'a>(rest: &mut &'a [u32], n_tokens: usize) -> &'a [u32] {
    let (taken, left) = rest.split_at_checked(n_tokens).unwrap_or((rest, &[]));
    *rest = left;
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, generator};

    /// Puts the spans back where their sentinels stand.
    fn restored(task: &Document, first_sentinel: u32) -> Vec<u32> {
        let start = task.trained.iter().position(|trained| *trained).unwrap() - 1;
        let (text, targets) = task.ids.split_at(start);
        let span = |sentinel: u32| {
            let at = targets.iter().position(|id| *id == sentinel).unwrap();
            targets[at + 1..].iter().take_while(|id| **id < first_sentinel).copied().collect::<Vec<_>>()
        };
        text.iter().flat_map(|id| if *id < first_sentinel { vec![*id] } else { span(*id) }).collect()
    }

    #[test]
    fn spans_put_back_give_the_text() {
        for (n_tokens, n_sentinels) in [(2, 2), (3, 9), (40, 9), (1000, 9), (1000, 200)] {
            let spans = SpanCorruption { sentinels: (5000..).take(n_sentinels).collect(), ..SpanCorruption::default() };
            for seed in 0..20 {
                let text = Document::all_trained((0..n_tokens).collect());
                let task = spans.apply(text.clone(), &mut generator(Purpose::Spans, seed, 0, 0));
                assert_eq!(restored(&task, 5000), text.ids);
                assert_eq!(Some(task.ids.len()), spans.length(n_tokens as usize));
                assert!(task.n_trained() >= 2);
            }
        }
    }

    #[test]
    fn about_a_seventh_is_cut_out_in_spans_of_three() {
        let spans = SpanCorruption { sentinels: (5000..5100).collect(), ..SpanCorruption::default() };
        let text = Document::all_trained((0..1000).collect());
        let task = spans.apply(text, &mut generator(Purpose::Spans, 1, 0, 0));
        let n_spans = 50;
        assert_eq!(task.ids.len(), 1000 + 2 * n_spans + 1);
        assert_eq!(task.n_trained(), 150 + n_spans);
    }

    #[test]
    fn what_cannot_be_cut_stays() {
        let text = Document::all_trained(vec![1]);
        let spans = SpanCorruption { sentinels: vec![8, 9], ..SpanCorruption::default() };
        assert_eq!(spans.apply(text.clone(), &mut generator(Purpose::Spans, 0, 0, 0)), text);
        let longer = Document::all_trained(vec![1, 2, 3]);
        let none = SpanCorruption::default();
        assert_eq!(none.apply(longer.clone(), &mut generator(Purpose::Spans, 0, 0, 0)), longer);
        let odd = SpanCorruption { masked_fraction: f64::NAN, mean_span_tokens: 0.0, sentinels: vec![8, 9] };
        assert_eq!(odd.length(3), Some(6));
    }
}
