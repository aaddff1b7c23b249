//! GGUF bytes of any kind: container, metadata, tensor table, codecs.
#![no_main]

#[path = "../../core/formats/tests/common/hostile.rs"]
#[allow(dead_code, reason = "the module serves two targets")]
mod hostile;

libfuzzer_sys::fuzz_target!(|data: &[u8]| hostile::check_gguf(data));
