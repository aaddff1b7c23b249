//! Which kernels an adapter gets: measured on request, remembered, and chosen by hand.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;
use std::path::Path;

use serde_json::Value;
use support::{arg, check_refusal, samara, text};

const TASKS: [&str; 4] = ["matvec", "matmul", "token attention", "prompt attention"];

/// What `samara devices --json` prints with this cache folder; `None`, aloud, where there is no adapter.
fn devices(cache: &Path, more: &[&str]) -> Option<Value> {
    let args = [&["devices", "--json"][..], more].concat();
    let output = samara(&args).env("SAMARA_CACHE", cache).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    if found["adapters"][0].is_null() {
        assert!(std::env::var_os("REQUIRE_GPU").is_none(), "REQUIRE_GPU is set, but there is no adapter");
        eprintln!("skipped: no adapter");
        return None;
    }
    Some(found)
}

#[test]
fn what_a_trial_finds_is_remembered() {
    let cache = tempfile::tempdir().unwrap();
    let Some(before) = devices(cache.path(), &[]) else { return };
    assert_eq!(before["adapters"][0]["kernels_were_measured"], false);
    let measured = devices(cache.path(), &["--measure"]).unwrap();
    let trials = measured["trials"].as_array().unwrap();
    for task in TASKS {
        let of_adapter = trials.iter().filter(|trial| trial["adapter"] == 0 && trial["task"] == task);
        let of_adapter: Vec<_> = of_adapter.collect();
        assert!(of_adapter.iter().all(|trial| trial["us"].as_f64().is_some_and(|us| us > 0.0)), "{of_adapter:?}");
        let taken: Vec<_> = of_adapter.iter().filter(|trial| trial["taken"] == true).collect();
        assert_eq!(taken.len(), 1, "{of_adapter:?}");
        assert_eq!(measured["adapters"][0]["kernels"][task], taken[0]["family"]);
    }
    let after = devices(cache.path(), &[]).unwrap();
    assert_eq!(after["adapters"][0]["kernels_were_measured"], true);
    assert_eq!(after["adapters"][0]["kernels"], measured["adapters"][0]["kernels"]);

    // What cannot be read, or is about other kernels, counts as never measured.
    let folder = cache.path().join("kernels");
    let file = fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    let whole = fs::read_to_string(&file).unwrap();
    for damaged in ["", "{}", &whole[..whole.len() / 2], &whole.replace("\"kernels\": \"", "\"kernels\": \"0")] {
        fs::write(&file, damaged).unwrap();
        let found = devices(cache.path(), &[]).unwrap();
        assert_eq!(found["adapters"][0]["kernels_were_measured"], false, "{damaged}");
    }
}

#[test]
fn every_family_writes_the_same_text() {
    let cache = tempfile::tempdir().unwrap();
    let Some(found) = devices(cache.path(), &[]) else { return };
    let write = ["generate", "--temperature", "0", "--max-tokens", "8", "--prompt", "Once upon a time"];
    let expected = text(&write);
    for family in ["auto", "workgroup", "invocation", "subgroup"] {
        let args = [&write[..], &["--device", "gpu:0", "--kernels", family]].concat();
        let output = samara(&args).env("SAMARA_CACHE", cache.path()).output().unwrap();
        let runs =
            family != "subgroup" || found["adapters"][0]["features"].as_array().unwrap().contains(&"subgroups".into());
        if runs {
            assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{family}");
        } else {
            check_refusal(&output, &["--kernels subgroup", "invocation"]);
        }
    }
    let unknown = samara(&[&write[..], &["--kernels", arg(Path::new("warp"))]].concat()).output().unwrap();
    assert_eq!(unknown.status.code(), Some(2));
}
