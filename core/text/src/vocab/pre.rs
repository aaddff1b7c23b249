//! The pre-tokenizers that GGUF files name.
//!
//! The names are those that converters write; the patterns are those of the tokenizers behind them.

use tokenizers::PreTokenizerWrapper;
use tokenizers::normalizers::unicode::NFC;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{NormalizerWrapper, SplitDelimiterBehavior};

use crate::error::TextError;

/// cl100k without possessive quantifiers: dolma2, Llama 3, DBRX.
const CL100K: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// The same with single digits: Qwen 2, StableLM 2.
const CL100K_DIGITS: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// GPT-4o: words split where the case changes.
const O200K: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|",
    r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);

/// The vocabulary sizes of dolma2: with its filler rows and without. OLMo files name many pre-tokenizers but mean one.
const DOLMA2_SIZES: [usize; 2] = [100_278, 100_352];

/// How a text is prepared for byte-level BPE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pre {
    split: Splitting,
    /// A piece that is a token as a whole is that token, whatever the merges say.
    pub ignore_merges: bool,
    /// Unicode composition first. GGUF does not record it; every tokenizer of this name has it.
    nfc: bool,
    /// Whether a begin-of-text token is added when the file does not say.
    pub add_bos_by_default: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Splitting {
    Gpt2,
    DigitsThenGpt2,
    Pattern(&'static str),
}

impl Pre {
    /// The pre-tokenizer of this name. dolma2 is known by its size where the name is absent, generic or unknown.
    pub fn named(name: Option<&str>, n_tokens: usize) -> Result<Self, TextError> {
        let name = name.unwrap_or("default");
        let known = by_name(name);
        let vague = known.is_none() || matches!(name, "default" | "gpt-2" | "gpt-4o" | "llama-bpe");
        if vague && DOLMA2_SIZES.contains(&n_tokens) {
            return Ok(plain(Splitting::Pattern(CL100K)));
        }
        known.ok_or_else(|| TextError::PreTokenizer { found: name.to_owned(), n_tokens })
    }

    pub fn normalizer(self) -> Option<NormalizerWrapper> {
        self.nfc.then(|| NFC.into())
    }

    pub fn pre_tokenizer(self) -> Result<PreTokenizerWrapper, TextError> {
        let gpt2 = ByteLevel::new(false, true, true);
        Ok(match self.split {
            Splitting::Gpt2 => gpt2.into(),
            Splitting::DigitsThenGpt2 => Sequence::new(vec![Digits::new(true).into(), gpt2.into()]).into(),
            Splitting::Pattern(pattern) => {
                let pattern = SplitPattern::Regex(pattern.to_owned());
                let split = Split::new(pattern, SplitDelimiterBehavior::Isolated, false).map_err(super::build_error)?;
                Sequence::new(vec![split.into(), ByteLevel::new(false, true, false).into()]).into()
            }
        })
    }
}

fn plain(split: Splitting) -> Pre {
    Pre { split, ignore_merges: false, nfc: false, add_bos_by_default: false }
}

fn by_name(name: &str) -> Option<Pre> {
    Some(match name {
        "default" | "gpt-2" | "phi-2" | "mpt" | "jais" | "trillion" | "granite-docling" => plain(Splitting::Gpt2),
        "olmo" => Pre { nfc: true, ..plain(Splitting::Gpt2) },
        "smollm" | "starcoder" | "refact" | "command-r" | "codeshell" | "exaone" => plain(Splitting::DigitsThenGpt2),
        "dbrx" | "smaug-bpe" => plain(Splitting::Pattern(CL100K)),
        "llama3" | "llama-v3" | "llama-bpe" | "falcon3" | "falcon-h1" | "pixtral" | "midm-2.0" | "lfm2" => {
            Pre { ignore_merges: true, add_bos_by_default: true, ..plain(Splitting::Pattern(CL100K)) }
        }
        "stablelm2" => plain(Splitting::Pattern(CL100K_DIGITS)),
        "qwen2" | "deepseek-r1-qwen" => Pre { nfc: true, ..plain(Splitting::Pattern(CL100K_DIGITS)) },
        "gpt-4o" | "llama4" => plain(Splitting::Pattern(O200K)),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dolma2_is_known_by_its_size_where_the_name_is_vague() {
        let dolma2 = plain(Splitting::Pattern(CL100K));
        for name in [None, Some("default"), Some("gpt-4o"), Some("llama-bpe"), Some("dbrx"), Some("no-such")] {
            for n_tokens in DOLMA2_SIZES {
                assert_eq!(Pre::named(name, n_tokens).unwrap(), dolma2, "{name:?}");
            }
        }
        assert_eq!(Pre::named(Some("stablelm2"), 100_352).unwrap(), plain(Splitting::Pattern(CL100K_DIGITS)));
    }

    #[test]
    fn an_unknown_name_is_an_error_that_says_it() {
        let error = Pre::named(Some("no-such"), 32_000).unwrap_err();
        assert!(error.to_string().contains("\"no-such\""), "{error}");
    }
}
