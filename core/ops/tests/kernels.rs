//! Every kernel against its reference twin: the same operation on a wgpu device and on `Flex`.
//!
//! Inputs are random with fixed seeds; sizes are odd, single and block-crossing. Freed buffers full of NaN lie around
//! when an output is allocated, so an element that a kernel forgets shows. The bound of each case is derived: a sum of
//! n products, each rounded once, in two orders differs by at most about `2 sqrt(n) eps` of the sum of magnitudes, with
//! a factor for the few further roundings of the operation. The device is opened with WebGPU's default limits.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod pair;
#[path = "pair/stored.rs"]
mod stored;

use burn::tensor::Tensor;
use pair::{Pair, matrix, pair, poison, random};
use samara_ops::device::OpenDevice;
use samara_ops::family::{Family, Kernels};
use samara_ops::*;
use stored::{stored_rows, stored_weight};

/// A weight cut into parts of at most `rows_per_part` rows.
fn weight(values: &[f32], n_in: usize, rows_per_part: usize, open: &OpenDevice) -> Weight {
    let mut narrow = open.clone();
    narrow.max_binding_bytes = (rows_per_part * n_in * 4) as u64;
    let mut builder = WeightBuilder::new(n_in, &narrow);
    builder.push_rows_f32(values);
    builder.finish()
}

fn read<const R: usize>(tensor: Tensor<R>) -> Vec<f32> {
    pollster::block_on(read_f32(tensor)).unwrap()
}

/// Runs `operation` on both devices and compares every output element; `bound` is absolute.
fn check(case: &str, pair: &Pair, sizes: &[usize], bound: f32, operation: impl Fn(&OpenDevice) -> Vec<Vec<f32>>) {
    poison(&pair.gpu.device, sizes);
    let on_gpu = operation(&pair.gpu);
    let on_cpu = operation(&pair.cpu);
    assert_eq!(on_gpu.len(), on_cpu.len());
    for (output, (gpu, cpu)) in on_gpu.iter().zip(&on_cpu).enumerate() {
        assert_eq!(gpu.len(), cpu.len(), "{case}: output {output}");
        for (i, (g, c)) in gpu.iter().zip(cpu).enumerate() {
            assert!((g - c).abs() <= bound, "{case}: output {output}[{i}]: gpu {g}, cpu {c}, bound {bound:e}");
        }
    }
}

/// `factor * sqrt(n) * eps * magnitude`, never 0.
fn bound(factor: f32, n: usize, magnitude: f32) -> f32 {
    factor * (n as f32).sqrt() * f32::EPSILON * magnitude + f32::MIN_POSITIVE
}

fn step(open: &OpenDevice, position: usize, ids: &[u32]) -> Step {
    let mut step = Step::new(ids.len(), &open.device);
    step.set(position, ids, 0.0);
    step
}

#[test]
fn embed_matches_its_reference() {
    let Some(pair) = pair() else { return };
    for (n_tokens, vocab, width, rows_per_part) in [(1, 1, 1, 1), (5, 7, 3, 2), (3, 300, 65, 300), (130, 513, 128, 100)]
    {
        let table = random(1, vocab * width, 1.0);
        let ids: Vec<u32> = (0..n_tokens).map(|t| (t * 37 % vocab) as u32).collect();
        check(&format!("embed {n_tokens} {vocab} {width}"), &pair, &[n_tokens * width], 0.0, |open| {
            vec![read(embed(&step(open, 9, &ids), &weight(&table, width, rows_per_part, open), 1.5))]
        });
    }
}

#[test]
fn linear_matches_its_reference() {
    let Some(mut pair) = pair() else { return };
    let cases = [
        (1, 1, 1, 1),
        (1, 5, 3, 2),
        (1, 64, 17, 17),
        (2, 576, 33, 10),
        (4, 130, 9, 9),
        (5, 7, 5, 5),
        (33, 50, 35, 35),
        (70, 128, 65, 40),
    ];
    for family in pair.gpu.families() {
        pair.gpu.kernels = Kernels::all(family);
        for (n_tokens, n_in, n_out, rows_per_part) in cases {
            for scale in [1.0, 1e15, 1e-15] {
                let x = random(2, n_tokens * n_in, scale);
                let w = random(3, n_out * n_in, 1.0);
                let bound = bound(4.0, n_in, n_in as f32 * scale * 0.5);
                let case = format!("linear {family} {n_tokens} {n_in} {n_out} {scale}");
                check(&case, &pair, &[n_tokens * n_out], bound, |open| {
                    let w = weight(&w, n_in, rows_per_part, open);
                    vec![read(linear(&matrix(&x, n_tokens, &open.device), &w))]
                });
            }
        }
    }
}

#[test]
fn linear_folds_grids_above_65535_groups() {
    let Some(mut pair) = pair() else { return };
    pair.gpu.kernels = Kernels::all(Family::Workgroup);
    let n_out = 65_536 * 8 + 3;
    let (x, w) = (random(4, 4, 1.0), random(5, n_out * 4, 1.0));
    check("linear, folded grid", &pair, &[n_out], bound(4.0, 4, 4.0), |open| {
        vec![read(linear(&matrix(&x, 1, &open.device), &weight(&w, 4, n_out, open)))]
    });
}

#[test]
fn every_format_matches_its_reference_in_every_kernel() {
    let Some(mut pair) = pair() else { return };
    let formats = Format::ALL.into_iter().filter(|format| *format != Format::Ragged);
    let families = pair.gpu.families();
    for (format, family) in formats.flat_map(|format| families.iter().map(move |family| (format, *family))) {
        pair.gpu.kernels = Kernels::all(family);
        // 256 is the width of the largest block; the rows end inside a tile and a part.
        for (n_tokens, n_in, n_out, rows_per_part) in [(1, 512, 37, 20), (9, 256, 35, 35)] {
            let rows = stored_rows(format, n_out, n_in);
            let x = random(21, n_tokens * n_in, 1.0);
            let ids: Vec<u32> = (0..n_tokens as u32).map(|t| t * 5 % n_out as u32).collect();
            // Weights stay below 1 or so. What a device may do to a value before the product is one more rounding.
            let bound = bound(8.0, n_in, n_in as f32);
            let case = format!("{format:?} {family} {n_tokens} tokens");
            check(&case, &pair, &[n_tokens * n_out, n_tokens * n_in], bound, |open| {
                let w = stored_weight(format, n_in, &rows, rows_per_part, open);
                assert!(w.n_bytes() == n_out as u64 * row_bytes(format, n_in) && w.n_out() == n_out);
                let routes = moe_route(&matrix(&random(22, n_tokens, 1.0), n_tokens, &open.device), 1, false);
                let x = matrix(&x, n_tokens, &open.device);
                let embedded = embed(&step(open, 0, &ids), &w, 2.0);
                vec![read(linear(&x, &w)), read(embedded), read(moe_linear(&x, &w, &routes, 1))]
            });
        }
    }
}

#[test]
fn gated_products_match_their_references_in_every_kernel() {
    let Some(mut pair) = pair() else { return };
    let families = pair.gpu.families();
    for (format, family) in
        Format::ALL.into_iter().flat_map(|format| families.iter().map(move |family| (format, *family)))
    {
        pair.gpu.kernels = Kernels::all(family);
        // One part, one token: fused. Two parts or tokens: not, and no different.
        for (n_tokens, n_out, rows_per_part) in [(1, 37, 74), (1, 1, 2), (1, 9, 5), (2, 3, 6)] {
            let n_in = if format == Format::Ragged { 67 } else { 256 };
            let values = random(41, 2 * n_out * n_in, 1.0);
            let rows = (format != Format::Ragged).then(|| stored_rows(format, 2 * n_out, n_in));
            let x = random(42, n_tokens * n_in, 1.0);
            // A sum is below 30 or so, and the activation no steeper than 1.2.
            let bound = 30.0 * bound(8.0, n_in, 30.0);
            for activation in [Activation::Silu, Activation::GeluTanh] {
                let case = format!(
                    "gated {format:?} {family} {activation:?} {n_tokens} x {n_out} in parts of {rows_per_part}"
                );
                check(&case, &pair, &[n_tokens * n_out, 2 * n_tokens * n_out], bound, |open| {
                    let w = match &rows {
                        Some(rows) => stored_weight(format, n_in, rows, rows_per_part, open),
                        None => weight(&values, n_in, rows_per_part, open),
                    };
                    let before = counts::read();
                    let y = gated_linear(&matrix(&x, n_tokens, &open.device), &w, activation);
                    let launches = (counts::read() - before).launches;
                    let fused = n_tokens == 1 && rows_per_part >= 2 * n_out;
                    assert!(open.adapter.is_none() || (launches == 1) == fused, "{case}: {launches} launches");
                    vec![read(y)]
                });
            }
        }
    }
}

#[test]
fn lengths_of_adapted_rows_match_their_reference_and_the_merged_weight() {
    let Some(pair) = pair() else { return };
    for (n_in, n_out, rows_per_part, columns, rank) in [
        (1, 1, 1, 0..1, 1),
        (33, 20, 7, 5..14, 3),
        (130, 9, 9, 0..9, 1),
        (64, 90, 32, 30..65, 8),
        (256, 40, 40, 1..39, 64),
    ] {
        let (w, scale) = (random(30, n_out * n_in, 1.0), 0.7);
        let (a, b) = (random(31, rank * n_in, 1.0), random(32, columns.len() * rank, 1.0));
        let merged = |(n, b): (usize, &[f32])| {
            let added = |k: usize| b.iter().zip(a[k..].iter().step_by(n_in)).map(|(b, a)| b * a).sum::<f32>();
            let row = w[(columns.start + n) * n_in..][..n_in].iter().enumerate();
            row.map(|(k, w)| f64::from(w + scale * added(k)).powi(2)).sum::<f64>().sqrt() as f32
        };
        let merged: Vec<f32> = b.chunks_exact(rank).enumerate().map(merged).collect();
        let bound = bound(4.0, n_in + rank, merged.iter().copied().fold(0.0, f32::max));
        let case = format!("row_lengths {n_in} {n_out} {columns:?} {rank}");
        check(&case, &pair, &[columns.len()], bound, |open| {
            let w = weight(&w, n_in, rows_per_part, open);
            let ab = [matrix(&a, rank, &open.device), matrix(&b, columns.len(), &open.device)];
            let lengths = read(row_lengths(&w, columns.clone(), ab.each_ref(), scale));
            assert!(lengths.iter().zip(&merged).all(|(found, merged)| (found - merged).abs() <= bound), "{case}");
            vec![lengths]
        });
    }
}

#[test]
fn lengths_of_adapted_rows_match_in_every_format() {
    let Some(pair) = pair() else { return };
    for format in Format::ALL.into_iter().filter(|format| *format != Format::Ragged) {
        let (n_in, n_out, rank) = (256, 37, 4);
        let rows = stored_rows(format, n_out, n_in);
        let (a, b) = (random(33, rank * n_in, 0.1), random(34, 30 * rank, 1.0));
        // Values stay below 1 or so, and a length below the square root of their number.
        check(&format!("row_lengths {format:?}"), &pair, &[30], bound(8.0, n_in, 16.0), |open| {
            let w = stored_weight(format, n_in, &rows, 20, open);
            let ab = [matrix(&a, rank, &open.device), matrix(&b, 30, &open.device)];
            vec![read(row_lengths(&w, 4..34, ab.each_ref(), 1.5))]
        });
    }
}

#[test]
fn scaled_columns_match_their_reference_and_leave_the_others() {
    let Some(pair) = pair() else { return };
    for (n_tokens, n_out, first, n_columns) in [(1, 1, 0, 1), (5, 9, 2, 4), (3, 130, 65, 65), (70, 33, 0, 33)] {
        let (y, m) = (random(35, n_tokens * n_out, 1.0), random(36, n_columns, 2.0));
        let mut lengths: Vec<f32> = random(37, n_columns, 1.0).iter().map(|x| x.abs() + 0.5).collect();
        // A row without a length is as good as one of length 1.
        lengths[0] = 0.0;
        check(
            &format!("scale_columns {n_tokens} {n_out}"),
            &pair,
            &[n_tokens * n_columns],
            bound(4.0, 1, 4.0),
            |open| {
                let device = &open.device;
                let scaled =
                    scale_columns(matrix(&y, n_tokens, device), &vector(&m, device), &vector(&lengths, device), first);
                let scaled = read(scaled);
                let others = |i: &usize| !(first..first + n_columns).contains(&(i % n_out));
                assert!((0..y.len()).filter(others).all(|i| scaled[i] == y[i]) && scaled[first] == y[first] * m[0]);
                vec![scaled]
            },
        );
    }
}

#[test]
fn norms_match_their_references() {
    let Some(pair) = pair() else { return };
    for (n_rows, width) in [(1, 1), (1, 3), (3, 64), (7, 65), (2, 577)] {
        for (kind, offset) in [(NormKind::Rms, 0.0), (NormKind::Layer, 0.0), (NormKind::Layer, 100.0)] {
            let x: Vec<f32> = random(6, n_rows * width, 2.0).iter().map(|x| x + offset).collect();
            let residual = random(7, n_rows * width, 1.0);
            let w = random(8, width, 1.5);
            // Every output is a weighted, normalised value: at most 1.5 sqrt(width). A common offset costs its own rounding.
            let bound = bound(8.0, width, 1.5 * (width as f32).sqrt() * (1.0 + offset));
            check(&format!("norms {n_rows} {width} {kind:?} {offset}"), &pair, &[n_rows * width; 4], bound, |open| {
                let device = &open.device;
                let norm_of = Norm { kind, weight: vector(&w, device), eps: 1e-5 };
                let (x, residual) = (matrix(&x, n_rows, device), matrix(&residual, n_rows, device));
                let (sum, normed) = add_norm(&x, &residual, &norm_of);
                vec![read(norm(&x, &norm_of)), read(norm_add(&x, &norm_of, &residual)), read(sum), read(normed)]
            });
        }
    }
}

/// Heads, norm, clip, window, tokens of the step, and where it begins.
type AttentionCase = (HeadShape, QkNorm, Option<f32>, Option<usize>, usize, usize);

fn attention_cases() -> Vec<AttentionCase> {
    let heads = |n_heads, n_kv_heads, head_dim| HeadShape { n_heads, n_kv_heads, head_dim };
    vec![
        (heads(1, 1, 2), QkNorm::None, None, None, 1, 0),
        (heads(3, 1, 6), QkNorm::Full, None, None, 5, 3),
        (heads(4, 2, 64), QkNorm::Full, Some(0.7), Some(8), 9, 60),
        (heads(2, 2, 34), QkNorm::PerHead, None, Some(1), 2, 17),
        (heads(4, 1, 256), QkNorm::PerHead, Some(1.5), Some(70), 3, 129),
        (heads(9, 3, 64), QkNorm::None, None, None, 1, 200),
        (heads(2, 1, 128), QkNorm::None, None, Some(40), 3, 50),
        (heads(3, 3, 128), QkNorm::None, None, None, 2, 9),
        (heads(8, 2, 64), QkNorm::None, None, Some(5), 2, 20),
        (heads(5, 1, 64), QkNorm::None, None, None, 2, 11),
        (heads(2, 1, 256), QkNorm::None, None, None, 2, 30),
        (heads(1, 1, 64), QkNorm::None, None, None, 3, 0),
        // Keys that are split among workgroups, the last split short or the window in its middle.
        (heads(9, 3, 64), QkNorm::None, None, None, 1, 128),
        (heads(8, 2, 64), QkNorm::Full, None, Some(300), 1, 700),
        (heads(4, 2, 128), QkNorm::None, None, None, 1, 2500),
        (heads(1, 1, 256), QkNorm::None, None, None, 1, 511),
        (heads(12, 1, 20), QkNorm::None, None, None, 1, 400),
        // Tiles of tokens, the last one short.
        (heads(9, 3, 64), QkNorm::None, None, None, 45, 70),
        (heads(2, 2, 128), QkNorm::Full, None, Some(30), 70, 0),
        (heads(2, 1, 256), QkNorm::PerHead, None, None, 17, 5),
        (heads(6, 2, 34), QkNorm::None, None, Some(9), 13, 40),
    ]
}

/// The same for keys and values, and one for each.
fn kv_formats() -> impl Iterator<Item = KvFormats> {
    let mixed = KvFormats { keys: KvFormat::Q8, values: KvFormat::Q4 };
    KvFormat::ALL.into_iter().map(KvFormats::from).chain([mixed])
}

#[test]
fn qk_norm_rope_and_attention_match_their_references() {
    let Some(pair) = pair() else { return };
    for (case, kv) in attention_cases().into_iter().flat_map(|case| kv_formats().map(move |kv| (case, kv))) {
        let (heads, norm, clip, window, n_tokens, position) = case;
        let is_coded = [KvFormat::Q8, KvFormat::Q4].contains(&kv.keys);
        // Keys without norm and rotation are the same bits on both devices, so that none falls to another code.
        let norm = if is_coded { QkNorm::None } else { norm };
        let width = heads.q_width() + 2 * heads.kv_width();
        let n_weights = if norm == QkNorm::PerHead { 2 * heads.head_dim } else { heads.q_width() + heads.kv_width() };
        let weights = random(9, n_weights, 1.5);
        let frequency = |i: usize| if is_coded { 0.0 } else { 1.0 / (i as f32 + 1.0) };
        let inv_freq: Vec<f32> = (0..heads.head_dim / 2).map(frequency).collect();
        let n_slots = window.map_or(position + n_tokens, |window| window + n_tokens - 1);
        let spec = QkSpec { heads, norm, eps: 1e-6, clip };
        let scale = 1.0 / (heads.head_dim as f32).sqrt();
        let families = pair.gpu.families();
        // Rotated values stay below 1.5 sqrt(width); a score's error moves a weight by as much, relatively. A value on the
        // border of two f16 may fall to either.
        let largest = 1.5 * (heads.q_width() as f32).sqrt();
        let flipped = if kv == KvFormat::F16.into() { largest / 1024.0 } else { 0.0 };
        let bound = bound(16.0, heads.q_width(), largest * largest) + flipped;
        let sizes = vec![n_tokens * heads.q_width(); 1 + 2 * families.len()];
        check(&format!("attention {heads:?} {norm:?} {window:?} {kv} at {position}"), &pair, &sizes, bound, |open| {
            let device = &open.device;
            let rope = RopeTable::new(&inv_freq, 1.0, position + n_tokens, device);
            let mut cache = LayerCache::new(n_slots, &heads, kv, device);
            let weights = vector(&weights, device);
            // Every position before this step; one at a time where the ring goes round.
            let n_before = window.map_or(position.max(1), |_| 1);
            for before in (0..position).step_by(n_before) {
                let qkv = matrix(&random(100 + before as u64, n_before * width, 2.0), n_before, device);
                let now = step(open, before, &vec![0; n_before]);
                qk_norm_rope(&qkv, &weights, &rope, &now, &mut cache, &spec);
            }
            let qkv = matrix(&random(10, n_tokens * width, 2.0), n_tokens, device);
            let now = step(open, position, &vec![0; n_tokens]);
            let q = qk_norm_rope(&qkv, &weights, &rope, &now, &mut cache, &spec);
            let spec = |family| AttentionSpec { heads, window, scale, kernels: Kernels::all(family) };
            // Twice each: a launch leaves the counters of its splits as it found them.
            let twice = families.iter().chain(&families);
            let y = twice.map(|family| read(attention(&q, &cache, &now, &spec(*family)))).collect();
            [vec![read(q)], y].concat()
        });
    }
}

#[test]
fn scores_far_below_any_mask_value_keep_their_order() {
    let Some(pair) = pair() else { return };
    let heads = HeadShape { n_heads: 1, n_kv_heads: 1, head_dim: 2 };
    for open in [&pair.gpu, &pair.cpu] {
        let device = &open.device;
        let rope = RopeTable::new(&[0.0], 1.0, 4, device);
        let mut cache = LayerCache::new(4, &heads, KvFormat::F32, device);
        let spec = QkSpec { heads, norm: QkNorm::None, eps: 0.0, clip: None };
        // The first key scores -1e12, the second -2e12: all weight goes to the first, and a mask of -1e4 would leak.
        let rows = [1e6f32, 0.0, -1e6, 0.0, 1.0, 2.0, 1e6, 0.0, -2e6, 0.0, 3.0, 4.0];
        let now = step(open, 0, &[0, 0]);
        let q = qk_norm_rope(&matrix(&rows, 2, device), &vector(&[1.0], device), &rope, &now, &mut cache, &spec);
        let y = read(attention(
            &q,
            &cache,
            &now,
            &AttentionSpec { heads, window: None, scale: 1.0, kernels: open.kernels },
        ));
        assert_eq!(y, [1.0, 2.0, 1.0, 2.0]);
    }
}

#[test]
fn glu_matches_its_reference() {
    let Some(pair) = pair() else { return };
    for (n_tokens, d_ff, scale) in [(1, 1, 1.0), (3, 65, 5.0), (2, 200, 200.0), (1, 7, 3e4)] {
        let x = random(11, n_tokens * 2 * d_ff, scale);
        for activation in [Activation::Silu, Activation::GeluTanh] {
            // exp and tanh of a device are allowed a few ulp, growing with the argument's magnitude up to saturation.
            let bound = bound(16.0, 1, scale * scale * scale.clamp(1.0, 80.0));
            check(&format!("glu {n_tokens} {d_ff} {scale} {activation:?}"), &pair, &[n_tokens * d_ff], bound, |open| {
                vec![read(glu(&matrix(&x, n_tokens, &open.device), activation))]
            });
        }
    }
}

#[test]
fn mixture_of_experts_matches_its_reference() {
    let Some(pair) = pair() else { return };
    for (n_tokens, n_experts, top_k, n_in, n_out, rows_per_part) in
        [(1, 1, 1, 1, 1, 1), (5, 8, 2, 33, 9, 7), (67, 64, 8, 16, 5, 100)]
    {
        let logits = random(12, n_tokens * n_experts, 4.0);
        let (x, w) = (random(13, n_tokens * n_in, 1.0), random(14, n_experts * n_out * n_in, 1.0));
        for renormalise in [false, true] {
            let bound = bound(16.0, n_in, n_in as f32);
            let case = format!("moe {n_tokens} {n_experts} {top_k} {renormalise}");
            check(&case, &pair, &[n_tokens * top_k * n_out, n_tokens * n_out], bound, |open| {
                let device = &open.device;
                let routes = moe_route(&matrix(&logits, n_tokens, device), top_k, renormalise);
                let w = weight(&w, n_in, rows_per_part, open);
                let picked = moe_linear(&matrix(&x, n_tokens, device), &w, &routes, n_experts);
                let again = moe_linear(
                    &picked.clone().reshape([n_tokens * top_k, n_out]),
                    &square(n_out, n_experts, open),
                    &routes,
                    n_experts,
                );
                vec![read(routes.weights.clone()), read(picked), read(moe_combine(&again, &routes))]
            });
        }
    }
}

/// Experts that each multiply by their number plus one: reads a row for each pick.
fn square(width: usize, n_experts: usize, open: &OpenDevice) -> Weight {
    let values: Vec<f32> = (0..n_experts * width * width)
        .map(|i| if i / width % width == i % width { (i / (width * width) + 1) as f32 / n_experts as f32 } else { 0.0 })
        .collect();
    weight(&values, width, 3 * width, open)
}

#[test]
fn equal_router_logits_go_to_the_lower_expert() {
    let Some(pair) = pair() else { return };
    for open in [&pair.gpu, &pair.cpu] {
        let routes = moe_route(&matrix(&[0.5, 2.0, 2.0, 2.0], 1, &open.device), 2, false);
        let experts = routes.experts.into_data().try_into_vec::<u32>().unwrap();
        assert_eq!(experts, [1, 2]);
    }
}

#[test]
fn ceilings_match_their_references() {
    let Some(pair) = pair() else { return };
    for n_values in [4, 252, 4096, 4100, 70_000] {
        let x = random(15, n_values, 3.0);
        // Eight chains near 2; errors of earlier steps shrink by 0.75 each, so four roundings of a chain are left.
        let bound = bound(4.0, 8, 8.0 * 10.0);
        check(&format!("ceilings {n_values}"), &pair, &[n_values; 2], bound, |open| {
            let x = vector(&x, &open.device);
            vec![read(ceiling_copy(&x)), read(ceiling_multiply_add(&x, 5))]
        });
    }
}

#[test]
fn stock_products_agree_with_ours() {
    let Some(pair) = pair() else { return };
    let (x, w) = (random(16, 3 * 64, 1.0), random(17, 20 * 64, 1.0));
    check("stock_matmul", &pair, &[60], bound(4.0, 64, 32.0), |open| {
        let stock = stock_matmul(&matrix(&x, 3, &open.device), &matrix(&w, 20, &open.device));
        let ours = linear(&matrix(&x, 3, &open.device), &weight(&w, 64, 20, open));
        vec![read(stock.clone() - ours), read(stock)]
    });
}
