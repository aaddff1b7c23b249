//! The bytes that each token stands for.
//!
//! One idea: a decoder that is a table from id to bytes can be run token by token, and UTF-8 is put together from bytes afterwards.
//! Both decoders that our families use are such tables: byte-level (GPT-2's printable alphabet) and SentencePiece (`▁` and `<0xNN>`).

use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// How the text of a vocabulary entry becomes bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decoding {
    /// Each character is one byte, in GPT-2's printable alphabet.
    ByteLevel,
    /// `▁` is a space and `<0xNN>` a byte; `strip_first_space` drops one space at the start of a text.
    SentencePiece { strip_first_space: bool },
}

/// Token id to bytes, and which tokens are special.
#[derive(Debug)]
pub(crate) struct Pieces {
    bytes: Vec<u8>,
    spans: HashMap<u32, Range<usize>>,
    special: HashSet<u32>,
    strip_first_space: bool,
}

/// One vocabulary entry as [`Pieces::new`] takes it.
pub(crate) struct Entry<'a> {
    pub id: u32,
    pub text: &'a str,
    pub kind: EntryKind,
}

/// Where an entry comes from: the model's own vocabulary, or the tokens added to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind {
    Model,
    Added,
    Special,
}

impl Pieces {
    /// The table for these entries; a later entry with the same id replaces an earlier one.
    pub fn new<'a>(decoding: Decoding, entries: impl Iterator<Item = Entry<'a>>) -> Self {
        let alphabet = byte_of_char();
        let strip_first_space = decoding == Decoding::SentencePiece { strip_first_space: true };
        let mut pieces = Self { bytes: Vec::new(), spans: HashMap::new(), special: HashSet::new(), strip_first_space };
        for entry in entries {
            let start = pieces.bytes.len();
            push_bytes(&mut pieces.bytes, decoding, &alphabet, &entry);
            pieces.spans.insert(entry.id, start..pieces.bytes.len());
            if entry.kind == EntryKind::Special {
                pieces.special.insert(entry.id);
            }
        }
        pieces
    }

    /// The bytes of a token, or nothing for an id that is not in the vocabulary.
    pub fn bytes(&self, id: u32) -> &[u8] {
        self.spans.get(&id).and_then(|span| self.bytes.get(span.clone())).unwrap_or_default()
    }

    /// One more than the largest id.
    pub fn n_tokens(&self) -> usize {
        self.spans.keys().max().map_or(0, |id| *id as usize + 1)
    }

    /// Whether the token is a control token, which plain text does not show.
    pub fn is_special(&self, id: u32) -> bool {
        self.special.contains(&id)
    }

    /// Whether one space at the very start of a text belongs to the vocabulary and not to the text.
    pub fn strip_first_space(&self) -> bool {
        self.strip_first_space
    }
}

fn push_bytes(out: &mut Vec<u8>, decoding: Decoding, alphabet: &HashMap<char, u8>, entry: &Entry<'_>) {
    match decoding {
        Decoding::ByteLevel if entry.kind == EntryKind::Model => push_byte_level(out, alphabet, entry.text),
        Decoding::ByteLevel => out.extend(entry.text.bytes()),
        Decoding::SentencePiece { .. } => match byte_token(entry.text) {
            Some(byte) => out.push(byte),
            None => out.extend(entry.text.replace('▁', " ").bytes()),
        },
    }
}

/// A token with any character outside the alphabet stands for its own text, as in the reference decoder.
fn push_byte_level(out: &mut Vec<u8>, alphabet: &HashMap<char, u8>, text: &str) {
    let bytes: Option<Vec<u8>> = text.chars().map(|c| alphabet.get(&c).copied()).collect();
    match bytes {
        Some(bytes) => out.extend(bytes),
        None => out.extend(text.bytes()),
    }
}

/// The byte that a token of the form `<0xNN>` stands for.
fn byte_token(text: &str) -> Option<u8> {
    let digits = text.strip_prefix("<0x")?.strip_suffix('>')?;
    let two_hex = digits.len() == 2 && digits.bytes().all(|b| b.is_ascii_hexdigit());
    two_hex.then(|| u8::from_str_radix(digits, 16).ok()).flatten()
}

/// GPT-2's alphabet: printable Latin-1 bytes are themselves, the other 68 follow from U+0100 in byte order.
pub(crate) fn byte_of_char() -> HashMap<char, u8> {
    let printable = |b: u8| matches!(b, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    let moved = (0..=u8::MAX).filter(|b| !printable(*b)).zip('\u{100}'..);
    (0..=u8::MAX).filter(|b| printable(*b)).map(|b| (char::from(b), b)).chain(moved.map(|(b, c)| (c, b))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(decoding: Decoding, text: &str, kind: EntryKind) -> Vec<u8> {
        Pieces::new(decoding, [Entry { id: 7, text, kind }].into_iter()).bytes(7).to_vec()
    }

    #[test]
    fn byte_alphabet_covers_every_byte_once() {
        let alphabet = byte_of_char();
        assert_eq!(alphabet.len(), 256);
        assert_eq!((alphabet[&'Ġ'], alphabet[&'Ċ'], alphabet[&'a']), (b' ', b'\n', b'a'));
    }

    #[test]
    fn entries_become_bytes() {
        let sp = Decoding::SentencePiece { strip_first_space: false };
        assert_eq!(bytes_of(Decoding::ByteLevel, "Ġa", EntryKind::Model), b" a");
        assert_eq!(bytes_of(Decoding::ByteLevel, "  ", EntryKind::Added), b"  ");
        assert_eq!(bytes_of(Decoding::ByteLevel, "é", EntryKind::Added), "é".as_bytes());
        assert_eq!(bytes_of(sp, "▁▁x", EntryKind::Model), b"  x");
        assert_eq!(bytes_of(sp, "<0xE6>", EntryKind::Model), [0xE6]);
        assert_eq!(bytes_of(sp, "<0x+1>", EntryKind::Model), b"<0x+1>");
    }
}
