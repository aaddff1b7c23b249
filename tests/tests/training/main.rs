//! Training against PyTorch: gradients of everything that can be trained, and the losses of the same thirty steps.
//!
//! The official values come from documents that were run one by one; here they are laid end to end. On each device the
//! gradient of every tensor must lie within 1e-3 of the official one, relative to its length.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::expect_used, reason = "a test fails by panicking")]

mod golden;
mod memory;

use anyhow::{Context, Result, ensure};
use burn::tensor::Tensor;
use golden::Golden;
use samara_data::Batch;
use samara_formats::peft::{AdapterConfig, LoraAdapter};
use samara_model::{Adapter, Decoder, KvFormat, Site, TensorRows, Want};
use samara_ops::{Choice, device::OpenDevice, read_f32};
use samara_tests::pick;
use samara_train::{
    Learner, Pass, PassSpec, RunConfig, Trainer, Verdict,
    config::{Clip, OptimizerConfig, ScheduleConfig, ScheduleKind, Warmup},
    gradient_norms, pass,
};

const FAMILIES: [&str; 4] = ["llama", "olmo2", "olmo3", "olmoe"];
/// What every adapter of the golden values is made with.
const ALPHA: f32 = 8.0;
/// The learning rate of the official losses.
const CURVE_RATE: f64 = 5e-3;
/// The largest distance from an official gradient, as a part of its length.
const TOLERANCE: f64 = 1e-3;

#[test]
fn gradients_of_all_parameters_are_those_of_pytorch() {
    check_all(&FAMILIES, |golden, open| {
        let checkpoint = golden.checkpoint()?;
        let decoder = Decoder::load_dense(&checkpoint, open, &mut |_| ())?;
        let learner = Learner::full(decoder, &checkpoint)?;
        let found = gradients(golden, &learner, open, None)?;
        check_loss(&found, golden.floats("loss")?[0])?;
        ensure!(learner.tensors().len() == found.gradients.len(), "every parameter has a name");
        for (tensors, gradient) in learner.tensors().iter().zip(&found.gradients) {
            let mut values = gradient.as_slice();
            for rows in tensors {
                let n = rows.rows.len() * rows.width;
                let (own, rest) = values.split_at(n);
                let mut own = own.to_vec();
                if rows.tensor.ends_with("embed_tokens.weight") && golden.has_padding_row()? {
                    // PyTorch's embedding gives the row of the padding token no gradient; the golden ids use it as any other.
                    own[golden.padding_row(rows.width)?].fill(0.0);
                }
                check_tensor(&rows.tensor, &own, official(golden, rows)?)?;
                values = rest;
            }
            ensure!(values.is_empty(), "{:?}", tensors[0]);
        }
        Ok(())
    });
}

#[test]
fn gradients_of_adapters_are_those_of_peft() {
    check_all(&FAMILIES, |golden, open| {
        let adapter = golden.adapter("lora.", ALPHA)?;
        let learner = adapted(golden, &adapter, open)?;
        let found = gradients(golden, &learner, open, None)?;
        check_loss(&found, golden.floats("lora_loss")?[0])?;
        check_adapter(golden, "lora", &adapter, &found)
    });
}

#[test]
fn gradients_of_doras_are_those_of_peft() {
    check_all(&["llama"], |golden, open| {
        let adapter = golden.adapter("dora.", ALPHA)?;
        let learner = adapted(golden, &adapter, open)?;
        for every in [None, Some(1)] {
            let found = gradients(golden, &learner, open, every)?;
            check_loss(&found, golden.floats("dora_loss")?[0])?;
            check_adapter(golden, "dora", &adapter, &found)?;
        }
        let back = pollster::block_on(learner.to_adapter())?;
        ensure!(back.as_ref() == Some(&adapter), "what goes in comes out");
        ensure!(learner.name_of(5).ends_with(".lora_magnitude_vector") && learner.layer_of(5) == Some(0));
        Ok(())
    });
}

#[test]
fn norms_of_gradients_are_told_by_layer_and_what_is_no_number_by_name() {
    check_all(&["llama", "olmoe"], |golden, open| {
        let adapter = golden.adapter("lora.", ALPHA)?;
        let learner = adapted(golden, &adapter, open)?;
        let documents = golden.documents("", open)?;
        let mut gradients = pass(&learner, &documents, &learner.model().trunk(64), &spec(1, None)).gradients;
        let norms = pollster::block_on(gradient_norms(&learner, &gradients))?;
        let squares = |values: &[f32]| values.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>();
        let mut layers = vec![0.0; learner.config().n_layers + 1];
        for (index, (gradient, norm)) in gradients.iter().zip(&norms.matrices).enumerate() {
            let square = squares(&pollster::block_on(read_f32(gradient.clone().context("a gradient")?))?);
            ensure!((norm - square.sqrt()).abs() <= 1e-5 * norm, "{}: {norm}", learner.name_of(index));
            layers[learner.layer_of(index).context("a layer")?] += square;
        }
        for (norm, square) in norms.layers.iter().zip(&layers) {
            ensure!((norm - square.sqrt()).abs() <= 1e-5 * norm, "{norm} of {layers:?}");
        }
        ensure!(
            norms.not_finite.is_none()
                && (norms.total() - layers.iter().sum::<f64>().sqrt()).abs() < 1e-4 * norms.total()
        );
        gradients[1] = None;
        gradients[5] = gradients[5].take().map(|gradient| gradient * f32::NAN);
        let norms = pollster::block_on(gradient_norms(&learner, &gradients))?;
        ensure!(norms.not_finite == Some(learner.name_of(5)) && norms.matrices[1] == 0.0);
        ensure!(norms.layers[0].is_nan() && norms.layers[1].is_finite());
        Ok(())
    });
}

/// The rows of a quantised matrix are measured as they are stored: nothing is made dense.
#[test]
fn a_dora_over_quantised_weights_has_the_gradients_of_the_same_weights_in_f32() {
    check_all(&["llama.q4_0.curve"], |golden, open| {
        let adapter = Golden::read("llama")?.adapter("dora.", ALPHA)?;
        let checkpoint = golden.checkpoint()?;
        let documents = golden.documents("curve.0.", open)?;
        let [quantised, dense] = [Decoder::load, Decoder::load_dense].map(|load| {
            let learner = Learner::from_adapter(load(&checkpoint, open, &mut |_| ())?, &adapter, open.kernels)?;
            let trunk = learner.model().trunk(64);
            Ok::<_, anyhow::Error>((read(pass(&learner, &documents, &trunk, &spec(1, None)))?, learner))
        });
        let ((quantised, learner), (dense, _)) = (quantised?, dense?);
        let pairs = quantised.gradients.iter().zip(&dense.gradients).enumerate();
        pairs.into_iter().try_for_each(|(index, (a, b))| check_near(&learner.name_of(index), a, b, 1e-4))
    });
}

#[test]
fn a_new_dora_changes_nothing() {
    check_all(&["llama", "olmo3", "olmoe"], |golden, open| {
        let config = AdapterConfig { use_dora: true, ..golden.adapter("lora.", ALPHA)?.config };
        let decoder = Decoder::load(&golden.checkpoint()?, open, &mut |_| ())?;
        let sites = Site::all(decoder.config());
        let learner = Learner::new_adapters(decoder, sites, config, 3, open.kernels);
        check_loss(&gradients(golden, &learner, open, None)?, golden.floats("loss")?[0])
    });
}

/// Adapters of all kinds in a model that generates: logits over a cache, document by document.
#[test]
fn adapters_in_generation_give_the_losses_of_peft() {
    check_all(&["llama"], |golden, open| {
        let base = Decoder::load(&golden.checkpoint()?, open, &mut |_| ())?;
        let lora = golden.adapter("lora.", ALPHA)?;
        let mut rslora = lora.clone();
        rslora.config.use_rslora = true;
        let adapters = [("lora_loss", lora), ("rslora_loss", rslora), ("dora_loss", golden.adapter("dora.", ALPHA)?)];
        for (name, adapter) in adapters {
            let placed = Adapter::from_peft(&adapter, base.config(), 1.0, &open.device, open.kernels)?;
            let (found, official) = (loss_over_caches(golden, &base.with_adapters(placed))?, golden.floats(name)?[0]);
            ensure!((found - official).abs() <= 1e-4 * official, "{name} {found}, of peft {official}");
        }
        Ok(())
    });
}

/// A step that is recorded and replayed scales as one that is launched, and the magnitudes learn beside the rest.
#[test]
fn a_dora_that_was_trained_picks_the_same_tokens_when_its_step_is_replayed() {
    check_all(&["llama.curve"], |golden, open| {
        let config = AdapterConfig { use_dora: true, ..golden.adapter("curve.init.", ALPHA)?.config };
        let decoder = Decoder::load(&golden.checkpoint()?, open, &mut |_| ())?;
        let sites = Site::all(decoder.config());
        let mut trainer = curve_trainer(Learner::new_adapters(decoder, sites, config, 3, open.kernels));
        let before = pollster::block_on(trainer.learner().to_adapter())?.context("an adapter")?;
        let losses = curve_losses(&mut trainer, golden, 15)?;
        ensure!(losses[14] < 0.7 * losses[2], "{losses:?}");
        let after = pollster::block_on(trainer.learner().to_adapter())?.context("an adapter")?;
        ensure!(before.modules.iter().zip(&after.modules).all(|(old, new)| old.magnitude != new.magnitude));

        let model = trainer.learner().model();
        let choice = Choice { adjustments: Vec::new(), limit: model.config().vocab_size, draw: None };
        let [mut picking, mut forward] = [model.new_cache(16, 1, KvFormat::F32), model.new_cache(16, 1, KvFormat::F32)];
        let mut token = golden.rows("curve.0.")?[0][0];
        for _ in 0..12 {
            let picked = pick(&model, &[token], &mut picking, &choice)?.token;
            let logits = pollster::block_on(read_f32(model.forward(&[token], &mut forward, Want::Last)))?;
            ensure!(logits.iter().all(|logit| *logit <= logits[picked as usize]), "{picked} is not the likeliest");
            token = picked;
        }
        Ok(())
    });
}

/// The mean loss of the golden documents, each token given by itself.
fn loss_over_caches(golden: &Golden, model: &Decoder) -> Result<f32> {
    let [ids, positions, labels] = golden.rows("")?;
    let (mut sum, mut n_labels) = (0.0, 0);
    let mut cache = model.new_cache(64, 1, KvFormat::F32);
    for ((id, position), label) in ids.iter().zip(&positions).zip(&labels) {
        if *position == 0 {
            cache = model.new_cache(64, 1, KvFormat::F32);
        }
        let logits = pollster::block_on(read_f32(model.forward(&[*id], &mut cache, Want::Last)))?;
        if *label != samara_ops::IGNORE {
            let total: f32 = logits.iter().map(|logit| logit.exp()).sum();
            sum += total.ln() - logits[*label as usize];
            n_labels += 1;
        }
    }
    Ok(sum / n_labels as f32)
}

#[test]
fn activations_that_are_computed_again_give_the_same_gradients() {
    check_all(&["olmo3", "olmoe"], |golden, open| {
        let adapter = golden.adapter("lora.", ALPHA)?;
        let learner = adapted(golden, &adapter, open)?;
        for every in [1, 3] {
            check_adapter(golden, "lora", &adapter, &gradients(golden, &learner, open, Some(every))?)?;
        }
        let checkpoint = golden.checkpoint()?;
        let full = Learner::full(Decoder::load_dense(&checkpoint, open, &mut |_| ())?, &checkpoint)?;
        let all_at_once = gradients(golden, &full, open, None)?;
        let in_segments = gradients(golden, &full, open, Some(2))?;
        let pairs = all_at_once.gradients.iter().zip(&in_segments.gradients).enumerate();
        pairs.into_iter().try_for_each(|(index, (a, b))| check_near(&full.name_of(index), a, b, 1e-5))
    });
}

#[test]
fn documents_end_to_end_are_trained_on_as_one_by_one() {
    check_all(&["llama", "olmo3"], |golden, open| {
        let learner = adapted(golden, &golden.adapter("lora.", ALPHA)?, open)?;
        let packed = gradients(golden, &learner, open, None)?;
        let [ids, positions, labels] = golden.rows("")?;
        let mut starts: Vec<usize> = (0..ids.len()).filter(|t| positions[*t] == 0).collect();
        starts.push(ids.len());
        let trunk = learner.model().trunk(64);
        let n_labels = labels.iter().filter(|label| **label != samara_ops::IGNORE).count();
        let mut sums: Vec<Vec<f32>> = packed.gradients.iter().map(|gradient| vec![0.0; gradient.len()]).collect();
        for span in starts.windows(2) {
            let one = |values: &[u32]| values[span[0]..span[1]].to_vec();
            let documents = samara_ops::Documents::new(&one(&ids), &one(&positions), &one(&labels), &open.device);
            let found = read(pass(&learner, &documents, &trunk, &spec(n_labels, None)))?;
            for (sum, more) in sums.iter_mut().zip(&found.gradients) {
                sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
            }
        }
        let pairs = packed.gradients.iter().zip(&sums).enumerate();
        pairs.into_iter().try_for_each(|(index, (a, b))| check_near(&learner.name_of(index), a, b, 1e-5))
    });
}

/// Thirty steps of AdamW from the same adapter over the same batches: the loss of every step is peft's, and so is the adapter
/// that comes out. One of the models is quantised; there peft trained over its weights in f32.
#[test]
fn thirty_steps_give_the_losses_of_peft() {
    check_all(&["llama.curve", "olmo2.curve", "llama.q4_0.curve"], |golden, open| {
        let learner = adapted(golden, &golden.adapter("curve.init.", ALPHA)?, open)?;
        let mut trainer = curve_trainer(learner);
        let official = golden.floats("curve.losses")?;
        for (step, (loss, official)) in curve_losses(&mut trainer, golden, 30)?.iter().zip(official).enumerate() {
            let distance = (loss - f64::from(*official)).abs() / f64::from(*official);
            ensure!(distance <= TOLERANCE, "step {step}: loss {loss}, of peft {official}");
        }
        let found = pollster::block_on(trainer.learner().to_adapter())?.context("an adapter")?;
        for (module, official) in found.modules.iter().zip(&golden.adapter("curve.final.", ALPHA)?.modules) {
            check_near(&module.path, &module.a, &official.a, 1e-2)?;
            check_near(&module.path, &module.b, &official.b, 1e-2)?;
        }
        Ok(())
    });
}

/// A trainer as that of the official losses.
fn curve_trainer(learner: Learner) -> Trainer {
    let mut config = RunConfig::new("", "", Vec::new());
    config.optimizer = OptimizerConfig {
        learning_rate: CURVE_RATE,
        weight_decay: 0.01,
        clip: Clip::Off,
        skip_outliers: None,
        ..config.optimizer
    };
    config.schedule = ScheduleConfig { kind: ScheduleKind::Constant, warmup: Warmup::Steps(0), ..config.schedule };
    Trainer::new(learner, &config, 64)
}

/// The losses of so many steps over the golden batches, each before its update.
fn curve_losses(trainer: &mut Trainer, golden: &Golden, n_steps: usize) -> Result<Vec<f64>> {
    let mut losses = Vec::new();
    for step in 0..n_steps {
        let [ids, positions, labels] = golden.rows(&format!("curve.{}.", step % 3))?;
        losses.push(pollster::block_on(trainer.step(&[Batch { ids, positions, labels }], 30))?.loss);
    }
    Ok(losses)
}

/// A gradient that is no number changes nothing, is told by the matrix that it was first seen in, and ends the run when it
/// stays.
#[test]
fn a_step_that_is_no_number_is_left_out_and_a_few_in_a_row_end_the_run() {
    check_all(&["llama"], |golden, open| {
        let mut learner = adapted(golden, &golden.adapter("lora.", ALPHA)?, open)?;
        let mut values = learner.values().to_vec();
        values[3] = values[3].clone().mul_scalar(f32::NAN);
        learner.replace(values);
        let mut config = RunConfig::new("", "", Vec::new());
        config.stability.max_bad_steps = 2;
        let mut trainer = Trainer::new(learner, &config, 64);
        let [ids, positions, labels] = golden.rows("")?;
        let batch = Batch { ids, positions, labels };
        let before = pollster::block_on(read_f32(trainer.learner().values()[0].clone()))?;
        let report = pollster::block_on(trainer.step(std::slice::from_ref(&batch), 10))?;
        ensure!(report.verdict == Verdict::NotFinite && report.not_finite.is_some(), "{report:?}");
        let after = pollster::block_on(read_f32(trainer.learner().values()[0].clone()))?;
        ensure!(before == after, "the weights changed");
        let ended = pollster::block_on(trainer.step(&[batch], 10)).err().context("an end")?.to_string();
        ensure!(ended.contains("2 steps in a row") && ended.contains("lora_"), "{ended}");
        Ok(())
    });
}

/// A pass in host memory.
struct Found {
    losses: Vec<f32>,
    n_labels: usize,
    gradients: Vec<Vec<f32>>,
}

fn adapted(golden: &Golden, adapter: &LoraAdapter, open: &OpenDevice) -> Result<Learner> {
    let decoder = Decoder::load(&golden.checkpoint()?, open, &mut |_| ())?;
    Ok(Learner::from_adapter(decoder, adapter, open.kernels)?)
}

fn gradients(golden: &Golden, learner: &Learner, open: &OpenDevice, every: Option<usize>) -> Result<Found> {
    let documents = golden.documents("", open)?;
    let trunk = learner.model().trunk(64);
    let n_labels = documents.n_trained();
    let found = read(pass(learner, &documents, &trunk, &spec(n_labels, every)))?;
    Ok(Found { n_labels, ..found })
}

fn spec(n_labels: usize, recompute_every: Option<usize>) -> PassSpec {
    PassSpec { recompute_every, loss_chunk_tokens: 10, scale: 1.0 / n_labels as f32, seed: 0, skip: None }
}

fn read(pass: Pass) -> Result<Found> {
    let values = |tensor: Tensor<2>| pollster::block_on(read_f32(tensor));
    let losses = pollster::block_on(read_f32(pass.losses))?;
    let gradients = pass.gradients.into_iter().map(|gradient| gradient.map_or(Ok(Vec::new()), values));
    Ok(Found { losses, n_labels: 0, gradients: gradients.collect::<Result<_, _>>()? })
}

fn check_loss(found: &Found, official: f32) -> Result<()> {
    let mean = found.losses.iter().sum::<f32>() / found.n_labels as f32;
    ensure!((mean - official).abs() <= 1e-4 * official, "loss {mean}, officially {official}");
    Ok(())
}

/// Every gradient of an adapter against the official one under `KIND_grad`.
fn check_adapter(golden: &Golden, kind: &str, adapter: &LoraAdapter, found: &Found) -> Result<()> {
    let names = adapter.modules.iter().flat_map(|module| {
        let magnitude = module.magnitude.is_some().then_some("lora_magnitude_vector");
        ["lora_A.weight", "lora_B.weight"].into_iter().chain(magnitude).map(move |part| (&module.path, part))
    });
    let names: Vec<_> = names.collect();
    ensure!(names.len() == found.gradients.len(), "{} gradients of {}", found.gradients.len(), names.len());
    for ((path, part), gradient) in names.into_iter().zip(&found.gradients) {
        let key = format!("base_model.model.{path}.{part}");
        check_tensor(&key, gradient, golden.floats(&format!("{kind}_grad.{key}"))?)?;
    }
    Ok(())
}

/// Some rows of an official gradient.
fn official<'a>(golden: &'a Golden, rows: &TensorRows) -> Result<&'a [f32]> {
    ensure!(rows.interleaved.is_none() && rows.add == 0.0, "{rows:?}");
    let all = golden.floats(&format!("full.{}", rows.tensor))?;
    Ok(&all[rows.rows.start * rows.width..rows.rows.end * rows.width])
}

fn check_tensor(name: &str, found: &[f32], official: &[f32]) -> Result<()> {
    check_near(name, found, official, TOLERANCE)
}

/// The distance of two gradients is at most `tolerance` of the length of the second.
fn check_near(name: &str, found: &[f32], expected: &[f32], tolerance: f64) -> Result<()> {
    ensure!(found.len() == expected.len(), "{name}: {} values, expected {}", found.len(), expected.len());
    let length = |values: &mut dyn Iterator<Item = f32>| values.map(|x| f64::from(x).powi(2)).sum::<f64>().sqrt();
    let distance = length(&mut found.iter().zip(expected).map(|(a, b)| a - b));
    let size = length(&mut expected.iter().copied());
    // An expert that no token went to has no gradient at all.
    ensure!(distance <= tolerance * size + 1e-9, "{name}: off by {distance:e} of {size:e}");
    Ok(())
}

/// Runs `check` for each file on each device and tells all that failed.
fn check_all(names: &[&str], check: impl Fn(&Golden, &OpenDevice) -> Result<()>) {
    samara_tests::check_all(names, |name| (*name).to_owned(), |name, open| check(&Golden::read(name)?, open));
}
