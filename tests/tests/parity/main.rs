//! Logits of every family against those of the official implementation.
//!
//! The golden values come from one pass in f32 without a cache. Attention is causal, so their row `n - 1` is what any
//! way of computing the first `n` tokens must give: at once, in chunks, across a window's border, after going back.
//! Each way runs on each device.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod ahead;
mod golden;

use anyhow::{Context, Result, ensure};
use golden::Golden;
use samara_engine::LanguageModel;
use samara_model::{Attention, Decoder, DeviceMemory, KvCache, KvFormat, KvFormats, NormPlacement, Want};
use samara_ops::{Adjustment, Choice, Draw, counts, device::OpenDevice, read_f32};
use samara_tests::pick;

const CAPACITY: usize = 48;

#[test]
fn logits_are_those_of_the_official_implementation() {
    check_all(golden::miniatures(), one_pass);
}

#[test]
fn gguf_files_give_the_logits_of_the_same_weights_in_safetensors() {
    check_all(golden::gguf_files(), one_pass);
}

#[test]
fn other_texts_of_a_configuration_mean_what_they_say() {
    check_all(golden::variants(), one_pass);
}

#[test]
fn variants_that_are_not_built_are_refused_by_name() {
    for (variant, words) in golden::unbuilt_variants() {
        let refused = variant.checkpoint().unwrap();
        let message = samara_model::Config::from_checkpoint(&refused).unwrap_err().to_string();
        assert!(message.contains(words), "{}: {message}", variant.name);
    }
}

#[test]
fn chunks_across_the_window_give_the_logits_of_one_pass() {
    check_all(golden::miniatures(), |model, golden, _| {
        for chunk in [1, 3, 8, 16] {
            for n_tokens in border_lengths(model) {
                let mut cache = model.new_cache(CAPACITY, chunk, KvFormat::F32);
                let ids = golden.first(n_tokens)?;
                let logits = feed(model, &mut cache, ids, Want::All)?;
                golden
                    .check(n_tokens - rows_of(model, &logits)..n_tokens, &logits)
                    .with_context(|| format!("{n_tokens} tokens in chunks of {chunk}"))?;
                ensure!(cache.len() == n_tokens, "the cache counts {}", cache.len());
            }
        }
        Ok(())
    });
}

/// A rounding moves a key or a value by at most 2^-11 of itself in f16, and by 1/254 and, for values about zero, 1/15 of
/// the largest of its block in q8 and q4; sixteen times that is allowed for what layers make of it.
#[test]
fn keys_and_values_in_fewer_bits_hardly_move_the_logits() {
    let formats = [("f16", 16.0 / 2048.0), ("q8", 16.0 / 254.0), ("q8/q4", 16.0 / 15.0), ("q4", 16.0 / 15.0)];
    check_all(golden::miniatures(), |model, golden, _| {
        for (kv, allowed) in formats {
            let mut cache = model.new_cache(CAPACITY, 8, kv.parse::<KvFormats>()?);
            let logits = feed(model, &mut cache, golden.first(17)?, Want::Last)?;
            golden.check_within(allowed, 16..17, &logits).context(kv)?;
        }
        Ok(())
    });
}

#[test]
fn the_last_row_alone_is_the_last_of_all_rows() {
    check_all(golden::miniatures(), |model, golden, _| {
        for n_tokens in [1, 2, 17] {
            let mut cache = model.new_cache(CAPACITY, CAPACITY, KvFormat::F32);
            let logits = feed(model, &mut cache, golden.first(n_tokens)?, Want::Last)?;
            golden.check(n_tokens - 1..n_tokens, &logits)?;
        }
        Ok(())
    });
}

#[test]
fn going_back_and_on_gives_the_logits_of_a_fresh_start() {
    check_all(golden::miniatures(), |model, golden, _| {
        for (n_kept, n_wrong) in [(5, 4), (8, 8), (9, 3), (17, 8), (24, 1)] {
            let mut cache = model.new_cache(CAPACITY, 8, KvFormat::F32);
            feed(model, &mut cache, golden.first(n_kept)?, Want::Last)?;
            feed(model, &mut cache, golden.first(n_wrong)?, Want::Last)?;
            ensure!(cache.rewind(n_kept), "cannot go back from {} to {n_kept}", n_kept + n_wrong);
            let rest = golden.ids.get(n_kept..n_kept + 10).context("too few golden ids")?;
            let logits = feed(model, &mut cache, rest, Want::Last)?;
            golden
                .check(n_kept + 9..n_kept + 10, &logits)
                .with_context(|| format!("{n_wrong} tokens taken back at {n_kept}"))?;
        }
        Ok(())
    });
}

#[test]
fn a_cache_that_cannot_go_back_starts_over() {
    check_all(golden::miniatures(), |model, golden, _| {
        let mut cache = model.new_cache(CAPACITY, 3, KvFormat::F32);
        feed(model, &mut cache, &golden.ids, Want::Last)?;
        let slides = model.config().attention.iter().any(|kind| *kind != Attention::Full);
        ensure!(cache.can_rewind(5) != slides, "what a ring overwrote is gone");
        ensure!(cache.rewind(0) && cache.is_empty());
        let logits = feed(model, &mut cache, golden.first(10)?, Want::Last)?;
        golden.check(9..10, &logits)
    });
}

#[test]
fn chunks_appended_without_logits_fill_the_cache_all_the_same() {
    check_all(golden::miniatures(), |model, golden, _| {
        let mut cache = model.new_cache(CAPACITY, 8, KvFormat::F32);
        for chunk in golden.first(16)?.chunks(8) {
            model.append(chunk, &mut cache);
        }
        let last = golden.ids.get(16..17).context("too few golden ids")?;
        let logits = feed(model, &mut cache, last, Want::Last)?;
        golden.check(16..17, &logits)
    });
}

#[test]
fn bytes_told_before_loading_are_those_taken() {
    check_all(golden::miniatures(), |model, golden, _| {
        let mixed = KvFormats { keys: KvFormat::Q8, values: KvFormat::Q4 };
        for kv in KvFormat::ALL.map(KvFormats::from).into_iter().chain([mixed]) {
            let told = DeviceMemory::needed(model.config(), &golden.checkpoint()?, &[], CAPACITY, 8, kv)?;
            let cache = model.new_cache(CAPACITY, 8, kv);
            ensure!(told.kv_bytes == cache.n_bytes() as u64, "{told:?}, cache {}", cache.n_bytes());
            ensure!(told.weights_bytes == model.n_bytes(), "{told:?}, weights {}", model.n_bytes());
        }
        Ok(())
    });
}

/// What one more token costs is the same for every token, and known: position and ids go up, eight bytes come back. From the
/// third token of a kind on it is a replay, which allocates nothing and builds nothing, and still chooses rightly.
#[test]
fn a_decode_step_is_one_submit_one_readback_and_a_fixed_list_of_launches() {
    check_all(golden::miniatures(), |model, golden, open| {
        let config = model.config();
        let norms = if config.placement == NormPlacement::Sandwich { 2 } else { 0 };
        let experts = if config.moe.is_some() { 4 } else { 0 };
        let logits_launches = (config.n_layers * (8 + norms + experts) + 3) as u64;
        let gpu = open.adapter.is_some();
        for (choice, launches, uploads) in choices() {
            // The golden logits ask for all of f32; counts are those of any format.
            let kv = match (&choice.draw, choice.adjustments.len()) {
                (None, _) => KvFormat::F32,
                (Some(_), 0) => KvFormat::Q8,
                (Some(_), _) => KvFormat::F16,
            };
            let mut cache = model.new_cache(CAPACITY, 8, kv);
            feed(model, &mut cache, golden.first(8)?, Want::Last)?;
            for (position, token) in golden.ids.chunks(1).enumerate().skip(8).take(24) {
                let before = counts::read();
                let picked = pick(model, token, &mut cache, &choice)?;
                let step = counts::read() - before;
                // The rehearsal before a recording leaves another id in the step.
                let uploads = if position == 9 && choice.adjustments.is_empty() { uploads + 1 } else { uploads };
                let expected = if gpu { (logits_launches + launches, uploads, 1, 1, 8) } else { (0, 0, 1, 1, 8) };
                let found = (step.launches, step.uploads, step.submits, step.readbacks, step.readback_bytes);
                ensure!(found == expected, "{step:?}, expected {expected:?} for {choice:?}");
                let replays = gpu && position > 8 && choice.adjustments.is_empty();
                ensure!(!replays || (step.allocations, step.bind_groups) == (0, 0), "{step:?} at {position}");
                if choice.draw.is_none() {
                    golden.check_likeliest(position, picked)?;
                }
            }
        }
        Ok(())
    });
}

/// The kinds of choices, with their launches after the logits and the uploads of the whole step.
fn choices() -> [(Choice, u64, u64); 3] {
    let draw = Some(Draw { temperature: 0.8, top_k: 9, top_p: 0.9, min_p: 0.01, uniform: 0.4 });
    let adjustments = vec![Adjustment { repetition: 1.2, ..Adjustment::none(3) }];
    let greedy = Choice { adjustments: Vec::new(), limit: usize::MAX, draw: None };
    let drawn = Choice { draw, ..greedy.clone() };
    let adjusted = Choice { adjustments, ..drawn.clone() };
    [(greedy, 1, 1), (drawn, 2, 1), (adjusted, 3, 2)]
}

/// The engine's choice is the likeliest of the golden logits, whichever way the prompt went in.
#[test]
fn the_likeliest_token_is_that_of_the_official_implementation() {
    check_all(golden::miniatures(), |model, golden, _| {
        let [(greedy, ..), _, _] = choices();
        let mut cache = model.new_cache(CAPACITY, 8, KvFormat::F32);
        pollster::block_on(LanguageModel::append(model, golden.first(8)?, &mut cache))?;
        let picked = pick(model, &golden.ids[8..13], &mut cache, &greedy)?;
        golden.check_likeliest(12, picked)
    });
}

fn one_pass(model: &Decoder, golden: &Golden, _: &OpenDevice) -> Result<()> {
    let mut cache = model.new_cache(CAPACITY, CAPACITY, KvFormat::F32);
    let logits = feed(model, &mut cache, &golden.ids, Want::All)?;
    golden.check(0..golden.ids.len(), &logits)
}

/// Runs `check` for each checkpoint on each device and tells all that failed.
fn check_all(goldens: Vec<Golden>, check: impl Fn(&Decoder, &Golden, &OpenDevice) -> Result<()>) {
    samara_tests::check_all(
        &goldens,
        |golden| golden.name.clone(),
        |golden, open| check(&load(golden, open)?, golden, open),
    );
}

fn load(golden: &Golden, open: &OpenDevice) -> Result<Decoder> {
    let mut told = (0, 0);
    let model = Decoder::load(&golden.checkpoint()?, open, &mut |progress| {
        told = (progress.done_bytes, progress.total_bytes);
    })?;
    ensure!(told.0 == told.1 && told.1 > 0, "loading told {} of {} bytes", told.0, told.1);
    Ok(model)
}

/// Feeds `ids` in chunks as large as the cache takes; gives the logits of the last chunk.
fn feed(model: &Decoder, cache: &mut KvCache, ids: &[u32], want: Want) -> Result<Vec<f32>> {
    let logits = ids.chunks(cache.max_chunk()).map(|chunk| model.forward(chunk, cache, want)).last();
    Ok(pollster::block_on(read_f32(logits.context("no tokens to feed")?))?)
}

fn rows_of(model: &Decoder, logits: &[f32]) -> usize {
    logits.len() / model.config().vocab_size
}

/// Just below, at, just above the window, and past two of them; the same for models without one.
fn border_lengths(model: &Decoder) -> [usize; 4] {
    let window = model.config().attention.iter().find_map(|kind| match kind {
        Attention::Sliding(window) => Some(*window),
        Attention::Full => None,
    });
    let window = window.unwrap_or(8);
    [window - 1, window, window + 1, 2 * window + 1]
}
