//! From YAML to values: each key with its default and its range.

use std::cell::RefCell;
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::ops::{Bound, RangeInclusive};
use std::path::PathBuf;

use saphyr::{LoadableYamlNode, MarkedYaml};

use super::problems::Log;
use super::section::{Section, Switch, Value};
use super::*;

/// Steps, tokens and other counts that may not be 0; larger ones are slips.
const COUNT: RangeInclusive<u64> = 1..=1_000_000_000_000;
/// Tokens of a document or a batch.
const TOKENS: RangeInclusive<u64> = 2..=1 << 24;
const ABOVE_ZERO: (Bound<f64>, Bound<f64>) = (Excluded(0.0), Unbounded);
const ABOVE_ZERO_TO_ONE: (Bound<f64>, Bound<f64>) = (Excluded(0.0), Included(1.0));

/// The run, where there is YAML at all, and what is wrong with it.
pub(super) fn run(yaml: &str) -> (Option<RunConfig>, Log) {
    let log = RefCell::new(Log::default());
    let documents = match MarkedYaml::load_from_str(yaml) {
        Ok(documents) => documents,
        Err(error) => {
            log.borrow_mut().add(error.marker().line(), "", error.info());
            return (None, log.into_inner());
        }
    };
    let config = match documents.as_slice() {
        [document] => Some(read(Section::root(document, &log))),
        [] => {
            log.borrow_mut().add(1, "", "the file is empty");
            None
        }
        [_, second, ..] => {
            log.borrow_mut().add(second.span.start.line(), "", "expected one document, found another");
            None
        }
    };
    (config, log.into_inner())
}

fn read(root: Section<'_, '_>) -> RunConfig {
    let default = RunConfig::new("", "", Vec::new());
    let adapter = adapter(root.section("adapter"));
    let config = RunConfig {
        model: root.required_path("model"),
        output: root.required_path("output"),
        seed: root.count("seed", default.seed, ..=i64::MAX as u64),
        device: root.text("device", default.device, "auto, cpu or gpu:N", device),
        data: data(root.section("data")),
        batch: batch(root.section("batch")),
        length: length(&root),
        optimizer: optimizer(root.section("optimizer"), adapter.kind),
        schedule: schedule(root.section("schedule")),
        memory: memory(root.section("memory")),
        checkpoint: checkpoint(root.section("checkpoint")),
        evaluate: evaluate(root.section("evaluate")),
        log: log(root.section("log")),
        stability: stability(root.section("stability")),
        objectives: objectives(root.section("objectives")),
        adapter,
    };
    root.done();
    config
}

fn device(text: &str) -> Option<String> {
    let is_gpu = text.strip_prefix("gpu:").is_some_and(|number| number.parse::<u16>().is_ok());
    (is_gpu || matches!(text, "auto" | "cpu")).then(|| text.to_owned())
}

fn length(root: &Section<'_, '_>) -> Length {
    let epochs = root.count_or("epochs", "off", COUNT);
    let steps = root.count_or("steps", "off", COUNT);
    if let (Some(_), Some(_)) = (epochs, steps) {
        root.contradiction(&["steps", "epochs"], "epochs is given too; only one of them can hold");
    }
    steps.map_or(Length::Epochs(epochs.unwrap_or(3)), Length::Steps)
}

fn data(section: Section<'_, '_>) -> DataConfig {
    let default = DataConfig::default();
    let config = DataConfig {
        train: section.required_paths("train"),
        validation: validation(&section),
        max_length: section.count_or("max_length", "auto", TOKENS).map(|tokens| tokens as usize),
        max_line_bytes: section.size("max_line_bytes", default.max_line_bytes, 1..=1 << 32),
        on_bad_row: section.choice(
            "on_bad_row",
            default.on_bad_row,
            &[("skip", OnBadRow::Skip), ("fail", OnBadRow::Fail)],
        ),
        train_on: section.choice(
            "train_on",
            default.train_on,
            &[("assistant", TrainOn::Assistant), ("all", TrainOn::All)],
        ),
        append_end: section.flag("append_end", default.append_end),
        shuffle: section.flag("shuffle", default.shuffle),
        packing: section.flag("packing", default.packing),
    };
    section.done();
    config
}

fn validation(section: &Section<'_, '_>) -> Validation {
    let expected = "off, a number above 0 below 1, a path, or a list of paths";
    section.value_of("validation", Validation::Off, expected, |value| match value {
        Value::Word("off") => Some(Validation::Off),
        Value::Word("") | Value::Words([]) => None,
        Value::Word(path) => Some(Validation::Files(vec![path.into()])),
        Value::Words(paths) => Some(Validation::Files(paths.iter().map(PathBuf::from).collect())),
        Value::Number(fraction) if fraction > 0.0 && fraction < 1.0 => Some(Validation::Fraction(fraction)),
        _ => None,
    })
}

fn adapter(section: Section<'_, '_>) -> AdapterConfig {
    let default = AdapterConfig::default();
    let kinds = [("lora", AdapterKind::Lora), ("dora", AdapterKind::Dora), ("full", AdapterKind::Full)];
    let config = AdapterConfig {
        kind: section.choice("kind", default.kind, &kinds),
        rank: section.size("rank", default.rank, 1..=65_536),
        alpha: section.number("alpha", default.alpha, ABOVE_ZERO),
        dropout: section.number("dropout", default.dropout, 0.0..1.0),
        rslora: section.flag("rslora", default.rslora),
        target_modules: target_modules(&section),
    };
    section.done();
    config
}

fn target_modules(section: &Section<'_, '_>) -> TargetModules {
    let expected = "all-linear, a list of names, or a regular expression";
    section.value_of("target_modules", TargetModules::AllLinear, expected, |value| match value {
        Value::Word("all-linear") => Some(TargetModules::AllLinear),
        Value::Word("") | Value::Words([]) => None,
        Value::Word(pattern) => regex::Regex::new(pattern).is_ok().then(|| TargetModules::Regex(pattern.to_owned())),
        Value::Words(names) => Some(TargetModules::Names(names.iter().map(|name| (*name).to_owned()).collect())),
        _ => None,
    })
}

fn batch(section: Section<'_, '_>) -> BatchConfig {
    let default = BatchConfig::default();
    let config = BatchConfig {
        tokens: section.size("tokens", default.tokens, TOKENS),
        accumulate: section.size("accumulate", default.accumulate, 1..=65_536),
        growth: optional(section.switch("growth"), default.growth, growth),
    };
    section.done();
    config
}

/// What a switch says: the default where it is not given, nothing where it is off, else its section.
fn optional<'a, 'y, T>(switch: Switch<'a, 'y>, default: Option<T>, read: impl Fn(Section<'a, 'y>) -> T) -> Option<T> {
    match switch {
        Switch::NotGiven => default,
        Switch::Off => None,
        Switch::On(section) => Some(read(section)),
    }
}

fn growth(section: Section<'_, '_>) -> GrowthConfig {
    let default = GrowthConfig::default();
    let config = GrowthConfig {
        factor: section.number("factor", default.factor, (Excluded(1.0), Included(100.0))),
        every_tokens: section.count("every_tokens", default.every_tokens, COUNT),
        max_tokens: section.count("max_tokens", default.max_tokens, COUNT),
    };
    section.done();
    config
}

fn optimizer(section: Section<'_, '_>, kind: AdapterKind) -> OptimizerConfig {
    let default = OptimizerConfig::default();
    let learning_rate = if kind == AdapterKind::Full { 2e-5 } else { default.learning_rate };
    let config = OptimizerConfig {
        learning_rate: section.number("learning_rate", learning_rate, ABOVE_ZERO_TO_ONE),
        betas: betas(&section, default.betas),
        eps: section.number("eps", default.eps, ABOVE_ZERO_TO_ONE),
        weight_decay: section.number("weight_decay", default.weight_decay, 0.0..=1.0),
        clip: optional(section.switch("clip"), Some(default.clip), clip).unwrap_or(Clip::Off),
        skip_outliers: optional(section.switch("skip_outliers"), default.skip_outliers, outliers),
    };
    section.done();
    config
}

fn betas(section: &Section<'_, '_>, default: [f64; 2]) -> [f64; 2] {
    section.value_of("betas", default, "a list of two numbers from 0 below 1", |value| match value {
        Value::Numbers([one, two]) if [one, two].iter().all(|beta| (0.0..1.0).contains(*beta)) => Some([*one, *two]),
        _ => None,
    })
}

fn clip(section: Section<'_, '_>) -> Clip {
    let percentile = section.number("percentile", f64::NAN, (Excluded(0.0), Included(100.0)));
    let window = section.size("window", 128, 2..=65_536);
    let norm = section.number("norm", 1.0, ABOVE_ZERO);
    section.done();
    if percentile.is_nan() { Clip::Norm(norm) } else { Clip::Percentile { percentile, window } }
}

fn outliers(section: Section<'_, '_>) -> OutlierConfig {
    let default = OutlierConfig::default();
    let config = OutlierConfig {
        window: section.size("window", default.window, 2..=65_536),
        sigma: section.number("sigma", default.sigma, ABOVE_ZERO),
    };
    section.done();
    config
}

fn schedule(section: Section<'_, '_>) -> ScheduleConfig {
    let default = ScheduleConfig::default();
    let kinds =
        [("cosine", ScheduleKind::Cosine), ("linear", ScheduleKind::Linear), ("constant", ScheduleKind::Constant)];
    let config = ScheduleConfig {
        kind: section.choice("kind", default.kind, &kinds),
        warmup: warmup(&section, default.warmup),
        lowest_layers_warmup: section.number("lowest_layers_warmup", default.lowest_layers_warmup, 0.0..=1.0),
        final_fraction: section.number("final_fraction", default.final_fraction, 0.0..=1.0),
    };
    section.done();
    config
}

fn warmup(section: &Section<'_, '_>, default: Warmup) -> Warmup {
    let expected = "a part of all steps, from 0 below 1, or a whole number of steps";
    section.value_of("warmup", default, expected, |value| match value {
        Value::Whole(steps) => u64::try_from(steps).ok().filter(|steps| steps <= COUNT.end()).map(Warmup::Steps),
        Value::Number(fraction) if (0.0..1.0).contains(&fraction) => Some(Warmup::Fraction(fraction)),
        _ => None,
    })
}

fn memory(section: Section<'_, '_>) -> MemoryConfig {
    let default = MemoryConfig::default();
    let config = MemoryConfig {
        recompute_every: section.count_or("recompute_every", "off", 1..=4096).map(|layers| layers as usize),
        loss_chunk_tokens: section.size("loss_chunk_tokens", default.loss_chunk_tokens, 1..=*TOKENS.end()),
    };
    section.done();
    config
}

fn checkpoint(section: Section<'_, '_>) -> CheckpointConfig {
    let default = CheckpointConfig::default();
    let config = CheckpointConfig {
        every_steps: section.count("every_steps", default.every_steps, COUNT),
        keep_last: section.size("keep_last", default.keep_last, 1..=65_536),
        keep_best: section.flag("keep_best", default.keep_best),
    };
    section.done();
    config
}

fn evaluate(section: Section<'_, '_>) -> EvaluateConfig {
    let default = EvaluateConfig::default();
    let config = EvaluateConfig { every_steps: section.count("every_steps", default.every_steps, COUNT) };
    section.done();
    config
}

fn log(section: Section<'_, '_>) -> LogConfig {
    let default = LogConfig::default();
    let config = LogConfig {
        jsonl: section.flag("jsonl", default.jsonl),
        tensorboard: section.flag("tensorboard", default.tensorboard),
        every_steps: section.count("every_steps", default.every_steps, COUNT),
        statistics_every: section.count_or("statistics_every", "off", COUNT),
    };
    section.done();
    config
}

fn stability(section: Section<'_, '_>) -> StabilityConfig {
    let default = StabilityConfig::default();
    let config = StabilityConfig {
        max_bad_steps: section.count("max_bad_steps", default.max_bad_steps, COUNT),
        skip_improbable: optional(section.switch("skip_improbable"), default.skip_improbable, improbable),
    };
    section.done();
    config
}

fn improbable(section: Section<'_, '_>) -> ImprobableConfig {
    let default = ImprobableConfig::default();
    let config = ImprobableConfig {
        below: section.number("below", default.below, ABOVE_ZERO_TO_ONE),
        rate: section.number("rate", default.rate, ABOVE_ZERO_TO_ONE),
    };
    section.done();
    config
}

fn objectives(section: Section<'_, '_>) -> ObjectivesConfig {
    let default = ObjectivesConfig::default();
    let sentinels = |value: Value<'_>| match value {
        Value::Words(words) => Some(words.iter().map(|word| (*word).to_owned()).collect()),
        _ => None,
    };
    let config = ObjectivesConfig {
        next_token: section.number("next_token", default.next_token, 0.0..),
        span_corruption: section.number("span_corruption", default.span_corruption, 0.0..),
        contrastive: section.number("contrastive", default.contrastive, 0.0..),
        masked: section.number("masked", default.masked, (Excluded(0.0), Excluded(1.0))),
        sentinels: section.value_of("sentinels", default.sentinels, "a list of tokens", sentinels),
        negatives: section.size("negatives", default.negatives, 1..=1024),
    };
    section.done();
    config
}
