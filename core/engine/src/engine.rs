//! The engine: a queue, one active sequence, one kept cache.
//!
//! A step aligns the cache with the active sequence, runs the next tokens that the cache lacks, and chooses a token once
//! none is lacking. Prefill, decode, prefix reuse and recovery from a lost cache are all this one rule.

use std::collections::VecDeque;

use samara_model::{Decoder, KvFormats};
use samara_ops::OpsError;

use crate::kept::Kept;
use crate::request::at_least_one;
use crate::sequence::Sequence;
use crate::{ComputeError, EngineError, Event, FinishReason, LanguageModel, Request, SequenceId};

/// Fixed sizes of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineConfig {
    /// Most tokens of one sequence, prompt and answer together. Range: 1 to the model's context length.
    pub context_tokens: usize,
    /// Most prompt tokens of one step, at least 1. Larger runs faster, smaller reacts to `cancel` sooner.
    pub prefill_chunk_tokens: usize,
    /// How keys and values lie in the cache.
    pub kv: KvFormats,
}

/// Continues token sequences with a model, one after another.
pub struct Engine<M: LanguageModel = Decoder> {
    pub(crate) model: M,
    pub(crate) config: EngineConfig,
    /// Taken out while a step runs, so that a failed or abandoned step leaves no half-written cache behind.
    pub(crate) kept: Option<Kept<M::Cache>>,
    active: Option<Sequence>,
    queue: VecDeque<Sequence>,
    /// Endings that no step has reported yet.
    cancelled: Vec<Event>,
    next_id: u64,
}

impl<M: LanguageModel> Engine<M> {
    /// An idle engine. Allocates the cache for `context_tokens` at once, and nothing later.
    ///
    /// # Errors
    /// A size of 0, or a context longer than the model's or than its device can hold.
    pub fn new(model: M, config: EngineConfig) -> Result<Self, EngineError> {
        at_least_one("prefill_chunk_tokens", config.prefill_chunk_tokens)?;
        check_context(config, &model)?;
        let kept = Some(empty(&model, config));
        let (queue, cancelled) = (VecDeque::new(), Vec::new());
        Ok(Self { model, config, kept, active: None, queue, cancelled, next_id: 0 })
    }

    /// Queues a request; requests run in the order they came.
    ///
    /// # Errors
    /// An empty prompt, one that leaves no room in the context, an id without an embedding row, a setting outside its
    /// range.
    pub fn submit(&mut self, request: Request) -> Result<SequenceId, EngineError> {
        request.check(self.model.vocab_size(), self.config.context_tokens)?;
        let id = SequenceId(self.next_id);
        self.next_id += 1;
        self.queue.push_back(Sequence::new(id, request));
        Ok(id)
    }

    /// Ends a queued or running sequence; the next step reports it as [`FinishReason::Cancelled`]. Its tokens stay in
    /// the cache for reuse. Does nothing to a sequence that has ended.
    pub fn cancel(&mut self, id: SequenceId) {
        let sequences = self.active.iter().chain(&self.queue);
        let ended = sequences.filter(|s| s.id == id).map(|s| s.finished(FinishReason::Cancelled));
        self.cancelled.extend(ended);
        self.active.take_if(|s| s.id == id);
        self.queue.retain(|s| s.id != id);
    }

    /// Runs one prefill chunk or one decode step and says what happened. Empty means idle.
    ///
    /// Every step waits for the device once, so progress is real and a cancelled prompt stops at its next chunk. A step
    /// that gives a token brings back eight bytes: its id and its log-probability.
    /// Dropping the future loses at most the cache.
    ///
    /// # Errors
    /// [`EngineError::Sequence`] where the running sequence failed; it is dropped, and the next step goes on with the
    /// queue. [`EngineError::DeviceLost`] where the device is gone; nothing is dropped.
    pub async fn step(&mut self) -> Result<Vec<Event>, EngineError> {
        if !self.cancelled.is_empty() {
            return Ok(std::mem::take(&mut self.cancelled));
        }
        if self.active.is_none() {
            self.active = self.queue.pop_front();
        }
        let Some(sequence) = &mut self.active else {
            return Ok(Vec::new());
        };
        let id = sequence.id;
        let result = advance(&self.model, self.config, &mut self.kept, sequence).await;
        if let Err(ComputeError::Device(OpsError::Lost { reason })) = result {
            return Err(EngineError::DeviceLost { reason });
        }
        if !result.as_ref().is_ok_and(|events| goes_on(events)) {
            self.active = None;
        }
        result.map_err(|source| EngineError::Sequence { id, source })
    }

    /// Goes on with another copy of the model, on another device, after [`EngineError::DeviceLost`]. Queue and running
    /// sequence stay; the next steps compute the cache anew from their ids.
    ///
    /// # Errors
    /// The context is longer than the model's or than its device can hold. Nothing has changed then.
    pub fn replace_model(&mut self, model: M) -> Result<(), EngineError> {
        check_context(self.config, &model)?;
        self.kept = Some(empty(&model, self.config));
        self.model = model;
        Ok(())
    }

    /// The sequence that the next step continues.
    pub fn active(&self) -> Option<SequenceId> {
        self.active.as_ref().or(self.queue.front()).map(|s| s.id)
    }

    /// The sizes it was made with.
    pub fn config(&self) -> EngineConfig {
        self.config
    }

    /// The model.
    pub fn model(&self) -> &M {
        &self.model
    }

    /// Gives the model back and frees the cache.
    pub fn into_model(self) -> M {
        self.model
    }

    /// Device memory of the cache.
    pub fn cache_bytes(&self) -> u64 {
        self.kept.as_ref().map_or(0, Kept::n_bytes)
    }
}

/// Runs the tokens of `sequence` that the cache lacks, at most one chunk, and chooses a token after the last of them.
async fn advance<M: LanguageModel>(
    model: &M,
    config: EngineConfig,
    slot: &mut Option<Kept<M::Cache>>,
    sequence: &mut Sequence,
) -> Result<Vec<Event>, ComputeError> {
    let (mut kept, start) = aligned(model, config, slot.take(), sequence.tokens());
    let n_tokens = sequence.tokens().len();
    let end = n_tokens.min(start + config.prefill_chunk_tokens);
    let before = samara_ops::counts::read();
    let tokens = &sequence.tokens()[start..end];
    let picked = if end == n_tokens {
        Some(kept.pick(model, tokens, &sequence.choice()).await?)
    } else {
        kept.append(model, tokens).await?;
        None
    };
    *slot = Some(kept);
    let mut events: Vec<Event> = sequence.ran(start..end, samara_ops::counts::read() - before).into_iter().collect();
    if let Some(picked) = picked {
        let at = |source| ComputeError::Sample { position: end - 1, source };
        events.push(sequence.push(picked.map_err(at)?));
        events.extend(sequence.ending(config.context_tokens));
    }
    Ok(events)
}

/// A cache that holds the first of `tokens`, all but the last at most, and how many.
pub(crate) fn aligned<M: LanguageModel>(
    model: &M,
    config: EngineConfig,
    kept: Option<Kept<M::Cache>>,
    tokens: &[u32],
) -> (Kept<M::Cache>, usize) {
    let mut kept = kept.unwrap_or_else(|| empty(model, config));
    let n_held = kept.align(tokens);
    (kept, n_held)
}

fn empty<M: LanguageModel>(model: &M, config: EngineConfig) -> Kept<M::Cache> {
    Kept::new(model.new_cache(config.context_tokens, config.prefill_chunk_tokens, config.kv))
}

fn goes_on(events: &[Event]) -> bool {
    !matches!(events.last(), Some(Event::Finished { .. }))
}

fn check_context<M: LanguageModel>(config: EngineConfig, model: &M) -> Result<(), EngineError> {
    let found = config.context_tokens;
    let (of_model, of_device) = (model.context_length(), model.max_cache_tokens(config.kv));
    if (1..=of_model.min(of_device)).contains(&found) {
        return Ok(());
    }
    let expected = if of_device < of_model {
        format!("between 1 and {of_device}, which is as much as this device binds at once")
    } else {
        format!("between 1 and the model's {of_model}")
    };
    Err(EngineError::Setting { name: "context_tokens", found: found.to_string(), expected })
}
