//! Rules of the house that a reviewer would otherwise have to remember.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The arrows of ARCHITECTURE.md: a crate and the crates of ours that it may use.
const ARROWS: &[(&str, &[&str])] = &[
    ("shaders", &[]),
    ("core/formats", &[]),
    ("core/text", &[]),
    ("core/data", &["samara-text"]),
    ("core/ops", &["samara-shaders"]),
    ("core/model", &["samara-ops", "samara-formats"]),
    ("core/engine", &["samara-model", "samara-ops"]),
    ("core/train", &["samara-model", "samara-formats", "samara-data", "samara-ops"]),
    ("core/chat", &["samara-engine", "samara-model", "samara-text", "samara-formats", "samara-ops"]),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every file below the source folders whose name ends in `.extension`.
fn sources(extension: &str) -> Vec<PathBuf> {
    fn walk(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() && !path.ends_with("target") && !path.ends_with("node_modules") {
                walk(&path, extension, found);
            } else if path.extension().is_some_and(|it| it == extension) {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    for folder in ["shaders", "core", "app", "wasm", "tests", "fuzz/fuzz_targets"] {
        walk(&root().join(folder), extension, &mut found);
    }
    found
}

/// The names of our own crates in the `[dependencies]` table of a manifest.
fn own_dependencies(manifest: &str) -> BTreeSet<&str> {
    let table = manifest.split("\n[").find(|table| table.starts_with("dependencies]")).unwrap_or("");
    table
        .lines()
        .filter_map(|line| line.split(['.', ' ', '=']).next())
        .filter(|name| name.starts_with("samara"))
        .collect()
}

#[test]
fn arrows_point_one_way() {
    for (folder, allowed) in ARROWS {
        let manifest = read(format!("{folder}/Cargo.toml"));
        for used in own_dependencies(&manifest) {
            assert!(allowed.contains(&used), "{folder} uses {used}, which ARCHITECTURE.md does not allow");
        }
    }
}

/// A file that others `include!` cannot open with `//!`; a plain comment does there.
#[test]
fn every_rust_file_says_what_it_is() {
    let included = ["shaders/variants.rs", "shaders/src/format.rs"];
    for path in sources("rs") {
        let text = std::fs::read_to_string(&path).unwrap();
        let is_included = included.iter().any(|file| path.ends_with(file));
        let opens = text.starts_with("//!") || text.starts_with("#!") || is_included && text.starts_with("// ");
        assert!(opens, "{} does not open with //!", path.display());
    }
}

#[test]
fn every_kernel_says_what_it_computes_and_how_its_grid_lies() {
    for path in sources("wgsl").iter().filter(|path| path.parent().is_some_and(|it| it.ends_with("kernels"))) {
        let text = std::fs::read_to_string(path).unwrap();
        let header: String = text.lines().take_while(|line| line.starts_with("//")).collect();
        assert!(header.contains("Grid: "), "{} has no grid in its header", path.display());
        assert!(text.lines().count() <= 150, "{} has more than 150 lines", path.display());
    }
}

#[test]
fn every_kernel_has_an_operation_that_launches_it() {
    let ops: String = sources("rs")
        .iter()
        .filter(|path| path.starts_with(root().join("core/ops/src")))
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    for kernel in samara_shaders::ALL.iter().copied().flatten() {
        let constant = format!("{}_{}", kernel.name, kernel.variant).to_uppercase();
        let table = kernel.name.to_uppercase();
        let is_launched =
            [constant.clone(), format!(" {table}["), format!("({table}["), format!("&{table}, "), format!("&{table})")];
        let is_launched = is_launched.iter().any(|text| ops.contains(text));
        assert!(is_launched, "{constant} is launched by nothing");
    }
}

#[test]
fn every_dependency_has_its_reason() {
    let manifest = read("Cargo.toml");
    let table = manifest.split("\n[").find(|table| table.starts_with("workspace.dependencies]")).unwrap();
    let mut explained = false;
    for line in table.lines().skip(1) {
        if line.starts_with('#') {
            explained = true;
        } else if line.is_empty() {
            explained = false;
        } else {
            let ours = line.starts_with("samara");
            assert!(ours || explained, "no reason stands above: {line}");
        }
    }
}

#[test]
fn kernels_stay_wgsl_and_wgpu_stays_one() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // Of this machine only: what other systems need may not have been downloaded.
    let arguments = ["tree", "--offline", "-p", "samara", "-e", "normal", "--prefix", "none"];
    let output = Command::new(cargo).args(arguments).current_dir(root()).output().unwrap();
    let tree = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && tree.contains("cubecl-wgpu "), "{}", String::from_utf8_lossy(&output.stderr));
    for compiler in ["cubecl-spirv ", "cubecl-cpp "] {
        assert!(!tree.contains(compiler), "a feature turned {compiler}on; WGSL kernels would be refused");
    }
    let versions: BTreeSet<&str> =
        tree.lines().filter(|line| line.starts_with("wgpu v")).map(|line| line.split(' ').nth(1).unwrap()).collect();
    assert_eq!(versions.len(), 1, "several versions of wgpu: {versions:?}");
}

#[test]
fn unsafe_code_is_where_it_is_named() {
    let allowed = ["core/formats/src/mmap.rs", "core/ops/src/capture.rs"].map(|file| root().join(file));
    for path in sources("rs").iter().filter(|path| !allowed.contains(path) && !path.ends_with("tidy.rs")) {
        let text = std::fs::read_to_string(path).unwrap();
        let used = text
            .lines()
            .any(|line| line.contains("unsafe {") || line.contains("unsafe fn") || line.contains("allow(unsafe_code"));
        assert!(!used, "{} has unsafe code", path.display());
    }
}
