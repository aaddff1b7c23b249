//! Token ids in, token ids out.
//!
//! An [`Engine`] owns a model and works through a queue of [`Request`]s, one sequence at a time. It is pull-based: each
//! [`Engine::step`] runs one prefill chunk or one decode step, waits for one readback, and returns what happened as
//! [`Event`]s. A sequence *is* its token ids; the key-value cache only remembers a prefix of them, so a later prompt that
//! begins alike costs only its new tokens, and losing the cache costs time but never correctness.
//!
//! Deliberately absent: text, threads, clocks, files and the network. Speed is the caller's to measure; [`Stats`] counts.

mod engine;
mod error;
mod event;
mod kept;
mod model;
mod request;
mod sampler;
mod sampling;
mod score;
mod sequence;
mod stats;

pub use engine::{Engine, EngineConfig};
pub use error::{ComputeError, EngineError};
pub use event::{Event, FinishReason};
pub use model::{LanguageModel, RewindableCache};
pub use request::{Request, SequenceId};
pub use samara_model::{KvFormat, KvFormats};
pub use samara_ops::{Choice, Picked, SampleError, log_prob};
pub use sampler::uniform;
pub use sampling::Sampling;
pub use stats::Stats;
