//! LoRA adapters at inference: beside the weights, worked into them, and as GGUF. All three must be the same model.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "../parity/golden.rs"]
#[allow(dead_code, reason = "logits are compared with those of another model here")]
mod golden;
mod made;
#[path = "../training/golden.rs"]
#[allow(dead_code, reason = "only the adapters are of use here")]
mod trained;

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use golden::Golden;
use samara_formats::{Checkpoint, GgufValue, Metadata, peft::LoraAdapter};
use samara_model::{Config, Decoder, DeviceMemory, KvFormat, Merge, ScaledAdapter, Want, gguf_adapter};
use samara_ops::{Choice, IGNORE, counts, device::OpenDevice, log_prob, read_f32};
use samara_tests::{devices, pick};

const CAPACITY: usize = 48;

/// Largest difference of two ways to the same logits, as a part of the largest logit.
const TOLERANCE: f32 = 1e-4;

#[test]
fn a_merged_model_gives_the_logits_of_its_adapters() {
    check_all(all_goldens(), |golden, open| {
        let checkpoint = golden.checkpoint()?;
        let adapters = two_adapters(&Config::from_checkpoint(&checkpoint)?);
        let beside = load(&checkpoint, open)?.with_scaled(&adapters)?;
        let merged = made::merged(&checkpoint, &adapters)?;
        let expected = logits(&beside, &golden.ids)?;
        check_near(&logits(&load(&merged.checkpoint()?, open)?, &golden.ids)?, &expected)?;
        let base = logits(&load(&checkpoint, open)?, &golden.ids)?;
        ensure!(check_near(&base, &expected).is_err(), "the adapters change nothing");
        Ok(())
    });
}

/// Also where one module has several, which then act in their order.
#[test]
fn a_dora_merges_to_the_logits_that_it_has_beside_the_weights() {
    check_all(all_goldens(), |golden, open| {
        let checkpoint = golden.checkpoint()?;
        let [lora, attention] = two_adapters(&Config::from_checkpoint(&checkpoint)?);
        let dora = scaled(made::as_dora(&lora.adapter), 0.7);
        let other = scaled(made::as_dora(&attention.adapter), 1.0);
        let base = load(&checkpoint, open)?;
        for adapters in [vec![dora.clone()], vec![dora.clone(), lora.clone()], vec![lora, other, dora]] {
            let expected = logits(&base.with_scaled(&adapters)?, &golden.ids)?;
            let merged = made::merged(&checkpoint, &adapters)?;
            check_near(&logits(&load(&merged.checkpoint()?, open)?, &golden.ids)?, &expected)
                .with_context(|| format!("{} adapters", adapters.len()))?;
        }
        Ok(())
    });
}

/// The loss of the golden documents is the one that `peft` computes, with the adapter beside the weights and in them.
#[test]
fn adapters_of_peft_merge_to_the_losses_of_peft() {
    for (prefix, loss) in [("lora.", "lora_loss"), ("dora.", "dora_loss")] {
        let golden = trained::Golden::read("llama").unwrap();
        let adapter = made::with_magnitudes(golden.adapter(prefix, 8.0).unwrap(), &golden, prefix).unwrap();
        let checkpoint = golden.checkpoint().unwrap();
        let adapters = [scaled(adapter, 1.0)];
        let merged = made::merged(&checkpoint, &adapters).unwrap();
        for open in devices() {
            let beside = load(&checkpoint, open).unwrap().with_scaled(&adapters).unwrap();
            for model in [beside, load(&merged.checkpoint().unwrap(), open).unwrap()] {
                let found = mean_loss(&model, &golden).unwrap();
                let official = golden.floats(loss).unwrap()[0];
                assert!((found - official).abs() <= 1e-5 * official, "{prefix}: loss {found}, in peft {official}");
            }
        }
    }
}

#[test]
fn half_an_adapter_twice_is_the_adapter_and_none_is_the_base() {
    check_all(golden::miniatures(), |golden, open| {
        let checkpoint = golden.checkpoint()?;
        let base = load(&checkpoint, open)?;
        let adapter = made::random(base.config(), 3, 1);
        let with = |strengths: &[f32]| {
            let adapters: Vec<_> = strengths.iter().map(|strength| scaled(adapter.clone(), *strength)).collect();
            logits(&base.with_scaled(&adapters)?, &golden.ids)
        };
        check_near(&with(&[0.5, 0.5])?, &with(&[1.0])?)?;
        check_near(&with(&[0.0])?, &logits(&base, &golden.ids)?)
    });
}

#[test]
fn bytes_of_adapters_are_told_before_they_are_taken() {
    check_all(golden::miniatures(), |golden, open| {
        let checkpoint = golden.checkpoint()?;
        let loras = two_adapters(&Config::from_checkpoint(&checkpoint)?);
        let dora = scaled(made::as_dora(&loras[0].adapter), 1.0);
        for adapters in [&loras[..], &[dora]] {
            let model = load(&checkpoint, open)?.with_scaled(adapters)?;
            let told = DeviceMemory::needed(model.config(), &checkpoint, adapters, CAPACITY, 8, KvFormat::F32)?;
            ensure!(told.adapters_bytes == model.adapters_bytes(), "{told:?}, adapters {}", model.adapters_bytes());
            ensure!(told.weights_bytes == model.n_bytes(), "{told:?}, weights {}", model.n_bytes());
        }
        Ok(())
    });
}

/// An adapted module costs two launches more, recorded and replayed as the others are. Where it is the gate or goes with it, the
/// activation is a launch of its own.
#[test]
fn a_decode_step_with_adapters_is_replayed() {
    let greedy = Choice { adjustments: Vec::new(), limit: usize::MAX, draw: None };
    check_all(golden::miniatures(), |golden, open| {
        let base = load(&golden.checkpoint()?, open)?;
        let adapters = two_adapters(base.config());
        let model = base.with_scaled(&adapters)?;
        let n_modules: usize = adapters.iter().map(|scaled| scaled.adapter.modules.len()).sum();
        let expected = logits(&model, &golden.ids)?;
        let (plain, _) = decode(&base, golden, &greedy)?;
        let (launches, chosen) = decode(&model, golden, &greedy)?;
        let modules = adapters.iter().flat_map(|scaled| &scaled.adapter.modules);
        let gates: BTreeSet<_> = modules.filter_map(|module| module.path.strip_suffix("mlp.gate_proj")).collect();
        let more = if open.adapter.is_some() { (2 * n_modules + gates.len()) as u64 } else { 0 };
        ensure!(launches == plain + more, "{launches} launches, {plain} without {n_modules} modules");
        let rows = expected.chunks(model.config().vocab_size).skip(chosen[0].0);
        for (row, (position, token)) in rows.zip(&chosen) {
            let best = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            ensure!(best - row[*token as usize] <= 2.0 * TOLERANCE * largest(&expected), "{token} at {position}");
        }
        Ok(())
    });
}

#[test]
fn an_adapter_for_another_model_is_refused_with_all_that_differs() {
    let [llama, olmo2] = ["llama", "olmo2"].map(|name| trained::Golden::read(name).unwrap());
    let adapter = scaled(llama.adapter("lora.", 8.0).unwrap(), 1.0);
    let config = Config::from_checkpoint(&olmo2.checkpoint().unwrap()).unwrap();
    let error = adapter.check(&config).unwrap_err().to_string();
    for words in [
        "some adapter: ",
        "model.layers.0.self_attn.k_proj: made for a matrix of [16, 32], the model's is [32, 32]",
        "model.layers.1.mlp.down_proj: made for a matrix of [32, 64], the model's is [32, 72]",
        "model.layers.2.self_attn.q_proj: no such module",
    ] {
        assert!(error.contains(words), "{words:?} is missing: {error}");
    }
    assert!(!error.contains("layers.0.self_attn.q_proj"), "{error}");
}

/// A reader of the GGUF adapter adds `alpha / rank B A` to the rows as its model's file has them: that is the merge.
#[test]
fn an_exported_adapter_fits_the_files_of_its_model() {
    for golden in golden::gguf_files() {
        let checkpoint = golden.checkpoint().unwrap();
        check_export(&checkpoint).with_context(|| golden.name.clone()).unwrap();
    }
}

fn check_export(checkpoint: &Checkpoint) -> Result<()> {
    let config = Config::from_checkpoint(checkpoint)?;
    let adapter = made::random(&config, 3, 7);
    let exported = Checkpoint::from_gguf("adapter.gguf", gguf_adapter(&adapter, &config)?)?;
    let (Metadata::Gguf(of_model), Metadata::Gguf(of_adapter)) = (checkpoint.metadata(), exported.metadata()) else {
        anyhow::bail!("both are GGUF");
    };
    ensure!(of_model.str("general.architecture") == of_adapter.str("general.architecture"), "{of_adapter:?}");
    let Some(GgufValue::F32(alpha)) = of_adapter.values.get("adapter.lora.alpha") else { anyhow::bail!("no alpha") };
    let n_modules = adapter.modules.len();
    let adapters = [scaled(adapter, 1.0)];
    let merge = Merge::new(checkpoint, &adapters)?;
    ensure!(exported.tensors().len() == 2 * n_modules && merge.changed().len() == n_modules);
    for name in merge.changed() {
        let info = checkpoint.tensor(name).context("a tensor of the model")?;
        let values = |part: &str| {
            let info = exported.tensor(&format!("{name}.{part}")).with_context(|| format!("{name}.{part}"))?;
            anyhow::Ok(exported.rows_f32(info, 0..info.n_rows())?)
        };
        let (a, b) = (values("lora_a")?, values("lora_b")?);
        let base = checkpoint.rows_f32(info, 0..info.n_rows())?;
        let merged = merge.rows(name, 0..info.n_rows())?;
        for (i, (merged, base)) in merged.iter().zip(&base).enumerate() {
            let (row, column) = (i / info.row_len(), i % info.row_len());
            let product: f32 = (0..3).map(|j| b[row * 3 + j] * a[j * info.row_len() + column]).sum();
            let expected = base + alpha / 3.0 * product;
            ensure!((merged - expected).abs() < 1e-5, "{name} at {row}, {column}: {merged}, not {expected}");
        }
    }
    Ok(())
}

/// Launches of the last token, and what was chosen after each position from the third decode step on.
fn decode(model: &Decoder, golden: &Golden, choice: &Choice) -> Result<(u64, Vec<(usize, u32)>)> {
    let mut cache = Decoder::new_cache(model, CAPACITY, 8, KvFormat::F32);
    Decoder::append(model, golden.first(8)?, &mut cache);
    let (mut launches, mut chosen) = (0, Vec::new());
    for (position, token) in golden.ids.chunks(1).enumerate().skip(8).take(16) {
        let before = counts::read();
        let picked = pick(model, token, &mut cache, choice)?;
        let step = counts::read() - before;
        launches = step.launches;
        if position > 10 {
            ensure!(step.launches == 0 || (step.allocations, step.bind_groups) == (0, 0), "{step:?} at {position}");
            chosen.push((position, picked.token));
        }
    }
    Ok((launches, chosen))
}

/// The mean over all trained positions, every document by itself.
fn mean_loss(model: &Decoder, golden: &trained::Golden) -> Result<f32> {
    let [ids, positions, labels] = golden.rows("")?;
    let mut starts: Vec<usize> = (0..ids.len()).filter(|t| positions[*t] == 0).collect();
    starts.push(ids.len());
    let (mut sum, mut n_labels) = (0.0, 0);
    for span in starts.windows(2) {
        let rows = logits(model, &ids[span[0]..span[1]])?;
        let labelled = rows.chunks(model.config().vocab_size).zip(&labels[span[0]..span[1]]);
        for (row, label) in labelled.filter(|(_, label)| **label != IGNORE) {
            sum -= log_prob(row, *label);
            n_labels += 1;
        }
    }
    Ok((sum / f64::from(n_labels)) as f32)
}

/// All modules at rank 3, and the attention again at rank 2, turned round and weaker.
fn two_adapters(config: &Config) -> [ScaledAdapter; 2] {
    let mut attention = made::random(config, 2, 2);
    attention.modules.retain(|module| module.path.contains("self_attn"));
    [scaled(made::random(config, 3, 1), 1.0), scaled(attention, -0.5)]
}

fn scaled(adapter: LoraAdapter, strength: f32) -> ScaledAdapter {
    ScaledAdapter { name: "some adapter".to_owned(), adapter: Arc::new(adapter), strength }
}

fn all_goldens() -> Vec<Golden> {
    golden::miniatures().into_iter().chain(golden::gguf_files()).collect()
}

fn load(checkpoint: &Checkpoint, open: &OpenDevice) -> Result<Decoder> {
    Ok(Decoder::load(checkpoint, open, &mut |_| ())?)
}

/// `[T, V]` in one pass.
fn logits(model: &Decoder, ids: &[u32]) -> Result<Vec<f32>> {
    let mut cache = Decoder::new_cache(model, CAPACITY, CAPACITY, KvFormat::F32);
    Ok(pollster::block_on(read_f32(model.forward(ids, &mut cache, Want::All)))?)
}

fn check_near(found: &[f32], expected: &[f32]) -> Result<()> {
    ensure!(found.len() == expected.len() && found.iter().all(|x| x.is_finite()));
    let off = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    let allowed = TOLERANCE * largest(expected);
    ensure!(off <= allowed, "logits differ by {off}, more than {allowed}");
    Ok(())
}

fn largest(logits: &[f32]) -> f32 {
    logits.iter().fold(0.0, |max: f32, x| max.max(x.abs()))
}

/// Runs `check` for each checkpoint on each device and tells all that failed.
fn check_all(goldens: Vec<Golden>, check: impl Fn(&Golden, &OpenDevice) -> Result<()>) {
    samara_tests::check_all(&goldens, |golden| golden.name.clone(), check);
}
