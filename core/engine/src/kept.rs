//! The cache together with the ids it holds: the engine's memory of the last sequence.

use samara_ops::OpsError;

use crate::{Choice, LanguageModel, Picked, RewindableCache, SampleError};

/// A cache and the token ids whose rows it holds.
pub(crate) struct Kept<C> {
    cache: C,
    ids: Vec<u32>,
}

impl<C: RewindableCache> Kept<C> {
    pub fn new(cache: C) -> Self {
        Self { cache, ids: Vec::new() }
    }

    pub fn n_bytes(&self) -> u64 {
        self.cache.n_bytes()
    }

    /// Forgets what `tokens` does not begin with, and at least the last of `tokens`, so that there is a token to run;
    /// everything where the cache cannot go back that far. Gives how many of `tokens` are held.
    pub fn align(&mut self, tokens: &[u32]) -> usize {
        let usable = &tokens[..tokens.len().saturating_sub(1)];
        let n_shared = self.ids.iter().zip(usable).take_while(|(a, b)| a == b).count();
        let n_held = [n_shared, 0].into_iter().find(|&n| self.cache.rewind(n)).unwrap_or(0);
        self.ids.truncate(n_held);
        n_held
    }

    /// Runs `tokens` after those held.
    pub async fn append<M>(&mut self, model: &M, tokens: &[u32]) -> Result<(), OpsError>
    where
        M: LanguageModel<Cache = C>,
    {
        model.append(tokens, &mut self.cache).await?;
        self.ids.extend_from_slice(tokens);
        Ok(())
    }

    /// Runs `tokens` after those held and chooses the next.
    pub async fn pick<M>(
        &mut self,
        model: &M,
        tokens: &[u32],
        choice: &Choice,
    ) -> Result<Result<Picked, SampleError>, OpsError>
    where
        M: LanguageModel<Cache = C>,
    {
        let picked = model.pick(tokens, &mut self.cache, choice).await?;
        self.ids.extend_from_slice(tokens);
        Ok(picked)
    }

    /// Runs `tokens` after those held and gives the logits after each.
    pub async fn logits<M>(&mut self, model: &M, tokens: &[u32]) -> Result<Vec<f32>, OpsError>
    where
        M: LanguageModel<Cache = C>,
    {
        let logits = model.logits(tokens, &mut self.cache).await?;
        self.ids.extend_from_slice(tokens);
        Ok(logits)
    }
}
