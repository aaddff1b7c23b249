//! Keys and values of the tokens a sequence has seen, allocated once.
//!
//! Layers that attend to everything keep a slot per token of the capacity. Sliding layers keep a
//! ring just large enough for their window and one chunk, so a long conversation costs them
//! nothing. What a ring has overwritten is gone; that is why not every rewind is possible.

use burn::tensor::Device;
use samara_ops::{HeadShape, KvFormats, LayerCache, OpsError, RopeTable, Step};

use crate::{
    config::{Attention, Config},
    replay::Replay,
};

/// The past of one sequence, and the small device buffer its next step is announced in.
pub struct KvCache {
    pub(crate) layers: Vec<LayerCache>,
    pub(crate) ropes: RopeTables,
    pub(crate) step: Step,
    pub(crate) replay: Replay,
    ledger: Ledger,
    capacity: usize,
    max_chunk: usize,
}

/// Rotations for every position of the capacity, by what a layer attends to.
pub(crate) struct RopeTables {
    full: RopeTable,
    sliding: Option<RopeTable>,
}

impl KvCache {
    pub(crate) fn new(config: &Config, capacity: usize, max_chunk: usize, kv: KvFormats, device: &Device) -> Self {
        let capacity = capacity.max(1);
        let max_chunk = max_chunk.clamp(1, capacity);
        let heads = config.heads();
        let layer = |n_slots: usize| LayerCache::new(n_slots, &heads, kv, device);
        let slots = slots_per_layer(config, capacity, max_chunk);
        Self {
            layers: slots.map(layer).collect(),
            ropes: RopeTables::new(config, capacity, device),
            step: Step::new(max_chunk, device),
            replay: Replay::default(),
            ledger: Ledger::new(config, capacity, max_chunk),
            capacity,
            max_chunk,
        }
    }

    /// Tokens in the cache, which is also the position of the next one.
    pub fn len(&self) -> usize {
        self.ledger.len
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Tokens that fit.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Tokens that one forward pass may append.
    pub fn max_chunk(&self) -> usize {
        self.max_chunk
    }

    /// Whether the cache can go back to its first `n` tokens and still hold all that their
    /// successor attends to. Going back to nothing is always possible.
    pub fn can_rewind(&self, n: usize) -> bool {
        self.ledger.can_rewind(n)
    }

    /// Forgets all but the first `n` tokens; changes nothing and gives `false` where that is not
    /// possible.
    pub fn rewind(&mut self, n: usize) -> bool {
        self.ledger.rewind(n)
    }

    /// Bytes on the device for keys and values.
    pub fn n_bytes(&self) -> usize {
        self.layers.iter().map(|layer| layer.n_bytes() as usize).sum()
    }

    /// Waits until the device has computed all tokens of the cache.
    ///
    /// # Errors
    /// The device gave no answer.
    pub async fn wait(&self) -> Result<(), OpsError> {
        self.step.wait().await
    }

    /// Announces the next tokens, and the draw after them, to the device.
    pub(crate) fn begin(&mut self, tokens: &[u32], uniform: f32) {
        self.step.set(self.ledger.len, tokens, uniform);
    }

    /// Counts the tokens whose keys and values have been written.
    pub(crate) fn end(&mut self, n_tokens: usize) {
        self.ledger.append(n_tokens);
    }
}

impl RopeTables {
    pub fn new(config: &Config, capacity: usize, device: &Device) -> Self {
        let slides = config.attention.iter().any(|kind| *kind != Attention::Full);
        let table = |rope: &crate::rope::Rope| {
            let inv_freq = rope.inv_freq(config.head_dim);
            RopeTable::new(&inv_freq, rope.attention_factor(), capacity, device)
        };
        Self { full: table(&config.rope_full), sliding: slides.then(|| table(&config.rope_sliding)) }
    }

    pub fn of(&self, attention: Attention) -> &RopeTable {
        match (attention, &self.sliding) {
            (Attention::Sliding(_), Some(sliding)) => sliding,
            _ => &self.full,
        }
    }
}

impl Config {
    pub(crate) fn heads(&self) -> HeadShape {
        HeadShape { n_heads: self.n_heads, n_kv_heads: self.n_kv_heads, head_dim: self.head_dim }
    }
}

/// Slots for tokens in each layer.
pub(crate) fn slots_per_layer(config: &Config, capacity: usize, max_chunk: usize) -> impl Iterator<Item = usize> {
    config.attention.iter().map(move |kind| match kind {
        Attention::Full => capacity,
        Attention::Sliding(window) => capacity.min(window.saturating_add(max_chunk)),
    })
}

/// Which positions the rings still hold.
#[derive(Debug, Clone, PartialEq)]
struct Ledger {
    len: usize,
    /// Every layer still holds the positions from here on.
    oldest: usize,
    /// Positions the smallest ring holds.
    ring: usize,
    /// Positions that a token attends to in sliding layers.
    window: usize,
}

impl Ledger {
    fn new(config: &Config, capacity: usize, max_chunk: usize) -> Self {
        let windows = config.attention.iter().filter_map(|kind| match kind {
            Attention::Sliding(window) => Some(*window),
            Attention::Full => None,
        });
        Self {
            len: 0,
            oldest: 0,
            ring: slots_per_layer(config, capacity, max_chunk).min().unwrap_or(capacity),
            window: windows.max().unwrap_or(capacity),
        }
    }

    fn append(&mut self, n_tokens: usize) {
        self.len += n_tokens;
        self.oldest = self.oldest.max(self.len.saturating_sub(self.ring));
    }

    fn can_rewind(&self, n: usize) -> bool {
        let first_attended = (n + 1).saturating_sub(self.window);
        n == 0 || (n <= self.len && first_attended >= self.oldest)
    }

    fn rewind(&mut self, n: usize) -> bool {
        let possible = self.can_rewind(n);
        if possible {
            self.len = n;
            self.oldest = if n == 0 { 0 } else { self.oldest };
        }
        possible
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A window of 8 with chunks of 3 in a cache of 64.
    fn ledger(len: usize) -> Ledger {
        let mut ledger = Ledger { len: 0, oldest: 0, ring: 11, window: 8 };
        ledger.append(len);
        ledger
    }

    #[test]
    fn before_the_ring_wraps_every_rewind_is_possible() {
        assert!((0..=11).all(|n| ledger(11).can_rewind(n)));
    }

    #[test]
    fn after_the_ring_wraps_only_the_last_chunk_can_be_taken_back() {
        let possible: Vec<usize> = (0..=20).filter(|&n| ledger(20).can_rewind(n)).collect();
        assert_eq!(possible, [0, 16, 17, 18, 19, 20]);
    }

    #[test]
    fn a_token_more_than_a_chunk_can_be_taken_back() {
        for (window, chunk) in [(8, 3), (8, 1), (1, 1)] {
            let mut ledger = Ledger { len: 0, oldest: 0, ring: window + chunk, window };
            ledger.append(40);
            let n_taken_back = (0..40).filter(|n| ledger.can_rewind(40 - n)).max();
            assert_eq!(n_taken_back, Some(chunk + 1), "window {window}, chunk {chunk}");
        }
    }

    #[test]
    fn what_a_ring_overwrote_stays_lost_after_a_rewind() {
        let mut ledger = ledger(20);
        assert!(ledger.rewind(17));
        assert!(!ledger.can_rewind(15));
        assert_eq!(ledger.oldest, 9);
        assert!(ledger.rewind(0));
        assert_eq!((ledger.len, ledger.oldest), (0, 0));
    }

    #[test]
    fn an_impossible_rewind_changes_nothing() {
        let mut now = ledger(20);
        assert!(!now.rewind(5) && !now.rewind(21));
        assert_eq!(now, ledger(20));
    }
}
