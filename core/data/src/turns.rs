//! Which tokens of a rendered conversation the assistant wrote.
//!
//! A template is a program, so what it writes for a turn is found by running it on the conversation cut off before and after
//! that turn, and comparing. What the whole conversation has between the two is the turn; of it the words and the first
//! token that ends them are the assistant's. Where cutting off changes what stood before, there is no telling, and the
//! row is refused. One change is allowed, since published templates make it: another token at the end of the last turn.

use std::ops::Range;

use samara_text::{ChatTemplate, Message, RenderOptions, Tokenizer};

use crate::report::BadRow;
use crate::row::Fault;

/// A conversation as text, with what is needed to render parts of it.
pub(crate) struct Conversation<'a> {
    template: &'a ChatTemplate,
    tokenizer: &'a Tokenizer,
    messages: &'a [Message],
    options: RenderOptions,
    text: String,
    tokens: Vec<(u32, Range<usize>)>,
}

impl<'a> Conversation<'a> {
    pub fn new(
        template: &'a ChatTemplate,
        tokenizer: &'a Tokenizer,
        messages: &'a [Message],
        options: RenderOptions,
    ) -> Result<Self, Fault> {
        let mut new = Self { template, tokenizer, messages, options, text: String::new(), tokens: Vec::new() };
        new.text = new.render(messages, false)?;
        new.tokens = new.encode(&new.text)?;
        Ok(new)
    }

    pub fn ids(&self) -> Vec<u32> {
        self.tokens.iter().map(|(id, _)| *id).collect()
    }

    /// For each token whether the assistant wrote it. A turn in which it says and calls nothing is left out.
    pub fn written_by_assistant(&self) -> Result<Vec<bool>, Fault> {
        let mut written = vec![false; self.tokens.len()];
        let turns = self.messages.iter().enumerate().filter(|(_, message)| says_something(message));
        for (message_idx, _) in turns {
            let turn = self.turn(message_idx)?;
            written.get_mut(turn).into_iter().flatten().for_each(|written| *written = true);
        }
        Ok(written)
    }

    /// The tokens of one of the assistant's turns: its words and the token that ends them.
    fn turn(&self, message_idx: usize) -> Result<Range<usize>, Fault> {
        let start_byte = self.start(message_idx)?;
        let start = self.tokens.partition_point(|(_, bytes)| bytes.end <= start_byte);
        let (end, certain) = self.end(message_idx)?;
        if end < start {
            return Err(unstable(message_idx));
        }
        Ok(start..self.without_tail(start..end).unwrap_or(end + usize::from(!certain)))
    }

    /// The byte at which the assistant's words begin.
    fn start(&self, message_idx: usize) -> Result<usize, Fault> {
        let before = self.messages.get(..message_idx).unwrap_or_default();
        let prompt = self.render(before, true)?;
        if self.text.starts_with(&prompt) {
            return Ok(prompt.len());
        }
        // The prompt may open a reasoning that this turn does not have; then the words begin where they make a difference.
        let before = self.render(before, false)?;
        let (one, other) = (self.render_with(message_idx, "0")?, self.render_with(message_idx, "1")?);
        let start = common_bytes(&one, &other);
        let same = self.text.as_bytes().get(..start) == one.as_bytes().get(..start);
        let stable = self.text.starts_with(&before) && same && start >= before.len();
        stable.then_some(start).ok_or_else(|| unstable(message_idx))
    }

    /// The token after the turn, and whether it is certain that this one does not end the turn.
    fn end(&self, message_idx: usize) -> Result<(usize, bool), Fault> {
        let until = self.render(self.messages.get(..=message_idx).unwrap_or_default(), false)?;
        if self.text.starts_with(&until) {
            return Ok((self.tokens.partition_point(|(_, bytes)| bytes.start < until.len()), true));
        }
        let until = self.encode(&until)?;
        let n_common = self.tokens.iter().zip(&until).take_while(|((one, _), (other, _))| one == other).count();
        let is_special = |list: &[(u32, Range<usize>)]| list.get(n_common).is_some_and(|it| self.is_special(it.0));
        let stable = is_special(&self.tokens) && is_special(&until);
        stable.then_some((n_common, false)).ok_or_else(|| unstable(message_idx))
    }

    /// The end of the words with the first special token after them, where special tokens and white space end the turn.
    fn without_tail(&self, turn: Range<usize>) -> Option<usize> {
        let tokens = self.tokens.get(turn.clone()).unwrap_or_default();
        let is_tail = |(id, bytes): &&(u32, Range<usize>)| {
            self.is_special(*id) || self.text.get(bytes.clone()).is_some_and(|text| text.trim().is_empty())
        };
        let n_tail = tokens.iter().rev().take_while(is_tail).count();
        let tail = turn.end - n_tail..turn.end;
        let mut tail = tail.clone().zip(self.tokens.get(tail).unwrap_or_default());
        tail.find(|(_, (id, _))| self.is_special(*id)).map(|(token_idx, _)| token_idx + 1)
    }

    fn is_special(&self, id: u32) -> bool {
        self.tokenizer.is_special(id)
    }

    fn render(&self, messages: &[Message], add_generation_prompt: bool) -> Result<String, Fault> {
        let options = RenderOptions { add_generation_prompt, ..self.options.clone() };
        let rendered = self.template.render(messages, &options);
        rendered.map_err(|error| Fault::new(BadRow::Template, error.to_string()))
    }

    /// The conversation with other words in the place of one message.
    fn render_with(&self, message_idx: usize, words: &str) -> Result<String, Fault> {
        let mut messages = self.messages.to_vec();
        if let Some(message) = messages.get_mut(message_idx) {
            message.content = Some(words.to_owned());
        }
        self.render(&messages, false)
    }

    fn encode(&self, text: &str) -> Result<Vec<(u32, Range<usize>)>, Fault> {
        let encoded = self.tokenizer.encode_with_ranges(text);
        encoded.map_err(|error| Fault::new(BadRow::Tokenizer, error.to_string()))
    }
}

/// Whether this is a turn of the assistant with words or with something else, such as function calls.
fn says_something(message: &Message) -> bool {
    let has_words = message.content.as_deref().is_some_and(|words| !words.trim().is_empty());
    message.role == "assistant" && (has_words || message.extra.values().any(|value| !value.is_null()))
}

fn common_bytes(one: &str, other: &str) -> usize {
    one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count()
}

fn unstable(message_idx: usize) -> Fault {
    let reason = format!(
        "the chat template writes what comes before and in messages[{message_idx}] otherwise when more follows"
    );
    Fault::new(BadRow::UnstableTemplate, reason)
}
