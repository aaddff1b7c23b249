//! Chat templates: compiled and rendered.
#![no_main]

#[path = "../../core/text/tests/common/hostile.rs"]
#[allow(dead_code, reason = "the module serves two targets")]
mod hostile;

libfuzzer_sys::fuzz_target!(|data: &[u8]| hostile::check_template(data));
