//! Text in, token ids out, and back: tokenizers, streaming decode, chat templates, stop rules and the split between reasoning and answer.
//!
//! Nothing here knows a model, a device, a file or a clock. Everything is plain data in and plain data out,
//! so the same code serves a window, a shell and a browser tab.
//!
//! - [`Tokenizer`]: from a `tokenizer.json` or from the vocabulary inside a GGUF file ([`Vocab`]).
//! - [`TextStream`]: one token at a time, never half a character.
//! - [`ChatTemplate`]: messages to prompt, as the checkpoint's own Jinja template says.
//! - [`StopStrings`], [`stop_ids`]: where generation ends.
//! - [`ThinkSplitter`]: `<think>...</think>` against answer, by text.
//! - [`FunctionCallSplitter`], [`parse_calls`]: Olmo 3's pythonic function calls.
#![deny(clippy::indexing_slicing)]

mod calls;
mod chat;
mod error;
mod hold_back;
mod pieces;
mod python;
mod stop;
mod stop_ids;
mod stream;
mod template;
mod think;
mod tokenizer;
mod vocab;

pub use calls::{CallSpan, FunctionCall, FunctionCallSplitter, parse_calls};
pub use chat::{CivilTime, Message, RenderOptions, TemplateTokens};
pub use error::TextError;
pub use stop::StopStrings;
pub use stop_ids::{StopIdSources, stop_ids, turn_end_ids};
pub use stream::TextStream;
pub use template::{ChatTemplate, TemplateSources, choose_template};
pub use think::{Span, ThinkSplitter};
pub use tokenizer::{AddSpecial, ShowSpecial, Tokenizer};
pub use vocab::Vocab;
