//! Olmo 3's function calls: Python-like calls, one a line, between `<function_calls>` and `</function_calls>`.
//!
//! The markers are text or single tokens depending on the tokenizer, so they are matched as text, like the reasoning markers.

mod python_call;

use serde_json::{Map, Value};

use crate::error::TextError;
use crate::hold_back::held_bytes;

const OPEN: &str = "<function_calls>";
const CLOSE: &str = "</function_calls>";

/// A function and its arguments by name.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionCall {
    pub name: String,
    pub arguments: Map<String, Value>,
}

/// The calls in the text between the markers.
///
/// # Errors
/// The text is not a sequence of calls `name(key=literal, ...)`; the error names the byte.
pub fn parse_calls(text: &str) -> Result<Vec<FunctionCall>, TextError> {
    python_call::parse(text)
}

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallSpan {
    /// Text for the user.
    Text(String),
    /// All that stood between the markers, for [`parse_calls`].
    Calls(String),
}

/// Takes function calls out of a streamed answer. The result does not depend on how the text is cut into pushes.
#[derive(Debug, Clone, Default)]
pub struct FunctionCallSplitter {
    inside: bool,
    held: String,
}

impl FunctionCallSplitter {
    pub fn new() -> Self {
        Self::default()
    }

    /// The spans that are certain now. Calls come out whole, when their closing marker has come.
    pub fn push(&mut self, text: &str) -> Vec<CallSpan> {
        self.held.push_str(text);
        let mut spans = Vec::new();
        while let Some((before, after)) = split_marker(&self.held, if self.inside { CLOSE } else { OPEN }) {
            spans.extend(self.span(before));
            self.inside = !self.inside;
            self.held = after;
        }
        if !self.inside {
            let tail = self.held.split_off(self.held.len() - held_bytes(&self.held, [OPEN]));
            let certain = std::mem::replace(&mut self.held, tail);
            spans.extend(self.span(certain));
        }
        spans
    }

    /// What was held back when generation ends; a model may leave out the closing marker.
    pub fn finish(mut self) -> Option<CallSpan> {
        let rest = std::mem::take(&mut self.held);
        self.span(rest)
    }

    fn span(&self, text: String) -> Option<CallSpan> {
        let span = if self.inside { CallSpan::Calls } else { CallSpan::Text };
        (!text.is_empty()).then(|| span(text))
    }
}

fn split_marker(text: &str, marker: &str) -> Option<(String, String)> {
    text.split_once(marker).map(|(before, after)| (before.to_owned(), after.to_owned()))
}
