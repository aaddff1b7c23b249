//! The YAML of a run: the example is the default, and every mistake is listed with its line.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::PathBuf;

use samara_train::config::{AdapterKind, Clip, Length, OutlierConfig, ScheduleKind, TargetModules, Validation, Warmup};
use samara_train::{RunConfig, TrainError};

const MINIMAL: &str = "model: m\noutput: o\ndata: {train: a.jsonl}\n";

fn config(more: &str) -> RunConfig {
    RunConfig::from_yaml(&format!("{MINIMAL}{more}")).unwrap_or_else(|problems| panic!("{problems:?}"))
}

/// The problems of a run, as `line: key: reason`.
fn problems(yaml: &str) -> Vec<String> {
    let problems = RunConfig::from_yaml(yaml).map(|_| ()).unwrap_err();
    problems.iter().map(ToString::to_string).collect()
}

/// Checks what is wrong with lines that follow three good ones.
fn check_problems(more: &str, expected: &[&str]) {
    assert_eq!(problems(&format!("{MINIMAL}{more}")), expected, "{more}");
}

#[test]
fn the_example_is_the_default() {
    let expected = RunConfig::new("path/to/model", "path/to/output", vec![PathBuf::from("train.jsonl")]);
    assert_eq!(RunConfig::from_yaml(RunConfig::example()).unwrap(), expected);
    assert_eq!(config(""), RunConfig::new("m", "o", vec![PathBuf::from("a.jsonl")]));
}

/// The field names of the configuration, which are its keys, but where a field is a choice.
fn keys(value: &serde_json::Value) -> Vec<String> {
    let serde_json::Value::Object(object) = value else { return Vec::new() };
    object.iter().flat_map(|(key, value)| std::iter::once(key.clone()).chain(keys(value))).collect()
}

#[test]
fn the_example_has_every_key() {
    let json = serde_json::to_value(config("batch: {growth: on}\nstability: {skip_improbable: on}")).unwrap();
    let choices = ["length", "fraction"];
    for key in keys(&json).iter().filter(|key| !choices.contains(&key.as_str())) {
        assert!(RunConfig::example().contains(&format!("{key}:")), "{key} is not in the example");
    }
}

#[test]
fn what_the_example_offers_can_be_used() {
    let offered = [
        "growth: {factor: 1.5, every_tokens: 10000000, max_tokens: 65536}",
        "skip_improbable: {below: 0.1, rate: 0.5}",
        "{percentile: 90, window: 128}",
        "[q_proj, v_proj]",
    ];
    let example = RunConfig::example();
    for text in offered {
        let inner = text.split_once(": {").map_or(text, |(_, inner)| inner);
        assert!(example.contains(inner), "{text}");
    }
    let run = config(
        "batch: {growth: {factor: 1.5, every_tokens: 10000000, max_tokens: 65536}}\n\
         stability: {skip_improbable: {below: 0.1, rate: 0.5}}\n\
         optimizer: {clip: {percentile: 90, window: 128}, skip_outliers: off}\n\
         adapter: {target_modules: [q_proj, v_proj]}\n",
    );
    assert_eq!(run.optimizer.clip, Clip::Percentile { percentile: 90.0, window: 128 });
    assert_eq!(run.optimizer.skip_outliers, None);
    assert_eq!(run.adapter.target_modules, TargetModules::Names(vec!["q_proj".to_owned(), "v_proj".to_owned()]));
    assert_eq!(
        run,
        config(
            "batch: {growth: on}\nstability: {skip_improbable: on}\n\
         optimizer: {clip: {percentile: 90}, skip_outliers: off}\nadapter: {target_modules: [q_proj, v_proj]}\n",
        )
    );
}

#[test]
fn values_are_read_in_all_their_forms() {
    assert_eq!(config("steps: 1e3").length, Length::Steps(1000));
    assert_eq!(config("epochs: 2\nsteps: off").length, Length::Epochs(2));
    assert_eq!(config("schedule: {warmup: 10}").schedule.warmup, Warmup::Steps(10));
    assert_eq!(config("schedule: {warmup: 0.1, kind: linear}").schedule.kind, ScheduleKind::Linear);
    assert_eq!(config("optimizer: {clip: off}").optimizer.clip, Clip::Off);
    assert_eq!(config("optimizer: {clip: on}").optimizer.clip, Clip::Norm(1.0));
    assert_eq!(
        config("optimizer: {skip_outliers: {sigma: 4}}").optimizer.skip_outliers,
        Some(OutlierConfig { window: 128, sigma: 4.0 })
    );
    assert_eq!(
        config("adapter: {target_modules: '.*_proj'}").adapter.target_modules,
        TargetModules::Regex(".*_proj".to_owned())
    );
    assert_eq!(config("adapter: {kind: full}").optimizer.learning_rate, 2e-5);
    assert_eq!(config("memory: {recompute_every: 2}").memory.recompute_every, Some(2));
    let run = RunConfig::from_yaml("{model: m, output: o, data: {train: [a, b], validation: [c]}}").unwrap();
    assert_eq!(run.data.train.len(), 2);
    assert_eq!(run.data.validation, Validation::Files(vec![PathBuf::from("c")]));
    let run = RunConfig::from_yaml("{model: m, output: o, data: {train: a, validation: 0.1}}").unwrap();
    assert_eq!(run.data.validation, Validation::Fraction(0.1));
    assert_eq!(config("adapter: {kind: dora}").adapter.kind, AdapterKind::Dora);
}

#[test]
fn all_mistakes_are_listed_together_in_the_order_of_lines() {
    let yaml = "\
model: m
outptu: o
data:
  train: 7
  on_bad_row: ignore
adapter:
  kind: full
  rank: 8
optimizer:
  learning_rate: fast
  betas: [0.9, 1.5]
  clip:
    norm: 1.0
    percentile: 90
rank: 4
batch:
  tokens: 0
zzz: 1
";
    let expected = [
        "1: output: must be given",
        "2: outptu: unknown key; did you mean output?",
        "4: data.train: expected a path, or a list of paths, found 7",
        "5: data.on_bad_row: expected one of skip, fail, found \"ignore\"",
        "8: adapter.rank: adapter.kind is full, which has no LoRA matrices",
        "10: optimizer.learning_rate: expected a number above 0 to 1, found \"fast\"",
        "11: optimizer.betas: expected a list of two numbers from 0 below 1, found [0.9, 1.5]",
        "14: optimizer.clip.percentile: optimizer.clip.norm is given too; only one of them can hold",
        "15: rank: unknown key; did you mean adapter.rank?",
        "17: batch.tokens: expected a whole number from 2 to 16777216, found 0",
        "18: zzz: unknown key; expected one of adapter, batch, checkpoint, data, device, epochs, evaluate, log, memory, \
         model, objectives, optimizer, output, schedule, seed, stability, steps",
    ];
    assert_eq!(problems(yaml), expected);
}

#[test]
fn wrong_types_and_ranges_name_what_was_expected() {
    check_problems("seed: -1", &["4: seed: expected a whole number to 9223372036854775807, found -1"]);
    check_problems("device: gpu", &["4: device: expected auto, cpu or gpu:N, found \"gpu\""]);
    check_problems("steps: 1.5", &["4: steps: expected off, or a whole number from 1 to 1000000000000, found 1.5"]);
    check_problems("adapter: lora", &["4: adapter: expected keys and values, found \"lora\""]);
    check_problems("adapter: {dropout: 1}", &["4: adapter.dropout: expected a number from 0 below 1, found 1"]);
    check_problems("adapter: {alpha: .nan}", &["4: adapter.alpha: expected a number above 0, found NaN"]);
    check_problems("adapter: {rslora: 1}", &["4: adapter.rslora: expected true or false, found 1"]);
    check_problems("adapter: {rank:}", &["4: adapter.rank: expected a whole number from 1 to 65536, found nothing"]);
    check_problems(
        "adapter: {target_modules: '('}",
        &["4: adapter.target_modules: expected all-linear, a list of names, or a regular expression, found \"(\""],
    );
    check_problems("optimizer: {clip: 1.0}", &["4: optimizer.clip: expected off, on, or keys and values, found 1"]);
    check_problems(
        "optimizer:\n  clip:\n    percentile: 101",
        &["6: optimizer.clip.percentile: expected a number above 0 to 100, found 101"],
    );
    check_problems(
        "schedule: {warmup: 1.5}",
        &["4: schedule.warmup: expected a part of all steps, from 0 below 1, or a whole number of steps, found 1.5"],
    );
    check_problems(
        "objectives: {next_token: -1}",
        &["4: objectives.next_token: expected a number of at least 0, found -1"],
    );
}

#[test]
fn contradictions_name_both_sides() {
    check_problems("steps: 5\nepochs: 1", &["4: steps: epochs is given too; only one of them can hold"]);
    check_problems(
        "schedule: {warmup: 5}\nsteps: 5",
        &["4: schedule.warmup: 5 steps of warm-up leave nothing of 5 steps"],
    );
    check_problems(
        "schedule: {kind: constant, final_fraction: 0}",
        &["4: schedule.final_fraction: schedule.kind is constant, which never ends lower"],
    );
    check_problems(
        "evaluate: {every_steps: 5}\ncheckpoint:\n  keep_best: true",
        &[
            "4: evaluate.every_steps: there is no data.validation to measure on",
            "6: checkpoint.keep_best: there is no data.validation to measure on",
        ],
    );
    check_problems(
        "batch: {tokens: 64, accumulate: 4, growth: {max_tokens: 100}}",
        &["4: batch.growth.max_tokens: 100 is less than the 256 that a step has at first"],
    );
    check_problems(
        "optimizer: {clip: {window: 5}}",
        &["4: optimizer.clip.window: only optimizer.clip.percentile looks at recent steps"],
    );
    check_problems("objectives: {next_token: 0}", &["4: objectives: all weights are 0, so there is nothing to learn"]);
    check_problems(
        "objectives: {span_corruption: 0.3}",
        &["4: objectives.sentinels: objectives.span_corruption needs at least two tokens here"],
    );
    let twice = "model: m\noutput: m\ndata:\n  train: [a, b]\n  validation: b\n  max_length: 4096\n";
    let expected = [
        "2: output: is the same path as model, which would be overwritten",
        "5: data.validation: b is trained on too",
        "6: data.max_length: 4096 tokens do not fit into a batch of 2048",
    ];
    assert_eq!(problems(twice), expected);
}

#[test]
fn a_wrong_value_is_not_held_against_others() {
    let yaml = "model: m\noutput: o\ndata: {train: a, max_length: 4096}\nbatch: {tokens: many}\n";
    assert_eq!(problems(yaml), ["4: batch.tokens: expected a whole number from 2 to 16777216, found \"many\""]);
}

#[test]
fn what_is_no_yaml_of_a_run_is_an_error_with_a_line() {
    let cases = [
        ("", "1: "),
        ("# nothing\n", "1: "),
        ("- a\n- b\n", "1: expected keys and values, found [\"a\", \"b\"]"),
        ("model: m\nmodel: n\n", "2: "),
        ("model: [m\noutput: o\n", "2: "),
        ("model: m\n---\noutput: o\n", ""),
        ("1: m\n", "1: expected a key, found 1"),
        ("&a [*a, *b]", "1: "),
        ("\u{0}", "1: "),
    ];
    let deep = "[".repeat(100_000);
    for (yaml, expected) in cases.into_iter().chain([(deep.as_str(), "1: ")]) {
        let found = problems(yaml);
        assert!(found.iter().any(|problem| problem.starts_with(expected)), "{yaml:?}: {found:?}");
    }
}

#[test]
fn a_file_is_named_before_each_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.yaml");
    std::fs::write(&path, format!("{MINIMAL}seed: a\nepochs: b\n")).unwrap();
    let text = RunConfig::open(&path).unwrap_err().to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(lines[0].starts_with(&format!("{}:4: seed: ", path.display())), "{text}");
    let missing = RunConfig::open(&folder.path().join("none.yaml")).unwrap_err();
    assert!(matches!(missing, TrainError::File { .. }) && missing.to_string().contains("none.yaml"));
}
