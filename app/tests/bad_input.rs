//! Whatever is wrong with a file or a prompt: exit code 1 and one line that names file and place.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;
use std::path::Path;

use support::{arg, check_refusal, check_refused, copy_of_tiny, samara, tiny};

/// Writes `bytes` to a file called `name` and expects `inspect` and `generate` to refuse it.
fn check_file(name: &str, bytes: &[u8], words: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    check_refused(&["inspect", arg(&path)], &[words, &[name]].concat());
    check_refused(&["generate", "--model", arg(&path), "--prompt", "Hi"], &[words, &[name]].concat());
}

/// Replaces one file of a good model and expects `generate` to refuse the folder.
fn check_folder(file: &str, change: impl Fn(Vec<u8>) -> Vec<u8>, words: &[&str]) {
    let folder = copy_of_tiny();
    let path = folder.path().join(file);
    fs::write(&path, change(fs::read(&path).unwrap())).unwrap();
    check_refused(&["generate", "--model", arg(folder.path()), "--prompt", "Hi"], words);
}

/// A JSON file with one key set to another value.
fn set(key: &'static str, value: &'static str) -> impl Fn(Vec<u8>) -> Vec<u8> {
    move |bytes| {
        let mut json: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        json[key] = serde_json::from_str(value).unwrap();
        json.to_string().into_bytes()
    }
}

#[test]
fn a_file_that_is_not_there() {
    check_refused(&["inspect", "no/such/file.gguf"], &["no/such/file.gguf", "no such file"]);
    check_refused(&["generate", "--model", "nonsense", "--prompt", "Hi"], &["nonsense", "catalogue"]);
    check_refused(&["generate", "--prompt-file", "no/such/prompt.txt"], &["no/such/prompt.txt"]);
}

#[test]
fn a_model_that_was_not_pulled_says_how() {
    let models = tempfile::tempdir().unwrap();
    let output = samara(&["generate", "--model", "olmo2-1b", "--prompt", "Hi"])
        .env("SAMARA_MODELS", models.path())
        .output()
        .unwrap();
    check_refusal(&output, &["samara pull olmo2-1b"]);
}

#[test]
fn files_that_are_no_models() {
    check_file("empty.gguf", b"", &["empty"]);
    check_file("short.gguf", b"GGUF\x03\0\0", &[]);
    check_file("lfs.gguf", b"version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 12\n", &["LFS"]);
    check_file("page.gguf", b"<!DOCTYPE html><html><head><title>404</title></head></html>", &["web page"]);
    check_file("huge.gguf", b"GGUF\x03\0\0\0\xff\xff\xff\xff\xff\xff\xff\x7f\xff\xff\xff\xff\xff\xff\xff\x7f", &[]);
}

#[test]
fn safetensors_cut_short_anywhere() {
    for n_bytes in [0, 4, 8, 100, 5000, 1_000_000] {
        check_folder("model.safetensors", |bytes| bytes[..n_bytes].to_vec(), &["model.safetensors"]);
    }
}

#[test]
fn safetensors_that_are_something_else() {
    let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 12\n";
    check_folder("model.safetensors", |_| pointer.to_vec(), &["model.safetensors", "LFS"]);
    check_folder("model.safetensors", |_| b"<html>not found</html>".to_vec(), &["model.safetensors", "web page"]);
    check_folder("model.safetensors", |_| [&u64::MAX.to_le_bytes()[..], b"{}"].concat(), &["model.safetensors"]);
}

#[test]
fn configurations_that_cannot_be() {
    check_folder("config.json", |_| b"{".to_vec(), &["config.json"]);
    check_folder("config.json", set("model_type", "\"mamba\""), &["mamba"]);
    check_folder("config.json", set("intermediate_size", "320"), &["mlp.gate_proj.weight", "320"]);
    check_folder("tokenizer.json", |_| b"[]".to_vec(), &["tokenizer"]);
}

#[test]
fn a_folder_without_a_model() {
    let folder = tempfile::tempdir().unwrap();
    check_refused(&["inspect", arg(folder.path())], &[arg(folder.path())]);
}

#[test]
fn prompts_that_cannot_be_continued() {
    check_refused(&["generate", "--prompt", ""], &["empty"]);
    check_refused(
        &["generate", "--prompt", "one two three four five six seven eight", "--context", "4"],
        &["prompt", "tokens"],
    );
    check_refused(&["score", "--ids", "1,999999"], &["999999", "position 1"]);
    check_refused(&["score", ""], &["empty"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("latin1.txt");
    fs::write(&path, b"caf\xe9").unwrap();
    check_refused(&["generate", "--prompt-file", arg(&path)], &["latin1.txt", "UTF-8"]);
}

#[test]
fn settings_out_of_range() {
    check_refused(&["generate", "--prompt", "Hi", "--top-p", "1.5"], &["top_p", "1.5"]);
    check_refused(&["generate", "--prompt", "Hi", "--temperature", "nan"], &["temperature"]);
    check_refused(&["generate", "--prompt", "Hi", "--max-tokens", "0"], &["max_tokens"]);
    check_refused(&["generate", "--prompt", "Hi", "--context", "1000000"], &["1000000"]);
    check_refused(&["generate", "--prompt", "Hi", "--device", "gpu:99"], &["gpu:99"]);
}

#[test]
fn templates_that_raise_loop_or_are_missing() {
    let chat = |folder: &Path| check_refused(&["generate", "--chat", "--model", arg(folder), "--prompt", "Hi"], &[]);
    for template in
        ["{{ raise_exception('roles must\nalternate') }}", "{% for i in range(999999999) %}x{% endfor %}", "{% if %}"]
    {
        let folder = copy_of_tiny();
        fs::write(folder.path().join("chat_template.jinja"), template).unwrap();
        chat(folder.path());
    }
    let folder = copy_of_tiny();
    fs::remove_file(folder.path().join("chat_template.jinja")).unwrap();
    check_refused(&["chat", "--model", arg(folder.path())], &["template"]);
}

#[test]
fn messages_that_are_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("messages.json");
    fs::write(&path, "{}").unwrap();
    check_refused(&["tokenize", "--chat", arg(&path)], &["messages.json"]);
}

#[test]
fn an_output_that_cannot_be_written() {
    check_refused(&["score", "--ids", "1,2", "--logits", "no/such/folder/x.safetensors"], &["no/such/folder"]);
}

#[test]
fn wrong_usage_is_exit_code_2() {
    for args in
        [&["generate"][..], &["generate", "--prompt", "x", "--device", "cuda"], &["score", "--ids", "x"], &["nonsense"]]
    {
        assert_eq!(samara(args).output().unwrap().status.code(), Some(2), "{args:?}");
    }
    assert!(tiny().exists());
}
