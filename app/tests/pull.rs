//! `samara pull` through the real binary, from a hub made of the embedded model's files.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use support::server::{Reply, Request, Server};
use support::{check_refusal, samara, text, tiny};

/// A hub with one repository, `samara/tiny`, whose large file is kept elsewhere.
fn hub(store: &Server) -> Server {
    let store = store.url();
    Server::start(move |request, _| match request.path.strip_prefix("/samara/tiny/resolve/main/") {
        Some("model.safetensors") => Reply::status(302).header("location", format!("{store}/blob")),
        Some(name) => Reply::rest_of(&fs::read(tiny().join(name)).unwrap(), request),
        None if request.path == "/api/models/samara/tiny/tree/main?recursive=true" => Reply::ok(listing().to_string()),
        None => Reply::status(404),
    })
}

fn listing() -> Value {
    let entry = |entry: fs::DirEntry| {
        let bytes = fs::read(entry.path()).unwrap();
        let name = entry.file_name().into_string().unwrap();
        let lfs = json!({ "oid": format!("{:x}", Sha256::digest(&bytes)), "size": bytes.len() });
        let plain = json!({ "type": "file", "path": name, "size": bytes.len() });
        if name.ends_with(".safetensors") {
            json!({ "type": "file", "path": name, "size": bytes.len(), "lfs": lfs })
        } else {
            plain
        }
    };
    fs::read_dir(tiny()).unwrap().map(|found| entry(found.unwrap())).collect()
}

fn weights(request: &Request) -> Reply {
    Reply::rest_of(&fs::read(tiny().join("model.safetensors")).unwrap(), request)
}

fn pull(hub: &Server, models: &Path, what: &str) -> std::process::Output {
    samara(&["pull", what, "--json", "--endpoint", &hub.url()]).env("SAMARA_MODELS", models).output().unwrap()
}

#[test]
fn a_pulled_model_runs_by_its_name() {
    let store = Server::start(|request, _| weights(request));
    let (hub, models) = (hub(&store), tempfile::tempdir().unwrap());
    let run = pull(&hub, models.path(), "samara/tiny");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let report: Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!(report["repo"], "samara/tiny");
    let files = report["files"].as_array().unwrap();
    assert!(files.iter().all(|file| file["status"] == "downloaded" && file["bytes"].as_u64().unwrap() > 0), "{report}");

    let run = samara(&["generate", "--model", "samara/tiny", "--prompt", "Hi", "--max-tokens", "2"])
        .env("SAMARA_MODELS", models.path())
        .output();
    let run = run.unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));

    let again: Value = serde_json::from_slice(&pull(&hub, models.path(), "samara/tiny").stdout).unwrap();
    assert!(again["files"].as_array().unwrap().iter().all(|file| file["status"] == "present"), "{again}");
}

#[test]
fn weights_with_a_wrong_digest_are_refused() {
    let store = Server::start(|_, _| {
        Reply::ok(vec![7; fs::metadata(tiny().join("model.safetensors")).unwrap().len() as usize])
    });
    let (hub, models) = (hub(&store), tempfile::tempdir().unwrap());
    check_refusal(&pull(&hub, models.path(), "samara/tiny"), &["model.safetensors", "SHA-256"]);
    assert!(!models.path().join("samara/tiny/model.safetensors").exists());
}

#[test]
fn what_the_hub_does_not_have_is_named() {
    let store = Server::start(|_, _| Reply::status(500));
    let (hub, models) = (hub(&store), tempfile::tempdir().unwrap());
    check_refusal(&pull(&hub, models.path(), "samara/huge"), &["samara/huge", "404", "spelling"]);
    check_refusal(&pull(&hub, models.path(), "samara/tiny:Q4_K_M"), &["Q4_K_M", "model.safetensors"]);
    check_refusal(&pull(&hub, models.path(), "nonsense"), &["nonsense", "--list"]);
    check_refusal(&pull(&hub, models.path(), "../etc"), &["../etc"]);
}

#[test]
fn the_catalogue_is_listed() {
    assert!(text(&["pull", "--list"]).contains("olmo2-1b"));
    let entries: Value = support::json(&["pull", "--list", "--json"]);
    assert!(entries.as_array().unwrap().iter().all(|entry| entry["repo"].is_string()));
}
