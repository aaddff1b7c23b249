//! Generated ids to text that may be shown: whole characters, nothing of a stop string, reasoning apart from answer.

use samara_text::{Span, StopStrings, TextStream, ThinkSplitter};

/// Which part of an output a text belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// Inside `<think>...</think>`.
    Reasoning,
    /// What was asked for.
    Answer,
}

/// A whole output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// Text inside `<think>...</think>`; empty where the model does not reason aloud.
    pub reasoning: String,
    /// The text shown to the user.
    pub answer: String,
    /// Every generated id, a closing stop id included.
    pub ids: Vec<u32>,
}

/// The text side of one generation.
pub(crate) struct Output {
    stream: TextStream,
    stops: StopStrings,
    splitter: Option<ThinkSplitter>,
    written: Written,
}

/// Text that may be shown, by channel.
pub(crate) type Shown = Vec<(Channel, String)>;

impl Output {
    pub fn new(stream: TextStream, stops: StopStrings, splitter: Option<ThinkSplitter>) -> Self {
        Self { stream, stops, splitter, written: Written::default() }
    }

    /// The text that this id completes, and whether a stop string is complete.
    pub fn push(&mut self, id: u32) -> (Shown, bool) {
        self.written.ids.push(id);
        let text = self.stream.push(id).unwrap_or_default();
        let (text, hit) = self.stops.push(&text);
        let spans = split(&mut self.splitter, text);
        (self.written.note(spans), hit)
    }

    /// Notes an id that ends the output and stands for no text.
    pub fn push_silent(&mut self, id: u32) {
        self.written.ids.push(id);
    }

    /// What was held back, and the whole output.
    pub fn finish(mut self) -> (Shown, Written) {
        let rest = self.stream.finish();
        let (mut text, _) = self.stops.push(&rest);
        text.push_str(&self.stops.finish());
        let mut spans = split(&mut self.splitter, text);
        spans.extend(self.splitter.map(ThinkSplitter::finish).unwrap_or_default());
        let shown = self.written.note(spans);
        (shown, self.written)
    }
}

fn split(splitter: &mut Option<ThinkSplitter>, text: String) -> Vec<Span> {
    match splitter {
        Some(splitter) => splitter.push(&text),
        None => vec![Span::Answer(text)],
    }
}

impl Written {
    /// Remembers spans and gives those that have text.
    fn note(&mut self, spans: Vec<Span>) -> Shown {
        let shown = spans.into_iter().map(|span| match span {
            Span::Reasoning(text) => (Channel::Reasoning, text),
            Span::Answer(text) => (Channel::Answer, text),
        });
        let shown: Shown = shown.filter(|(_, text)| !text.is_empty()).collect();
        for (channel, text) in &shown {
            match channel {
                Channel::Reasoning => self.reasoning.push_str(text),
                Channel::Answer => self.answer.push_str(text),
            }
        }
        shown
    }
}

#[cfg(test)]
mod tests;
