//! Values that are fine alone and wrong together.

use super::problems::Log;
use super::*;

/// Lists what contradicts itself.
pub(super) fn run(config: &RunConfig, log: &mut Log) {
    clip(config, log);
    no_matrices(config, log);
    no_validation(config, log);
    paths(config, log);
    lengths(config, log);
    rates(config, log);
    objectives(config, log);
}

fn clip(config: &RunConfig, log: &mut Log) {
    let (norm, percentile) = ("optimizer.clip.norm", "optimizer.clip.percentile");
    if log.is_given(norm) && log.is_given(percentile) {
        log.contradiction(&[percentile, norm], format!("{norm} is given too; only one of them can hold"));
    }
    let key = "optimizer.clip.window";
    if log.is_given(key) && !matches!(config.optimizer.clip, Clip::Percentile { .. }) {
        log.contradiction(&[key, "optimizer.clip.percentile"], "only optimizer.clip.percentile looks at recent steps");
    }
}

fn no_matrices(config: &RunConfig, log: &mut Log) {
    if config.adapter.kind != AdapterKind::Full {
        return;
    }
    for key in ["rank", "alpha", "dropout", "rslora", "target_modules"].map(|key| format!("adapter.{key}")) {
        if log.is_given(&key) {
            log.contradiction(&[&key, "adapter.kind"], "adapter.kind is full, which has no LoRA matrices");
        }
    }
}

fn no_validation(config: &RunConfig, log: &mut Log) {
    if config.data.validation != Validation::Off {
        return;
    }
    let wants_best = log.is_given("checkpoint.keep_best") && config.checkpoint.keep_best;
    let wanted = [("checkpoint.keep_best", wants_best), ("evaluate.every_steps", log.is_given("evaluate.every_steps"))];
    for (key, _) in wanted.into_iter().filter(|(_, is_wanted)| *is_wanted) {
        log.contradiction(&[key, "data.validation"], "there is no data.validation to measure on");
    }
}

fn paths(config: &RunConfig, log: &mut Log) {
    if config.output == config.model && log.is_given("output") && log.is_given("model") {
        log.contradiction(&["output", "model"], "is the same path as model, which would be overwritten");
    }
    let Validation::Files(files) = &config.data.validation else { return };
    for file in files.iter().filter(|file| config.data.train.contains(file)) {
        log.contradiction(&["data.validation", "data.train"], format!("{} is trained on too", file.display()));
    }
}

fn lengths(config: &RunConfig, log: &mut Log) {
    let tokens = config.batch.tokens;
    if let Some(max_length) = config.data.max_length.filter(|max_length| *max_length > tokens) {
        let reason = format!("{max_length} tokens do not fit into a batch of {tokens}");
        log.contradiction(&["data.max_length", "batch.tokens"], reason);
    }
    let Some(growth) = config.batch.growth else { return };
    let first = tokens as u64 * config.batch.accumulate as u64;
    if growth.max_tokens < first {
        let reason = format!("{} is less than the {first} that a step has at first", growth.max_tokens);
        log.contradiction(&["batch.growth.max_tokens", "batch.tokens", "batch.accumulate"], reason);
    }
}

fn rates(config: &RunConfig, log: &mut Log) {
    let key = "schedule.final_fraction";
    if config.schedule.kind == ScheduleKind::Constant && log.is_given(key) {
        log.contradiction(&[key, "schedule.kind"], "schedule.kind is constant, which never ends lower");
    }
    if let (Warmup::Steps(warmup), Length::Steps(steps)) = (config.schedule.warmup, config.length)
        && warmup >= steps
    {
        let reason = format!("{warmup} steps of warm-up leave nothing of {steps} steps");
        log.contradiction(&["schedule.warmup", "steps"], reason);
    }
}

fn objectives(config: &RunConfig, log: &mut Log) {
    let objectives = &config.objectives;
    if objectives.next_token + objectives.span_corruption + objectives.contrastive <= 0.0 {
        log.contradiction(&["objectives", "objectives.next_token"], "all weights are 0, so there is nothing to learn");
    }
    if objectives.span_corruption > 0.0 && objectives.sentinels.len() < 2 {
        log.contradiction(
            &["objectives.sentinels", "objectives.span_corruption"],
            "objectives.span_corruption needs at least two tokens here",
        );
    }
}
