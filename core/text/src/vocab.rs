//! A tokenizer from the vocabulary inside a GGUF file.
//!
//! The file gives tokens, types, scores and merges; how a text is split before merging is only named (`pre`),
//! so the names are a table here ([`pre`]). The result gives the ids of the tokenizer that the file was converted from.

mod byte_level;
mod pre;
mod sentencepiece;

use tokenizers::AddedToken;

use crate::error::TextError;
use crate::pieces::Decoding;
use crate::tokenizer::Around;

/// The `tokenizer.ggml.*` values of a GGUF file, as plain data.
#[derive(Debug, Clone, Default)]
pub struct Vocab {
    /// `model`: `"gpt2"` is byte-level BPE, `"llama"` SentencePiece.
    pub model: String,
    /// `pre`: the name of the pre-tokenizer, for `"gpt2"`.
    pub pre: Option<String>,
    /// `tokens`: the text of each id.
    pub tokens: Vec<String>,
    /// `scores`, for `"llama"`: a pair with a higher score merges first.
    pub scores: Vec<f32>,
    /// `token_type`: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte. Empty means all normal.
    pub token_types: Vec<u32>,
    /// `merges`, for `"gpt2"`: `"left right"`, best first.
    pub merges: Vec<String>,
    /// `bos_token_id`.
    pub bos: Option<u32>,
    /// `eos_token_id`.
    pub eos: Option<u32>,
    /// `unknown_token_id`.
    pub unk: Option<u32>,
    /// `padding_token_id`.
    pub pad: Option<u32>,
    /// `add_bos_token`; when absent, SentencePiece and Llama 3 add one and others do not.
    pub add_bos: Option<bool>,
    /// `add_eos_token`; when absent, none is added.
    pub add_eos: Option<bool>,
    /// `add_space_prefix`, for `"llama"`; when absent, a space is put before each text.
    pub add_space_prefix: Option<bool>,
}

pub(crate) struct Built {
    pub inner: tokenizers::Tokenizer,
    pub decoding: Decoding,
    pub around: Around,
}

const NORMAL: u32 = 1;
const CONTROL: u32 = 3;
const USER_DEFINED: u32 = 4;
const BYTE: u32 = 6;

pub(crate) fn build(vocab: Vocab) -> Result<Built, TextError> {
    check(&vocab)?;
    match vocab.model.as_str() {
        "gpt2" => byte_level::build(&vocab),
        "llama" => sentencepiece::build(vocab),
        other => Err(TextError::VocabModel { found: other.to_owned() }),
    }
}

fn check(vocab: &Vocab) -> Result<(), TextError> {
    let n_tokens = vocab.tokens.len();
    let lengths = [("token_type", vocab.token_types.len()), ("scores", vocab.scores.len())];
    if let Some((array, found)) = lengths.into_iter().find(|(_, found)| *found != 0 && *found != n_tokens) {
        return Err(TextError::VocabLength { array, found, expected: n_tokens });
    }
    let ids = [
        ("bos_token_id", vocab.bos),
        ("eos_token_id", vocab.eos),
        ("unknown_token_id", vocab.unk),
        ("padding_token_id", vocab.pad),
    ];
    for (key, id) in ids.into_iter().filter_map(|(key, id)| Some((key, id?))) {
        if id as usize >= n_tokens {
            return Err(TextError::TokenId { key, id, n_tokens });
        }
    }
    Ok(())
}

impl Vocab {
    /// Every token with its id and type, in id order.
    fn entries(&self) -> impl Iterator<Item = (u32, &str, u32)> {
        let types = self.token_types.iter().copied().chain(std::iter::repeat(NORMAL));
        (0..).zip(&self.tokens).zip(types).map(|((id, text), kind)| (id, text.as_str(), kind))
    }

    fn text(&self, id: Option<u32>) -> Option<&str> {
        self.tokens.get(id? as usize).map(String::as_str)
    }

    fn around(&self, add_bos_by_default: bool) -> Around {
        let before = self.bos.filter(|_| self.add_bos.unwrap_or(add_bos_by_default));
        let after = self.eos.filter(|_| self.add_eos.unwrap_or(false));
        Around { before: before.into_iter().collect(), after: after.into_iter().collect() }
    }

    fn id_map(&self) -> tokenizers::models::bpe::Vocab {
        self.entries().map(|(id, text, _)| (text.to_owned(), id)).collect()
    }

    /// Tokens that are found in a text before anything else; control tokens are special.
    fn added_tokens(&self) -> Vec<AddedToken> {
        let added = self.entries().filter(|(_, _, kind)| matches!(*kind, CONTROL | USER_DEFINED));
        added.map(|(_, text, kind)| AddedToken::from(text, kind == CONTROL)).collect()
    }
}

fn build_error(error: impl std::fmt::Display) -> TextError {
    TextError::Vocab { reason: error.to_string() }
}
