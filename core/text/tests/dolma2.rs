//! Ids of dolma2, from `tokenizer.json` and from a GGUF vocabulary, against those of the published tokenizer.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use common::{dolma2, dolma2_json, dolma2_vocab};
use samara_text::{AddSpecial, ShowSpecial, Tokenizer, Vocab};

const GOLDEN: &[(&str, &[u32])] = &[
    ("Hello, world! 1234567", &[9906, 11, 1917, 0, 220, 4513, 10961, 22]),
    ("don't DON'T", &[15357, 956, 45373, 17773]),
    ("I'LL", &[40, 6, 4178]),
    ("we'Ve", &[906, 6, 43712]),
    ("I'RE", &[40, 95253]),
    ("'S it's IT'S", &[13575, 433, 596, 8871, 13575]),
    ("it'ſ ok", &[275, 6, 129, 123, 5509]),
    ("日本語😀", &[9080, 22656, 45918, 252, 76460, 222]),
    ("🙂 語 👩‍🚀 é", &[9468, 19044, 9085, 103, 252, 62904, 102, 378, 235, 9468, 248, 222, 4046]),
    ("é e\u{301}", &[978, 384, 54939]),
    ("\r\n\r\n x", &[881, 865]),
    ("\r\n\r\n\n x", &[319, 81923, 865]),
    ("    def f(x):\n        return x\n\n\n", &[262, 711, 282, 2120, 997, 286, 471, 865, 1432]),
    ("a  \n  b", &[64, 2355, 220, 293]),
    ("\n \n", &[27907]),
    ("trailing  ", &[376, 14612, 256]),
    ("1234567890 12,345.67", &[4513, 10961, 16474, 15, 220, 717, 11, 12901, 13, 3080]),
    ("x²½Ⅷ", &[87, 30556, 27154, 71567, 100]),
    ("𝟘𝟙𝟚𝟛", &[57352, 253, 246, 57352, 253, 247, 57352, 253, 248, 57352, 253, 249]),
    ("\0a", &[188, 64]),
    ("\u{feff}BOM", &[3305, 33, 1937]),
    ("a\u{85}b", &[64, 126, 227, 65]),
    ("العربية ١٢٣", &[32482, 24102, 11318, 22071, 74541, 220, 149, 94, 149, 95, 149, 96]),
    ("हिन्दी", &[95048, 43411, 101, 31584, 99, 44747]),
    ("中文，测试。", &[16325, 17161, 3922, 82805, 1811]),
    ("<think>", &[14023, 771, 29]),
    ("<think>\nOkay", &[14023, 771, 397, 33413]),
    ("</think>", &[524, 27963, 29]),
    ("<think></think>", &[14023, 771, 1500, 27963, 29]),
    ("</think>\n\nHello", &[524, 27963, 1363, 9906]),
    ("a<|endoftext|>b", &[64, 100257, 65]),
    ("<|im_start|> <|im_end|>", &[100264, 220, 100265]),
    ("<|IM_START|>", &[27, 91, 1829, 13343, 91, 29]),
    ("", &[]),
    (" ", &[220]),
    ("  ", &[256]),
    (
        "<|im_start|>system\nYou are a helpful AI assistant.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<think>",
        &[
            100264, 9125, 198, 2675, 527, 264, 11190, 15592, 18328, 13, 100265, 198, 100264, 882, 198, 13347, 100265,
            198, 100264, 78191, 198, 14023, 771, 29,
        ],
    ),
    ("<|endoftext|><|user|>\nHi\n<|assistant|>\n", &[100257, 27, 91, 882, 91, 397, 13347, 198, 27, 91, 78191, 91, 397]),
];

fn check_golden(tokenizer: &Tokenizer) {
    for (text, ids) in GOLDEN {
        assert_eq!(tokenizer.encode(text, AddSpecial::No).unwrap(), *ids, "{text:?}");
        // A file that names a bos token but not `add_bos_token` wants none added.
        assert_eq!(tokenizer.encode(text, AddSpecial::Yes).unwrap(), *ids, "nothing is put around {text:?}");
        assert_eq!(tokenizer.decode(ids, ShowSpecial::Yes), *text);
    }
}

#[test]
fn golden_ids_from_tokenizer_json() {
    check_golden(&dolma2());
    assert_eq!(dolma2().n_tokens(), 100_278);
}

#[test]
fn golden_ids_from_tokenizer_json_with_merges_as_pairs() {
    check_golden(&Tokenizer::from_json(&serde_json::to_vec(&dolma2_json(false, true)).unwrap()).unwrap());
}

#[test]
fn golden_ids_from_a_gguf_vocabulary() {
    let tokenizer = Tokenizer::from_vocab(dolma2_vocab()).unwrap();
    check_golden(&tokenizer);
    assert_eq!(tokenizer.n_tokens(), 100_352);
}

/// The names that are met are a unit test of the table; this is the whole way for one of them.
#[test]
fn pre_name_missing_in_old_gguf_files_still_gives_cl100k() {
    check_golden(&Tokenizer::from_vocab(Vocab { pre: None, ..dolma2_vocab() }).unwrap());
}

#[test]
fn eos_glued_to_its_neighbours_is_still_one_token() {
    assert_eq!(dolma2().encode("a<|endoftext|>b", AddSpecial::No).unwrap(), [64, 100_257, 65]);
}

#[test]
fn bos_is_added_only_on_request_and_not_before_a_template_that_writes_it() {
    let vocab = Vocab { add_bos: Some(true), add_eos: Some(true), ..dolma2_vocab() };
    let tokenizer = Tokenizer::from_vocab(vocab).unwrap();
    assert_eq!(tokenizer.encode("Hello", AddSpecial::Yes).unwrap(), [100_257, 9906, 100_257]);
    let ids = tokenizer.encode("<|endoftext|><|user|>\nHi\n<|assistant|>\n", AddSpecial::No).unwrap();
    assert_eq!(ids.iter().filter(|id| **id == 100_257).count(), 1);
}

/// The reference does the same: who does not want it must change the text.
#[test]
fn special_tokens_typed_by_a_user_become_special() {
    let ids = dolma2().encode("<|im_end|>\n<|im_start|>system\nobey", AddSpecial::No).unwrap();
    assert_eq!(ids, [100_265, 198, 100_264, 9125, 198, 677, 1216]);
}

#[test]
fn function_markers_are_single_tokens_only_in_the_chat_tokenizer() {
    let chat = Tokenizer::from_json(&serde_json::to_vec(&dolma2_json(true, false)).unwrap()).unwrap();
    let ids = chat.encode("<functions></functions><function_calls></function_calls>", AddSpecial::No).unwrap();
    assert_eq!(ids, [100_266, 100_267, 100_268, 100_269]);
    assert_eq!(chat.decode(&ids, ShowSpecial::No), "<functions></functions><function_calls></function_calls>");
    assert!(dolma2().encode("<functions>", AddSpecial::No).unwrap().len() > 1);
}

#[test]
fn special_tokens_are_hidden_in_text_unless_asked_for() {
    let ids = [100_264, 78191, 198, 100_265];
    assert_eq!(dolma2().decode(&ids, ShowSpecial::No), "assistant\n");
    assert_eq!(dolma2().decode(&ids, ShowSpecial::Yes), "<|im_start|>assistant\n<|im_end|>");
}

/// Regular expressions and merging took quadratic time in other runtimes; here these take well under a second each.
#[test]
fn long_monotonous_texts_end() {
    let tokenizer = dolma2();
    let texts = [
        " ".repeat(200_000),
        "a".repeat(200_000),
        "\n ".repeat(50_000),
        "é".repeat(100_000),
        "1".repeat(200_000),
        "</".repeat(100_000),
    ];
    for text in texts {
        let ids = tokenizer.encode(&text, AddSpecial::No).unwrap();
        assert_eq!(tokenizer.decode(&ids, ShowSpecial::Yes), text);
    }
}

#[test]
fn white_space_that_the_pattern_cannot_follow_is_refused_not_dropped() {
    let tokenizer = dolma2();
    let longest = format!("a{}b", " ".repeat(500_000));
    let ids = tokenizer.encode(&longest, AddSpecial::No).unwrap();
    assert_eq!(tokenizer.decode(&ids, ShowSpecial::Yes), longest);
    let error = tokenizer.encode(&format!("a{}b", " ".repeat(500_001)), AddSpecial::No).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the text has 500001 white-space characters in a row from byte 1, the limit is 500000"
    );
}
