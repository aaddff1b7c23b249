//! Every format there and back, on the host and through the kernel.

use super::*;
use crate::device::{DeviceChoice, Limits, OpenDevice, open};
use crate::qk_norm_rope::{LayerCache, QkNorm, QkSpec, RopeTable, qk_norm_rope};
use crate::step::Step;
use crate::weight::{matrix, vector};
use pollster::block_on;

/// What comes back of one row.
fn there_and_back(format: KvFormat, values: &[f32]) -> Vec<f32> {
    rows_there_and_back(format, &[values]).concat()
}

/// Stores rows over garbage, then reads them all.
fn rows_there_and_back(format: KvFormat, rows: &[&[f32]]) -> Vec<Vec<f32>> {
    let side = Side { format, n_rows: rows.len(), head_dim: rows[0].len() };
    let mut words = vec![u32::MAX; side.n_words()];
    rows.iter().enumerate().rev().for_each(|(row, values)| side.encode(row, values, &mut words));
    let mut found = vec![vec![f32::NAN; side.head_dim]; rows.len()];
    found.iter_mut().enumerate().for_each(|(row, values)| side.decode(row, &words, values));
    found
}

/// Values about normally distributed, of a channel by itself and of a head that leans to one side.
fn values(seed: u32, n: usize, offset: f32) -> Vec<f32> {
    let mut state = seed;
    let mut uniform = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32
    };
    (0..n).map(|_| (0..12).map(|_| uniform()).sum::<f32>() - 6.0 + offset).collect()
}

/// The mean squared error over the mean square.
fn nmse(format: KvFormat, values: &[f32]) -> f32 {
    let found = there_and_back(format, values);
    let errors: f32 = found.iter().zip(values).map(|(found, value)| (found - value).powi(2)).sum();
    errors / values.iter().map(|value| value * value).sum::<f32>()
}

#[test]
fn formats_read_as_they_are_written() {
    for keys in KvFormat::ALL {
        for values in KvFormat::ALL {
            let formats = KvFormats { keys, values };
            assert_eq!(formats.to_string().parse(), Ok(formats));
        }
    }
    assert_eq!(KvFormats::from(KvFormat::Q8).to_string(), "q8");
    assert_eq!("q8/q4".parse(), Ok(KvFormats { keys: KvFormat::Q8, values: KvFormat::Q4 }));
    for text in ["", "q5", "q8/", "/q8", "q8/q4/q4", "F16"] {
        let error = text.parse::<KvFormats>().unwrap_err().to_string();
        assert!(error.contains("f32, f16, q8 or q4") && error.contains(&format!("`{text}`")), "{error}");
    }
}

#[test]
fn bytes_told_are_those_of_the_words() {
    for (n_kv_heads, head_dim, n_slots) in [(3, 64, 100), (1, 20, 1), (2, 80, 7), (1, 2, 3)] {
        let heads = HeadShape { n_heads: n_kv_heads, n_kv_heads, head_dim };
        for format in KvFormat::ALL {
            let side = Side { format, n_rows: n_slots * n_kv_heads, head_dim };
            let told = KvFormats::from(format).bytes(n_slots, &heads);
            assert_eq!(told, 2 * 4 * side.n_words() as u64, "{format:?} {heads:?}");
            assert!(side.n_words().is_multiple_of(CELL));
        }
    }
    // Of 64 channels.
    let heads = HeadShape { n_heads: 1, n_kv_heads: 1, head_dim: 64 };
    assert_eq!(KvFormat::ALL.map(|format| format.row_bytes(&heads)), [256, 128, 72, 40]);
}

#[test]
fn f32_stays_what_it_is() {
    let values = [1.0, -0.0, f32::MAX, f32::MIN_POSITIVE / 2.0, f32::INFINITY];
    assert_eq!(there_and_back(KvFormat::F32, &values), values);
}

#[test]
fn f16_rounds_to_even_and_stays_finite() {
    let values = [1.0 + 1.0 / 2048.0, 1.0 + 3.0 / 2048.0, 65520.0, -1e30, 3e-8, 2e-8, f32::NEG_INFINITY];
    let expected = [1.0, 1.0 + 1.0 / 512.0, 65504.0, -65504.0, 5.960_464_5e-8, 0.0, f32::NEG_INFINITY];
    assert_eq!(there_and_back(KvFormat::F16, &values), expected);
    assert!(there_and_back(KvFormat::F16, &[f32::NAN])[0].is_nan());
}

/// Of a value half a step, and two roundings of the float that comes back.
#[test]
fn codes_are_the_nearest() {
    for scale in [1.0, 1e-34, 1e-20, 1e36] {
        for (seed, width) in [(1, 64), (2, 80), (3, 20), (4, 2), (5, 1)] {
            let values: Vec<f32> = values(seed, width, 0.3).into_iter().map(|value| value * scale).collect();
            for format in [KvFormat::Q8, KvFormat::Q4] {
                let found = there_and_back(format, &values);
                for (block, found) in values.chunks(BLOCK).zip(found.chunks(BLOCK)) {
                    let padded = if block.len() < BLOCK { 0.0 } else { block[0] };
                    let (least, largest) =
                        block.iter().fold((padded, padded), |(a, b), value| (value.min(a), value.max(b)));
                    let most = largest.max(-least);
                    let half_step = match format {
                        KvFormat::Q8 => most / 254.0,
                        // Both ends move outwards by less than a step of bf16.
                        _ => (largest - least + 2.0 * most / 128.0) / 30.0,
                    };
                    let bound = half_step + 4.0 * (f32::EPSILON * most + f32::from_bits(1));
                    for (value, found) in block.iter().zip(found) {
                        assert!((value - found).abs() <= bound, "{format:?} {width} {scale:e}: {value:e} {found:e}");
                    }
                }
            }
        }
    }
}

#[test]
fn ends_of_a_block_come_back() {
    let values: Vec<f32> = (-16..16).map(|i| i as f32).collect();
    let found = there_and_back(KvFormat::Q4, &values);
    assert_eq!((found[0], found[31].round()), (-16.0, 15.0));
    let found = there_and_back(KvFormat::Q8, &values);
    assert_eq!((found[0], found[16]), (-16.0, 0.0));
    for format in [KvFormat::Q8, KvFormat::Q4] {
        assert_eq!(there_and_back(format, &[0.0; 40]), [0.0; 40]);
        assert_eq!(there_and_back(format, &[-0.75; 32]), [-0.75; 32]);
    }
}

#[test]
fn rows_and_blocks_keep_to_themselves() {
    let rows: Vec<Vec<f32>> =
        (0..5).map(|row| values(row, 72, 0.0).iter().map(|v| v * 10f32.powi(row as i32)).collect()).collect();
    let borrowed: Vec<&[f32]> = rows.iter().map(Vec::as_slice).collect();
    for format in KvFormat::ALL {
        let together = rows_there_and_back(format, &borrowed);
        let alone: Vec<Vec<f32>> = rows.iter().map(|row| there_and_back(format, row)).collect();
        assert_eq!(together, alone, "{format:?}");
    }
}

/// A broken number breaks its block, where it is seen, and no other.
#[test]
fn infinities_and_nan_are_not_hidden() {
    for broken in
        [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, -f32::NAN, f32::from_bits(0x7fff_ffff), f32::from_bits(u32::MAX)]
    {
        for format in [KvFormat::Q8, KvFormat::Q4] {
            let mut row = values(7, 64, 0.0);
            row[5] = broken;
            let found = there_and_back(format, &row);
            assert!(found[..32].iter().all(|value| !value.is_finite()), "{format:?} {broken}: {found:?}");
            assert_eq!(found[32..], there_and_back(format, &row[32..]), "{format:?} {broken}");
        }
    }
}

/// For blocks of normally distributed values: halves are off by a relative 2^-11 / sqrt(3) at most, codes by a step over
/// sqrt(12), which is the largest of 32 over 127 or their range over 15.
#[test]
fn stored_values_are_as_near_as_their_bits_allow() {
    let (centred, leaning) = (values(11, 32 * 1000, 0.0), values(12, 32 * 1000, 4.0));
    let found = |format| [nmse(format, &centred), nmse(format, &leaning)];
    assert_eq!(found(KvFormat::F32), [0.0, 0.0]);
    assert!(found(KvFormat::F16).into_iter().all(|error| error < 8e-8), "{:?}", found(KvFormat::F16));
    assert!(found(KvFormat::Q8).into_iter().all(|error| (1e-5..4e-5).contains(&error)), "{:?}", found(KvFormat::Q8));
    let [centred, leaning] = found(KvFormat::Q4);
    // Those that lean to a side lie in as narrow a range, and their squares are seventeen times as large.
    assert!((5e-3..8e-3).contains(&centred) && leaning < centred / 15.0, "{centred} {leaning}");
}

/// The words of a cache after one step over tokens whose queries, keys and values are all the same head.
fn stored(open: &OpenDevice, tokens: &[Vec<f32>], formats: KvFormats) -> [Vec<u32>; 2] {
    let (device, n_tokens, head_dim) = (&open.device, tokens.len(), tokens[0].len());
    let heads = HeadShape { n_heads: 1, n_kv_heads: 2, head_dim };
    let mut cache = LayerCache::new(n_tokens + 1, &heads, formats, device);
    let mut step = Step::new(n_tokens, device);
    step.set(1, &vec![0; n_tokens], 0.0);
    let rope = RopeTable::new(&vec![0.0; head_dim / 2], 1.0, n_tokens + 1, device);
    let spec = QkSpec { heads, norm: QkNorm::None, eps: 0.0, clip: None };
    let qkv = matrix(tokens.iter().flat_map(|head| head.repeat(5)).collect::<Vec<_>>(), n_tokens, device);
    qk_norm_rope(&qkv, &vector(&[1.0], device), &rope, &step, &mut cache, &spec);
    cache.words()
}

/// Numbers of all sizes, of one size, at the ends of `f32`, without any difference.
fn tokens(head_dim: usize) -> Vec<Vec<f32>> {
    let sized = |exponent: &dyn Fn(usize) -> i32| -> Vec<f32> {
        let values = values(head_dim as u32, head_dim, 0.0);
        values.iter().enumerate().map(|(i, value)| value * 2f32.powi(exponent(i))).collect()
    };
    let special = [0.0, -0.0, f32::MAX, f32::MIN, f32::MIN_POSITIVE, 65520.0, -3e-8, 1.0];
    vec![
        sized(&|_| 0),
        sized(&|i| (i * 7 % 61) as i32 - 30),
        sized(&|i| -((i % 100) as i32)),
        sized(&|_| 100),
        sized(&|_| -120),
        vec![0.0; head_dim],
        vec![-1.7; head_dim],
        special.into_iter().cycle().take(head_dim).collect(),
    ]
}

#[test]
fn kernels_store_the_bits_of_the_reference() {
    let cpu = block_on(open(DeviceChoice::Cpu, Limits::Default)).unwrap();
    let gpu = match block_on(open(DeviceChoice::Gpu(0), Limits::Default)) {
        Ok(gpu) => gpu,
        Err(error) => {
            assert!(std::env::var_os("REQUIRE_GPU").is_none(), "REQUIRE_GPU is set, but {error}");
            return eprintln!("skipped: {error}");
        }
    };
    for head_dim in [64, 80, 20, 2, 256] {
        for (keys, values) in KvFormat::ALL.into_iter().flat_map(|keys| KvFormat::ALL.map(|values| (keys, values))) {
            let formats = KvFormats { keys, values };
            let tokens = tokens(head_dim);
            let [found, expected] = [&gpu, &cpu].map(|device| stored(device, &tokens, formats));
            assert!(expected[0].iter().any(|word| *word != 0), "something was stored");
            assert_eq!(found, expected, "{formats}, {head_dim} channels");
        }
    }
}
