//! The cache together with the ids it holds: the engine's memory of the last sequence.

use samara_ops::OpsError;
use samara_ops::counts::{self, Counts};

use crate::{Choice, LanguageModel, Picked, RewindableCache, SampleError};

/// A cache and the token ids whose rows it holds, or will hold once the device comes to them.
pub(crate) struct Kept<M: LanguageModel> {
    cache: M::Cache,
    ids: Vec<u32>,
    ahead: Option<Ahead<M::Picking>>,
}

/// What a step has asked of the device.
pub(crate) struct Begun<P> {
    /// `None` where no token is to be chosen.
    pub picking: Option<P>,
    spent: Counts,
}

/// The step after the ids of a cache, begun before anybody asked for it.
struct Ahead<P> {
    choice: Choice,
    begun: Begun<P>,
}

impl<M: LanguageModel> Kept<M> {
    pub fn new(cache: M::Cache) -> Self {
        Self { cache, ids: Vec::new(), ahead: None }
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
    pub async fn append(&mut self, model: &M, tokens: &[u32]) -> Result<Begun<M::Picking>, OpsError> {
        let before = counts::read();
        model.append(tokens, &mut self.cache).await?;
        self.ids.extend_from_slice(tokens);
        Ok(Begun { picking: None, spent: counts::read() - before })
    }

    /// Begins to run `tokens` after those held and to choose the next.
    pub async fn pick(&mut self, model: &M, tokens: &[u32], choice: &Choice) -> Result<Begun<M::Picking>, OpsError> {
        let before = counts::read();
        let picking = model.pick(tokens, &mut self.cache, choice).await?;
        self.ids.extend_from_slice(tokens);
        Ok(Begun { picking: Some(picking), spent: counts::read() - before })
    }

    /// Begins to run the token that was just asked for, where the model can, and to choose the one after it.
    pub async fn run_ahead(&mut self, model: &M, choice: Choice) -> Result<(), OpsError> {
        let before = counts::read();
        if let Some(picking) = model.pick_next(&mut self.cache, &choice).await? {
            let begun = Begun { picking: Some(picking), spent: counts::read() - before };
            self.ahead = Some(Ahead { choice, begun });
        }
        Ok(())
    }

    /// The step after `tokens` where that is what was begun ahead.
    pub fn take_ahead(&mut self, tokens: &[u32], choice: &Choice) -> Option<Begun<M::Picking>> {
        let is_it = |ahead: &mut Ahead<_>| self.ids == tokens && ahead.choice == *choice;
        self.ahead.take_if(is_it).map(|ahead| ahead.begun)
    }

    /// Waits for the token of a step, if it has one; also gives what the step cost.
    pub async fn finish(
        &mut self,
        model: &M,
        begun: Begun<M::Picking>,
    ) -> Result<(Option<Result<Picked, SampleError>>, Counts), OpsError> {
        let Some(picking) = begun.picking else { return Ok((None, begun.spent)) };
        let before = counts::read();
        let picked = model.picked(picking).await?;
        let spent = begun.spent + (counts::read() - before);
        match &picked {
            Ok(picked) => self.ids.extend(self.ahead.as_ref().map(|_| picked.token)),
            // What was begun has some token in the place of this one.
            Err(_) => self.settle(model).await?,
        }
        Ok((Some(picked), spent))
    }

    /// Waits for what was begun ahead and is not wanted; what it left in the cache stays there for reuse.
    pub async fn settle(&mut self, model: &M) -> Result<(), OpsError> {
        match self.ahead.take().and_then(|ahead| ahead.begun.picking) {
            Some(picking) => model.picked(picking).await.map(drop),
            None => Ok(()),
        }
    }

    /// Runs `tokens` after those held and gives the logits after each.
    pub async fn logits(&mut self, model: &M, tokens: &[u32]) -> Result<Vec<f32>, OpsError> {
        let logits = model.logits(tokens, &mut self.cache).await?;
        self.ids.extend_from_slice(tokens);
        Ok(logits)
    }
}
