//! Tokenizer metadata: a `tokenizer.json`, or a vocabulary as a GGUF file carries it; then texts through it.
#![no_main]

#[path = "../../core/text/tests/common/hostile.rs"]
#[allow(dead_code, reason = "the module serves two targets")]
mod hostile;

libfuzzer_sys::fuzz_target!(|data: &[u8]| hostile::check_vocab(data));
