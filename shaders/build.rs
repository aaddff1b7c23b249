//! Links, validates and reflects every kernel variant of `variants.rs`, and writes Rust for what it found.
//!
//! A variant's source is its prelude, the `shared/` files its kernel names, and the kernel file, in that order;
//! nothing is substituted inside a file. [`check`] validates each one and holds it to WebGPU's default limits, and
//! [`emit`] writes a `Kernel` constant for each variant, which points to the texts of its files, and one `Params` struct
//! for each kernel. It never sees a GPU.

#![allow(clippy::panic, clippy::expect_used, reason = "a build script reports by failing the build")]

#[path = "build/check.rs"]
mod check;
#[path = "build/emit.rs"]
mod emit;

use std::path::Path;
use std::{env, fs};

/// A kernel with the variants it is built in.
struct KernelFile {
    name: &'static str,
    file: &'static str,
    variants: Vec<Variant>,
}

/// Declarations and shared files put before a kernel.
struct Variant {
    name: &'static str,
    prelude: String,
    shared: Vec<&'static str>,
}

impl Variant {
    fn uses_subgroups(&self) -> bool {
        self.shared.contains(&"together")
    }
}

include!("src/format.rs");
include!("variants.rs");

fn main() {
    for watched in ["kernels", "shared", "variants.rs", "src/format.rs", "build", "build.rs"] {
        println!("cargo:rerun-if-changed={watched}");
    }
    let kernels = kernels();
    check_every_file_is_listed(&kernels);
    let mut out = emit::header();
    for folder in ["shared", "kernels"] {
        out += &names(folder).iter().map(|name| emit::text(folder, name, &read(folder, name))).collect::<String>();
    }
    for kernel in &kernels {
        let linked: Vec<_> = kernel.variants.iter().map(|variant| link(kernel, variant)).collect();
        let sources = kernel.variants.iter().zip(&linked);
        let reflected: Vec<_> = sources.map(|(variant, source)| reflect(kernel.name, variant, source)).collect();
        out += &emit::params(kernel.name, &reflected[0].params);
        for (variant, reflection) in kernel.variants.iter().zip(&reflected) {
            out += &emit::kernel(kernel, variant, reflection);
        }
        out += &emit::variants(kernel.name, kernel.variants.iter().map(|variant| variant.name));
    }
    out += &emit::all(kernels.iter().map(|kernel| kernel.name));
    out += &emit::fingerprint(&out);
    let path = Path::new(&env::var("OUT_DIR").expect("cargo sets OUT_DIR")).join("kernels.rs");
    fs::write(path, out).expect("OUT_DIR is writable");
}

fn link(kernel: &KernelFile, variant: &Variant) -> String {
    let shared: String = variant.shared.iter().map(|shared| read("shared", shared)).collect();
    format!("{}{shared}{}", variant.prelude, read("kernels", kernel.file))
}

fn read(folder: &str, name: &str) -> String {
    let path = format!("{folder}/{name}.wgsl");
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The files of a folder, in the order of their names.
fn names(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder}: {error}"));
    let mut names: Vec<_> =
        entries.flatten().filter_map(|entry| Some(entry.path().file_stem()?.to_str()?.to_owned())).collect();
    names.sort_unstable();
    names
}

fn reflect(name: &str, variant: &Variant, source: &str) -> check::Reflection {
    check::check(name, source, variant.uses_subgroups()).unwrap_or_else(|problem| panic!("{name}: {problem}"))
}

/// A shader file that no table names would never be launched.
fn check_every_file_is_listed(kernels: &[KernelFile]) {
    for file in names("kernels") {
        assert!(kernels.iter().any(|kernel| kernel.file == file), "kernels/{file}.wgsl is not in variants.rs");
    }
    for file in names("shared") {
        let mut variants = kernels.iter().flat_map(|kernel| &kernel.variants);
        let used = variants.any(|variant| variant.shared.contains(&file.as_str()));
        assert!(used, "shared/{file}.wgsl is named by no kernel");
    }
}
