//! From a configuration to the parts of a run: model, device, data.

use anyhow::Context;
use samara_chat::{Dialect, Source};
use samara_data::{DataOptions, Dataset, Report};
use samara_formats::Checkpoint;
use samara_formats::peft;
use samara_model::{Config, Decoder};
use samara_ops::device::{self, DeviceChoice, Limits, OpenDevice};
use samara_train::config::{AdapterKind, TargetModules, Validation};
use samara_train::{Learner, Parts, RunConfig, targets};

use crate::console::Console;
use crate::kernels::{self, KernelsArg};
use crate::places;
use crate::progress::Bar;

/// The name of the model inside the program.
const BUILT_IN: &str = "built-in";

/// Everything a run is made of.
pub(crate) struct Setup {
    pub(crate) checkpoint: Checkpoint,
    pub(crate) parts: Parts,
    pub(crate) report: Report,
    pub(crate) device: String,
    /// Values that are trained.
    pub(crate) n_trained: u64,
}

/// The documents of a run.
pub(super) struct Data {
    pub(super) train: Dataset,
    pub(super) validation: Option<Dataset>,
    pub(super) sentinel_ids: Vec<u32>,
}

/// Loads everything, the cheap things first.
pub(crate) fn setup(config: &RunConfig, console: &Console) -> anyhow::Result<Setup> {
    let checkpoint = open_model(config)?;
    let model = Config::from_checkpoint(&checkpoint)?;
    refuse_unbuilt(config, &model)?;
    let data = data(config, &checkpoint, &model)?;
    let open = open_device(config)?;
    console.detail(&format!("device: {open}"));
    let learner = learner(config, &checkpoint, &open)?;
    let n_trained = learner.values().iter().map(|value| value.shape().num_elements() as u64).sum();
    let report = data.train.report().clone();
    let Data { train, validation, sentinel_ids } = data;
    let parts = Parts { learner, train, validation, sentinel_ids };
    Ok(Setup { checkpoint, parts, report, device: open.name, n_trained })
}

/// The model that a run begins with.
pub(super) fn open_model(config: &RunConfig) -> anyhow::Result<Checkpoint> {
    let name = config.model.to_string_lossy();
    let source = if name == BUILT_IN { Source::Embedded } else { Source::Path(places::model_path(&name)?) };
    Ok(source.open()?)
}

/// Says what a configuration asks for and nobody has built.
pub(super) fn refuse_unbuilt(config: &RunConfig, model: &Config) -> anyhow::Result<()> {
    anyhow::ensure!(config.objectives.contrastive == 0.0, "objectives.contrastive: not built yet; set it to 0");
    anyhow::ensure!(
        config.stability.skip_improbable.is_none() || config.adapter.kind != AdapterKind::Full,
        "stability.skip_improbable: not built for full training, whose head learns from every document; set it to off"
    );
    anyhow::ensure!(
        model.head_dim.is_multiple_of(4),
        "this model has heads of {} channels; training needs a multiple of 4",
        model.head_dim
    );
    Ok(())
}

/// Reads and checks the documents.
pub(super) fn data(config: &RunConfig, checkpoint: &Checkpoint, model: &Config) -> anyhow::Result<Data> {
    let dialect = Dialect::from_checkpoint(checkpoint)?;
    let template = dialect.template(false).ok();
    let options = DataOptions {
        on_bad_row: config.data.on_bad_row,
        train_on: config.data.train_on,
        max_length: config.data.max_length,
        tokens_per_batch: Some(config.batch.tokens),
        max_line_bytes: config.data.max_line_bytes,
        end_ids: if config.data.append_end { dialect.stop_ids().iter().take(1).copied().collect() } else { Vec::new() },
        ..DataOptions::new(model.vocab_size)
    };
    let open = |paths: &[std::path::PathBuf]| Dataset::open(paths, dialect.tokenizer(), template.as_ref(), &options);
    let all = open(&config.data.train)?;
    let (train, validation) = match &config.data.validation {
        Validation::Off => (all, None),
        Validation::Files(paths) => (all, Some(open(paths)?)),
        Validation::Fraction(part) => {
            let (train, validation) = all.split(samara_data::Validation::Fraction(*part), config.seed)?;
            (train, Some(validation))
        }
    };
    let id = |name: &String| {
        let ids = dialect.tokenizer().encode(name, samara_text::AddSpecial::No)?;
        match ids.as_slice() {
            [id] => Ok(*id),
            _ => anyhow::bail!("objectives.sentinels: {name:?} is no single token of this model"),
        }
    };
    let sentinel_ids = config.objectives.sentinels.iter().map(id).collect::<anyhow::Result<_>>()?;
    Ok(Data { train, validation, sentinel_ids })
}

/// The device that the configuration asks for.
pub(super) fn open_device(config: &RunConfig) -> anyhow::Result<OpenDevice> {
    let choice: DeviceChoice = config.device.parse().context("device")?;
    let opened = pollster::block_on(device::open(choice, Limits::Adapter));
    let mut open = opened.with_context(|| format!("device: {}", config.device))?;
    kernels::choose(&mut open, KernelsArg::Auto)?;
    Ok(open)
}

/// The model on the device, with what is trained of it.
fn learner(config: &RunConfig, checkpoint: &Checkpoint, open: &OpenDevice) -> anyhow::Result<Learner> {
    let bar = Bar::bytes("loading");
    let mut progress =
        |progress: samara_model::LoadProgress<'_>| bar.set(progress.done_bytes, Some(progress.total_bytes));
    if config.adapter.kind == AdapterKind::Full {
        return Ok(Learner::full(Decoder::load_dense(checkpoint, open, &mut progress)?, checkpoint)?);
    }
    let decoder = Decoder::load(checkpoint, open, &mut progress)?;
    let sites = targets::sites(&config.adapter.target_modules, decoder.config())?;
    let adapter = peft::AdapterConfig {
        rank: config.adapter.rank,
        alpha: config.adapter.alpha as f32,
        dropout: config.adapter.dropout as f32,
        use_rslora: config.adapter.rslora,
        use_dora: config.adapter.kind == AdapterKind::Dora,
        target_modules: match &config.adapter.target_modules {
            TargetModules::Regex(pattern) => peft::TargetModules::Pattern(pattern.clone()),
            TargetModules::AllLinear | TargetModules::Names(_) => peft::TargetModules::Names(targets::names(&sites)),
        },
        base_model: Some(config.model.display().to_string()),
    };
    Ok(Learner::new_adapters(decoder, sites, adapter, config.seed, open.kernels))
}
