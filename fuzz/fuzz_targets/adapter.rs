//! A LoRA adapter: its config and its weights.
#![no_main]

#[path = "../../core/formats/tests/common/hostile.rs"]
#[allow(dead_code, reason = "the module serves several targets")]
mod hostile;

libfuzzer_sys::fuzz_target!(|data: &[u8]| hostile::check_adapter(data));
