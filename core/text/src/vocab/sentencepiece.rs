//! SentencePiece BPE (`tokenizer.ggml.model` = `llama`): spaces are `▁`, a pair whose token has the higher score merges first,
//! and characters without a token become byte tokens.
//!
//! Scores become ranked merges, which is the same thing said for the reference BPE: every way to cut a token into two tokens
//! is a merge, ranked by the token's score.

use std::cmp::Ordering;
use std::collections::HashMap;

use tokenizers::models::bpe::BPE;
use tokenizers::normalizers::{Prepend, Replace, Sequence};
use tokenizers::{AddedToken, NormalizerWrapper, Tokenizer};

use super::{BYTE, Built, NORMAL, USER_DEFINED, Vocab, build_error};
use crate::error::TextError;
use crate::pieces::Decoding;

/// Longer tokens have no merges: real ones have at most 48, and the ways to cut one grow with the square of its length.
const MAX_MERGED_BYTES: usize = 512;

pub(super) fn build(vocab: Vocab) -> Result<Built, TextError> {
    let space_prefix = vocab.add_space_prefix.unwrap_or(true);
    let vocab = &with_user_defined_spaces(vocab, if space_prefix { " " } else { "▁" });
    let has_bytes = vocab.entries().any(|(_, _, kind)| kind == BYTE);
    let mut bpe =
        BPE::builder().vocab_and_merges(vocab.id_map(), merges(vocab)).fuse_unk(true).byte_fallback(has_bytes);
    if let Some(unk) = vocab.text(vocab.unk) {
        bpe = bpe.unk_token(unk.to_owned());
    }
    let mut inner = Tokenizer::new(bpe.build().map_err(build_error)?);
    inner.with_normalizer(Some(normalizer(space_prefix)?));
    let in_normalised = |token: &AddedToken| !token.special && !space_prefix;
    let added = vocab.added_tokens().into_iter().map(|token| {
        let normalized = in_normalised(&token);
        token.normalized(normalized)
    });
    inner.add_tokens(&added.collect::<Vec<_>>());
    let decoding = Decoding::SentencePiece { strip_first_space: space_prefix };
    Ok(Built { inner, decoding, around: vocab.around(true) })
}

/// User-defined tokens are found in the normalised text, where spaces are `▁`, or in the plain text where normalising would put
/// a space before each of them. Files spell them either way.
fn with_user_defined_spaces(mut vocab: Vocab, space: &str) -> Vocab {
    let kinds = vocab.token_types.iter();
    for (text, _) in vocab.tokens.iter_mut().zip(kinds).filter(|(_, kind)| **kind == USER_DEFINED) {
        *text = text.replace([' ', '▁'], space);
    }
    vocab
}

fn normalizer(space_prefix: bool) -> Result<NormalizerWrapper, TextError> {
    let spaces: NormalizerWrapper = Replace::new(" ", "▁").map_err(build_error)?.into();
    Ok(match space_prefix {
        true => Sequence::new(vec![Prepend::new("▁".to_owned()).into(), spaces]).into(),
        false => spaces,
    })
}

/// All cuts of all normal tokens into two normal tokens, best score first; equal scores by length, then by id,
/// as the reference converter orders them.
fn merges(vocab: &Vocab) -> Vec<(String, String)> {
    let normal = || vocab.entries().filter(|(_, _, kind)| *kind == NORMAL);
    let ids: HashMap<&str, u32> = normal().map(|(id, text, _)| (text, id)).collect();
    let mut cuts: Vec<Cut<'_>> = normal().flat_map(|(id, text, _)| cuts_of(text, score(vocab, id), &ids)).collect();
    cuts.sort_by(|a, b| b.cmp(a));
    cuts.into_iter().map(|cut| (cut.left.to_owned(), cut.right.to_owned())).collect()
}

fn score(vocab: &Vocab, id: u32) -> f32 {
    vocab.scores.get(id as usize).copied().unwrap_or(0.0)
}

struct Cut<'a> {
    left: &'a str,
    right: &'a str,
    score: f32,
}

impl Cut<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let lengths = |cut: &Self| (cut.left.chars().count(), cut.right.chars().count());
        self.score.total_cmp(&other.score).then_with(|| lengths(self).cmp(&lengths(other)))
    }
}

fn cuts_of<'a>(text: &'a str, score: f32, ids: &HashMap<&str, u32>) -> Vec<Cut<'a>> {
    if text.len() > MAX_MERGED_BYTES {
        return Vec::new();
    }
    let cut = |(at, _)| {
        let (left, right) = text.split_at_checked(at)?;
        Some(((*ids.get(left)?, *ids.get(right)?), Cut { left, right, score }))
    };
    let mut cuts: Vec<_> = text.char_indices().skip(1).filter_map(cut).collect();
    cuts.sort_by_key(|(pair, _)| *pair);
    cuts.into_iter().map(|(_, cut)| cut).collect()
}
