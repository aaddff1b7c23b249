//! The engine over the toy model: what comes out must depend on the request alone.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod toy;

use std::pin::pin;
use std::task::{Context, Waker};

use samara_engine::{
    ComputeError, Engine, EngineConfig, EngineError, Event, FinishReason, KvFormats, Request, Sampling, SequenceId,
    Stats, log_prob,
};
use toy::{Toy, VOCAB_SIZE};

fn config(context_tokens: usize, prefill_chunk_tokens: usize) -> EngineConfig {
    EngineConfig { context_tokens, prefill_chunk_tokens, kv: KvFormats::default(), ahead: true }
}

fn engine(toy: Toy, prefill_chunk_tokens: usize) -> Engine<Toy> {
    Engine::new(toy, config(40, prefill_chunk_tokens)).unwrap()
}

fn request(prompt: &[u32], max_tokens: usize) -> Request {
    let sampling = Sampling { temperature: 0.9, top_p: 0.95, seed: 5, ..Sampling::default() };
    Request { prompt: prompt.to_vec(), max_tokens, stop_ids: vec![], sampling, logit_limit: usize::MAX }
}

fn step(engine: &mut Engine<Toy>) -> Result<Vec<Event>, EngineError> {
    pollster::block_on(engine.step())
}

/// Every event until idle.
fn drain(engine: &mut Engine<Toy>) -> Vec<Event> {
    let mut events = Vec::new();
    loop {
        let new = step(engine).unwrap();
        if new.is_empty() {
            return events;
        }
        events.extend(new);
    }
}

fn tokens(events: &[Event], of: SequenceId) -> Vec<u32> {
    let token = |event: &Event| match *event {
        Event::Token { id, token, .. } if id == of => Some(token),
        _ => None,
    };
    events.iter().filter_map(token).collect()
}

fn ending(events: &[Event], of: SequenceId) -> (FinishReason, Stats) {
    let end = |event: &Event| match *event {
        Event::Finished { id, reason, stats } if id == of => Some((reason, stats)),
        _ => None,
    };
    let ends: Vec<_> = events.iter().filter_map(end).collect();
    assert_eq!(ends.len(), 1, "one ending: {events:?}");
    ends[0]
}

/// Submits, runs until idle; the tokens, how it ended and what it cost.
fn run(engine: &mut Engine<Toy>, request: Request) -> (Vec<u32>, FinishReason, Stats) {
    let id = engine.submit(request).unwrap();
    let events = drain(engine);
    let (reason, stats) = ending(&events, id);
    (tokens(&events, id), reason, stats)
}

/// What a new engine gives.
fn fresh(request: Request) -> Vec<u32> {
    run(&mut engine(Toy::default(), 64), request).0
}

const PROMPT: [u32; 11] = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5];

#[test]
fn chunk_size_changes_no_token() {
    let expected = fresh(request(&PROMPT, 12));
    assert_eq!(expected.len(), 12);
    for chunk in [1, 3, 8, 10, 11, 12] {
        assert_eq!(run(&mut engine(Toy::default(), chunk), request(&PROMPT, 12)).0, expected, "chunk {chunk}");
    }
}

#[test]
fn greedy_takes_the_models_best_at_every_step() {
    let toy = Toy::default();
    let mut ids = PROMPT.to_vec();
    for _ in 0..8 {
        let row = toy.row(&ids);
        let best = (0..VOCAB_SIZE).max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap();
        ids.push(best as u32);
    }
    let greedy = Request { sampling: Sampling::default(), ..request(&PROMPT, 8) };
    assert_eq!(fresh(greedy), ids[PROMPT.len()..]);
}

#[test]
fn prefill_reports_each_chunk_and_decode_runs_one_token_a_step() {
    let mut engine = engine(Toy::default(), 4);
    let id = engine.submit(request(&PROMPT, 3)).unwrap();
    let progress = |done_tokens| Event::Prefill { id, done_tokens, total_tokens: 11 };
    assert_eq!(step(&mut engine).unwrap(), [progress(4)]);
    assert_eq!(step(&mut engine).unwrap(), [progress(8)]);
    assert!(matches!(step(&mut engine).unwrap()[..], [Event::Prefill { done_tokens: 11, .. }, Event::Token { .. }]));
    assert!(matches!(step(&mut engine).unwrap()[..], [Event::Token { .. }]));
    assert!(matches!(step(&mut engine).unwrap()[..], [Event::Token { .. }, Event::Finished { .. }]));
    assert_eq!(step(&mut engine).unwrap(), []);
    assert_eq!(*engine.model().calls.borrow(), [4, 4, 3, 1, 1]);
    assert_eq!(
        engine.model().ahead.get(),
        2,
        "both decode steps were begun before the token of the one before was known"
    );
}

#[test]
fn stats_count_tokens_and_steps() {
    let (_, _, stats) = run(&mut engine(Toy::default(), 4), request(&PROMPT, 3));
    let Stats { prompt_tokens, cached_tokens, generated_tokens, prefill_steps, decode_steps, .. } = stats;
    let counts = (prompt_tokens, cached_tokens, generated_tokens, prefill_steps, decode_steps);
    assert_eq!(counts, (11, 0, 3, 3, 2));
    assert_eq!(stats.launches_per_token(), 0.0);
}

#[test]
fn a_shared_prefix_is_not_run_again_and_changes_no_token() {
    let mut engine = engine(Toy::default(), 8);
    let (answer, ..) = run(&mut engine, request(&PROMPT, 6));
    let next = [&PROMPT, &answer[..], &[7, 7, 7]].concat();
    let (second, _, stats) = run(&mut engine, request(&next, 6));
    assert_eq!(second, fresh(request(&next, 6)));
    // The last token of the first answer was chosen but never run.
    assert_eq!((stats.prompt_tokens, stats.cached_tokens), (20, 16));
}

#[test]
fn rewinding_into_an_earlier_prompt_changes_no_token() {
    let mut engine = engine(Toy::default(), 8);
    run(&mut engine, request(&PROMPT, 20));
    for n_kept in [10, 5, 1, 0] {
        let edited = [&PROMPT[..n_kept], &[20, 21, 22]].concat();
        let (ids, _, stats) = run(&mut engine, request(&edited, 6));
        assert_eq!(ids, fresh(request(&edited, 6)));
        assert_eq!(stats.cached_tokens, n_kept);
    }
}

#[test]
fn a_lost_device_is_reported_and_a_new_model_goes_on_with_the_same_tokens() {
    let expected = fresh(request(&PROMPT, 12));
    // Two calls for each chunk and each token but the last: one that begins and one that waits.
    for n_answers in 0..25 {
        let mut engine = engine(Toy { answers: Some(n_answers).into(), ..Toy::default() }, 8);
        let id = engine.submit(request(&PROMPT, 12)).unwrap();
        let mut events = Vec::new();
        let error = loop {
            match step(&mut engine) {
                Ok(new) => events.extend(new),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, EngineError::DeviceLost { .. }), "{error}");
        assert_eq!(engine.active(), Some(id));
        engine.replace_model(Toy::default()).unwrap();
        events.extend(drain(&mut engine));
        assert_eq!(tokens(&events, id), expected, "lost after {n_answers} answers");
    }
}

/// Whether a step is begun before the token of the one before is known may show in nothing but time.
#[test]
fn running_ahead_changes_no_event() {
    let penalised = Sampling { repetition_penalty: 1.3, ..request(&PROMPT, 1).sampling };
    let biased = Sampling { logit_bias: vec![(3, 2.0)], ..Sampling::default() };
    for sampling in [Sampling::default(), request(&PROMPT, 1).sampling, penalised, biased] {
        for n_tokens in [1, 2, 3, 12, 99] {
            let events = |ahead| {
                let config = EngineConfig { ahead, ..config(40, 4) };
                let mut engine = Engine::new(Toy::default(), config).unwrap();
                engine.submit(Request { sampling: sampling.clone(), ..request(&PROMPT, n_tokens) }).unwrap();
                (drain(&mut engine), engine.model().ahead.get(), engine.model().on_their_way.get())
            };
            let (expected, none, _) = events(false);
            let (found, n_ahead, n_left) = events(true);
            assert_eq!(found, expected);
            let can = sampling.logit_bias.is_empty() && sampling.repetition_penalty == 1.0;
            let n_decode_steps = n_tokens.min(29) - 1;
            assert_eq!((none, n_ahead, n_left), (0, if can { n_decode_steps } else { 0 }, 0));
        }
    }
}

/// A stop id is not foreseen: the step after it is waited for and its row kept, because it is true.
#[test]
fn a_step_ahead_of_an_ending_is_reused_and_left_to_nobody() {
    let all = fresh(request(&PROMPT, 12));
    let last = all[4];
    let first = all.iter().position(|id| *id == last).unwrap();
    let mut engine = engine(Toy::default(), 8);
    let stop = Request { stop_ids: vec![last], ..request(&PROMPT, 12) };
    let (answer, reason, _) = run(&mut engine, stop);
    assert_eq!((&answer[..], reason, engine.model().on_their_way.get()), (&all[..=first], FinishReason::Stop, 0));
    let next = [&PROMPT, &answer[..], &[7, 7]].concat();
    let (ids, _, stats) = run(&mut engine, request(&next, 6));
    assert_eq!(ids, fresh(request(&next, 6)));
    assert_eq!(stats.cached_tokens, PROMPT.len() + answer.len(), "the stop id was run as well");
}

#[test]
fn cancelling_leaves_no_step_on_its_way() {
    for n_steps in 1..6 {
        let mut engine = engine(Toy::default(), 64);
        let id = engine.submit(request(&PROMPT, 9)).unwrap();
        let events: Vec<Event> = (0..n_steps).flat_map(|_| step(&mut engine).unwrap()).collect();
        assert_eq!(engine.model().on_their_way.get(), 1);
        engine.cancel(id);
        assert!(matches!(step(&mut engine).unwrap()[..], [Event::Finished { reason: FinishReason::Cancelled, .. }]));
        assert_eq!(engine.model().on_their_way.get(), 0);
        assert_eq!(tokens(&events, id), fresh(request(&PROMPT, 9))[..n_steps]);
        let edited = [&PROMPT, &tokens(&events, id)[..n_steps - 1], &[2]].concat();
        assert_eq!(run(&mut engine, request(&edited, 6)).0, fresh(request(&edited, 6)));
    }
}

#[test]
fn the_same_prompt_again_runs_one_token() {
    let mut engine = engine(Toy::default(), 8);
    let first = run(&mut engine, request(&PROMPT, 6)).0;
    let (again, _, stats) = run(&mut engine, request(&PROMPT, 6));
    assert_eq!(again, first);
    assert_eq!((stats.cached_tokens, stats.prefill_steps), (10, 1));
}

#[test]
fn a_cache_that_cannot_go_back_starts_over() {
    let mut engine = engine(Toy { slack_tokens: Some(4), ..Toy::default() }, 8);
    run(&mut engine, request(&PROMPT, 10));
    let (ids, _, stats) = run(&mut engine, request(&PROMPT, 6));
    assert_eq!(ids, fresh(request(&PROMPT, 6)));
    assert_eq!(stats.cached_tokens, 0);
    let near = [&PROMPT, &ids[..3], &[9]].concat();
    let (ids, _, stats) = run(&mut engine, request(&near, 6));
    assert_eq!(ids, fresh(request(&near, 6)));
    assert_eq!(stats.cached_tokens, 14);
}

#[test]
fn requests_run_in_the_order_they_came() {
    let mut engine = engine(Toy::default(), 8);
    let prompts = [&PROMPT[..3], &PROMPT[..7], &[9, 9]];
    let ids: Vec<_> = prompts.iter().map(|p| engine.submit(request(p, 4)).unwrap()).collect();
    let events = drain(&mut engine);
    for (&id, prompt) in ids.iter().zip(prompts) {
        assert_eq!(tokens(&events, id), fresh(request(prompt, 4)));
    }
    let finished = |event: &Event| match *event {
        Event::Finished { id, .. } => Some(id),
        _ => None,
    };
    assert_eq!(events.iter().filter_map(finished).collect::<Vec<_>>(), ids);
}

#[test]
fn cancelling_in_the_prompt_stops_at_the_next_chunk() {
    let mut engine = engine(Toy::default(), 3);
    let id = engine.submit(request(&PROMPT, 6)).unwrap();
    step(&mut engine).unwrap();
    engine.cancel(id);
    let (reason, stats) = ending(&drain(&mut engine), id);
    assert_eq!((reason, stats.generated_tokens), (FinishReason::Cancelled, 0));
    assert_eq!(*engine.model().calls.borrow(), [3]);
    let (ids, _, stats) = run(&mut engine, request(&PROMPT, 6));
    assert_eq!(ids, fresh(request(&PROMPT, 6)));
    assert_eq!(stats.cached_tokens, 3, "what was run is reused");
}

#[test]
fn cancelling_in_the_answer_keeps_its_tokens() {
    let mut engine = engine(Toy::default(), 64);
    let id = engine.submit(request(&PROMPT, 9)).unwrap();
    let waiting = engine.submit(request(&PROMPT[..4], 5)).unwrap();
    let events = [step(&mut engine).unwrap(), step(&mut engine).unwrap()].concat();
    engine.cancel(id);
    assert_eq!(tokens(&events, id), fresh(request(&PROMPT, 9))[..2]);
    let rest = drain(&mut engine);
    let (reason, stats) = ending(&rest, id);
    assert_eq!((reason, stats.generated_tokens), (FinishReason::Cancelled, 2));
    assert_eq!(tokens(&rest, waiting), fresh(request(&PROMPT[..4], 5)));
}

#[test]
fn a_queued_request_can_be_cancelled_and_an_ended_one_ignored() {
    let mut engine = engine(Toy::default(), 64);
    let first = engine.submit(request(&PROMPT, 2)).unwrap();
    let second = engine.submit(request(&PROMPT, 2)).unwrap();
    engine.cancel(second);
    engine.cancel(second);
    let events = drain(&mut engine);
    assert_eq!(ending(&events, second).0, FinishReason::Cancelled);
    assert_eq!(ending(&events, first).0, FinishReason::Length);
    assert!(tokens(&events, second).is_empty());
    engine.cancel(first);
    assert_eq!(drain(&mut engine), []);
}

#[test]
fn endings_stop_before_length_before_context() {
    let all = fresh(request(&PROMPT, 12));
    let at = |n: usize| request(&PROMPT, n);
    let stop = Request { stop_ids: vec![all[4], 1000], ..at(12) };
    let first = all.iter().position(|id| *id == all[4]).unwrap();
    let (ids, reason, _) = run(&mut engine(Toy::default(), 8), stop);
    assert_eq!((&ids[..], reason), (&all[..=first], FinishReason::Stop), "the stop id is reported");
    assert_eq!(run(&mut engine(Toy::default(), 8), at(7)).1, FinishReason::Length);
    // A context of 40 leaves 29 tokens after a prompt of 11.
    let (ids, reason, _) = run(&mut engine(Toy::default(), 8), at(99));
    assert_eq!((ids.len(), reason), (29, FinishReason::Context));
    assert_eq!(run(&mut engine(Toy::default(), 8), at(29)).1, FinishReason::Length);
}

#[test]
fn ids_beyond_the_limit_are_never_generated() {
    let limited = Request { logit_limit: 3, ..request(&PROMPT, 25) };
    assert!(fresh(limited).iter().all(|&id| id < 3));
}

fn check_refused(request: Request, expected: &str) {
    let mut engine = engine(Toy::default(), 8);
    let message = engine.submit(request).unwrap_err().to_string();
    assert!(message.contains(expected), "{message}");
    assert_eq!(drain(&mut engine), [], "nothing was queued");
}

#[test]
fn requests_that_cannot_run_are_refused_by_name_and_number() {
    let ok = || request(&PROMPT, 3);
    check_refused(request(&[], 3), "the prompt is empty");
    check_refused(request(&[1; 40], 3), "the prompt has 40 tokens; this context has room for at most 39");
    check_refused(request(&[0, 24], 3), "token id 24 at position 1 is unknown: the model's embedding has 24 rows");
    check_refused(request(&PROMPT, 0), "max_tokens is 0; it must be at least 1");
    check_refused(Request { logit_limit: 0, ..ok() }, "logit_limit is 0; it must be at least 1");
    let cold = Sampling { temperature: -0.5, ..Sampling::default() };
    check_refused(Request { sampling: cold, ..ok() }, "temperature is -0.5; it must be a finite number, 0 or more");
    let wide = Sampling { top_p: 1.01, ..Sampling::default() };
    check_refused(Request { sampling: wide, ..ok() }, "top_p is 1.01; it must be more than 0 and at most 1");
}

#[test]
fn sizes_that_cannot_work_are_refused() {
    let check = |context_tokens, prefill_chunk_tokens, expected: &str| {
        let error = Engine::new(Toy::default(), config(context_tokens, prefill_chunk_tokens)).err().unwrap();
        assert_eq!(error.to_string(), expected);
    };
    check(0, 8, "context_tokens is 0; it must be between 1 and the model's 64");
    check(65, 8, "context_tokens is 65; it must be between 1 and the model's 64");
    check(64, 0, "prefill_chunk_tokens is 0; it must be at least 1");
}

#[test]
fn broken_logits_end_their_sequence_and_no_other() {
    let mut engine = engine(Toy { poison: Some(13), ..Toy::default() }, 8);
    let bad = engine.submit(request(&[1, 13, 2], 4)).unwrap();
    let good = engine.submit(request(&[1, 2], 1)).unwrap();
    let error = step(&mut engine).unwrap_err();
    let EngineError::Sequence { id, source: ComputeError::Sample { position, .. } } = error else { panic!("{error}") };
    assert_eq!((id, position), (bad, 2));
    assert_eq!(engine.model().on_their_way.get(), 0, "nor is the step after it left on its way");
    assert_eq!(ending(&drain(&mut engine), good).0, FinishReason::Length);
}

#[test]
fn an_abandoned_step_loses_no_token() {
    let mut engine = engine(Toy::default(), 4);
    let id = engine.submit(request(&PROMPT, 6)).unwrap();
    let mut events = Vec::new();
    for _ in 0..8 {
        let mut cx = Context::from_waker(Waker::noop());
        assert!(pin!(engine.step()).poll(&mut cx).is_pending());
        events.extend(step(&mut engine).unwrap());
    }
    events.extend(drain(&mut engine));
    assert_eq!(tokens(&events, id), fresh(request(&PROMPT, 6)));
}

#[test]
fn scores_are_the_log_softmax_of_each_next_token() {
    for chunk in [1, 3, 64] {
        let mut engine = engine(Toy::default(), chunk);
        let mut positions = Vec::new();
        let scores = pollster::block_on(engine.score(&PROMPT, |position, row| {
            assert_eq!(row, Toy::default().row(&PROMPT[..=position]));
            positions.push(position);
        }));
        let row = |n: usize| Toy::default().row(&PROMPT[..n]);
        let expected: Vec<f64> = (1..PROMPT.len()).map(|n| log_prob(&row(n), PROMPT[n])).collect();
        assert_eq!(scores.unwrap(), expected);
        assert_eq!(positions, (0..PROMPT.len()).collect::<Vec<_>>());
    }
}

#[test]
fn scoring_takes_a_full_context_and_one_token() {
    let mut engine = engine(Toy::default(), 8);
    let mut score = |ids: &[u32]| pollster::block_on(engine.score(ids, |_, _| ()));
    assert_eq!(score(&[5; 40]).unwrap().len(), 39);
    assert!(score(&[5]).unwrap().is_empty());
    assert!(matches!(score(&[]), Err(EngineError::EmptyPrompt)));
    assert!(matches!(score(&[5; 41]), Err(EngineError::PromptTooLong { n_tokens: 41, max_tokens: 40 })));
    assert!(matches!(score(&[5, 99]), Err(EngineError::UnknownToken { position: 1, token: 99, .. })));
}

#[test]
fn scoring_between_steps_changes_no_token() {
    let mut engine = engine(Toy::default(), 4);
    let id = engine.submit(request(&PROMPT, 6)).unwrap();
    let mut events = Vec::new();
    for _ in 0..5 {
        events.extend(step(&mut engine).unwrap());
        pollster::block_on(engine.score(&[8, 8, 8], |_, _| ())).unwrap();
    }
    events.extend(drain(&mut engine));
    assert_eq!(tokens(&events, id), fresh(request(&PROMPT, 6)));
}
