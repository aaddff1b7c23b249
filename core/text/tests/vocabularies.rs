//! Small vocabularies, each for one rule; and bad ones, each with its error.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use samara_text::{AddSpecial, ShowSpecial, Tokenizer, Vocab};
use serde_json::{Value, json};

/// Tokens with their type; ids follow the order.
fn vocab(model: &str, pre: &str, tokens: &[(&str, u32)], merges: &[&str]) -> Vocab {
    Vocab {
        model: model.to_owned(),
        pre: Some(pre.to_owned()),
        tokens: tokens.iter().map(|(text, _)| (*text).to_owned()).collect(),
        token_types: tokens.iter().map(|(_, kind)| *kind).collect(),
        merges: merges.iter().map(|merge| (*merge).to_owned()).collect(),
        ..Vocab::default()
    }
}

fn check_ids(vocab: Vocab, text: &str, special: AddSpecial, ids: &[u32], back: &str) {
    let tokenizer = Tokenizer::from_vocab(vocab).unwrap();
    assert_eq!(tokenizer.encode(text, special).unwrap(), ids, "{text:?}");
    assert_eq!(tokenizer.decode(ids, ShowSpecial::No), back);
}

#[test]
fn olmo_1_composes_characters_though_its_gguf_does_not_say_so() {
    let tokens = [("e", 1), ("Ì", 1), ("ģ", 1), ("Ã", 1), ("©", 1), ("Ã©", 1), ("   ", 4), ("a", 1), ("Ġ", 1)];
    check_ids(vocab("gpt2", "olmo", &tokens, &["Ã ©"]), "e\u{301}", AddSpecial::No, &[5], "é");
    check_ids(vocab("gpt2", "gpt-2", &tokens, &["Ã ©"]), "e\u{301}", AddSpecial::No, &[0, 1, 2], "e\u{301}");
    check_ids(vocab("gpt2", "olmo", &tokens, &[]), "a    a", AddSpecial::No, &[7, 6, 8, 7], "a    a");
}

#[test]
fn llama_3_begins_texts_and_takes_whole_pieces_before_merges() {
    let tokens = [("<|begin_of_text|>", 3), ("a", 1), ("b", 1), ("c", 1), ("bc", 1), ("abc", 1)];
    let llama = Vocab { bos: Some(0), ..vocab("gpt2", "llama-bpe", &tokens, &["b c"]) };
    check_ids(llama.clone(), "abc", AddSpecial::Yes, &[0, 5], "abc");
    check_ids(Vocab { add_bos: Some(false), ..llama }, "abc", AddSpecial::Yes, &[5], "abc");
    let olmo = Vocab { bos: Some(0), ..vocab("gpt2", "dbrx", &tokens, &["b c"]) };
    check_ids(olmo, "abc", AddSpecial::Yes, &[1, 4], "abc");
}

#[test]
fn digits_are_single_in_smollm_and_in_threes_in_llama_3() {
    let tokens = [("1", 1), ("11", 1), ("111", 1)];
    let merges = ["1 1", "11 1"];
    check_ids(vocab("gpt2", "smollm", &tokens, &merges), "1111", AddSpecial::No, &[0, 0, 0, 0], "1111");
    check_ids(vocab("gpt2", "dbrx", &tokens, &merges), "1111", AddSpecial::No, &[2, 0], "1111");
    check_ids(vocab("gpt2", "gpt-2", &tokens, &merges), "1111", AddSpecial::No, &[1, 1], "1111");
    check_ids(vocab("gpt2", "qwen2", &tokens, &merges), "1111", AddSpecial::No, &[0, 0, 0, 0], "1111");
}

const PIECES: [(&str, u32); 14] = [
    ("<unk>", 2),
    ("<s>", 3),
    ("<0xE6>", 6),
    ("<0x97>", 6),
    ("<0xA5>", 6),
    ("▁", 1),
    ("a", 1),
    ("b", 1),
    ("ab", 1),
    ("▁a", 1),
    ("▁▁", 4),
    ("<b>", 4),
    ("ba", 1),
    ("aba", 5),
];

/// Scores in the order of `PIECES`: `ba` before `ab` before `▁a`.
fn pieces(add_space_prefix: Option<bool>) -> Vocab {
    let scores = [0.0, 0.0, 0.0, 0.0, 0.0, -9.0, -9.0, -9.0, -2.0, -3.0, 0.0, 0.0, -1.0, 0.0];
    let unk = Some(0);
    Vocab { scores: scores.to_vec(), bos: Some(1), unk, add_space_prefix, ..vocab("llama", "default", &PIECES, &[]) }
}

#[test]
fn sentencepiece_merges_by_score_and_never_into_unused_tokens() {
    check_ids(pieces(Some(false)), "aba ab", AddSpecial::No, &[6, 12, 5, 8], "aba ab");
}

#[test]
fn sentencepiece_puts_a_space_before_a_text_and_takes_it_away_again() {
    check_ids(pieces(None), "ab", AddSpecial::Yes, &[1, 5, 8], "ab");
    check_ids(pieces(Some(false)), "ab", AddSpecial::Yes, &[1, 8], "ab");
}

#[test]
fn sentencepiece_finds_user_defined_tokens_before_merging() {
    check_ids(pieces(Some(false)), "a   <b>a", AddSpecial::No, &[6, 10, 5, 11, 6], "a   <b>a");
}

#[test]
fn bytes_without_a_token_of_their_own_are_shown_as_whole_characters() {
    let tokenizer = Tokenizer::from_vocab(pieces(Some(false))).unwrap();
    let ids = tokenizer.encode("a日", AddSpecial::No).unwrap();
    assert_eq!(ids, [6, 2, 3, 4]);
    let mut stream = tokenizer.stream();
    let shown: Vec<Option<String>> = ids.iter().map(|id| stream.push(*id)).collect();
    assert_eq!(shown, [Some("a".to_owned()), None, None, Some("日".to_owned())]);
    assert_eq!(tokenizer.decode(&ids[..3], ShowSpecial::No), "a\u{FFFD}");
}

fn check_ranges(vocab: Vocab, text: &str, expected: &[std::ops::Range<usize>]) {
    let tokenizer = Tokenizer::from_vocab(vocab).unwrap();
    let (ids, ranges): (Vec<u32>, Vec<_>) = tokenizer.encode_with_ranges(text).unwrap().into_iter().unzip();
    assert_eq!(ids, tokenizer.encode(text, AddSpecial::No).unwrap(), "{text:?}");
    assert_eq!(ranges, expected, "{text:?}");
}

#[test]
fn tokens_know_the_bytes_they_come_from() {
    check_ranges(pieces(Some(false)), "aba ab", &[0..1, 1..3, 3..4, 4..6]);
    check_ranges(pieces(None), "ab", &[0..1, 0..2]);
    check_ranges(pieces(Some(false)), "a日<b>", &[0..1, 1..4, 1..4, 1..4, 4..7]);
    let composed = [("e", 1), ("Ì", 1), ("ģ", 1), ("Ã", 1), ("©", 1), ("Ã©", 1), ("   ", 4), ("a", 1), ("Ġ", 1)];
    check_ranges(vocab("gpt2", "olmo", &composed, &["Ã ©"]), "ae\u{301}a", &[0..1, 1..2, 4..5]);
    check_ranges(vocab("gpt2", "olmo", &composed, &[]), "a    a", &[0..1, 1..4, 4..5, 5..6]);
}

fn check_vocab_error(vocab: Vocab, expected: &str) {
    assert_eq!(Tokenizer::from_vocab(vocab).unwrap_err().to_string(), expected);
}

#[test]
fn a_bad_vocabulary_says_what_is_wrong() {
    let good = || vocab("gpt2", "gpt-2", &[("a", 1), ("b", 1), ("ab", 1)], &["a b"]);
    check_vocab_error(
        Vocab { model: "bert".to_owned(), ..good() },
        "tokenizer.ggml.model is \"bert\", expected \"gpt2\" or \"llama\"",
    );
    check_vocab_error(
        Vocab { pre: Some("new".to_owned()), ..good() },
        "tokenizer.ggml.pre is \"new\", which is not a known pre-tokenizer (vocabulary of 3 tokens)",
    );
    check_vocab_error(
        Vocab { token_types: vec![1], ..good() },
        "tokenizer.ggml.token_type has 1 entries, expected 3, one for each token",
    );
    check_vocab_error(
        Vocab { scores: vec![0.0; 4], ..good() },
        "tokenizer.ggml.scores has 4 entries, expected 3, one for each token",
    );
    check_vocab_error(Vocab { eos: Some(3), ..good() }, "eos_token_id is 3, but the vocabulary has 3 tokens");
    check_vocab_error(
        Vocab { merges: vec!["ab".to_owned()], ..good() },
        "tokenizer.ggml.merges[0] is \"ab\": expected two tokens with a space between",
    );
    check_vocab_error(
        Vocab { merges: vec!["a x".to_owned()], ..good() },
        "the vocabulary cannot be built: Token `x` out of vocabulary",
    );
}

fn tokenizer_json() -> Value {
    json!({
        "version": "1.0", "truncation": null, "padding": null, "normalizer": null, "pre_tokenizer": null,
        "post_processor": null,
        "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
        "added_tokens": [{"id": 3, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false, "special": true}],
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
            "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]},
    })
}

fn with(pointer: &str, value: Value) -> Result<Tokenizer, samara_text::TextError> {
    let mut json = tokenizer_json();
    *json.pointer_mut(pointer).unwrap() = value;
    Tokenizer::from_json(&serde_json::to_vec(&json).unwrap())
}

#[test]
fn truncation_and_dropout_in_the_file_do_not_change_ids() {
    let truncation = json!({"max_length": 1, "strategy": "LongestFirst", "stride": 0, "direction": "Right"});
    for (pointer, value) in [("/truncation", truncation), ("/model/dropout", json!(1.0))] {
        assert_eq!(with(pointer, value).unwrap().encode("abab", AddSpecial::Yes).unwrap(), [2, 2], "{pointer}");
    }
}

#[test]
fn the_post_processor_puts_its_tokens_around_a_text() {
    let processor = json!({"type": "Sequence", "processors": [
        {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
        {"type": "TemplateProcessing", "pair": [], "single": [
            {"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
            {"SpecialToken": {"id": "b", "type_id": 0}}],
         "special_tokens": {"<s>": {"id": "<s>", "ids": [3], "tokens": ["<s>"]}, "b": {"id": "b", "ids": [1], "tokens": ["b"]}}},
    ]});
    let tokenizer = with("/post_processor", processor).unwrap();
    assert_eq!(tokenizer.encode("ab", AddSpecial::Yes).unwrap(), [3, 2, 1]);
    assert_eq!(tokenizer.encode("ab", AddSpecial::No).unwrap(), [2]);
}

#[test]
fn a_bad_tokenizer_json_says_what_is_wrong() {
    let cases = [
        ("/model/type", json!("Unigram"), "tokenizer.json: model.type is \"Unigram\", expected \"BPE\""),
        (
            "/model/continuing_subword_prefix",
            json!("##"),
            "tokenizer.json: model.continuing_subword_prefix is \"##\", expected none",
        ),
        (
            "/decoder",
            json!({"type": "WordPiece", "prefix": "##", "cleanup": true}),
            "tokenizer.json: decoder is WordPiece, expected ByteLevel or the SentencePiece sequence",
        ),
        (
            "/post_processor",
            json!({"type": "TemplateProcessing", "pair": [], "single": [{"SpecialToken": {"id": "x", "type_id": 0}}], "special_tokens": {}}),
            "tokenizer.json: post_processor.special_tokens is without \"x\", expected its ids",
        ),
        ("/model/merges", json!(["a x"]), "tokenizer.json: Token `x` out of vocabulary at line 1"),
    ];
    for (pointer, value, expected) in cases {
        let error = with(pointer, value).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    for bytes in [&b""[..], b"{}", b"<!DOCTYPE html>", b"version https://git-lfs.github.com/spec/v1", b"{\"model\": 3}"]
    {
        let error = Tokenizer::from_json(bytes).unwrap_err().to_string();
        assert!(error.starts_with("tokenizer.json: "), "{error}");
    }
}
