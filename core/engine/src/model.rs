//! What the engine needs of a model: ids in, a token or logits out, and a cache that can go back.

use std::future::{Future, ready};

use samara_model::{Decoder, KvCache, KvFormats, Want};
use samara_ops::{Choice, OpsError, Picked, Picking, SampleError};

/// A model that continues token ids. [`Decoder`] is one; the engine's tests have another.
pub trait LanguageModel {
    /// What the model remembers of a sequence.
    type Cache: RewindableCache;

    /// A choice that the device has been asked for.
    type Picking;

    /// Rows of the embedding, which is also the length V of a row of logits.
    fn vocab_size(&self) -> usize;

    /// Most tokens that one sequence may hold.
    fn context_length(&self) -> usize;

    /// Most tokens that a cache on the model's device can hold.
    fn max_cache_tokens(&self, _: KvFormats) -> usize {
        usize::MAX
    }

    /// An empty cache for sequences of up to `capacity_tokens`, run in chunks of up to `max_chunk_tokens`.
    fn new_cache(&self, capacity_tokens: usize, max_chunk_tokens: usize, kv: KvFormats) -> Self::Cache;

    /// Appends `tokens` `[T]` to the cache and waits until they are in.
    ///
    /// # Errors
    /// The device gave no answer. The cache must then not be used again; the same holds for the other two.
    fn append(&self, tokens: &[u32], cache: &mut Self::Cache) -> impl Future<Output = Result<(), OpsError>>;

    /// Appends `tokens` `[T]` to the cache and has a token chosen after the last of them, without waiting for it.
    ///
    /// # Errors
    /// As [`LanguageModel::append`].
    fn pick(
        &self,
        tokens: &[u32],
        cache: &mut Self::Cache,
        choice: &Choice,
    ) -> impl Future<Output = Result<Self::Picking, OpsError>>;

    /// The same right after a [`LanguageModel::pick`] or another of these, for the one token that was chosen there and
    /// that nobody has waited for yet; some token in its place where none could be chosen. `None`, and nothing has
    /// changed, where that cannot be done.
    ///
    /// # Errors
    /// As [`LanguageModel::append`].
    fn pick_next(
        &self,
        _cache: &mut Self::Cache,
        _choice: &Choice,
    ) -> impl Future<Output = Result<Option<Self::Picking>, OpsError>> {
        ready(Ok(None))
    }

    /// Waits for a choice.
    ///
    /// # Errors
    /// As [`LanguageModel::append`]; the inner error says why no token could be chosen, and the cache is good.
    fn picked(&self, picking: Self::Picking) -> impl Future<Output = Result<Result<Picked, SampleError>, OpsError>>;

    /// Appends `tokens` `[T]` to the cache and gives the logits `[T, V]` after each.
    ///
    /// # Errors
    /// As [`LanguageModel::append`].
    fn logits(&self, tokens: &[u32], cache: &mut Self::Cache) -> impl Future<Output = Result<Vec<f32>, OpsError>>;
}

/// A cache of the first tokens of a sequence.
pub trait RewindableCache {
    /// Forgets all but the first `n_tokens`. False, and nothing changed, where it cannot: a sliding layer has already
    /// overwritten rows that the next token looks back at. Going back to nothing always succeeds.
    fn rewind(&mut self, n_tokens: usize) -> bool;

    /// Device memory it holds.
    fn n_bytes(&self) -> u64;
}

impl LanguageModel for Decoder {
    type Cache = KvCache;
    type Picking = Picking;

    fn vocab_size(&self) -> usize {
        self.config().vocab_size
    }

    fn context_length(&self) -> usize {
        self.config().context_length
    }

    fn max_cache_tokens(&self, kv: KvFormats) -> usize {
        Decoder::max_cache_tokens(self, kv)
    }

    fn new_cache(&self, capacity_tokens: usize, max_chunk_tokens: usize, kv: KvFormats) -> KvCache {
        Decoder::new_cache(self, capacity_tokens, max_chunk_tokens, kv)
    }

    async fn append(&self, tokens: &[u32], cache: &mut KvCache) -> Result<(), OpsError> {
        let results = async {
            Decoder::append(self, tokens, cache);
            cache.wait().await
        };
        self.faults().settle(results).await
    }

    async fn pick(&self, tokens: &[u32], cache: &mut KvCache, choice: &Choice) -> Result<Picking, OpsError> {
        let picking = async { Ok(Picking::begin(Decoder::pick(self, tokens, cache, choice), self.faults())) };
        self.faults().settle(picking).await
    }

    async fn pick_next(&self, cache: &mut KvCache, choice: &Choice) -> Result<Option<Picking>, OpsError> {
        let begin = |picked| Picking::begin(picked, self.faults());
        self.faults().settle(async { Ok(Decoder::pick_next(self, cache, choice).map(begin)) }).await
    }

    async fn picked(&self, picking: Picking) -> Result<Result<Picked, SampleError>, OpsError> {
        picking.wait().await
    }

    async fn logits(&self, tokens: &[u32], cache: &mut KvCache) -> Result<Vec<f32>, OpsError> {
        let results = async { samara_ops::read_f32(self.forward(tokens, cache, Want::All)).await };
        self.faults().settle(results).await
    }
}

impl RewindableCache for KvCache {
    fn rewind(&mut self, n_tokens: usize) -> bool {
        KvCache::rewind(self, n_tokens)
    }

    fn n_bytes(&self) -> u64 {
        KvCache::n_bytes(self) as u64
    }
}
