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
        for n in (0..bytes.len().min(512)).step_by(11) {
            check(&bytes[..n]);
        }
    }
}

#[test]
fn vocab_corpus() {
    check_corpus("vocab", hostile::check_vocab);
}

#[test]
fn template_corpus() {
    check_corpus("template", hostile::check_template);
}
