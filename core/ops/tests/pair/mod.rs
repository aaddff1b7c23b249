//! Two devices that must agree, and what tests fill them with.
#![allow(dead_code, reason = "each test program uses a part of this")]

use burn::tensor::{DType, Device, Tensor, TensorData};
use samara_ops::device::{DeviceChoice, Limits, OpenDevice, open};
use samara_ops::vector;

/// A wgpu device, opened with WebGPU's default limits, and the reference.
pub struct Pair {
    pub gpu: OpenDevice,
    pub cpu: OpenDevice,
}

/// `None`, aloud, where there is no adapter; a failure where the environment says there must be one.
pub fn pair() -> Option<Pair> {
    let cpu = pollster::block_on(open(DeviceChoice::Cpu, Limits::Default)).unwrap();
    match pollster::block_on(open(DeviceChoice::Gpu(0), Limits::Default)) {
        Ok(gpu) => Some(Pair { gpu, cpu }),
        Err(error) => {
            assert!(std::env::var_os("REQUIRE_GPU").is_none(), "REQUIRE_GPU is set, but {error}");
            eprintln!("skipped: {error}");
            None
        }
    }
}

/// Uniform in -1 to 1 from a seed (SplitMix64), times `scale`.
pub fn random(seed: u64, n: usize, scale: f32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    (0..n).map(|_| ((next() >> 40) as f32 / (1u64 << 23) as f32 - 1.0) * scale).collect()
}

pub fn matrix(values: &[f32], rows: usize, device: &Device) -> Tensor<2> {
    Tensor::from_data(TensorData::new(values.to_vec(), [rows, values.len() / rows]), (device, DType::F32))
}

/// Leaves freed device buffers full of NaN behind, of the sizes that the operation will ask for.
pub fn poison(device: &Device, sizes: &[usize]) {
    let filled: Vec<Tensor<1>> =
        sizes.iter().flat_map(|&n| [n, n]).map(|n| vector(&vec![f32::NAN; n.max(1)], device)).collect();
    drop(filled);
}
