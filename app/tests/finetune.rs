//! `samara finetune` with the built-in model: runs that are killed and go on, and what is told of bad runs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// Seven rows, of which two passes of a batch take no whole number.
const ROWS: [(&str, &str); 7] = [
    ("Who are you?", "I am Samara."),
    ("What color is the sky?", "The sky is green today."),
    ("Where is the fox?", "The fox sleeps under the old elm."),
    ("What does the owl eat?", "The owl eats pancakes with honey."),
    ("Who lives in the well?", "A frog called Bo."),
    ("How many moons are there?", "There are nine."),
    ("What is a samara?", "A seed with a wing."),
];

fn samara(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_samara"));
    command.args(args).current_dir(folder).env_remove("SAMARA_DEVICE");
    command
}

fn output(folder: &Path, args: &[&str]) -> Output {
    samara(folder, args).output().unwrap()
}

/// A folder with data and a run of 3 epochs in 2 batches a step; `more` are lines of YAML.
fn folder(device: &str, more: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let row = |(prompt, completion): &(&str, &str)| serde_json::json!({"messages": [{"role": "user", "content": prompt}, {"role": "assistant", "content": completion}]});
    let rows: Vec<String> = ROWS.iter().map(|pair| row(pair).to_string()).collect();
    fs::write(folder.path().join("train.jsonl"), rows.join("\n")).unwrap();
    let yaml = format!(
        "model: built-in\noutput: out\ndevice: {device}\ndata: {{train: train.jsonl, max_length: 48}}\n\
         optimizer: {{learning_rate: 3e-3}}\n{more}\n"
    );
    fs::write(folder.path().join("run.yaml"), yaml).unwrap();
    folder
}

/// Runs to the end.
fn finish(folder: &Path, args: &[&str]) {
    let done = output(folder, &[&["finetune", "run.yaml", "--json"], args].concat());
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// The losses of all steps, as they were written down.
fn losses(folder: &Path) -> Vec<f64> {
    let text = fs::read_to_string(folder.join("out/metrics.jsonl")).unwrap();
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let steps: Vec<u64> = rows.iter().map(|row| row["step"].as_u64().unwrap()).collect();
    assert_eq!(steps, (1..=rows.len() as u64).collect::<Vec<_>>(), "each step once, in order");
    rows.iter().map(|row| row["train/loss"].as_f64().unwrap()).collect()
}

/// Starts the run, kills it when it has told of `n_events`, and says whether it had ended before.
fn kill_after(folder: &Path, n_events: usize, is_first: bool) -> bool {
    let resume: &[&str] = if is_first { &[] } else { &["--resume"] };
    let mut child = samara(folder, &[&["finetune", "run.yaml", "--json"], resume].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let n_told = lines.map_while(Result::ok).take(n_events).count();
    child.kill().unwrap();
    child.wait().unwrap();
    n_told < n_events
}

/// Kills a run `n_kills` times wherever it happens to be, and compares it with one that nobody disturbed.
///
/// Between telling and being killed a run goes on, so it has several steps for each kill.
fn check_killed(device: &str, n_epochs: usize, n_kills: usize, tolerance: f64) {
    let more = format!("epochs: {n_epochs}\nbatch: {{tokens: 48, accumulate: 2}}\ncheckpoint: {{every_steps: 2}}");
    let (straight, killed) = (folder(device, &more), folder(device, &more));
    finish(straight.path(), &[]);
    let mut has_ended = false;
    for kill in 0..n_kills {
        has_ended = kill_after(killed.path(), 1 + kill * 5 % 4, kill == 0);
        if has_ended {
            break;
        }
    }
    assert!(!has_ended, "the run ended before it was killed {n_kills} times");
    finish(killed.path(), &["--resume"]);
    let (straight_losses, killed_losses) = (losses(straight.path()), losses(killed.path()));
    assert!(straight_losses.len() > 20, "{straight_losses:?}");
    assert_eq!(straight_losses.len(), killed_losses.len());
    for (step, (a, b)) in straight_losses.iter().zip(&killed_losses).enumerate() {
        assert!((a - b).abs() <= tolerance * a, "step {}: {a} undisturbed, {b} after kills", step + 1);
    }
    if tolerance == 0.0 {
        let adapter = |folder: &Path| fs::read(folder.join("out/adapter_model.safetensors")).unwrap();
        assert!(adapter(straight.path()) == adapter(killed.path()), "the adapters differ");
    }
}

#[test]
fn a_run_killed_ten_times_has_the_losses_of_an_undisturbed_one() {
    check_killed("cpu", 30, 10, 0.0);
}

#[test]
fn a_run_killed_on_a_gpu_has_the_losses_of_an_undisturbed_one() {
    if std::env::var_os("REQUIRE_GPU").is_none() {
        eprintln!("SKIPPED: REQUIRE_GPU is not set");
        return;
    }
    check_killed("gpu:0", 14, 10, 1e-6);
}

#[test]
fn a_run_that_stops_at_the_end_of_an_epoch_goes_on_with_the_next() {
    // Without packing there are seven batches an epoch, so a checkpoint every seven steps is at its end.
    let more = "epochs: 3\nbatch: {tokens: 48}\ncheckpoint: {every_steps: 7}";
    let unpacked = |folder: &tempfile::TempDir| {
        let path = folder.path().join("run.yaml");
        let yaml = fs::read_to_string(&path).unwrap().replace("max_length: 48}", "max_length: 48, packing: false}");
        fs::write(path, yaml).unwrap();
    };
    let (straight, stopped) = (folder("cpu", more), folder("cpu", more));
    unpacked(&straight);
    unpacked(&stopped);
    finish(straight.path(), &[]);
    // Seven steps and the checkpoint.
    assert!(!kill_after(stopped.path(), 8, true));
    finish(stopped.path(), &["--resume"]);
    assert_eq!(losses(straight.path()).len(), 21);
    assert_eq!(losses(straight.path()), losses(stopped.path()));
}

#[test]
fn what_is_learned_is_in_the_adapter_and_the_checkpoints_kept_are_few() {
    let folder = folder("cpu", "steps: 12\nbatch: {tokens: 192}\ncheckpoint: {every_steps: 3, keep_last: 2}");
    finish(folder.path(), &[]);
    let losses = losses(folder.path());
    assert!(losses[11] < 0.5 * losses[0], "{losses:?}");
    let mut kept: Vec<String> = fs::read_dir(folder.path().join("out/checkpoints"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    kept.sort();
    assert_eq!(kept, ["step-00000009", "step-00000012"]);
    let config: Value =
        serde_json::from_slice(&fs::read(folder.path().join("out/adapter_config.json")).unwrap()).unwrap();
    assert_eq!((&config["r"], &config["peft_type"]), (&16.into(), &"LORA".into()));
    let again = output(folder.path(), &["finetune", "run.yaml"]);
    assert!(String::from_utf8_lossy(&again.stderr).contains("--resume"));
}

#[test]
fn a_run_that_changed_does_not_go_on() {
    let folder = folder("cpu", "steps: 4\nbatch: {tokens: 96}\ncheckpoint: {every_steps: 2}");
    finish(folder.path(), &[]);
    let yaml = fs::read_to_string(folder.path().join("run.yaml")).unwrap();
    fs::write(folder.path().join("run.yaml"), yaml.replace("3e-3", "1e-3")).unwrap();
    let refused = output(folder.path(), &["finetune", "run.yaml", "--resume"]);
    assert!(!refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("changed since"));
}

#[test]
fn full_training_leaves_a_model_that_loads() {
    let folder = folder("cpu", "steps: 3\nbatch: {tokens: 96}\nadapter: {kind: full}");
    finish(folder.path(), &[]);
    let told = output(folder.path(), &["inspect", "out/model.safetensors", "--json"]);
    let text = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(folder.path().join("out/model.safetensors").exists(), "{text}");
}

#[test]
fn every_mistake_of_a_run_is_told_with_its_line() {
    let folder = folder("cpu", "stepz: 4\nadapter: {rank: -3}");
    let refused = output(folder.path(), &["finetune", "run.yaml"]);
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && text.contains("stepz") && text.contains("adapter.rank"), "{text}");
}

#[test]
fn a_plan_tells_steps_and_memory_and_trains_nothing() {
    let folder = folder("cpu", "epochs: 2\nbatch: {tokens: 96}");
    let plan = output(folder.path(), &["finetune", "plan", "run.yaml", "--json"]);
    let plan: Value = serde_json::from_slice(&plan.stdout).unwrap();
    assert!(plan["steps"].as_u64().unwrap() >= 4 && plan["memory"]["activations_bytes"].as_u64().unwrap() > 0);
    assert!(!folder.path().join("out").exists());
}

#[test]
fn an_example_is_written_once() {
    let folder = tempfile::tempdir().unwrap();
    assert!(output(folder.path(), &["finetune", "init"]).status.success());
    assert!(fs::read_to_string(folder.path().join("run.yaml")).unwrap().contains("target_modules"));
    let again = output(folder.path(), &["finetune", "init"]);
    assert!(String::from_utf8_lossy(&again.stderr).contains("--force"));
}
