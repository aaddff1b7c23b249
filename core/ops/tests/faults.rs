//! A device that fails: too large a buffer, no memory left, the device lost. Each is an error, and none a panic.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use burn::tensor::Tensor;
use samara_ops::device::{DeviceChoice, Limits, OpenDevice, open};
use samara_ops::{OpsError, last_row, read_f32, vector};

/// The first adapter; `None`, aloud, where there is none.
fn gpu(limits: Limits) -> Option<OpenDevice> {
    match pollster::block_on(open(DeviceChoice::Gpu(0), limits)) {
        Ok(gpu) => Some(gpu),
        Err(error) => {
            assert!(std::env::var_os("REQUIRE_GPU").is_none(), "REQUIRE_GPU is set, but {error}");
            eprintln!("skipped: {error}");
            None
        }
    }
}

fn read<const R: usize>(open: &OpenDevice, tensor: Tensor<R>) -> Result<Vec<f32>, OpsError> {
    pollster::block_on(open.faults.settle(read_f32(tensor)))
}

fn computes(open: &OpenDevice) -> Result<Vec<f32>, OpsError> {
    read(open, vector(&[1.0, 2.0], &open.device) * 2.0)
}

#[test]
fn a_buffer_larger_than_the_device_allows_is_an_error() {
    let Some(gpu) = gpu(Limits::Default) else { return };
    let n_rows = gpu.max_binding_bytes as usize / 4 + 64;
    let huge = Tensor::<2>::zeros([n_rows, 4], &gpu.device);
    let error = read(&gpu, last_row(&huge)).unwrap_err();
    assert!(error.to_string().contains("can't allocate"), "{error}");
    assert_eq!(computes(&gpu), Ok(vec![2.0, 4.0]), "a buffer that was not made hurts no other");
}

/// Software adapters promise memory that the machine does not have, so only hardware can say no.
#[test]
fn memory_that_runs_out_is_an_error_that_says_when() {
    let Some(gpu) = gpu(Limits::Adapter) else { return };
    if gpu.adapter.as_ref().is_none_or(|adapter| adapter.kind == "software") {
        eprintln!("skipped: the adapter is software");
        return;
    }
    let n_values = gpu.max_binding_bytes.min(2 << 30) as usize / 4;
    let mut held = Vec::new();
    while gpu.faults.check().is_ok() && held.len() < 1024 {
        gpu.faults.during("filling the device", || held.push(Tensor::<1>::empty([n_values], &gpu.device)));
    }
    let error = computes(&gpu).unwrap_err();
    assert_eq!(error, OpsError::OutOfMemory { doing: "filling the device".to_owned() });
}

#[test]
fn a_lost_device_is_an_error_and_another_can_be_opened() {
    for _ in 0..3 {
        let Some(gpu) = gpu(Limits::Default) else { return };
        let before = vector(&[1.0, 2.0], &gpu.device);
        assert_eq!(computes(&gpu), Ok(vec![2.0, 4.0]));
        gpu.lose();
        for lost in [computes(&gpu), read(&gpu, before)] {
            assert!(matches!(lost, Err(OpsError::Lost { .. })), "{lost:?}");
        }
    }
}
