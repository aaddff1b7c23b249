//! Shared by the tests of the binary: running it, and folders with models.
#![allow(dead_code, reason = "each test program uses a part of this")]

pub mod server;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;
use serde_json::Value;

/// The embedded model's files, as they lie in the repository.
pub fn tiny() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../assets/tiny")
}

/// The binary, on the CPU unless the arguments say otherwise, and without what the user's environment sets.
pub fn samara(args: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("samara"));
    command
        .env("SAMARA_DEVICE", "cpu")
        .env_remove("HF_ENDPOINT")
        .env_remove("HF_TOKEN")
        .env_remove("SAMARA_MODELS")
        .args(args);
    command
}

/// Runs it and expects success.
pub fn output(args: &[&str]) -> Output {
    let output = samara(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// What it prints.
pub fn text(args: &[&str]) -> String {
    String::from_utf8(output(args).stdout).unwrap()
}

/// The one JSON value that it prints.
pub fn json(args: &[&str]) -> Value {
    serde_json::from_slice(&output(args).stdout).unwrap()
}

/// Expects exit code 1, nothing on stdout, and one line on stderr that has every one of `words`.
pub fn check_refused(args: &[&str], words: &[&str]) {
    check_refusal(&samara(args).output().unwrap(), words);
}

/// Expects of a run what [`check_refused`] expects.
pub fn check_refusal(output: &Output, words: &[&str]) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    assert!(stderr.starts_with("error: ") && stderr.lines().count() == 1, "not one line of error: {stderr:?}");
    for word in words {
        assert!(stderr.contains(word), "{word:?} is missing: {stderr}");
    }
}

/// A copy of the embedded model's folder, to be damaged.
pub fn copy_of_tiny() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(tiny()).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    folder
}

/// A path as an argument.
pub fn arg(path: &Path) -> &str {
    path.to_str().unwrap()
}
