//! A model at work: prompts in, generations out.

use samara_engine::{Engine, EngineConfig, Request, Sampling};
use samara_model::{Config, KvFormats};
use samara_text::StopStrings;

use crate::output::Output;
use crate::recovery::{Recovery, Reload};
use crate::{ChatError, Dialect, Encoded, Generation, Model, Prompt};

/// Longer contexts cost memory that few need; whoever needs it asks.
const DEFAULT_CONTEXT_TOKENS: usize = 4096;

/// Sizes of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionConfig {
    /// Most tokens of prompt and answer together. `None`: the model's context, but at most 4096, and what the device
    /// holds.
    pub context_tokens: Option<usize>,
    /// Most prompt tokens of one step; see [`EngineConfig::prefill_chunk_tokens`].
    pub prefill_chunk_tokens: usize,
    /// How keys and values lie in device memory.
    pub kv: KvFormats,
}

impl Default for SessionConfig {
    fn default() -> Self {
        Self { context_tokens: None, prefill_chunk_tokens: 64, kv: KvFormats::default() }
    }
}

impl SessionConfig {
    /// The context that nobody asked for, on a device whose caches hold `max_cache_tokens`.
    pub(crate) fn usual_context(&self, model: &Config, max_cache_tokens: usize) -> usize {
        model.context_length.min(DEFAULT_CONTEXT_TOKENS).min(max_cache_tokens)
    }
}

/// How to continue a prompt.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    /// Most tokens to generate. `None`: until the context is full.
    pub max_tokens: Option<usize>,
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// Texts that end the output; they are not shown.
    pub stop_strings: Vec<String>,
}

/// A model, its memory of the last sequence, and its dialect.
pub struct Session {
    engine: Engine,
    dialect: Dialect,
    recovery: Recovery,
}

impl Session {
    /// A session with memory for its whole context, allocated now. It ends with its device.
    ///
    /// # Errors
    /// A size of 0, or a context longer than the model's or than its device can hold.
    pub fn new(model: Model, config: SessionConfig) -> Result<Self, ChatError> {
        Self::start(model, config, Recovery::new(None))
    }

    /// A session that outlives its device: where that is lost, `reload` brings the model back.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_reload(model: Model, config: SessionConfig, reload: Reload) -> Result<Self, ChatError> {
        Self::start(model, config, Recovery::new(Some(reload)))
    }

    fn start(model: Model, config: SessionConfig, recovery: Recovery) -> Result<Self, ChatError> {
        let Model { decoder, dialect } = model;
        let usual = config.usual_context(decoder.config(), decoder.max_cache_tokens(config.kv));
        let context_tokens = config.context_tokens.unwrap_or(usual);
        let SessionConfig { prefill_chunk_tokens, kv, .. } = config;
        let sizes = EngineConfig { context_tokens, prefill_chunk_tokens, kv, ahead: true };
        Ok(Self { engine: Engine::new(decoder, sizes)?, dialect, recovery })
    }

    /// Begins to continue a prompt. A prompt that begins like the last one costs only what is new.
    ///
    /// # Errors
    /// A prompt that cannot be encoded, is empty or does not fit the context; a setting outside its range.
    pub fn generate(&mut self, prompt: &Prompt, settings: &Settings) -> Result<Generation<'_>, ChatError> {
        let Encoded { ids, stop_ids, splitter, .. } = self.dialect.encode(prompt)?;
        let tokenizer = self.dialect.tokenizer();
        let id = self.engine.submit(Request {
            prompt: ids,
            max_tokens: settings.max_tokens.unwrap_or(usize::MAX),
            stop_ids: stop_ids.clone(),
            sampling: settings.sampling.clone(),
            logit_limit: tokenizer.n_tokens(),
        })?;
        let output = Output::new(tokenizer.stream(), StopStrings::new(settings.stop_strings.iter()), splitter);
        Ok(Generation::new(&mut self.engine, &mut self.recovery, id, stop_ids, output))
    }

    /// The log-probability of each id after the first, and each row of logits; see [`Engine::score`].
    ///
    /// # Errors
    /// As [`Engine::score`].
    pub async fn score(&mut self, ids: &[u32], on_row: impl FnMut(usize, &[f32])) -> Result<Vec<f64>, ChatError> {
        Ok(self.engine.score(ids, on_row).await?)
    }

    /// The textual side of the model.
    pub fn dialect(&self) -> &Dialect {
        &self.dialect
    }

    /// The model's configuration.
    pub fn config(&self) -> &Config {
        self.engine.model().config()
    }

    /// Most tokens of prompt and answer together.
    pub fn context_tokens(&self) -> usize {
        self.engine.config().context_tokens
    }

    /// Device memory of the weights.
    pub fn weights_bytes(&self) -> u64 {
        self.engine.model().n_bytes()
    }

    /// Device memory of LoRA adapters.
    pub fn adapters_bytes(&self) -> u64 {
        self.engine.model().adapters_bytes()
    }

    /// Device memory of keys and values.
    pub fn cache_bytes(&self) -> u64 {
        self.engine.cache_bytes()
    }
}
