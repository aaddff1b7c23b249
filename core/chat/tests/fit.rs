//! What a device cannot hold is refused before it is loaded, with what it could.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use samara_chat::{ChatError, KvFormat, KvFormats, Model, OpenDevice, Session, SessionConfig, Source, check_fits};
use samara_model::{DeviceMemory, ModelError};
use samara_ops::device::{DeviceChoice, Limits, open};

/// A token's keys in the embedded model: two heads of width 32 in f16; its rotation takes as many bytes.
const KEY_BYTES: u64 = 2 * 32 * 2;

/// The CPU, as if it bound no more than `max_binding_bytes` at once.
fn device(max_binding_bytes: u64) -> OpenDevice {
    let mut device = pollster::block_on(open(DeviceChoice::Cpu, Limits::Default)).unwrap();
    device.max_binding_bytes = max_binding_bytes;
    device
}

fn check(open: &OpenDevice, context_tokens: Option<usize>, free_bytes: Option<u64>) -> Result<(), ModelError> {
    check_in(KvFormats::default(), open, context_tokens, free_bytes)
}

fn check_in(
    kv: KvFormats,
    open: &OpenDevice,
    context_tokens: Option<usize>,
    free_bytes: Option<u64>,
) -> Result<(), ModelError> {
    let session = SessionConfig { context_tokens, kv, ..SessionConfig::default() };
    match check_fits(&Source::Embedded.open().unwrap(), &[], open, session, free_bytes) {
        Ok(()) => Ok(()),
        Err(ChatError::Model(error)) => Err(error),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn a_context_that_fits_beside_the_weights_is_named() {
    let device = device(u64::MAX);
    check(&device, None, None).unwrap();
    let Err(ModelError::DoesNotFit { needed, .. }) = check(&device, Some(512), Some(0)) else { panic!() };
    let DeviceMemory { weights_bytes, adapters_bytes, kv_bytes, scratch_bytes } = needed;
    assert_eq!((adapters_bytes, needed.total_bytes()), (0, weights_bytes + kv_bytes + scratch_bytes));
    check(&device, Some(512), Some(needed.total_bytes())).unwrap();

    let free_bytes = Some(needed.total_bytes() - kv_bytes / 8);
    let error = check(&device, Some(512), free_bytes).unwrap_err();
    assert!(error.to_string().contains("they fit with --kv q8,"), "{error}");
    let ModelError::DoesNotFit { fitting_tokens, .. } = error else { panic!("{error}") };
    assert!(
        error.to_string().ends_with(&format!("a context of {fitting_tokens} tokens fits (--context {fitting_tokens})"))
    );
    check(&device, Some(fitting_tokens), free_bytes).unwrap();
    check(&device, Some(fitting_tokens + 1), free_bytes).unwrap_err();
    check_in(KvFormat::Q8.into(), &device, Some(512), free_bytes).unwrap();
}

#[test]
fn the_most_exact_cache_that_fits_is_named() {
    let device = device(u64::MAX);
    let Err(ModelError::DoesNotFit { needed, .. }) = check(&device, Some(512), Some(0)) else { panic!() };
    // Of f16, q8 takes 9/16 and q4 5/16.
    for (share, advice) in [(9, "they fit with --kv q8,"), (5, "they fit with --kv q4,"), (4, "; a context of")] {
        let free_bytes = needed.total_bytes() - needed.kv_bytes * (16 - share) / 16;
        let error = check(&device, Some(512), Some(free_bytes)).unwrap_err().to_string();
        assert!(error.contains(advice), "{share}: {error}");
    }
}

#[test]
fn weights_that_leave_no_room_at_all_call_for_another_file() {
    let error = check(&device(u64::MAX), None, Some(1 << 20)).unwrap_err().to_string();
    assert!(error.contains("1.00 MiB are free") && error.contains("a file with fewer bits"), "{error}");
}

#[test]
fn a_context_longer_than_a_binding_is_refused_when_asked_for_and_shortened_when_not() {
    let device = device(100 * KEY_BYTES);
    let error = check(&device, Some(101), None).unwrap_err();
    assert!(matches!(error, ModelError::ContextTooLong { max_tokens: 100, .. }), "{error}");
    check(&device, Some(100), None).unwrap();
    check(&device, None, None).unwrap();

    let load = || Model::load(&Source::Embedded, &device, &mut |_| ()).unwrap();
    let session = |context_tokens| Session::new(load(), SessionConfig { context_tokens, ..SessionConfig::default() });
    assert_eq!(session(None).unwrap().context_tokens(), 100);
    let error = session(Some(101)).err().unwrap().to_string();
    assert!(error.contains("between 1 and 100"), "{error}");
}
