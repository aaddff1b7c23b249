//! Device bytes of training: what the plan foretells, what recomputing saves, and what the loss takes in chunks.

use anyhow::{Context, Result, ensure};
use samara_chat::Source;
use samara_data::{Batch, Document};
use samara_formats::peft::{AdapterConfig, TargetModules};
use samara_model::{Config, Decoder};
use samara_ops::{Documents, LossSpec, Weight, cross_entropy, device::OpenDevice, peak_bytes, read_f32};
use samara_train::{
    Learner, MemoryPlan, RunConfig, Trainer,
    config::{AdapterKind, OptimizerConfig},
    targets,
};

use samara_tests::devices;

/// How far a plan may be off.
const TOLERANCE: f64 = 0.15;

#[test]
fn a_plan_is_near_what_a_step_takes() {
    let configs = [
        configured(AdapterKind::Lora, 16, None, 256),
        configured(AdapterKind::Lora, 4, Some(2), 512),
        configured(AdapterKind::Dora, 8, None, 256),
        configured(AdapterKind::Full, 16, None, 128),
    ];
    for open in devices().iter().filter(|open| open.adapter.is_some()) {
        for config in &configs {
            let (plan, peak) = measured(config, open).unwrap();
            let off = (plan.total_bytes() as f64 - peak as f64).abs() / peak as f64;
            let told = format!("{plan:?}, measured {peak}");
            eprintln!("{:?}: {told}", config.memory);
            assert!(off <= TOLERANCE, "{:?} {:?}: {told}", config.adapter.kind, config.memory);
        }
    }
}

/// With one layer at a time on the tape, the states between layers are all that grows with the layers.
#[test]
fn recomputing_keeps_one_segment_of_activations() {
    for open in devices().iter().filter(|open| open.adapter.is_some()) {
        let peak = |every| measured(&configured(AdapterKind::Lora, 8, every, 512), open).unwrap();
        let ((all, peak_of_all), (one, peak_of_one)) = (peak(None), peak(Some(1)));
        let saved = peak_of_all - peak_of_one;
        let foretold = all.activations_bytes - one.activations_bytes;
        assert!(saved as f64 >= 0.85 * foretold as f64, "{saved} saved, {foretold} foretold");
        assert!(one.activations_bytes < all.activations_bytes / 2, "{one:?} {all:?}");
    }
}

/// In the chunks that a run has by default.
#[test]
fn the_loss_over_a_large_vocabulary_takes_an_eighth_of_its_logits() {
    const VOCAB: usize = 100_352;
    const N_TOKENS: usize = 2048;
    for open in devices().iter().filter(|open| open.adapter.is_some()) {
        let device = &open.device;
        let width = 32;
        let values = |n: usize| (0..n).map(|i| ((i * 37 % 101) as f32 - 50.0) / 100.0).collect::<Vec<f32>>();
        let matrix = |n: usize| samara_ops::vector(&values(n * width), device).reshape([n, width]);
        let (hidden, head) = (matrix(N_TOKENS), Weight::dense(matrix(VOCAB), open.kernels));
        let positions: Vec<u32> = (0..N_TOKENS as u32).collect();
        let documents = Documents::new(&positions, &positions, &positions, device);
        let before = peak_bytes(device, || ()).1;
        let spec = LossSpec { chunk_tokens: 128, limit: VOCAB, scale: 1.0, train_head: false };
        let (loss, peak) = peak_bytes(device, || cross_entropy(&hidden, &head, &documents, &spec));
        let unchunked = (4 * N_TOKENS * VOCAB) as u64;
        assert!(peak - before <= unchunked / 8, "{} of {unchunked} bytes", peak - before);
        let losses = pollster::block_on(read_f32(loss.per_token)).unwrap();
        assert!(losses.iter().all(|loss| (5.0..20.0).contains(loss)));
    }
}

fn configured(kind: AdapterKind, rank: usize, recompute_every: Option<usize>, tokens: usize) -> RunConfig {
    let mut config = RunConfig::new("", "", Vec::new());
    config.adapter.kind = kind;
    config.adapter.rank = rank;
    config.batch.tokens = tokens;
    config.memory.recompute_every = recompute_every;
    config.memory.loss_chunk_tokens = 32;
    config.optimizer = OptimizerConfig { skip_outliers: None, ..config.optimizer };
    config
}

/// The plan for the built-in model, and what the second step took, when the moments are there.
fn measured(config: &RunConfig, open: &OpenDevice) -> Result<(MemoryPlan, u64)> {
    let checkpoint = Source::Embedded.open()?;
    let model = Config::from_checkpoint(&checkpoint)?;
    let plan = MemoryPlan::new(config, &model, &checkpoint, config.batch.tokens)?;
    let held_before = peak_bytes(&open.device, || ()).1;
    let (found, peak) = peak_bytes(&open.device, || -> Result<()> {
        let learner = match config.adapter.kind {
            AdapterKind::Full => Learner::full(Decoder::load_dense(&checkpoint, open, &mut |_| ())?, &checkpoint)?,
            _ => {
                let decoder = Decoder::load(&checkpoint, open, &mut |_| ())?;
                let sites = targets::sites(&config.adapter.target_modules, decoder.config())?;
                let adapter = AdapterConfig {
                    rank: config.adapter.rank,
                    alpha: 16.0,
                    dropout: 0.0,
                    use_rslora: false,
                    use_dora: config.adapter.kind == AdapterKind::Dora,
                    target_modules: TargetModules::AllLinear,
                    base_model: None,
                };
                Learner::new_adapters(decoder, sites, adapter, 1, open.kernels)
            }
        };
        let mut trainer = Trainer::new(learner, config, config.batch.tokens);
        let length = config.batch.tokens / 2;
        let document = || Document { ids: (0..length as u32).map(|i| i % 200).collect(), trained: vec![true; length] };
        let batch = Batch::from_documents(&[document(), document()]);
        for _ in 0..2 {
            let report = pollster::block_on(trainer.step(std::slice::from_ref(&batch), 10))?;
            ensure!(report.loss.is_finite());
        }
        Ok(())
    });
    found.context("a step")?;
    Ok((plan, peak - held_before))
}
