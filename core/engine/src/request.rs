//! What a caller asks for.

use std::fmt;

use crate::{EngineError, Sampling};

/// Names one submitted sequence; never reused within an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SequenceId(pub(crate) u64);

impl fmt::Display for SequenceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sequence {}", self.0)
    }
}

/// One prompt to continue.
#[derive(Debug, Clone)]
pub struct Request {
    /// Token ids, at least one.
    pub prompt: Vec<u32>,
    /// Most tokens to generate, at least 1.
    pub max_tokens: usize,
    /// Ids that end the sequence when chosen.
    pub stop_ids: Vec<u32>,
    /// How a token is chosen from its logits.
    pub sampling: Sampling,
    /// Ids from here on are never chosen: rows that only pad the vocabulary. `usize::MAX` allows every row.
    pub logit_limit: usize,
}

impl Request {
    /// Checks everything that can be known before the model runs.
    ///
    /// # Errors
    /// An empty or too long prompt, an id without an embedding row, a setting outside its range.
    pub(crate) fn check(&self, vocab_size: usize, context_tokens: usize) -> Result<(), EngineError> {
        let max_prompt_tokens = context_tokens.saturating_sub(1);
        check_ids(&self.prompt, vocab_size, max_prompt_tokens)?;
        at_least_one("max_tokens", self.max_tokens)?;
        at_least_one("logit_limit", self.logit_limit)?;
        self.sampling.check(vocab_size)
    }
}

/// Refuses ids that cannot be run: none, too many, or unknown to the model.
pub(crate) fn check_ids(ids: &[u32], vocab_size: usize, max_tokens: usize) -> Result<(), EngineError> {
    if ids.is_empty() {
        return Err(EngineError::EmptyPrompt);
    }
    if ids.len() > max_tokens {
        return Err(EngineError::PromptTooLong { n_tokens: ids.len(), max_tokens });
    }
    match ids.iter().enumerate().find(|&(_, &token)| token as usize >= vocab_size) {
        Some((position, &token)) => Err(EngineError::UnknownToken { position, token, vocab_size }),
        None => Ok(()),
    }
}

pub(crate) fn at_least_one(name: &'static str, found: usize) -> Result<(), EngineError> {
    if found == 0 {
        return Err(EngineError::Setting { name, found: found.to_string(), expected: "at least 1".into() });
    }
    Ok(())
}
