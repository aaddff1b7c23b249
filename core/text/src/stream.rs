//! Streaming decode: token ids in, complete characters out.
//!
//! A token may end inside a character, so its bytes wait until the character is whole. What is shown is always the same text
//! that decoding all ids at once gives.

use std::str;
use std::sync::Arc;

use crate::pieces::Pieces;
use crate::tokenizer::ShowSpecial;

/// Decodes one sequence, token by token. Owns what it needs, so it may outlive a borrow of the tokenizer.
#[derive(Debug, Clone)]
pub struct TextStream {
    pieces: Arc<Pieces>,
    special: ShowSpecial,
    at_start: bool,
    held: Vec<u8>,
}

impl TextStream {
    pub(crate) fn new(pieces: Arc<Pieces>, special: ShowSpecial) -> Self {
        Self { pieces, special, at_start: true, held: Vec::new() }
    }

    /// The characters that this token completes; `None` when it completes none (inside a character, or a hidden special token).
    ///
    /// Bytes that can never become UTF-8 come out as U+FFFD at once, one for each maximal invalid part,
    /// as [`String::from_utf8_lossy`] does. An unknown id stands for nothing.
    pub fn push(&mut self, id: u32) -> Option<String> {
        if self.special == ShowSpecial::No && self.pieces.is_special(id) {
            return None;
        }
        let bytes = self.pieces.bytes(id);
        self.held.extend(without_first_space(bytes, self.at_start && self.pieces.strip_first_space()));
        self.at_start &= bytes.is_empty();
        let text = take_complete(&mut self.held);
        (!text.is_empty()).then_some(text)
    }

    /// What is left when generation ends: U+FFFD if it stopped inside a character, otherwise nothing.
    pub fn finish(self) -> String {
        String::from_utf8_lossy(&self.held).into_owned()
    }
}

fn without_first_space(bytes: &[u8], strip: bool) -> &[u8] {
    if strip { bytes.strip_prefix(b" ").unwrap_or(bytes) } else { bytes }
}

/// Removes everything but an unfinished last character from `held`, as text.
fn take_complete(held: &mut Vec<u8>) -> String {
    let unfinished = unfinished_tail_bytes(held);
    let tail = held.split_off(held.len() - unfinished);
    let complete = std::mem::replace(held, tail);
    String::from_utf8_lossy(&complete).into_owned()
}

/// Bytes at the end that start a character and could still become one: 0 to 3.
fn unfinished_tail_bytes(bytes: &[u8]) -> usize {
    let mut rest = bytes;
    loop {
        let Err(error) = str::from_utf8(rest) else { return 0 };
        let bad = rest.get(error.valid_up_to()..).unwrap_or_default();
        match error.error_len() {
            None => return bad.len(),
            Some(n) => rest = bad.get(n..).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_unfinished_character_waits() {
        let cases: [(&[u8], usize); 7] = [
            (b"", 0),
            (b"ab", 0),
            (b"a\xE6", 1),
            (b"a\xE6\x97", 2),
            (b"\xF0\x9F\x98", 3),
            (b"\xFF\xE6", 1),
            (b"\xE6a", 0),
        ];
        for (bytes, expected) in cases {
            assert_eq!(unfinished_tail_bytes(bytes), expected, "{bytes:x?}");
        }
    }
}
