//! What is to be predicted of each kind of row, for the published shapes of chat templates.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use common::{CHATML, OLMO, OLMO_THINKER, OLMO3_INSTRUCT, TULU, document, files, marked, options};
use samara_data::{DataError, DataOptions, Dataset, TrainOn};
use samara_text::{Tokenizer, Vocab};
use serde_json::{Value, json};

/// `[` and `]` stand around what is to be predicted.
fn check_row(row: Value, template: &str, options: &DataOptions, expected: &str) {
    assert_eq!(marked(&document(&row, template, options).unwrap()), expected);
}

fn check_chat(messages: Value, template: &str, expected: &str) {
    check_row(json!({"messages": messages}), template, &options(), expected);
}

#[test]
fn a_text_is_trained_on_with_its_end() {
    check_row(json!({"text": "Hello there."}), CHATML, &options(), "[Hello there.<|endoftext|>]");
    check_row(json!({"text": "Done.<|endoftext|>"}), CHATML, &options(), "[Done.<|endoftext|>]");
    let bare = DataOptions { end_ids: vec![], ..options() };
    check_row(json!({"text": "Hello there."}), CHATML, &bare, "[Hello there.]");
}

#[test]
fn a_completion_is_trained_on_and_its_prompt_only_if_asked() {
    let row = |prompt: &str, completion: &str| json!({"prompt": prompt, "completion": completion});
    check_row(row("2 + 2 =", " 4"), CHATML, &options(), "2 + 2 =[ 4<|endoftext|>]");
    check_row(row("2 + 2 = ", "4"), CHATML, &options(), "2 + 2 = [4<|endoftext|>]");
    check_row(row("wo", "rd"), CHATML, &options(), "wo[rd<|endoftext|>]");
    check_row(row("", "Yes."), CHATML, &options(), "[Yes.<|endoftext|>]");
    let all = DataOptions { train_on: TrainOn::All, ..options() };
    check_row(row("2 + 2 =", " 4"), CHATML, &all, "[2 + 2 = 4<|endoftext|>]");
}

/// SentencePiece puts a space before every text that it is given; a completion is no text of its own.
#[test]
fn no_space_of_the_tokenizer_gets_between_a_prompt_and_its_completion() {
    let tokens = [("<unk>", 2), ("<s>", 3), ("▁", 1), ("a", 1), ("b", 1)];
    let vocab = Vocab {
        model: "llama".to_owned(),
        tokens: tokens.iter().map(|(text, _)| (*text).to_owned()).collect(),
        token_types: tokens.iter().map(|(_, kind)| *kind).collect(),
        scores: vec![0.0; tokens.len()],
        bos: Some(1),
        unk: Some(0),
        ..Vocab::default()
    };
    let tokenizer = Tokenizer::from_vocab(vocab).unwrap();
    let (_folder, paths) =
        files(&[b"{\"prompt\": \"ab\", \"completion\": \"ba\"}\n{\"prompt\": \"\", \"completion\": \"b\"}"]);
    let options = DataOptions { max_length: Some(9), ..DataOptions::new(5) };
    let dataset = Dataset::open(&paths, &tokenizer, None, &options).unwrap();
    let document = dataset.document(0).unwrap();
    assert_eq!(document.ids, [1, 2, 3, 4, 4, 3]);
    assert_eq!(document.trained, [false, false, false, false, true, true]);
    assert_eq!(dataset.document(1).unwrap().ids, [1, 2, 4]);
}

fn dialogue() -> Value {
    json!([
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "More"},
        {"role": "assistant", "content": "No more."},
    ])
}

#[test]
fn the_assistants_words_and_the_end_of_its_turn_are_trained_on() {
    check_chat(
        dialogue(),
        CHATML,
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n[Hello.<|im_end|>]\n<|im_start|>user\nMore<|im_end|>\n\
         <|im_start|>assistant\n[No more.<|im_end|>]\n",
    );
    check_chat(
        dialogue(),
        TULU,
        "<|user|>\nHi\n<|assistant|>\n[Hello.<|endoftext|>]\n<|user|>\nMore\n<|assistant|>\n[No more.<|endoftext|>]",
    );
}

#[test]
fn all_turns_are_trained_on_if_asked() {
    let all = DataOptions { train_on: TrainOn::All, ..options() };
    let messages = json!([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "A"}]);
    let expected = "[<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nA<|im_end|>\n]";
    check_row(json!({"messages": messages}), CHATML, &all, expected);
}

#[test]
fn a_last_turn_may_end_with_another_token() {
    let messages = json!([
        {"role": "system", "content": "S", "functions": "[]"},
        {"role": "user", "content": "U"},
        {"role": "assistant", "content": null, "function_calls": "f(a=1)"},
        {"role": "environment", "content": "42"},
        {"role": "assistant", "content": "done"},
    ]);
    check_chat(
        messages,
        OLMO,
        "<|im_start|>system\nS <functions>[]</functions><|im_end|>\n<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\n\
         [<function_calls>f(a=1)</function_calls><|im_end|>]\n<|im_start|>environment\n42<|im_end|>\n\
         <|im_start|>assistant\n[done<|endoftext|>]",
    );
}

#[test]
fn a_prompt_that_opens_a_reasoning_does_not_hide_an_answer_without_one() {
    let system = json!({"role": "system", "content": "S"});
    let messages =
        json!([system, {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "<b>hm</think>\n\n<b>Yes"}]);
    check_chat(
        messages,
        OLMO_THINKER,
        "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n[<b>Yes<|endoftext|>]",
    );
}

#[test]
fn tools_of_a_row_come_before_the_conversation() {
    let row = json!({
        "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "A"}],
        "tools": [{"type": "function", "function": {"name": "f"}}],
    });
    let text = marked(&document(&row, OLMO3_INSTRUCT, &options()).unwrap());
    assert!(
        text.contains("<functions>[{\"type\": \"function\", \"function\": {\"name\": \"f\"}}]</functions>"),
        "{text}"
    );
    assert!(text.ends_with("<|im_start|>assistant\n[A<|im_end|>]\n"), "{text}");
}

#[test]
fn a_turn_without_words_teaches_no_silence() {
    let messages = json!([
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": ""},
        {"role": "assistant", "content": "A"},
    ]);
    check_chat(
        messages,
        CHATML,
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<|im_end|>\n<|im_start|>assistant\n[A<|im_end|>]\n",
    );
}

#[test]
fn words_that_look_like_the_template_do_not_confuse_it() {
    let words = "assistant\n\nuser: 0 1 é 日本 \u{1F600}";
    let messages = json!([{"role": "user", "content": words}, {"role": "assistant", "content": words}]);
    let expected = format!("<|im_start|>user\n{words}<|im_end|>\n<|im_start|>assistant\n[{words}<|im_end|>]\n");
    check_chat(messages, CHATML, &expected);
}

#[test]
fn templates_without_control_tokens_and_with_a_text_end_are_understood() {
    let plain = "{% for m in messages %}{{ m.role }}: {{ m.content | trim }}\n\n{% endfor %}\
        {% if add_generation_prompt %}assistant:{% endif %}";
    check_chat(dialogue(), plain, "user: Hi\n\nassistant:[ Hello.\n\n]user: More\n\nassistant:[ No more.\n\n]");
    let ends = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}\
        {% if add_generation_prompt %}<|im_start|>assistant\n{% else %}{{ eos_token }}{% endif %}";
    check_chat(
        dialogue(),
        ends,
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n[Hello.<|im_end|>]\n<|im_start|>user\nMore<|im_end|>\n\
         <|im_start|>assistant\n[No more.<|im_end|>]\n<|endoftext|>",
    );
}

#[test]
fn a_template_that_rewrites_the_past_is_an_error_that_names_the_row() {
    let counts = "{{ messages | length }}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}";
    let forgets = "{% for m in messages %}<|im_start|>{{ m.role }}\n\
        {% if loop.last or m.role != 'assistant' %}{{ m.content }}{% endif %}<|im_end|>\n{% endfor %}\
        {% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
    for template in [counts, forgets] {
        let error = document(&json!({"messages": dialogue()}), template, &options()).unwrap_err();
        assert!(matches!(error, DataError::NothingLeft { .. }), "{error}");
        assert!(error.to_string().contains("0.jsonl:1: the chat template writes"), "{error}");
    }
}
