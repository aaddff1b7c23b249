//! What can go wrong between token ids and token ids.

use samara_ops::{OpsError, SampleError};

use crate::SequenceId;

/// Why the engine refused a request, or gave a sequence up.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A model continues something; nothing cannot be continued.
    #[error("the prompt is empty: a model needs at least one token to continue")]
    EmptyPrompt,
    /// The ids do not fit the context.
    #[error("the prompt has {n_tokens} tokens; this context has room for at most {max_tokens}")]
    PromptTooLong { n_tokens: usize, max_tokens: usize },
    /// An id without an embedding row. Devices clamp or wrap such reads silently, so it is refused here.
    #[error("token id {token} at position {position} is unknown: the model's embedding has {vocab_size} rows")]
    UnknownToken { position: usize, token: u32, vocab_size: usize },
    /// A setting outside its range.
    #[error("{name} is {found}; it must be {expected}")]
    Setting { name: &'static str, found: String, expected: String },
    /// A running sequence failed and was dropped; the queue behind it is untouched.
    #[error("{id} failed")]
    Sequence {
        id: SequenceId,
        #[source]
        source: ComputeError,
    },
    /// The device is gone, and with it the model and the cache on it. The sequences are not: after
    /// [`crate::Engine::replace_model`] the next step goes on with the one that was running.
    #[error("the device was lost: {reason}")]
    DeviceLost { reason: String },
    /// Scoring failed.
    #[error("scoring failed")]
    Score(#[source] ComputeError),
}

/// Why a step gave no token.
#[derive(Debug, thiserror::Error)]
pub enum ComputeError {
    /// The device gave no numbers back.
    #[error("the device did not answer")]
    Device(#[from] OpsError),
    /// The numbers are there, but no token can be chosen from them.
    #[error("no token can be chosen after position {position}")]
    Sample {
        position: usize,
        #[source]
        source: SampleError,
    },
}
