//! What can go wrong with text: one enum, each variant says which part, what was expected and what was found.

/// An error of a tokenizer, a vocabulary, a chat template or a function call.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// The bytes are not a `tokenizer.json`.
    #[error("tokenizer.json: {reason}")]
    Json { reason: String },
    /// A part of `tokenizer.json` is of a kind that no supported model uses.
    #[error("tokenizer.json: {part} is {found}, expected {expected}")]
    Unsupported { part: &'static str, found: String, expected: &'static str },
    /// The vocabulary's model is neither byte-level BPE nor SentencePiece.
    #[error("tokenizer.ggml.model is {found:?}, expected \"gpt2\" or \"llama\"")]
    VocabModel { found: String },
    /// The file names a pre-tokenizer that we do not know, so its ids would be wrong without notice.
    #[error("tokenizer.ggml.pre is {found:?}, which is not a known pre-tokenizer (vocabulary of {n_tokens} tokens)")]
    PreTokenizer { found: String, n_tokens: usize },
    /// An array of the vocabulary does not have one entry for each token.
    #[error("tokenizer.ggml.{array} has {found} entries, expected {expected}, one for each token")]
    VocabLength { array: &'static str, found: usize, expected: usize },
    /// An entry of the vocabulary cannot be used.
    #[error("tokenizer.ggml.{array}[{index}] is {found:?}: {reason}")]
    VocabEntry { array: &'static str, index: usize, found: String, reason: &'static str },
    /// A special token's id lies outside the vocabulary.
    #[error("{key} is {id}, but the vocabulary has {n_tokens} tokens")]
    TokenId { key: &'static str, id: u32, n_tokens: usize },
    /// The tokenizer library refused the vocabulary.
    #[error("the vocabulary cannot be built: {reason}")]
    Vocab { reason: String },
    /// The text could not be encoded.
    #[error("the text cannot be tokenized: {reason}")]
    Encode { reason: String },
    /// A run of white space longer than the splitting pattern can follow.
    #[error("the text has {n_chars} white-space characters in a row from byte {at_byte}, the limit is {limit}")]
    WhiteSpaceRun { at_byte: usize, n_chars: usize, limit: usize },
    /// The chat template is not valid Jinja, or uses something that does not exist.
    #[error("chat template, line {line}: {reason}")]
    Template { line: usize, reason: String },
    /// The chat template refused the messages by `raise_exception`.
    #[error("the chat template refused the messages: {reason}")]
    TemplateRefused { reason: String },
    /// The chat template ran longer than any honest one does.
    #[error("the chat template did not end within {limit} steps")]
    TemplateSteps { limit: u64 },
    /// The chat template wrote more than the limit.
    #[error("the chat template wrote more than {limit} bytes")]
    TemplateSize { limit: usize },
    /// A value that should describe a chat template does not.
    #[error("chat_template: {reason}")]
    TemplateField { reason: String },
    /// A function call that is not well formed.
    #[error("function call, byte {at_byte}: expected {expected}, found {found}")]
    Call { at_byte: usize, expected: &'static str, found: String },
}
