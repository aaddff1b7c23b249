//! Text to token ids and back.
//!
//! The `tokenizers` library normalises, splits and merges, exactly as the file says. What it adds around a text and how ids become
//! text again is ours ([`outline`], [`crate::pieces`]): both are plain tables here, which streaming needs and which cannot fail.

mod outline;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use tokenizers::models::ModelWrapper;

use crate::error::TextError;
use crate::pieces::{Decoding, Entry, EntryKind, Pieces};
use crate::stream::TextStream;
use crate::vocab::{self, Vocab};
use outline::Outline;

/// The splitting patterns follow a run of white space in at most a million steps, after which text would be lost without notice.
const MAX_WHITE_SPACE_RUN: usize = 500_000;

/// Whether `encode` adds what the tokenizer puts around a text, such as a begin-of-text token.
///
/// Use `No` for a rendered chat template: templates write these tokens themselves, and a doubled one spoils the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddSpecial {
    No,
    Yes,
}

/// Whether decoding shows special (control) tokens as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShowSpecial {
    No,
    Yes,
}

/// A tokenizer, ready to use. Cheap to clone and free of interior state that matters.
#[derive(Clone)]
pub struct Tokenizer {
    inner: Arc<tokenizers::Tokenizer>,
    pieces: Arc<Pieces>,
    around: Around,
    n_tokens: usize,
}

/// Ids before and after a text that is encoded with [`AddSpecial::Yes`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Around {
    pub before: Vec<u32>,
    pub after: Vec<u32>,
}

impl Tokenizer {
    /// The tokenizer that a `tokenizer.json` describes. Nothing else is consulted: other files of a checkpoint often disagree with it.
    ///
    /// Truncation, padding and dropout in the file are ignored, so equal text gives equal ids.
    ///
    /// # Errors
    /// The bytes are not JSON of this form, the model is not BPE, or the decoder or post-processor is of a kind that no supported family uses.
    pub fn from_json(json: &[u8]) -> Result<Self, TextError> {
        let outline = Outline::parse(json)?;
        let mut inner =
            tokenizers::Tokenizer::from_bytes(json).map_err(|error| TextError::Json { reason: error.to_string() })?;
        without_dropout(&mut inner);
        inner.with_padding(None);
        inner.with_truncation(None).map_err(|error| TextError::Json { reason: error.to_string() })?;
        inner.with_post_processor(None::<tokenizers::PostProcessorWrapper>);
        Ok(Self::assemble(inner, outline.decoding()?, outline.around()?))
    }

    /// The tokenizer that the vocabulary of a GGUF file describes.
    ///
    /// # Errors
    /// An unknown model or pre-tokenizer name, arrays of unequal length, an id outside the vocabulary, a merge of unknown tokens.
    pub fn from_vocab(vocab: Vocab) -> Result<Self, TextError> {
        let vocab::Built { inner, decoding, around } = vocab::build(vocab)?;
        Ok(Self::assemble(inner, decoding, around))
    }

    fn assemble(inner: tokenizers::Tokenizer, decoding: Decoding, around: Around) -> Self {
        let model = inner.get_vocab(false);
        let added = inner.get_added_tokens_decoder();
        let model = model.iter().map(|(text, id)| Entry { id: *id, text, kind: EntryKind::Model });
        let added = added.iter().map(|(id, token)| Entry {
            id: *id,
            text: &token.content,
            kind: if token.special { EntryKind::Special } else { EntryKind::Added },
        });
        let pieces = Pieces::new(decoding, model.chain(added));
        Self { n_tokens: pieces.n_tokens(), inner: Arc::new(inner), pieces: Arc::new(pieces), around }
    }

    /// The ids of a text.
    ///
    /// Special tokens written in the text become their ids, as the reference does it: `a<|endoftext|>b` is three tokens.
    /// This holds for text that a user typed too; a caller who does not want that must change the text before.
    ///
    /// # Errors
    /// More than 500 000 white-space characters in a row.
    pub fn encode(&self, text: &str, special: AddSpecial) -> Result<Vec<u32>, TextError> {
        check_white_space(text)?;
        let encoding =
            self.inner.encode_fast(text, false).map_err(|error| TextError::Encode { reason: error.to_string() })?;
        let ids = encoding.get_ids();
        Ok(match special {
            AddSpecial::No => ids.to_vec(),
            AddSpecial::Yes => [&self.around.before, ids, &self.around.after].concat(),
        })
    }

    /// The ids of a text, as [`Self::encode`] with [`AddSpecial::No`] gives them, each with the bytes of `text` that it comes from.
    ///
    /// Ranges ascend. Tokens that share a character all have its whole range, and so does what a normalizer puts in.
    ///
    /// # Errors
    /// More than 500 000 white-space characters in a row.
    pub fn encode_with_ranges(&self, text: &str) -> Result<Vec<(u32, Range<usize>)>, TextError> {
        check_white_space(text)?;
        let encoding =
            self.inner.encode(text, false).map_err(|error| TextError::Encode { reason: error.to_string() })?;
        let ranges = encoding.get_offsets().iter().map(|(start, end)| *start..*end);
        Ok(encoding.get_ids().iter().copied().zip(ranges).collect())
    }

    /// The ids that [`AddSpecial::Yes`] puts before a text.
    pub fn ids_before(&self) -> &[u32] {
        &self.around.before
    }

    /// The text of these ids. Bytes that are not UTF-8 become U+FFFD, only after all bytes are together; unknown ids stand for nothing.
    pub fn decode(&self, ids: &[u32], special: ShowSpecial) -> String {
        let mut stream = self.stream_with(special);
        let mut text: String = ids.iter().filter_map(|id| stream.push(*id)).collect();
        text.push_str(&stream.finish());
        text
    }

    /// A decoder for one sequence as it is generated; special tokens are hidden.
    pub fn stream(&self) -> TextStream {
        self.stream_with(ShowSpecial::No)
    }

    /// A decoder for one sequence as it is generated.
    pub fn stream_with(&self, special: ShowSpecial) -> TextStream {
        TextStream::new(Arc::clone(&self.pieces), special)
    }

    /// The vocabulary entry of an id, in the vocabulary's own spelling (`Ġthe`, `▁the`, `<0x0A>`).
    pub fn token(&self, id: u32) -> Option<String> {
        self.inner.id_to_token(id)
    }

    /// The id of a vocabulary entry.
    pub fn id(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }

    /// The bytes that an id stands for; empty for an unknown id.
    pub fn token_bytes(&self, id: u32) -> &[u8] {
        self.pieces.bytes(id)
    }

    /// Whether an id is a special (control) token.
    pub fn is_special(&self, id: u32) -> bool {
        self.pieces.is_special(id)
    }

    /// One more than the largest id: every id that `encode` gives is below. An embedding with fewer rows does not fit this tokenizer.
    pub fn n_tokens(&self) -> usize {
        self.n_tokens
    }
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokenizer")
            .field("n_tokens", &self.n_tokens)
            .field("around", &self.around)
            .finish_non_exhaustive()
    }
}

fn without_dropout(inner: &mut tokenizers::Tokenizer) {
    if let ModelWrapper::BPE(bpe) = inner.get_model()
        && bpe.dropout.is_some()
    {
        let mut bpe = bpe.clone();
        bpe.dropout = None;
        inner.with_model(bpe);
    }
}

fn check_white_space(text: &str) -> Result<(), TextError> {
    if text.len() <= MAX_WHITE_SPACE_RUN {
        return Ok(());
    }
    let (mut n_chars, mut start) = (0, 0);
    for (at, c) in text.char_indices() {
        if !c.is_whitespace() {
            n_chars = 0;
            continue;
        }
        start = if n_chars == 0 { at } else { start };
        n_chars += 1;
        if n_chars > MAX_WHITE_SPACE_RUN {
            let n_chars = text.get(start..).unwrap_or_default().chars().take_while(|c| c.is_whitespace()).count();
            return Err(TextError::WhiteSpaceRun { at_byte: start, n_chars, limit: MAX_WHITE_SPACE_RUN });
        }
    }
    Ok(())
}
