//! Steps that begin before the token of the one before is known: the same tokens at the same cost, and never waited for.

use anyhow::{Context, Result, ensure};
use samara_engine::{Engine, EngineConfig, Event, KvFormat, Picked, Request, Sampling, Stats};
use samara_model::Decoder;
use samara_ops::counts::{self, Counts};

use crate::{CAPACITY, check_all, golden};

/// An engine that runs ahead, or waits for every token.
fn engine(model: &Decoder, prefill_chunk_tokens: usize, ahead: bool) -> Result<Engine> {
    let config = EngineConfig { context_tokens: CAPACITY, prefill_chunk_tokens, kv: KvFormat::F16.into(), ahead };
    Ok(Engine::new(model.clone(), config)?)
}

fn samplings() -> [Sampling; 2] {
    let drawn = Sampling { temperature: 0.9, top_k: 20, top_p: 0.95, seed: 7, ..Sampling::default() };
    [Sampling::default(), drawn]
}

fn request(prompt: &[u32], sampling: &Sampling) -> Request {
    let (prompt, sampling) = (prompt.to_vec(), sampling.clone());
    Request { prompt, max_tokens: usize::MAX, stop_ids: Vec::new(), sampling, logit_limit: usize::MAX }
}

fn step(engine: &mut Engine) -> Result<Vec<Event>> {
    Ok(pollster::block_on(engine.step())?)
}

/// The tokens of one sequence, with their log-probabilities, and what it cost.
fn run(engine: &mut Engine, request: Request) -> Result<(Vec<Picked>, Stats)> {
    engine.submit(request)?;
    let mut picked = Vec::new();
    loop {
        for event in step(engine)? {
            match event {
                Event::Token { token, logprob, .. } => picked.push(Picked { token, logprob }),
                Event::Finished { stats, .. } => return Ok((picked, stats)),
                Event::Prefill { .. } => {}
            }
        }
    }
}

/// What waiting for every token gives on the same device.
fn expected(model: &Decoder, chunk: usize, request: Request) -> Result<Vec<Picked>> {
    Ok(run(&mut engine(model, chunk, false)?, request)?.0)
}

/// To the end of the context, and so around the rings again and again.
#[test]
fn running_ahead_changes_no_token() {
    check_all(golden::miniatures(), |model, golden, open| {
        for sampling in samplings() {
            let request = request(golden.first(8)?, &sampling);
            let (found, stats) = run(&mut engine(model, 8, true)?, request.clone())?;
            let expected = expected(model, 8, request)?;
            ensure!(expected.len() == CAPACITY - 8, "{} tokens", expected.len());
            ensure!(found == expected, "{found:?}, not {expected:?}");
            // The first two steps are not recorded yet, and the CPU records none.
            let n_ahead = if open.adapter.is_some() { CAPACITY as u64 - 8 - 3 } else { 0 };
            ensure!(stats.decode.ahead == n_ahead, "{n_ahead} steps begun ahead, not {stats:?}");
        }
        Ok(())
    });
}

/// A token costs what it costs without, but the device has it before the host has the one before.
#[test]
fn a_step_ahead_is_one_submit_one_upload_and_one_readback_before_the_last_is_waited_for() {
    check_all(golden::miniatures(), |model, golden, open| {
        for sampling in samplings() {
            if open.adapter.is_none() {
                continue;
            }
            let mut engine = engine(model, 8, true)?;
            engine.submit(request(golden.first(8)?, &sampling))?;
            let mut launches = None;
            for token_idx in 0..20 {
                let before = counts::read();
                step(&mut engine)?;
                let spent = counts::read() - before;
                if token_idx < 4 {
                    launches = Some(spent.launches);
                    continue;
                }
                let expected = Counts {
                    launches: launches.context("a step before")?,
                    submits: 1,
                    uploads: 1,
                    readbacks: 1,
                    readback_bytes: 8,
                    ahead: 1,
                    ..Counts::default()
                };
                ensure!(spent == expected, "token {token_idx}: {spent:?}, not {expected:?}");
            }
        }
        Ok(())
    });
}

/// With chunks of one token a ring has a single slot more than its window. The step that is not wanted takes it, and what
/// was chosen before that can still be taken back.
#[test]
fn a_step_ahead_is_taken_back_at_the_edge_of_a_ring() {
    check_all(golden::miniatures(), |model, golden, open| {
        if open.adapter.is_none() {
            return Ok(());
        }
        let greedy = |ids: &[u32], max_tokens| Request { max_tokens, ..request(ids, &Sampling::default()) };
        let all = expected(model, 8, greedy(golden.first(4)?, 30))?;
        let mut engine = engine(model, 1, true)?;
        for n_tokens in [3, 9, 20, 30] {
            let id = engine.submit(greedy(golden.first(4)?, usize::MAX))?;
            let mut ids = golden.first(4)?.to_vec();
            while ids.len() < 4 + n_tokens {
                ids.extend(step(&mut engine)?.iter().filter_map(token));
            }
            engine.cancel(id);
            step(&mut engine)?;
            ensure!(ids[4..].iter().eq(all[..n_tokens].iter().map(|picked| &picked.token)), "{ids:?} of {all:?}");
            // The token chosen last has been run. Another takes its place.
            let last = ids.pop().context("a token")?;
            ids.push(if last == 5 { 6 } else { 5 });
            let (found, stats) = run(&mut engine, greedy(&ids, 4))?;
            let expected = expected(model, 8, greedy(&ids, 4))?;
            let tokens = |all: &[Picked]| all.iter().map(|picked| picked.token).collect::<Vec<_>>();
            ensure!(tokens(&found) == tokens(&expected), "{found:?} after {n_tokens}, not {expected:?}");
            ensure!(stats.cached_tokens == ids.len() - 1, "{} of {} tokens reused", stats.cached_tokens, ids.len());
        }
        Ok(())
    });
}

fn token(event: &Event) -> Option<u32> {
    match event {
        Event::Token { token, .. } => Some(*token),
        _ => None,
    }
}
