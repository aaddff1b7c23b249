//! The engine: a queue, one active sequence, one kept cache.
//!
//! A step aligns the cache with the active sequence, runs the next tokens that the cache lacks, and chooses a token once
//! none is lacking. Prefill, decode, prefix reuse and recovery from a lost cache are all this one rule. Before it waits
//! for the token it has the device begin with the step after it; that is found, or not wanted, by the ids it follows.

use std::collections::VecDeque;
use std::ops::Range;

use samara_model::{Decoder, KvFormats};
use samara_ops::OpsError;

use crate::kept::{Begun, Kept};
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
    /// Whether a step may begin before the token of the one before has come back, so that the device need not wait for
    /// the host. Changes no token; without it, it can be measured what that gains.
    pub ahead: bool,
}

/// Continues token sequences with a model, one after another.
pub struct Engine<M: LanguageModel = Decoder> {
    pub(crate) model: M,
    pub(crate) config: EngineConfig,
    /// Taken out while a step runs, so that a failed or abandoned step leaves no half-written cache behind.
    pub(crate) kept: Option<Kept<M>>,
    active: Option<Sequence>,
    queue: VecDeque<Sequence>,
    /// Endings, and what came with them, that no step has reported yet.
    unreported: Vec<Event>,
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
        let (queue, unreported) = (VecDeque::new(), Vec::new());
        Ok(Self { model, config, kept, active: None, queue, unreported, next_id: 0 })
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
        self.unreported.extend(ended);
        self.active.take_if(|s| s.id == id);
        self.queue.retain(|s| s.id != id);
    }

    /// Runs one prefill chunk or one decode step and says what happened. Empty means idle.
    ///
    /// Every step waits for the device once, so progress is real and a cancelled prompt stops at its next chunk. A step
    /// that gives a token brings back eight bytes: its id and its log-probability. The device may have begun with the next
    /// step by then; where that turns out not to be wanted, the last step of a sequence waits for it too.
    /// Dropping the future loses at most the cache.
    ///
    /// # Errors
    /// [`EngineError::Sequence`] where the running sequence failed; it is dropped, and the next step goes on with the
    /// queue. [`EngineError::DeviceLost`] where the device is gone; nothing is dropped.
    pub async fn step(&mut self) -> Result<Vec<Event>, EngineError> {
        if !self.unreported.is_empty() {
            return Ok(self.report().await);
        }
        if self.active.is_none() {
            self.active = self.queue.pop_front();
        }
        let Some(sequence) = &mut self.active else {
            return Ok(Vec::new());
        };
        let id = sequence.id;
        match advance(&self.model, self.config, &mut self.kept, sequence).await {
            Ok(events) if goes_on(&events) => Ok(events),
            Ok(events) => {
                self.active = None;
                self.unreported = events;
                Ok(self.report().await)
            }
            Err(ComputeError::Device(OpsError::Lost { reason })) => Err(EngineError::DeviceLost { reason }),
            Err(source) => {
                self.active = None;
                Err(EngineError::Sequence { id, source })
            }
        }
    }

    /// What no step has reported yet, once the device is done with what nobody wants any more.
    async fn report(&mut self) -> Vec<Event> {
        self.settle().await;
        std::mem::take(&mut self.unreported)
    }

    /// Waits for a step that was begun ahead and is not wanted. Where it failed, whoever needs the device next is told.
    pub(crate) async fn settle(&mut self) {
        if let Some(mut kept) = self.kept.take() {
            self.kept = kept.settle(&self.model).await.is_ok().then_some(kept);
        }
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
    slot: &mut Option<Kept<M>>,
    sequence: &mut Sequence,
) -> Result<Vec<Event>, ComputeError> {
    let mut kept = slot.take().unwrap_or_else(|| empty(model, config));
    let (span, begun) = begin(model, config, &mut kept, sequence).await?;
    let next = sequence.choice_after_next(config.context_tokens).filter(|_| config.ahead && begun.picking.is_some());
    if let Some(next) = next {
        kept.run_ahead(model, next).await?;
    }
    let (picked, spent) = kept.finish(model, begun).await?;
    *slot = Some(kept);
    let position = span.end - 1;
    let mut events: Vec<Event> = sequence.ran(span, spent).into_iter().collect();
    if let Some(picked) = picked {
        let at = |source| ComputeError::Sample { position, source };
        events.push(sequence.push(picked.map_err(at)?));
        events.extend(sequence.ending(config.context_tokens));
    }
    Ok(events)
}

/// Begins with the tokens of `sequence` that the cache lacks, and says which; the step before may have done so.
async fn begin<M: LanguageModel>(
    model: &M,
    config: EngineConfig,
    kept: &mut Kept<M>,
    sequence: &Sequence,
) -> Result<(Range<usize>, Begun<M::Picking>), ComputeError> {
    let (tokens, choice) = (sequence.tokens(), sequence.choice());
    let n_tokens = tokens.len();
    if let Some(begun) = kept.take_ahead(tokens, &choice) {
        return Ok((n_tokens - 1..n_tokens, begun));
    }
    kept.settle(model).await?;
    let start = kept.align(tokens);
    let end = n_tokens.min(start + config.prefill_chunk_tokens);
    let begun = if end == n_tokens {
        kept.pick(model, &tokens[start..end], &choice).await?
    } else {
        kept.append(model, &tokens[start..end]).await?
    };
    Ok((start..end, begun))
}

pub(crate) fn empty<M: LanguageModel>(model: &M, config: EngineConfig) -> Kept<M> {
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
