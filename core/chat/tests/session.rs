//! The whole way from prompt to text, with the embedded model on the CPU.
//!
//! Its sliding window is 64 tokens, so the long prompt crosses the window several times.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::LazyLock;

use samara_chat::{
    Channel, ChatError, Conversation, Done, FinishReason, Generation, Model, Piece, Prompt, Sampling, Session,
    SessionConfig, Settings, Source, Written,
};
use samara_engine::{EngineError, log_prob};
use samara_ops::device::{DeviceChoice, Limits, OpenDevice, open};
use samara_text::ShowSpecial;

static CPU: LazyLock<OpenDevice> =
    LazyLock::new(|| pollster::block_on(open(DeviceChoice::Cpu, Limits::Default)).unwrap());

fn session(prefill_chunk_tokens: usize) -> Session {
    let model = Model::load(&Source::Embedded, &CPU, &mut |_| ()).unwrap();
    Session::new(model, SessionConfig { context_tokens: Some(256), prefill_chunk_tokens, ..SessionConfig::default() })
        .unwrap()
}

fn greedy(max_tokens: usize) -> Settings {
    Settings { max_tokens: Some(max_tokens), ..Settings::default() }
}

fn warm(max_tokens: usize) -> Settings {
    Settings {
        sampling: Sampling { temperature: 0.8, top_p: 0.95, seed: 11, ..Sampling::default() },
        ..greedy(max_tokens)
    }
}

/// A prompt of about `n` words.
fn story(n: usize) -> Prompt {
    let words = "Once upon a time there was a little girl who had a red ball and a small dog .".split(' ').cycle();
    Prompt::Text(words.take(n).collect::<Vec<_>>().join(" "))
}

fn next(generation: &mut Generation<'_>) -> Option<Piece> {
    pollster::block_on(generation.next()).unwrap()
}

/// Every piece, and the last one apart.
fn pieces(mut generation: Generation<'_>) -> (Vec<Piece>, Done) {
    let mut pieces: Vec<Piece> = std::iter::from_fn(|| next(&mut generation)).collect();
    match pieces.pop() {
        Some(Piece::Done(done)) => (pieces, done),
        other => panic!("the last piece is {other:?}"),
    }
}

fn run(session: &mut Session, prompt: &Prompt, settings: &Settings) -> Done {
    pieces(session.generate(prompt, settings).unwrap()).1
}

fn shown(pieces: &[Piece], of: Channel) -> String {
    let text = |piece: &Piece| match piece {
        Piece::Text { channel, text } if *channel == of => Some(text.clone()),
        _ => None,
    };
    pieces.iter().filter_map(text).collect()
}

#[test]
fn what_is_shown_is_the_text_of_the_ids() {
    let mut session = session(64);
    let (pieces, done) = pieces(session.generate(&story(20), &greedy(24)).unwrap());
    assert_eq!(shown(&pieces, Channel::Answer), done.written.answer);
    assert_eq!(session.dialect().tokenizer().decode(&done.written.ids, ShowSpecial::No), done.written.answer);
    assert_eq!(done.stats.generated_tokens, done.written.ids.len());
    assert!(!done.written.answer.trim().is_empty());
}

#[test]
fn chunk_size_changes_no_text() {
    for settings in [greedy(12), warm(12)] {
        let expected = run(&mut session(64), &story(150), &settings).written;
        for chunk in [1, 3, 8] {
            assert_eq!(run(&mut session(chunk), &story(150), &settings).written, expected, "chunk {chunk}");
        }
    }
}

#[test]
fn a_long_prompt_reports_its_progress() {
    let mut session = session(16);
    let (pieces, done) = pieces(session.generate(&story(60), &greedy(1)).unwrap());
    let progress = pieces.iter().filter_map(|piece| match piece {
        Piece::Progress { done_tokens, total_tokens } => Some((*done_tokens, *total_tokens)),
        _ => None,
    });
    let n = done.stats.prompt_tokens;
    let expected: Vec<_> = (1..=n.div_ceil(16)).map(|chunk| (n.min(chunk * 16), n)).collect();
    assert_eq!(progress.collect::<Vec<_>>(), expected);
}

#[test]
fn a_stop_string_ends_the_text_before_it() {
    let mut session = session(64);
    let whole = run(&mut session, &story(20), &greedy(24)).written.answer;
    let from = whole.char_indices().nth(whole.chars().count() / 2).unwrap().0;
    let stop: String = whole[from..].chars().take(4).collect();
    let settings = Settings { stop_strings: vec![stop.clone()], ..greedy(24) };
    let (pieces, done) = pieces(session.generate(&story(20), &settings).unwrap());
    assert_eq!(done.reason, FinishReason::Stop);
    assert_eq!(done.written.answer, whole[..whole.find(&stop).unwrap()]);
    assert_eq!(shown(&pieces, Channel::Answer), done.written.answer);
}

#[test]
fn cancelling_keeps_what_was_written() {
    let mut session = session(64);
    let whole = run(&mut session, &story(20), &greedy(24)).written;
    let mut generation = session.generate(&story(20), &greedy(24)).unwrap();
    while !matches!(next(&mut generation), Some(Piece::Text { .. })) {}
    generation.cancel();
    let (_, done) = pieces(generation);
    assert_eq!(done.reason, FinishReason::Cancelled);
    let n_written = done.written.ids.len();
    assert!((1..24).contains(&n_written) && whole.ids.starts_with(&done.written.ids));
}

#[test]
fn a_cancelled_prompt_writes_nothing() {
    let mut session = session(8);
    let mut generation = session.generate(&story(60), &greedy(24)).unwrap();
    assert!(matches!(next(&mut generation), Some(Piece::Progress { done_tokens: 8, .. })));
    generation.cancel();
    let (_, done) = pieces(generation);
    assert_eq!((done.reason, done.written), (FinishReason::Cancelled, Written::default()));
}

#[test]
fn a_dropped_generation_does_not_disturb_the_next() {
    let mut session = session(8);
    let expected = run(&mut session, &story(20), &greedy(8)).written;
    let mut dropped = session.generate(&story(60), &greedy(24)).unwrap();
    next(&mut dropped);
    drop(dropped);
    assert_eq!(run(&mut session, &story(20), &greedy(8)).written, expected);
}

#[test]
fn a_conversation_is_cheap_to_go_on_with_and_to_take_back() {
    let mut session = session(64);
    let mut talk = Conversation::new(None);
    talk.say("Tell me a story about a dog.");
    let first = run(&mut session, &talk.prompt(), &greedy(20));
    talk.answered(&first.written);
    talk.say("What did the dog do?");
    let second = run(&mut session, &talk.prompt(), &greedy(20));
    assert!(second.stats.cached_tokens >= first.stats.prompt_tokens, "{:?}", second.stats);
    assert_eq!(second.written, run(&mut self::session(64), &talk.prompt(), &greedy(20)).written);
    talk.undo();
    talk.undo();
    talk.say("Tell me a story about a dog.");
    assert_eq!(run(&mut session, &talk.prompt(), &greedy(20)).written, first.written);
}

#[test]
fn an_edited_long_prompt_gives_what_a_new_session_gives() {
    let mut session = session(8);
    run(&mut session, &story(150), &greedy(12));
    for n_words in [149, 120, 40, 3] {
        let edited = |tail: &str| match story(n_words) {
            Prompt::Text(text) => Prompt::Text(text + tail),
            other => other,
        };
        let settings = greedy(6);
        let expected = run(&mut self::session(8), &edited(" big cat"), &settings).written;
        assert_eq!(run(&mut session, &edited(" big cat"), &settings).written, expected, "{n_words} words kept");
    }
}

#[test]
fn the_context_ends_a_text_that_nothing_else_ends() {
    let mut session = session(64);
    let (pad, settings) = (story(150), Settings::default());
    let done = run(&mut session, &pad, &settings);
    let total = done.stats.prompt_tokens + done.stats.generated_tokens;
    assert!(done.reason == FinishReason::Stop || (done.reason == FinishReason::Context && total == 256), "{done:?}");
}

#[test]
fn prompts_that_cannot_run_are_refused() {
    let mut session = session(64);
    let mut refuse = |prompt: Prompt| match session.generate(&prompt, &greedy(4)) {
        Err(ChatError::Engine(error)) => error,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("accepted"),
    };
    assert!(matches!(refuse(Prompt::Text(String::new())), EngineError::EmptyPrompt));
    assert!(matches!(refuse(story(600)), EngineError::PromptTooLong { max_tokens: 255, .. }));
    assert!(matches!(refuse(Prompt::Ids(vec![0, 2048])), EngineError::UnknownToken { position: 1, token: 2048, .. }));
}

#[test]
fn a_context_longer_than_the_models_is_refused() {
    let model = Model::load(&Source::Embedded, &CPU, &mut |_| ()).unwrap();
    let config = SessionConfig { context_tokens: Some(513), ..SessionConfig::default() };
    let error = Session::new(model, config).err().unwrap().to_string();
    assert_eq!(error, "context_tokens is 513; it must be between 1 and the model's 512");
}

#[test]
fn loading_reports_bytes_up_to_the_end() {
    let (mut last, mut n_calls) = ((0, 1), 0);
    Model::load(&Source::Embedded, &CPU, &mut |progress| {
        assert!(progress.done_bytes > last.0 && progress.done_bytes <= progress.total_bytes);
        (last, n_calls) = ((progress.done_bytes, progress.total_bytes), n_calls + 1);
    })
    .unwrap();
    assert!(n_calls > 10 && last.0 == last.1, "{last:?} after {n_calls}");
}

#[test]
fn scores_agree_with_greedy_generation() {
    let mut session = session(8);
    let done = run(&mut session, &story(100), &greedy(6));
    let prompt = session.dialect().encode(&story(100)).unwrap().ids;
    let ids = [&prompt, &done.written.ids[..]].concat();
    let mut best = Vec::new();
    let scores = pollster::block_on(session.score(&ids, |_, row| {
        let token = (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap() as u32;
        best.push((token, log_prob(row, token)));
    }));
    let scores = scores.unwrap();
    assert_eq!((scores.len(), best.len()), (ids.len() - 1, ids.len()));
    for (position, &id) in ids.iter().enumerate().skip(prompt.len()) {
        assert_eq!(best[position - 1], (id, scores[position - 1]), "position {position}");
    }
}
