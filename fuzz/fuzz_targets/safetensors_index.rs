//! A safetensors index and the parts it points to, or a single file.
#![no_main]

#[path = "../../core/formats/tests/common/hostile.rs"]
#[allow(dead_code, reason = "the module serves two targets")]
mod hostile;

libfuzzer_sys::fuzz_target!(|data: &[u8]| hostile::check_index(data));
