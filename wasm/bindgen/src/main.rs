//! `samara-bindgen MODULE.wasm FOLDER` writes the module and the JavaScript that calls it into FOLDER.
//!
//! The same as the `wasm-bindgen` command for `--target web`, as a library: nothing to install and no version to mix up.

use anyhow::{Context, bail};
use wasm_bindgen_cli_support::Bindgen;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [module, folder] = arguments.as_slice() else {
        bail!("usage: samara-bindgen MODULE.wasm FOLDER");
    };
    Bindgen::new()
        .input_path(module)
        .web(true)?
        .typescript(true)
        .generate(folder)
        .with_context(|| format!("no bindings for {module}"))
}
