//! Reasoning and answer, told apart by the text `<think>` and `</think>`.
//!
//! The markers are ordinary text: dolma2 spells them in three tokens each, and the last one merges with what follows,
//! so ids cannot be matched. One block of reasoning comes first; after `</think>` everything is the answer,
//! so an answer may speak about `<think>`.

use crate::hold_back::held_bytes;

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// A piece of the output. Joined, the pieces are the output without its markers and the line breaks beside them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Span {
    /// Inside `<think>...</think>`.
    Reasoning(String),
    /// What the user asked for.
    Answer(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing but white space so far: a `<think>` may still come.
    Start,
    Reasoning,
    Answer,
}

/// Splits a streamed output. The result does not depend on how the text is cut into pushes.
#[derive(Debug, Clone)]
pub struct ThinkSplitter {
    state: State,
    held: String,
    /// A marker was the last thing read: line breaks after it are layout.
    after_marker: bool,
}

impl ThinkSplitter {
    /// A splitter for an output whose prompt has already opened the reasoning (`starts_inside`) or has not.
    pub fn new(starts_inside: bool) -> Self {
        let state = if starts_inside { State::Reasoning } else { State::Start };
        Self { state, held: String::new(), after_marker: starts_inside }
    }

    /// A splitter for the output after this prompt: it starts inside when the prompt ends with `<think>`.
    pub fn after_prompt(prompt: &str) -> Self {
        Self::new(prompt.trim_end().ends_with(OPEN))
    }

    /// Whether the output is inside the reasoning now.
    pub fn is_inside(&self) -> bool {
        self.state == State::Reasoning
    }

    /// The spans that are certain now; a possible marker is held back.
    pub fn push(&mut self, text: &str) -> Vec<Span> {
        self.held.push_str(text);
        let mut spans = Vec::new();
        while self.advance(&mut spans) {}
        spans
    }

    /// What was held back when generation ends.
    pub fn finish(mut self) -> Vec<Span> {
        let rest = std::mem::take(&mut self.held);
        let mut spans = Vec::new();
        self.emit(rest, &mut spans);
        spans
    }

    /// Reads up to the next marker; false when nothing more can be said for now.
    fn advance(&mut self, spans: &mut Vec<Span>) -> bool {
        match self.state {
            State::Start => self.advance_start(),
            State::Reasoning => self.advance_reasoning(spans),
            State::Answer => {
                let rest = std::mem::take(&mut self.held);
                self.emit(rest, spans);
                false
            }
        }
    }

    fn advance_start(&mut self) -> bool {
        let body = self.held.trim_start();
        if let Some(rest) = body.strip_prefix(OPEN) {
            self.held = rest.to_owned();
            self.enter(State::Reasoning);
            return true;
        }
        let undecided = OPEN.starts_with(body);
        if !undecided {
            self.state = State::Answer;
        }
        !undecided
    }

    fn advance_reasoning(&mut self, spans: &mut Vec<Span>) -> bool {
        if let Some(at) = self.held.find(CLOSE) {
            let mut inside = std::mem::take(&mut self.held);
            let rest = inside.split_off(at);
            self.emit(inside.trim_end_matches(['\r', '\n']).to_owned(), spans);
            self.held = rest.strip_prefix(CLOSE).unwrap_or_default().to_owned();
            self.enter(State::Answer);
            return true;
        }
        let certain = self.held.len() - held_bytes(&self.held, [CLOSE]);
        let certain = self.held.get(..certain).unwrap_or_default().trim_end_matches(['\r', '\n']).len();
        let tail = self.held.split_off(certain);
        let inside = std::mem::replace(&mut self.held, tail);
        self.emit(inside, spans);
        false
    }

    fn enter(&mut self, state: State) {
        self.state = state;
        self.after_marker = true;
    }

    fn emit(&mut self, text: String, spans: &mut Vec<Span>) {
        let text = if self.after_marker { text.trim_start_matches(['\r', '\n']).to_owned() } else { text };
        if text.is_empty() {
            return;
        }
        self.after_marker = false;
        spans.push(match self.state {
            State::Reasoning => Span::Reasoning(text),
            State::Start | State::Answer => Span::Answer(text),
        });
    }
}
