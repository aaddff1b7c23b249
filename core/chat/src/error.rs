//! What can go wrong between a model file and a conversation.

use samara_engine::EngineError;
use samara_formats::FormatError;
use samara_model::ModelError;
use samara_ops::device::DeviceError;
use samara_text::TextError;

/// Why there is no model, no text, or no conversation.
#[derive(Debug, thiserror::Error)]
pub enum ChatError {
    /// The file cannot be read.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The file can be read, but is no model for us.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// No device could be opened in the place of one that was lost.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The device is lost as soon as it is opened.
    #[error("the device was lost {n_losses} times without a token in between: {reason}")]
    DeviceKeepsFailing { n_losses: usize, reason: String },
    /// The tokenizer or the chat template.
    #[error("{source_name}: {error}")]
    Text { source_name: String, error: TextError },
    /// The request or its computation.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// Weights without a vocabulary.
    #[error("{source_name}: no tokenizer: expected {expected}")]
    NoTokenizer { source_name: String, expected: &'static str },
    /// Messages need a template; plain text does not.
    #[error(
        "{source_name}: no chat template: expected chat_template.jinja, or chat_template in the tokenizer's metadata; \
         without one a model only continues plain text"
    )]
    NoTemplate { source_name: String },
    /// A saved conversation that is not one.
    #[error("{place}: not a conversation")]
    ConversationJson {
        place: String,
        #[source]
        source: serde_json::Error,
    },
    /// A saved conversation larger than any real one.
    #[error("{path}: {n_bytes} bytes, more than the {max_bytes} that a conversation may have")]
    ConversationSize { path: String, n_bytes: u64, max_bytes: u64 },
    /// The file system refused.
    #[error("{path}: cannot {action}")]
    File {
        path: String,
        action: &'static str,
        #[source]
        source: std::io::Error,
    },
}
