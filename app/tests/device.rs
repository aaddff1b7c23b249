//! Where it runs: with no Vulkan at all, and on whatever adapter there is.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use serde_json::Value;
use support::{json, samara};

const GREEDY: [&str; 8] =
    ["generate", "--prompt", "Once upon a time", "--temperature", "0", "--max-tokens", "16", "--json"];

/// Runs with a Vulkan loader that finds no driver.
fn without_vulkan(args: &[&str]) -> Value {
    let nowhere = "/nonexistent";
    let run = samara(args).env("VK_DRIVER_FILES", nowhere).env("VK_ICD_FILENAMES", nowhere).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    serde_json::from_slice(&run.stdout).unwrap()
}

/// The first adapter, or a loud skip.
fn adapter() -> Option<Value> {
    let first = json(&["devices", "--json"])["adapters"].get(0).cloned();
    if first.is_none() {
        assert!(std::env::var_os("REQUIRE_GPU").is_none(), "REQUIRE_GPU is set, but there is no adapter");
        eprintln!("SKIPPED: there is no adapter");
    }
    first
}

#[test]
fn the_cpu_serves_where_there_is_no_vulkan() {
    let asked = without_vulkan(&[&GREEDY[..], &["--device", "cpu"]].concat());
    assert_eq!(asked["ids"].as_array().unwrap().len(), 16);
    if cfg!(target_os = "linux") {
        let auto = without_vulkan(&[&GREEDY[..], &["--device", "auto"]].concat());
        assert_eq!(auto["ids"], asked["ids"]);
        assert!(without_vulkan(&["devices", "--json"])["auto"]["adapter"].is_null());
    }
}

#[test]
fn a_variable_set_to_nothing_is_not_set() {
    let mut generate = samara(&["generate", "--prompt", "Hi", "--max-tokens", "1"]);
    assert!(generate.env("SAMARA_DEVICE", "").output().unwrap().status.success());
    let mut pull = samara(&["pull", "--list"]);
    assert!(pull.env("SAMARA_MODELS", "").env("HF_ENDPOINT", "").output().unwrap().status.success());
}

#[test]
fn an_adapter_tells_its_limits() {
    let Some(adapter) = adapter() else { return };
    for field in ["name", "backend", "driver", "kind", "features"] {
        assert!(!adapter[field].is_null(), "{field}: {adapter}");
    }
    assert!(adapter["max_binding_bytes"].as_u64().unwrap() >= 128 << 20, "{adapter}");
}

#[test]
fn an_adapter_writes_what_the_cpu_writes() {
    let Some(_) = adapter() else { return };
    let on_cpu = json(&GREEDY);
    for limits in ["adapter", "default"] {
        let on_gpu = json(&[&GREEDY[..], &["--device", "gpu:0", "--limits", limits]].concat());
        assert_eq!(on_gpu["ids"], on_cpu["ids"], "limits: {limits}");
        assert!(on_gpu["stats"]["launches_per_token"].as_f64().unwrap() > 0.0);
    }
}
