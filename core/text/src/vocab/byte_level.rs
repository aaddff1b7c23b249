//! Byte-level BPE (`tokenizer.ggml.model` = `gpt2`): merges in rank order over GPT-2's byte alphabet.

use tokenizers::Tokenizer;
use tokenizers::models::bpe::BPE;

use super::pre::Pre;
use super::{Built, Vocab, build_error};
use crate::error::TextError;
use crate::pieces::Decoding;

pub(super) fn build(vocab: &Vocab) -> Result<Built, TextError> {
    let pre = Pre::named(vocab.pre.as_deref(), vocab.tokens.len())?;
    let bpe = BPE::builder().vocab_and_merges(vocab.id_map(), merges(vocab)?).ignore_merges(pre.ignore_merges);
    let mut inner = Tokenizer::new(bpe.build().map_err(build_error)?);
    inner.with_normalizer(pre.normalizer());
    inner.with_pre_tokenizer(Some(pre.pre_tokenizer()?));
    inner.add_tokens(&vocab.added_tokens());
    Ok(Built { inner, decoding: Decoding::ByteLevel, around: vocab.around(pre.add_bos_by_default) })
}

fn merges(vocab: &Vocab) -> Result<Vec<(String, String)>, TextError> {
    let pair = |(index, merge): (usize, &String)| match merge.split_once(' ') {
        Some((left, right)) if !left.is_empty() && !right.is_empty() => Ok((left.to_owned(), right.to_owned())),
        _ => Err(TextError::VocabEntry {
            array: "merges",
            index,
            found: merge.clone(),
            reason: "expected two tokens with a space between",
        }),
    };
    vocab.merges.iter().enumerate().map(pair).collect()
}
