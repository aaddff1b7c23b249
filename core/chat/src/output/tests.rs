//! One id per byte, so that every border a real token could have is tried.

use samara_text::{Tokenizer, Vocab};

use super::*;

const SPECIAL: &str = "<|end|>";

/// A tokenizer whose tokens are single bytes, and one special token.
fn tokenizer() -> Tokenizer {
    let spell = |byte: u8| match byte {
        b' ' => 'Ġ',
        b'\n' => 'Ċ',
        _ => char::from(byte),
    };
    let bytes = (b'!'..=b'~').chain([b' ', b'\n']).chain("é".bytes());
    let tokens: Vec<String> = bytes.map(|byte| spell(byte).to_string()).chain([SPECIAL.into()]).collect();
    let token_types = tokens.iter().map(|token| if token == SPECIAL { 3 } else { 1 }).collect();
    let (model, pre) = ("gpt2".into(), Some("gpt-2".into()));
    Tokenizer::from_vocab(Vocab { model, pre, tokens, token_types, ..Vocab::default() }).unwrap()
}

/// The ids of a text, one for each byte.
fn ids(tokenizer: &Tokenizer, text: &str) -> Vec<u32> {
    let spelled = text.bytes().map(|byte| match byte {
        b' ' => "Ġ".into(),
        b'\n' => "Ċ".into(),
        _ => char::from(byte).to_string(),
    });
    spelled.map(|token| tokenizer.id(&token).unwrap()).collect()
}

/// Pushes `text` byte by byte until a stop string is hit; what was shown in order, and the whole.
fn write(text: &str, stops: &[&str], splitter: Option<ThinkSplitter>) -> (Shown, Written, bool) {
    let tokenizer = tokenizer();
    let mut output = Output::new(tokenizer.stream(), StopStrings::new(stops.iter().copied()), splitter);
    let mut shown = Shown::new();
    for id in ids(&tokenizer, text) {
        let (new, hit) = output.push(id);
        shown.extend(new);
        if hit {
            let (rest, written) = output.finish();
            assert_eq!(rest, [], "nothing is shown after a stop string");
            return (shown, written, true);
        }
    }
    let (rest, written) = output.finish();
    shown.extend(rest);
    (shown, written, false)
}

fn joined(shown: &Shown, of: Channel) -> String {
    shown.iter().filter(|(channel, _)| *channel == of).map(|(_, text)| text.as_str()).collect()
}

fn check(text: &str, stops: &[&str], splitter: Option<ThinkSplitter>, reasoning: &str, answer: &str) {
    let (shown, written, _) = write(text, stops, splitter);
    assert_eq!((written.reasoning.as_str(), written.answer.as_str()), (reasoning, answer), "{text:?}");
    assert_eq!(joined(&shown, Channel::Reasoning), reasoning);
    assert_eq!(joined(&shown, Channel::Answer), answer);
}

#[test]
fn a_predictors_text_is_shown_as_it_is() {
    check("a <think>b</think> c", &[], None, "", "a <think>b</think> c");
}

#[test]
fn whole_characters_are_shown() {
    let (shown, ..) = write("aéb", &[], None);
    let texts: Vec<_> = shown.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(texts, ["a", "é", "b"]);
}

#[test]
fn an_unfinished_character_at_the_end_is_marked() {
    let tokenizer = tokenizer();
    let mut output = Output::new(tokenizer.stream(), StopStrings::new(["\u{FFFD}x"]), None);
    let first = ids(&tokenizer, "é")[0];
    assert_eq!(output.push(first), (vec![], false));
    let (shown, written) = output.finish();
    assert_eq!(shown, [(Channel::Answer, "\u{FFFD}".to_owned())]);
    assert_eq!((written.answer.as_str(), written.ids), ("\u{FFFD}", vec![first]));
}

#[test]
fn reasoning_is_told_apart_whether_the_prompt_opened_it_or_not() {
    let inside = || Some(ThinkSplitter::new(true));
    let outside = || Some(ThinkSplitter::new(false));
    check("Okay.</think>\n\nAnswer", &[], inside(), "Okay.", "Answer");
    check("<think>\nOkay.\n</think>\n\nAnswer", &[], outside(), "Okay.", "Answer");
    check("Answer without", &[], outside(), "", "Answer without");
    check("never closed </thin", &[], inside(), "never closed </thin", "");
}

#[test]
fn stop_strings_work_across_reasoning_and_answer() {
    let (shown, written, hit) = write("Hm.</think>Yes\nUser: no", &["\nUser:"], Some(ThinkSplitter::new(true)));
    assert!(hit);
    assert_eq!((written.reasoning.as_str(), written.answer.as_str()), ("Hm.", "Yes"));
    assert_eq!(joined(&shown, Channel::Answer), "Yes");
}

#[test]
fn a_stop_string_that_stays_unfinished_is_shown_in_the_end() {
    check("Yes\nUse", &["\nUser:"], None, "", "Yes\nUse");
}

#[test]
fn special_and_silent_ids_show_nothing_but_are_noted() {
    let tokenizer = tokenizer();
    let special = tokenizer.id(SPECIAL).unwrap();
    let x = tokenizer.id("x").unwrap();
    let mut output = Output::new(tokenizer.stream(), StopStrings::new(Vec::<String>::new()), None);
    assert_eq!(output.push(special), (vec![], false));
    output.push_silent(x);
    let (shown, written) = output.finish();
    assert_eq!(shown, []);
    assert_eq!((written.answer.as_str(), written.ids), ("", vec![special, x]));
}
