//! What cross-crate tests share: the devices that everything is tried on, and a token from a model. The tests are in
//! `tests/`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::OnceLock;

use anyhow::{Context, Result};
use samara_engine::{Choice, LanguageModel, Picked};
use samara_model::{Decoder, KvCache};
use samara_ops::device::{self, DeviceChoice, Limits, OpenDevice};

/// The CPU, and the first adapter where there is one.
///
/// # Panics
/// If `REQUIRE_GPU` is 1 and there is none.
pub fn devices() -> &'static [OpenDevice] {
    static DEVICES: OnceLock<Vec<OpenDevice>> = OnceLock::new();
    DEVICES.get_or_init(|| {
        let open = |choice| pollster::block_on(device::open(choice, Limits::Default));
        let cpu = open(DeviceChoice::Cpu).unwrap();
        match open(DeviceChoice::Gpu(0)) {
            Ok(gpu) => vec![cpu, gpu],
            Err(error) => {
                let required = std::env::var("REQUIRE_GPU").is_ok_and(|value| value == "1");
                assert!(!required, "REQUIRE_GPU=1, but there is no adapter: {error}");
                eprintln!("SKIPPED on GPU: {error}");
                vec![cpu]
            }
        }
    })
}

/// Runs `check` for each case on each device.
///
/// # Panics
/// If any failed; all that did are told, by name and device.
pub fn check_all<T>(cases: &[T], name: impl Fn(&T) -> String, check: impl Fn(&T, &OpenDevice) -> Result<()>) {
    assert!(!cases.is_empty(), "no cases");
    let mut failures = Vec::new();
    for open in devices() {
        for case in cases {
            let place = || format!("{} on {}", name(case), open.name);
            failures.extend(check(case, open).with_context(place).err().map(|error| format!("{error:#}")));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Runs `tokens` and waits for the one chosen after them.
pub fn pick(model: &Decoder, tokens: &[u32], cache: &mut KvCache, choice: &Choice) -> Result<Picked> {
    Ok(pollster::block_on(async { model.picked(LanguageModel::pick(model, tokens, cache, choice).await?).await })??)
}
