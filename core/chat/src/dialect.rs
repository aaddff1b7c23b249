//! How a checkpoint writes: its tokenizer, its chat template, and what ends a text or a turn.

use samara_engine::Sampling;
use samara_formats::{Checkpoint, GgufMetadata, HuggingFaceMetadata, Metadata};
use samara_text::{ChatTemplate, StopIdSources, TextError, Tokenizer, stop_ids, turn_end_ids};

use crate::templates::{Templates, special_token};
use crate::{ChatError, gguf_vocab, suggestion};

/// The textual side of a checkpoint. Needs no weights and no device.
#[derive(Debug, Clone)]
pub struct Dialect {
    source_name: String,
    tokenizer: Tokenizer,
    templates: Templates,
    stop_ids: Vec<u32>,
    suggested: Option<Sampling>,
}

impl Dialect {
    /// Reads tokenizer, template and stop ids from what a checkpoint says about itself.
    ///
    /// # Errors
    /// No tokenizer, or one that is damaged or of an unknown kind. A broken chat template is an error only once used.
    pub fn from_checkpoint(checkpoint: &Checkpoint) -> Result<Self, ChatError> {
        match checkpoint.metadata() {
            Metadata::HuggingFace(metadata) => Self::from_huggingface(metadata, checkpoint.source()),
            Metadata::Gguf(values) => Self::from_gguf(values, checkpoint.source()),
        }
    }

    fn from_huggingface(metadata: &HuggingFaceMetadata, source: &str) -> Result<Self, ChatError> {
        let Some(json) = &metadata.tokenizer_json else {
            return Err(no_tokenizer(source, "tokenizer.json"));
        };
        let tokenizer = Tokenizer::from_json(json).map_err(|error| text_error(source, error))?;
        let stop_ids = stop_ids(StopIdSources {
            generation_config: metadata.generation_config.as_ref(),
            config: Some(&metadata.config),
            tokenizer_eos: special_token(metadata, "eos_token").and_then(|token| tokenizer.id(&token)),
            gguf: &[],
        });
        Ok(Self {
            source_name: source.to_owned(),
            tokenizer,
            templates: Templates::of_huggingface(metadata),
            stop_ids,
            suggested: metadata.generation_config.as_ref().and_then(suggestion::suggested),
        })
    }

    fn from_gguf(values: &GgufMetadata, source: &str) -> Result<Self, ChatError> {
        let Some(vocab) = gguf_vocab::vocab(values) else {
            return Err(no_tokenizer(source, "tokenizer.ggml.model and tokenizer.ggml.tokens"));
        };
        let tokenizer = Tokenizer::from_vocab(vocab).map_err(|error| text_error(source, error))?;
        let gguf = gguf_vocab::stop_ids(values);
        Ok(Self {
            source_name: source.to_owned(),
            templates: Templates::of_gguf(values, &tokenizer),
            tokenizer,
            stop_ids: stop_ids(StopIdSources { gguf: &gguf, ..StopIdSources::default() }),
            suggested: None,
        })
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Ids that end any text: the union of what all files of the checkpoint say.
    pub fn stop_ids(&self) -> &[u32] {
        &self.stop_ids
    }

    /// Ids that end an assistant's turn: the stop ids and the vocabulary's end-of-turn tokens.
    pub fn turn_end_ids(&self) -> Vec<u32> {
        let mut ids = [self.stop_ids.clone(), turn_end_ids(&self.tokenizer)].concat();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// The sampling that the model's makers suggest, where they do.
    pub fn suggested_sampling(&self) -> Option<&Sampling> {
        self.suggested.as_ref()
    }

    /// The chat template for conversations with or without functions: `chat_template.jinja` over the tokenizer's own.
    ///
    /// # Errors
    /// The checkpoint has none, or it is not valid.
    pub fn template(&self, has_tools: bool) -> Result<ChatTemplate, ChatError> {
        let chosen = self.templates.choose(has_tools).map_err(|error| self.error(error))?;
        chosen.ok_or_else(|| ChatError::NoTemplate { source_name: self.source_name.clone() })
    }

    pub(crate) fn error(&self, error: TextError) -> ChatError {
        text_error(&self.source_name, error)
    }
}

fn no_tokenizer(source: &str, expected: &'static str) -> ChatError {
    ChatError::NoTokenizer { source_name: source.to_owned(), expected }
}

fn text_error(source_name: &str, error: TextError) -> ChatError {
    ChatError::Text { source_name: source_name.to_owned(), error }
}

#[cfg(test)]
mod tests;
