//! What a chat template is given: messages, the names of special tokens, and options. Plain data.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One message of a conversation, as templates see it: a map of `role`, `content` and whatever else it carries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// `system`, `user`, `assistant`, or what the template knows (`environment`, `tool`).
    pub role: String,
    /// The text; `null` in a turn that only calls functions.
    #[serde(default)]
    pub content: Option<String>,
    /// Other keys, such as `functions` and `function_calls`.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Message {
    /// A message with a role and a text.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Self {
        Self { role: role.into(), content: Some(content.into()), extra: Map::new() }
    }
}

/// The text of the special tokens that templates name; one that the tokenizer does not have is undefined in the template.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TemplateTokens {
    pub bos: Option<String>,
    pub eos: Option<String>,
    pub pad: Option<String>,
    pub unk: Option<String>,
}

/// How to render a conversation.
#[derive(Debug, Clone, Default)]
pub struct RenderOptions {
    /// End with the header of the assistant's turn, so that the model answers.
    pub add_generation_prompt: bool,
    /// Function signatures, as JSON schemas; empty means none.
    pub tools: Vec<Value>,
    /// The local time for templates that write the date; without it `strftime_now` is undefined and they use their own date.
    pub now: Option<CivilTime>,
    /// Further variables, such as `enable_thinking`.
    pub variables: Map<String, Value>,
}

/// A local date and time of day. The caller reads the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CivilTime {
    pub year: i32,
    /// 1 to 12.
    pub month: u32,
    /// 1 to 31.
    pub day: u32,
    pub hour: u32,
    pub minute: u32,
    pub second: u32,
}
