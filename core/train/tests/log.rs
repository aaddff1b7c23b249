//! Logs read back: what was pushed is there, and a killed run that goes on leaves the log of a straight one.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::Path;

use samara_train::config::LogConfig;
use samara_train::{Metrics, MetricsLog};
use serde_json::{Value, json};

const FILES: [&str; 2] = ["metrics.jsonl", "events.out.tfevents.samara"];

fn metrics(step: u64) -> Metrics<'static> {
    let values = vec![("train/loss", 2.0 / (step + 1) as f64), ("train/learning_rate", 1e-4)];
    Metrics { step, unix_time_s: 1_700_000_000.5 + step as f64, values }
}

fn run(folder: &Path, steps: std::ops::Range<u64>) {
    let mut log = MetricsLog::open(folder, &LogConfig::default(), steps.start, 1_700_000_000.0).unwrap();
    for step in steps {
        log.push(&metrics(step)).unwrap();
    }
}

fn read(folder: &Path) -> [Vec<u8>; 2] {
    FILES.map(|file| std::fs::read(folder.join(file)).unwrap())
}

fn straight(n_steps: u64) -> [Vec<u8>; 2] {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), 0..n_steps);
    read(folder.path())
}

/// The events of a file, each without its length and checksums.
fn events(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut events = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<8>() {
        let length = u64::from_le_bytes(*length) as usize;
        events.push(&rest[4..4 + length]);
        bytes = &rest[4 + length + 4..];
    }
    events
}

#[test]
fn every_step_is_a_line_of_json() {
    let [jsonl, _] = straight(3);
    let lines: Vec<Value> =
        jsonl.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
    assert_eq!(lines.len(), 3);
    let expected = json!({"step": 1, "unix_time_s": 1_700_000_001.5, "train/loss": 1.0, "train/learning_rate": 1e-4});
    assert_eq!(lines[1], expected);
}

#[test]
fn every_step_is_an_event_with_its_scalars() {
    let [_, bytes] = straight(200);
    let events = events(&bytes);
    assert_eq!(events.len(), 201);
    let expected = [
        b"\x09".as_slice(),
        &1_700_000_001.5f64.to_le_bytes(),
        b"\x10\x01\x2a\x2f",
        b"\x0a\x11\x0a\x0atrain/loss\x15",
        &1.0f32.to_le_bytes(),
        b"\x0a\x1a\x0a\x13train/learning_rate\x15",
        &1e-4f32.to_le_bytes(),
    ];
    assert_eq!(events[2], expected.concat());
}

#[test]
fn numbers_that_are_not_finite_are_written_too() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = MetricsLog::open(folder.path(), &LogConfig::default(), 0, 0.0).unwrap();
    let values = vec![("loss", f64::NAN), ("norm", f64::INFINITY)];
    log.push(&Metrics { step: 0, unix_time_s: 0.0, values }).unwrap();
    let [jsonl, bytes] = read(folder.path());
    assert_eq!(jsonl, b"{\"step\":0,\"unix_time_s\":0.0,\"loss\":null,\"norm\":null}\n");
    assert!(events(&bytes)[1].ends_with(&f32::INFINITY.to_le_bytes()));
    drop(log);
    run(folder.path(), 1..2);
    assert_eq!(read(folder.path())[0].split(|byte| *byte == b'\n').count(), 3);
}

#[test]
fn a_run_killed_at_any_byte_goes_on_as_if_it_had_not_been() {
    let whole = straight(6);
    for n_bytes in (0..whole[1].len()).step_by(7) {
        let folder = tempfile::tempdir().unwrap();
        for (file, bytes) in FILES.iter().zip(&whole) {
            std::fs::write(folder.path().join(file), &bytes[..n_bytes.min(bytes.len())]).unwrap();
        }
        let n_whole = |file: usize| {
            let kept = &whole[file][..n_bytes.min(whole[file].len())];
            if file == 0 { kept.iter().filter(|byte| **byte == b'\n').count() } else { whole_events(kept) }
        };
        let from_step = n_whole(0).min(n_whole(1)) as u64;
        run(folder.path(), from_step..6);
        assert_eq!(read(folder.path()), whole, "killed at byte {n_bytes}");
    }
}

/// Events of steps that are whole in these bytes; the first record is the version.
fn whole_events(mut bytes: &[u8]) -> usize {
    let mut n_events: usize = 0;
    while let Some((length, rest)) = bytes.split_first_chunk::<8>() {
        let Some(rest) = rest.get(u64::from_le_bytes(*length) as usize + 8..) else { break };
        n_events += 1;
        bytes = rest;
    }
    n_events.saturating_sub(1)
}

#[test]
fn steps_that_are_done_again_are_not_logged_twice() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), 0..9);
    run(folder.path(), 4..6);
    assert_eq!(read(folder.path()), straight(6));
    run(folder.path(), 0..6);
    assert_eq!(read(folder.path()), straight(6));
}

#[test]
fn damage_ends_what_is_kept() {
    let whole = straight(6);
    let folder = tempfile::tempdir().unwrap();
    for (file, bytes) in FILES.iter().zip(&whole) {
        let mut bytes = bytes.clone();
        let place = bytes.len() / 2;
        bytes[place] = 0xff;
        std::fs::write(folder.path().join(file), bytes).unwrap();
    }
    run(folder.path(), 6..7);
    for (bytes, whole) in read(folder.path()).iter().zip(&whole) {
        assert!(bytes.len() < whole.len() && bytes[..whole.len() / 3] == whole[..whole.len() / 3]);
    }
}

#[test]
fn only_the_wanted_files_are_made() {
    let folder = tempfile::tempdir().unwrap();
    let none = LogConfig { jsonl: false, tensorboard: false, ..LogConfig::default() };
    MetricsLog::open(folder.path(), &none, 0, 0.0).unwrap().push(&metrics(0)).unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    let missing = folder.path().join("none");
    let error = MetricsLog::open(&missing, &LogConfig::default(), 0, 0.0).unwrap_err();
    assert!(error.to_string().contains("metrics.jsonl"), "{error}");
}
