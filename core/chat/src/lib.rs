//! Text over token ids: the one API that front ends see.
//!
//! A [`Source`] is loaded into a [`Model`], which becomes a [`Session`]. A session answers a [`Prompt`] with a
//! [`Generation`], and whoever wants the text pulls it: [`Generation::next`] gives one [`Piece`] after another, whole
//! characters only, reasoning apart from answer, nothing of a stop string. A [`Conversation`] remembers what was said.
//! A device that is lost on the way is opened again: a [`Reload`] brings the model back, and the same generation goes on.
//! A [`Dialect`] is the textual side of a checkpoint alone, for whoever needs no weights.
//!
//! Deliberately absent: threads, clocks, terminals and windows. Files are touched in two places: where a source is
//! opened and where a conversation is kept.

mod conversation;
#[cfg(not(target_arch = "wasm32"))]
mod conversation_file;
mod dialect;
mod embedded;
mod error;
mod fit;
mod generation;
mod gguf_vocab;
mod model;
mod output;
mod prompt;
mod recovery;
mod session;
mod source;
mod suggestion;
mod templates;

pub use conversation::Conversation;
pub use dialect::Dialect;
pub use error::ChatError;
pub use fit::check_fits;
pub use generation::{Done, Generation, Piece};
pub use model::Model;
pub use output::{Channel, Written};
pub use prompt::{Encoded, Prompt};
pub use recovery::Reload;
pub use samara_engine::{FinishReason, Sampling, Stats};
pub use samara_model::{Config, Decoder, KvFormat, KvFormats, LoadProgress, ScaledAdapter};
pub use samara_ops::device::OpenDevice;
pub use samara_text::{Message, RenderOptions};
pub use session::{Session, SessionConfig, Settings};
pub use source::Source;
