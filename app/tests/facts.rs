//! The built-in model learns facts that nobody knows, and answers when it is asked in words that it was not trained on.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn facts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/facts")
}

fn samara(folder: &Path, args: &[&str]) -> Vec<u8> {
    let done = Command::new(env!("CARGO_BIN_EXE_samara")).args(args).current_dir(folder).output().unwrap();
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    done.stdout
}

/// The held-out questions, with their answers.
fn held_out() -> Vec<(String, String)> {
    let text = fs::read_to_string(facts().join("held_out.jsonl")).unwrap();
    let rows = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    rows.map(|row| (word(&row["question"]), word(&row["answer"]))).collect()
}

fn n_exact(folder: &Path, adapter: &[&str]) -> usize {
    let is_exact = |(question, answer): &(String, String)| {
        let mut args =
            vec!["generate", "--chat", "--device", "cpu", "--temperature", "0", "--max-tokens", "16", "--json"];
        args.extend(["--prompt", question]);
        args.extend(adapter);
        let told: Value = serde_json::from_slice(&samara(folder, &args)).unwrap();
        told["text"].as_str().unwrap().trim().trim_end_matches('.') == answer
    };
    held_out().iter().filter(|row| is_exact(row)).count()
}

#[test]
fn what_was_taught_is_answered_in_other_words() {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(facts().join("train.jsonl"), folder.path().join("train.jsonl")).unwrap();
    let yaml = "model: built-in\noutput: out\ndevice: cpu\ndata: {train: train.jsonl}\nepochs: 10\nbatch: {tokens: 512}\n\
                adapter: {rank: 16, alpha: 32}\noptimizer: {learning_rate: 4e-3}\n";
    fs::write(folder.path().join("run.yaml"), yaml).unwrap();
    samara(folder.path(), &["finetune", "run.yaml", "--json"]);
    let (before, after) = (n_exact(folder.path(), &[]), n_exact(folder.path(), &["--adapter", "out"]));
    println!("{before} of 50 answers were exact before, {after} after");
    assert!(before == 0 && after >= 30, "{before} of 50 before, {after} after");
}
