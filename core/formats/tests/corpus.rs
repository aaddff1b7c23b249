//! The fuzz targets' corpus, run once: what was found or chosen there stays harmless.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "common/hostile.rs"]
mod hostile;

use std::fs;
use std::path::Path;

fn check_corpus(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let paths: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(paths.len() >= 10, "{} has {} files", folder.display(), paths.len());
    for path in paths {
        let bytes = fs::read(path).unwrap();
        check(&bytes);
        for n in 0..bytes.len().min(512) {
            check(&bytes[..n]);
        }
    }
}

#[test]
fn gguf_corpus() {
    check_corpus("gguf", hostile::check_gguf);
}

#[test]
fn safetensors_index_corpus() {
    check_corpus("safetensors_index", hostile::check_index);
}

#[test]
fn adapter_corpus() {
    check_corpus("adapter", hostile::check_adapter);
}

/// Every bit of a small file, flipped.
#[test]
fn flipped_bits_do_no_harm() {
    let targets = [
        ("gguf", hostile::check_gguf as fn(&[u8])),
        ("safetensors_index", hostile::check_index),
        ("adapter", hostile::check_adapter),
    ];
    for (target, check) in targets {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
        for entry in fs::read_dir(folder).unwrap() {
            let mut bytes = fs::read(entry.unwrap().path()).unwrap();
            bytes.truncate(1024);
            for bit in 0..8 * bytes.len() {
                bytes[bit / 8] ^= 1 << (bit % 8);
                check(&bytes);
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }
}
