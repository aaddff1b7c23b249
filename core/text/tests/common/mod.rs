//! dolma2, the tokenizer of OLMo 2 and 3, rebuilt from the cl100k ranks: the same merges and the published list of added tokens.
#![allow(dead_code, reason = "each test binary uses a part")]

use std::collections::HashMap;
use std::sync::OnceLock;

use samara_text::{Tokenizer, Vocab};
use serde_json::{Value, json};

const N_RANKS: u32 = 100_256;
const N_TOKENS: u32 = 100_278;

pub const CL100K: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// Added tokens from id 100256 on, and whether they are special. Olmo 3's chat tokenizers have four of their own.
pub fn added_tokens(chat: bool) -> Vec<(String, bool)> {
    let mut added: Vec<(String, bool)> = [
        ("<|extra_id_0|>", false),
        ("<|endoftext|>", true),
        ("<|fim_prefix|>", true),
        ("<|fim_middle|>", true),
        ("<|fim_suffix|>", true),
        ("|||PHONE_NUMBER|||", false),
        ("|||EMAIL_ADDRESS|||", false),
        ("|||IP_ADDRESS|||", false),
        ("<|im_start|>", true),
        ("<|im_end|>", true),
    ]
    .map(|(text, special)| (text.to_owned(), special))
    .to_vec();
    if chat {
        added.extend(
            ["<functions>", "</functions>", "<function_calls>", "</function_calls>"]
                .map(|text| (text.to_owned(), false)),
        );
    }
    let n_extra = if chat { 6 } else { 10 };
    added.extend((1..=n_extra).map(|i| (format!("<|extra_id_{i}|>"), false)));
    added.extend([("<|endofprompt|>".to_owned(), true), ("<|pad|>".to_owned(), true)]);
    assert_eq!(added.len() as u32, N_TOKENS - N_RANKS);
    added
}

/// Ranks and merges of cl100k in GPT-2's printable alphabet.
pub struct Cl100k {
    pub tokens: Vec<String>,
    pub merges: Vec<(String, String)>,
}

pub fn cl100k() -> &'static Cl100k {
    static CL100K: OnceLock<Cl100k> = OnceLock::new();
    CL100K.get_or_init(|| {
        let bpe = tiktoken_rs::cl100k_base().unwrap();
        let ranks: Vec<Vec<u8>> = (0..N_RANKS).map(|id| bpe.decode_bytes(&[id]).unwrap()).collect();
        let rank_of: HashMap<&[u8], usize> =
            ranks.iter().enumerate().map(|(rank, bytes)| (bytes.as_slice(), rank)).collect();
        let pairs = ranks.iter().filter(|bytes| bytes.len() > 1).map(|bytes| pair_of(bytes, &rank_of));
        let merges = pairs.map(|(left, right)| (printable(left), printable(right))).collect();
        Cl100k { tokens: ranks.iter().map(|bytes| printable(bytes)).collect(), merges }
    })
}

/// The two tokens that merge last into this one: merging by rank stops just before the token itself.
fn pair_of<'a>(bytes: &'a [u8], rank_of: &HashMap<&[u8], usize>) -> (&'a [u8], &'a [u8]) {
    let mut ends: Vec<usize> = (0..=bytes.len()).collect();
    while ends.len() > 3 {
        let rank = |i: usize| rank_of.get(&bytes[ends[i]..ends[i + 2]]).copied().unwrap_or(usize::MAX);
        let best = (0..ends.len() - 2).min_by_key(|i| rank(*i)).unwrap();
        ends.remove(best + 1);
    }
    bytes.split_at(ends[1])
}

fn printable(bytes: &[u8]) -> String {
    let is_printable = |b: u8| matches!(b, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    let moved: Vec<u8> = (0..=255).filter(|b| !is_printable(*b)).collect();
    let char_of = |b: u8| match moved.iter().position(|m| *m == b) {
        Some(i) => char::from_u32(256 + i as u32).unwrap(),
        None => char::from(b),
    };
    bytes.iter().map(|b| char_of(*b)).collect()
}

/// `tokenizer.json` as published, merges as text or as pairs.
pub fn dolma2_json(chat: bool, merges_as_pairs: bool) -> Value {
    let cl100k = cl100k();
    let added = added_tokens(chat);
    let vocab: serde_json::Map<String, Value> = cl100k
        .tokens
        .iter()
        .chain(added.iter().map(|(text, _)| text))
        .zip(0..)
        .map(|(text, id)| (text.clone(), json!(id)))
        .collect();
    let merge = |(left, right): &(String, String)| {
        if merges_as_pairs { json!([left, right]) } else { json!(format!("{left} {right}")) }
    };
    let added: Vec<Value> = (N_RANKS..)
        .zip(&added)
        .map(|(id, (text, special))| {
            json!({"id": id, "content": text, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": special})
        })
        .collect();
    json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": added,
        "normalizer": null,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": CL100K}, "behavior": "Removed", "invert": true},
            {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false},
        ]},
        "post_processor": null,
        "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
        "model": {
            "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": "", "end_of_word_suffix": "",
            "fuse_unk": false, "byte_fallback": false, "vocab": vocab, "merges": cl100k.merges.iter().map(merge).collect::<Vec<_>>(),
        },
    })
}

/// dolma2 from `tokenizer.json`.
pub fn dolma2() -> Tokenizer {
    static DOLMA2: OnceLock<Tokenizer> = OnceLock::new();
    DOLMA2
        .get_or_init(|| Tokenizer::from_json(&serde_json::to_vec(&dolma2_json(false, false)).unwrap()).unwrap())
        .clone()
}

/// The vocabulary of dolma2 as a GGUF file holds it: filled up to the rows of the embedding.
pub fn dolma2_vocab() -> Vocab {
    let cl100k = cl100k();
    let added = added_tokens(false);
    let kind = |(_, special): &(String, bool)| if *special { 3 } else { 4 };
    let filler = (N_TOKENS..100_352).map(|id| format!("[PAD{id}]"));
    Vocab {
        model: "gpt2".to_owned(),
        pre: Some("dbrx".to_owned()),
        tokens: cl100k.tokens.iter().cloned().chain(added.iter().map(|(text, _)| text.clone())).chain(filler).collect(),
        token_types: [vec![1; N_RANKS as usize], added.iter().map(kind).collect(), vec![5; 74]].concat(),
        merges: cl100k.merges.iter().map(|(left, right)| format!("{left} {right}")).collect(),
        bos: Some(100_257),
        eos: Some(100_257),
        pad: Some(100_277),
        ..Vocab::default()
    }
}
