//! What a step reports.

use crate::{SequenceId, Stats};

/// One thing that happened to one sequence.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Prompt tokens are in the cache, those reused from an earlier sequence included.
    Prefill { id: SequenceId, done_tokens: usize, total_tokens: usize },
    /// A token was chosen. A stop id is reported too, just before `Finished`.
    ///
    /// `logprob` is the model's own log-probability: the softmax over every row, before any sampling setting.
    Token { id: SequenceId, token: u32, logprob: f32 },
    /// The last event of a sequence.
    Finished { id: SequenceId, reason: FinishReason, stats: Stats },
}

/// Why a sequence ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinishReason {
    /// A stop id was chosen.
    Stop,
    /// `max_tokens` were generated.
    Length,
    /// Prompt and generated tokens fill the context.
    Context,
    /// The caller cancelled it.
    Cancelled,
}
