//! Links, validates and reflects every kernel variant of `variants.rs`, and writes Rust for what it found.
//!
//! A variant's source is its prelude, the `shared/` files its kernel names, and the kernel file, in that order;
//! nothing is substituted inside a file. naga validates each one, [`lint`] holds it to WebGPU's default limits, and
//! [`emit`] writes a `Kernel` constant for each variant and one `Params` struct for each kernel. It never sees a GPU.

#![allow(clippy::panic, clippy::expect_used, reason = "a build script reports by failing the build")]

#[path = "build/emit.rs"]
mod emit;
#[path = "build/lint.rs"]
mod lint;
#[path = "build/reflect.rs"]
mod reflect;

use std::path::Path;
use std::{env, fs};

/// A kernel file with the variants it is built in.
struct KernelFile {
    name: &'static str,
    shared: &'static [&'static str],
    variants: &'static [Variant],
}

/// A named list of declarations put before a kernel.
struct Variant {
    name: &'static str,
    prelude: &'static [&'static str],
}

include!("variants.rs");

fn main() {
    for watched in ["kernels", "shared", "variants.rs", "build", "build.rs"] {
        println!("cargo:rerun-if-changed={watched}");
    }
    check_every_file_is_listed();
    let mut out = emit::header();
    for kernel in KERNELS {
        let linked: Vec<_> = kernel.variants.iter().map(|variant| link(kernel, variant)).collect();
        let reflected: Vec<_> = linked.iter().map(|source| check(kernel.name, source)).collect();
        out += &emit::params(kernel.name, &reflected[0].params);
        for ((variant, source), reflection) in kernel.variants.iter().zip(&linked).zip(&reflected) {
            out += &emit::kernel(kernel.name, variant.name, source, reflection);
        }
    }
    out += &emit::list(KERNELS.iter().flat_map(|kernel| kernel.variants.iter().map(|v| (kernel.name, v.name))));
    let path = Path::new(&env::var("OUT_DIR").expect("cargo sets OUT_DIR")).join("kernels.rs");
    fs::write(path, out).expect("OUT_DIR is writable");
}

fn link(kernel: &KernelFile, variant: &Variant) -> String {
    let mut source = String::new();
    for declaration in variant.prelude {
        source += declaration;
        source += "\n";
    }
    for shared in kernel.shared {
        source += &read("shared", shared);
    }
    source + &read("kernels", kernel.name)
}

fn read(folder: &str, name: &str) -> String {
    let path = format!("{folder}/{name}.wgsl");
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn check(name: &str, source: &str) -> reflect::Reflection {
    let module = naga::front::wgsl::parse_str(source)
        .unwrap_or_else(|error| panic!("{}", error.emit_to_string_with_path(source, &format!("kernels/{name}.wgsl"))));
    let info = naga::valid::Validator::new(naga::valid::ValidationFlags::all(), naga::valid::Capabilities::empty())
        .validate(&module)
        .unwrap_or_else(|error| panic!("{}", error.emit_to_string_with_path(source, &format!("kernels/{name}.wgsl"))));
    let reflection = reflect::reflect(name, &module);
    lint::check(name, &module, &info, &reflection);
    reflection
}

/// A shader file that no table names would never be launched.
fn check_every_file_is_listed() {
    let files = |folder: &str| -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder}: {error}"));
        entries.flatten().filter_map(|entry| Some(entry.path().file_stem()?.to_str()?.to_owned())).collect()
    };
    for file in files("kernels") {
        assert!(KERNELS.iter().any(|kernel| kernel.name == file), "kernels/{file}.wgsl is not in variants.rs");
    }
    for file in files("shared") {
        let used = KERNELS.iter().any(|kernel| kernel.shared.contains(&file.as_str()));
        assert!(used, "shared/{file}.wgsl is named by no kernel");
    }
}
