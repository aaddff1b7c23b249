//! Numbers beyond what 16 bits hold, on both devices: other runtimes gave NaN here, or the same token for ever.
//!
//! Values are chosen so that the right answer is known without a reference.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod pair;

use burn::tensor::Tensor;
use pair::{Pair, matrix, pair};
use samara_ops::device::OpenDevice;
use samara_ops::family::Kernels;
use samara_ops::*;

/// Runs `check` on the CPU and with every family of kernels on the adapter.
fn on_each(check: impl Fn(&OpenDevice)) {
    let Some(Pair { mut gpu, cpu }) = pair() else { return };
    for family in gpu.families() {
        gpu.kernels = Kernels::all(family);
        check(&gpu);
    }
    check(&cpu);
}

fn read<const R: usize>(tensor: Tensor<R>) -> Vec<f32> {
    pollster::block_on(read_f32(tensor)).unwrap()
}

/// `n_rows` of the same 16-bit floats.
fn rows_of_halves(format: Format, row: &[u16], n_rows: usize, open: &OpenDevice) -> Weight {
    let bytes: Vec<u8> = row.repeat(n_rows).iter().flat_map(|half| half.to_le_bytes()).collect();
    let mut builder = WeightBuilder::new(row.len(), open);
    builder.push_rows_halves(format, &bytes);
    builder.finish()
}

/// Ones, as codes with a scale of one.
fn rows_of_codes(n_in: usize, n_rows: usize, open: &OpenDevice) -> Weight {
    let mut builder = WeightBuilder::new(n_in, open);
    builder.push_rows_codes(Format::Q8_0, &vec![1; n_in * n_rows], &[0x00, 0x3c].repeat(n_in / 32 * n_rows));
    builder.finish()
}

/// The feed-forward width of OLMo 2 7B, with activations of 60: whole numbers, so every order of adding is exact.
#[test]
fn sums_beyond_16_bits_are_exact() {
    const N_IN: usize = 11_008;
    on_each(|open| {
        let weights = [
            rows_of_halves(Format::F16, &[0x3c00; N_IN], 5, open),
            rows_of_halves(Format::Bf16, &[0x3f80; N_IN], 5, open),
            rows_of_codes(N_IN, 5, open),
        ];
        for (weight, n_tokens) in weights.iter().flat_map(|weight| [1, 3, 9].map(|n_tokens| (weight, n_tokens))) {
            let x = matrix(&vec![60.0; n_tokens * N_IN], n_tokens, &open.device);
            assert_eq!(read(linear(&x, weight)), vec![660_480.0; n_tokens * 5], "{n_tokens} tokens on {}", open.name);
        }
    });
}

/// A residual stream may outgrow 65504; its norm is a number all the same.
#[test]
fn norms_of_large_activations_are_numbers() {
    const WIDTH: usize = 2048;
    on_each(|open| {
        let x: Vec<f32> = (0..WIDTH).map(|i| if i % 2 == 0 { 1e6 } else { -1e6 }).collect();
        for kind in [NormKind::Rms, NormKind::Layer] {
            let norm_of = Norm { kind, weight: vector(&[1.0; WIDTH], &open.device), eps: 1e-5 };
            let y = read(norm(&matrix(&x, 1, &open.device), &norm_of));
            // The mean of n squares, each rounded once, is off by at most sqrt(n) eps of itself.
            let bound = 2.0 * (WIDTH as f32).sqrt() * f32::EPSILON;
            let off = y.iter().zip(&x).map(|(y, x)| (y - x.signum()).abs()).fold(0.0, f32::max);
            assert!(off <= bound, "{kind:?} on {}: {off:e}", open.name);
        }
    });
}

/// The smallest normal and the largest values of both kinds; those of `bf16` go far beyond `f16`.
#[test]
fn sixteen_bit_weights_keep_their_extremes() {
    let f16 = [(0x8000, -0.0), (0x0400, 6.103_515_6e-5), (0x3c01, 1.000_976_6), (0x7bff, 65504.0), (0xfbff, -65504.0)];
    let bf16 = [(0x8000, -0.0), (0x0080, f32::MIN_POSITIVE), (0x4780, 65536.0), (0x7f7f, f32::from_bits(0x7f7f_0000))];
    on_each(|open| {
        for (format, cases) in [(Format::F16, &f16[..]), (Format::Bf16, &bf16)] {
            let (row, expected): (Vec<u16>, Vec<f32>) = cases.iter().copied().cycle().take(32).unzip();
            let mut step = Step::new(1, &open.device);
            step.set(0, &[0], 0.0);
            let found = read(embed(&step, &rows_of_halves(format, &row, 1, open), 1.0));
            assert_eq!(found, expected, "{format:?} on {}", open.name);
        }
    });
}

/// Where a model has broken down its text must not go on as if nothing were: of a block nothing but infinities and NaN is
/// left, in whatever format, and other blocks are as they were.
#[test]
fn infinities_and_nan_are_seen_through_a_cache_of_any_format() {
    let heads = HeadShape { n_heads: 1, n_kv_heads: 1, head_dim: 64 };
    on_each(|open| {
        let device = &open.device;
        let rope = RopeTable::new(&[0.0; 32], 1.0, 1, device);
        let spec = QkSpec { heads, norm: QkNorm::None, eps: 0.0, clip: None };
        let mut now = Step::new(1, device);
        now.set(0, &[0], 0.0);
        for (format, broken) in KvFormat::ALL.into_iter().flat_map(|format| BROKEN.map(|broken| (format, broken))) {
            let mut qkv = vec![0.5; 3 * 64];
            qkv[2 * 64 + 3] = broken;
            let mut cache = LayerCache::new(1, &heads, format, device);
            let q = qk_norm_rope(&matrix(&qkv, 1, device), &vector(&[1.0], device), &rope, &now, &mut cache, &spec);
            let spec = AttentionSpec { heads, window: None, scale: 1.0, kernels: open.kernels };
            let found = read(attention(&q, &cache, &now, &spec));
            let n_broken = found.iter().filter(|value| !value.is_finite()).count();
            let expected = if matches!(format, KvFormat::F32 | KvFormat::F16) { 1 } else { 32 };
            assert_eq!(n_broken, expected, "{broken} in {format:?} on {}: {found:?}", open.name);
            assert!(
                found[32..].iter().all(|value| (value - 0.5).abs() < 1e-6),
                "{broken} in {format:?} on {}",
                open.name
            );
        }
    });
}

const BROKEN: [f32; 3] = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN];

/// A cache in f16 rounds to the nearest, ties to even, and keeps finite values finite: bit for bit the same everywhere.
#[test]
fn keys_and_values_in_f16_are_rounded_alike() {
    let heads = HeadShape { n_heads: 1, n_kv_heads: 1, head_dim: 8 };
    let step_of_one = 1.0 / 1024.0;
    let values = [1e6, -7e4, 65519.9, 1.0 + 0.5 * step_of_one, 1.0 + 1.5 * step_of_one, 3e-8, -1e-9, 6.1e-5];
    let expected = values.map(|value: f32| half::f16::from_f32(value.clamp(-65504.0, 65504.0)).to_f32());
    on_each(|open| {
        let device = &open.device;
        let rope = RopeTable::new(&[0.0; 4], 1.0, 1, device);
        let mut cache = LayerCache::new(1, &heads, KvFormat::F16, device);
        let spec = QkSpec { heads, norm: QkNorm::None, eps: 0.0, clip: None };
        let mut now = Step::new(1, device);
        now.set(0, &[0], 0.0);
        // Queries, keys and values are the same; with one key its value comes out.
        let qkv = matrix(&values.repeat(3), 1, device);
        let q = qk_norm_rope(&qkv, &vector(&[1.0], device), &rope, &now, &mut cache, &spec);
        let spec = AttentionSpec { heads, window: None, scale: 1.0, kernels: open.kernels };
        assert_eq!(read(attention(&q, &cache, &now, &spec)), expected, "on {}", open.name);
    });
}
