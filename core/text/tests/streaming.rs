//! Streaming: what a reader sees while tokens arrive.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use common::dolma2;
use samara_text::{
    AddSpecial, CallSpan, FunctionCallSplitter, ShowSpecial, Span, StopStrings, TextStream, ThinkSplitter,
};

fn pieces(stream: &mut TextStream, ids: &[u32]) -> Vec<Option<String>> {
    ids.iter().map(|id| stream.push(*id)).collect()
}

fn check_stream(text: &str) {
    let tokenizer = dolma2();
    let ids = tokenizer.encode(text, AddSpecial::No).unwrap();
    let mut stream = tokenizer.stream();
    let shown: Vec<String> = pieces(&mut stream, &ids).into_iter().flatten().collect();
    assert!(shown.iter().all(|piece| !piece.is_empty() && !piece.contains('\u{FFFD}')), "{text:?}: {shown:?}");
    assert_eq!(shown.concat(), text);
    assert_eq!(stream.finish(), "");
}

#[test]
fn a_character_over_several_tokens_is_shown_whole() {
    for text in ["日本語😀", "👩‍🚀", "🙂 語 👩‍🚀 é", "𝟘𝟙𝟚𝟛", "हिन्दी", "a\u{85}b\0", "العربية ١٢٣"]
    {
        check_stream(text);
    }
}

#[test]
fn replacement_characters_that_belong_to_the_text_are_kept() {
    let tokenizer = dolma2();
    let ids = tokenizer.encode("a\u{FFFD}b", AddSpecial::No).unwrap();
    assert_eq!(tokenizer.decode(&ids, ShowSpecial::No), "a\u{FFFD}b");
}

#[test]
fn generation_that_stops_inside_a_character_ends_with_one_replacement() {
    let tokenizer = dolma2();
    let ids = tokenizer.encode("日本語😀", AddSpecial::No).unwrap();
    let mut stream = tokenizer.stream();
    let shown: String = pieces(&mut stream, &ids[..ids.len() - 1]).into_iter().flatten().collect();
    assert_eq!((shown.as_str(), stream.finish().as_str()), ("日本語", "\u{FFFD}"));
}

#[test]
fn bytes_that_never_become_a_character_do_not_block_the_stream() {
    let tokenizer = dolma2();
    let half = tokenizer.encode("😀", AddSpecial::No).unwrap()[0];
    let mut stream = tokenizer.stream();
    assert_eq!(pieces(&mut stream, &[half, 9906]), [None, Some("\u{FFFD}Hello".to_owned())]);
}

#[test]
fn special_and_unknown_ids_show_nothing() {
    let mut stream = dolma2().stream();
    assert_eq!(pieces(&mut stream, &[100_265, 4_000_000, 9906]), [None, None, Some("Hello".to_owned())]);
    assert_eq!(dolma2().stream_with(ShowSpecial::Yes).push(100_265).as_deref(), Some("<|im_end|>"));
}

/// Every way to cut `text` into two pushes, and one push for each character.
fn cuts(text: &str) -> Vec<Vec<&str>> {
    let two = text.char_indices().map(|(at, _)| vec![&text[..at], &text[at..]]);
    let chars = text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]).collect();
    two.chain([chars]).collect()
}

fn check_stop(stops: &[&str], text: &str, shown: &str, hit: bool) {
    for cut in cuts(text) {
        let mut watch = StopStrings::new(stops.iter().copied());
        let results: Vec<(String, bool)> = cut.iter().map(|part| watch.push(part)).collect();
        let seen: String = results.iter().map(|(text, _)| text.as_str()).collect::<String>() + &watch.finish();
        assert_eq!(seen, shown, "{stops:?} in {cut:?}");
        assert_eq!(results.iter().any(|(_, hit)| *hit), hit, "{stops:?} in {cut:?}");
    }
}

#[test]
fn stop_strings_are_found_over_token_borders() {
    check_stop(&["\nUser:"], "Hello\nUser: x", "Hello", true);
    check_stop(&["\nUser:"], "Hello\nUse", "Hello\nUse", false);
    check_stop(&["END"], "ENEND", "EN", true);
    check_stop(&["aab"], "aaab", "a", true);
    check_stop(&["日本"], "の日の日本語", "の日の", true);
    check_stop(&["abcd", "bc"], "abcd", "a", true);
    check_stop(&["c", "abc"], "xabc", "x", true);
    check_stop(&["", "x"], "abc", "abc", false);
    check_stop(&[], "abc", "abc", false);
}

#[test]
fn nothing_is_shown_after_a_stop() {
    let mut watch = StopStrings::new(["."]);
    assert_eq!(watch.push("a.b"), ("a".to_owned(), true));
    assert_eq!(watch.push("c"), (String::new(), true));
    assert_eq!(watch.finish(), "");
}

#[test]
fn a_stop_string_that_ends_inside_a_token_group_of_one_character_is_found() {
    let tokenizer = dolma2();
    let ids = tokenizer.encode("ok 日本語😀 more", AddSpecial::No).unwrap();
    let (mut stream, mut watch) = (tokenizer.stream(), StopStrings::new(["語😀"]));
    let mut seen = String::new();
    for id in ids {
        let (text, hit) = watch.push(&stream.push(id).unwrap_or_default());
        seen.push_str(&text);
        if hit {
            break;
        }
    }
    assert_eq!(seen, "ok 日本");
}

fn joined(spans: Vec<Span>) -> (String, String) {
    let (mut reasoning, mut answer) = (String::new(), String::new());
    for span in spans {
        match span {
            Span::Reasoning(text) => reasoning.push_str(&text),
            Span::Answer(text) => answer.push_str(&text),
        }
    }
    (reasoning, answer)
}

fn check_think(starts_inside: bool, text: &str, reasoning: &str, answer: &str) {
    for cut in cuts(text) {
        let mut splitter = ThinkSplitter::new(starts_inside);
        let mut spans: Vec<Span> = cut.iter().flat_map(|part| splitter.push(part)).collect();
        spans.extend(splitter.finish());
        assert_eq!(joined(spans), (reasoning.to_owned(), answer.to_owned()), "{cut:?}");
    }
}

#[test]
fn reasoning_is_split_though_the_opening_marker_is_only_in_the_prompt() {
    check_think(true, "\nOkay, so\n\nhm</think>\n\nAnswer", "Okay, so\n\nhm", "Answer");
    check_think(true, "Okay", "Okay", "");
    check_think(true, "Okay</thi", "Okay</thi", "");
    check_think(true, "</think>Answer", "", "Answer");
    check_think(false, "<think>\nOkay\n</think>\n\nAnswer", "Okay", "Answer");
    check_think(false, " \n<think>a</think>b", "a", "b");
}

#[test]
fn text_about_think_markers_stays_an_answer() {
    check_think(false, "Use <think> here</think>.", "", "Use <think> here</think>.");
    check_think(false, "<thinking> hard", "", "<thinking> hard");
    check_think(true, "a < b </b></think>see </think> and <think>", "a < b </b>", "see </think> and <think>");
    check_think(false, " \n<th", "", " \n<th");
    check_think(false, "", "", "");
}

#[test]
fn a_prompt_that_ends_with_think_starts_inside() {
    for (prompt, inside) in
        [("<|im_start|>assistant\n<think>", true), ("<think>\n", true), ("<|im_start|>assistant\n", false), ("", false)]
    {
        assert_eq!(ThinkSplitter::after_prompt(prompt).is_inside(), inside, "{prompt:?}");
    }
}

#[test]
fn reasoning_tokens_of_dolma2_are_split_by_text() {
    let tokenizer = dolma2();
    let (mut stream, mut splitter) = (tokenizer.stream(), ThinkSplitter::new(true));
    let ids = tokenizer.encode("Okay…</think>\n\nAnswer", AddSpecial::No).unwrap();
    let mut spans: Vec<Span> =
        ids.iter().filter_map(|id| stream.push(*id)).flat_map(|text| splitter.push(&text)).collect();
    spans.extend(splitter.finish());
    assert_eq!(joined(spans), ("Okay…".to_owned(), "Answer".to_owned()));
}

fn check_calls(text: &str, expected: &[CallSpan]) {
    for cut in cuts(text) {
        let mut splitter = FunctionCallSplitter::new();
        let mut spans: Vec<CallSpan> = cut.iter().flat_map(|part| splitter.push(part)).collect();
        spans.extend(splitter.finish());
        let mut merged: Vec<CallSpan> = Vec::new();
        for span in spans {
            match (merged.last_mut(), span) {
                (Some(CallSpan::Text(text)), CallSpan::Text(more)) => text.push_str(&more),
                (_, span) => merged.push(span),
            }
        }
        assert_eq!(merged, expected, "{cut:?}");
    }
}

#[test]
fn function_call_markers_split_over_chunks_are_found() {
    let text = |text: &str| CallSpan::Text(text.to_owned());
    let calls = |text: &str| CallSpan::Calls(text.to_owned());
    check_calls(
        "Sure <b>.<function_calls>get(x=1)</function_calls> done",
        &[text("Sure <b>."), calls("get(x=1)"), text(" done")],
    );
    check_calls("<function_calls>get(x=1)\nput()", &[calls("get(x=1)\nput()")]);
    check_calls("a <function_ca", &[text("a <function_ca")]);
}
