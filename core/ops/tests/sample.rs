//! Choosing a token on the device against the same choice in plain Rust and f64.
//!
//! A device computes in f32: where a draw lies within [`DRAW`] of the border between two shares, either is right. All else
//! must be equal, and a log-probability within a bound that counts the roundings of its sum.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod pair;

use burn::tensor::{Int, Tensor};
use pair::{Pair, matrix, pair, poison, random};
use samara_ops::device::OpenDevice;
use samara_ops::*;

/// How far from the border between two shares a draw must lie to have one answer.
const DRAW: f64 = 1e-5;
const NEVER: f32 = f32::NEG_INFINITY;
/// Single, odd, one below, at and above a workgroup of scalars, and as long as vocabularies are.
const SIZES: [usize; 9] = [1, 3, 4, 255, 256, 257, 1028, 50_257, 262_144];

fn greedy_below(limit: usize) -> Choice {
    Choice { adjustments: Vec::new(), limit, draw: None }
}

fn plain() -> Draw {
    Draw { temperature: 1.0, top_k: 0, top_p: 1.0, min_p: 0.0, uniform: 0.5 }
}

fn drawing(draw: Draw) -> Choice {
    Choice { draw: Some(draw), ..greedy_below(usize::MAX) }
}

/// Filters and temperatures, alone and together, from what keeps all to what keeps one. The shares of a row are not to
/// reach a `top_p` to the last bit, not even where heat makes them equal: either answer would be right.
fn draws() -> Vec<Draw> {
    vec![
        plain(),
        Draw { temperature: 0.7, top_k: 40, top_p: 0.95, min_p: 0.05, ..plain() },
        Draw { top_k: 1, ..plain() },
        Draw { top_k: 200, ..plain() },
        Draw { top_k: usize::MAX, ..plain() },
        Draw { top_p: 1e-6, ..plain() },
        Draw { top_p: 0.5, ..plain() },
        Draw { top_p: 0.999, temperature: 1.5, ..plain() },
        Draw { min_p: 0.1, ..plain() },
        Draw { min_p: 1.0, ..plain() },
        Draw { temperature: 1e30, ..plain() },
        Draw { temperature: 1e30, top_k: 1000, top_p: 0.6137, ..plain() },
        Draw { temperature: 1e-30, top_p: 0.9, min_p: 0.5, ..plain() },
        Draw { temperature: 1e-40, ..plain() },
    ]
}

fn on_device(open: &OpenDevice, logits: &[f32], choice: &Choice) -> Result<Picked, SampleError> {
    poison(&open.device, &[logits.len(), 2]);
    let adjustments = Adjustments::upload(&choice.adjustments, &open.device);
    let logits = matrix(logits, 1, &open.device);
    let mut step = drawing_step(open, choice);
    read_picked(open, pick(&logits, adjustments.as_ref(), &mut step, choice))
}

fn read_picked(open: &OpenDevice, picked: Tensor<1, Int>) -> Result<Picked, SampleError> {
    pollster::block_on(Picking::begin(picked, &open.faults).wait()).unwrap()
}

/// A step that brings the draw of `choice`.
fn drawing_step(open: &OpenDevice, choice: &Choice) -> Step {
    let mut step = Step::new(1, &open.device);
    step.set(0, &[0], choice.uniform());
    step
}

/// What the reference picks for draws a little lower and a little higher.
fn neighbours(logits: &[f32], choice: &Choice) -> (u32, u32) {
    let at = |by: f64| {
        let draw = choice.draw.map(|draw| Draw { uniform: (draw.uniform + by).clamp(0.0, 1.0 - f64::EPSILON), ..draw });
        pick_on_host(logits, &Choice { draw, ..choice.clone() }).unwrap().token
    };
    (at(-DRAW), at(DRAW))
}

/// A log-probability is one sum of n exponentials, each rounded, its logarithm, and two differences.
fn logprob_bound(n: usize, logprob: f64) -> f64 {
    f64::from(f32::EPSILON) * (16.0 + 2.0 * (n as f64).sqrt() + 4.0 * logprob.abs())
}

/// Both devices against the reference.
fn check(case: &str, pair: &Pair, logits: &[f32], choice: &Choice) {
    let expected = pick_on_host(logits, choice);
    assert_eq!(on_device(&pair.cpu, logits, choice), expected, "{case}: the operation's reference");
    match (on_device(&pair.gpu, logits, choice), expected) {
        (Ok(found), Ok(_)) => {
            let (low, high) = neighbours(logits, choice);
            assert!((low..=high).contains(&found.token), "{case}: {found:?}, not {low} to {high}: {choice:?}");
            let logprob = log_prob(logits, found.token);
            let off = (f64::from(found.logprob) - logprob).abs();
            assert!(off <= logprob_bound(logits.len(), logprob), "{case}: {found:?}, not {logprob}: {choice:?}");
        }
        (found, expected) => assert_eq!(found, expected, "{case}: {choice:?}"),
    }
}

#[test]
fn greedy_matches_its_reference() {
    let Some(pair) = pair() else { return };
    for n in SIZES {
        for scale in [1.0, 30.0, 1e4, 1e38] {
            let logits = random(1, n, scale);
            for limit in [1, n.div_ceil(2), n, usize::MAX] {
                check(&format!("greedy {n} x {scale}, limit {limit}"), &pair, &logits, &greedy_below(limit));
            }
        }
    }
}

#[test]
fn equal_logits_rank_by_id() {
    let Some(pair) = pair() else { return };
    for n in SIZES {
        for value in [0.0, -7.5, f32::MIN, f32::MAX] {
            let logits = vec![value; n];
            check(&format!("{n} times {value}"), &pair, &logits, &greedy_below(n));
            assert_eq!(on_device(&pair.gpu, &logits, &greedy_below(n)).unwrap().token, 0);
            check(&format!("{n} times {value}, drawn"), &pair, &logits, &drawing(plain()));
        }
    }
}

#[test]
fn rows_of_mostly_never_leave_the_rest() {
    let Some(pair) = pair() else { return };
    for n in SIZES {
        for step in [1, 7, 300] {
            let logit = |id: usize| if id.is_multiple_of(step) { (id % 11) as f32 } else { NEVER };
            let logits: Vec<f32> = (0..n).rev().map(logit).collect();
            check(&format!("{n}, every {step}th"), &pair, &logits, &greedy_below(n));
            for draw in draws() {
                check(&format!("{n}, every {step}th"), &pair, &logits, &drawing(draw));
            }
        }
    }
}

#[test]
fn the_first_broken_logit_is_reported() {
    let Some(pair) = pair() else { return };
    for n in SIZES {
        for broken in [f32::NAN, -f32::NAN, f32::INFINITY] {
            for (first, last) in [(0, n - 1), (n / 2, n - 1), (n - 1, n - 1)] {
                let mut logits = random(2, n, 5.0);
                (logits[first], logits[last]) = (broken, broken);
                // A limit does not hide it, and neither does a bias.
                let banned = Adjustment { bias: NEVER, ..Adjustment::none(first as u32) };
                for choice in [
                    greedy_below(1),
                    drawing(plain()),
                    Choice { adjustments: vec![banned], ..drawing(Draw { top_k: 2, ..plain() }) },
                ] {
                    check(&format!("{n}, {broken} at {first}"), &pair, &logits, &choice);
                    let found = on_device(&pair.gpu, &logits, &choice);
                    assert_eq!(found, Err(SampleError::NotFinite { token: first }));
                }
            }
        }
    }
}

#[test]
fn nothing_left_is_reported() {
    let Some(pair) = pair() else { return };
    let banned = vec![Adjustment { bias: NEVER, ..Adjustment::none(2) }];
    let cases = [
        (vec![NEVER; 300], greedy_below(300)),
        (vec![NEVER; 301], drawing(Draw { top_p: 0.5, ..plain() })),
        (vec![NEVER, NEVER, 1.0, 2.0], greedy_below(2)),
        (vec![NEVER, NEVER, 1.0], Choice { adjustments: banned, ..drawing(plain()) }),
    ];
    for (logits, choice) in cases {
        check("nothing left", &pair, &logits, &choice);
        assert_eq!(on_device(&pair.gpu, &logits, &choice), Err(SampleError::NothingLeft));
    }
}

#[test]
fn sample_matches_its_reference() {
    let Some(pair) = pair() else { return };
    for n in SIZES {
        let logits = random(3, n, 12.0);
        for draw in draws() {
            for uniform in [0.0, 0.123, 0.5, 0.9, 1.0 - f64::EPSILON / 2.0] {
                let choice = Choice { limit: n.max(2) - 1, ..drawing(Draw { uniform, ..draw }) };
                check(&format!("sample {n}"), &pair, &logits, &choice);
            }
        }
    }
}

#[test]
fn a_grid_of_draws_falls_on_the_same_tokens() {
    let Some(pair) = pair() else { return };
    for (n, scale) in [(7, 1.5), (64, 3.0), (1000, 6.0)] {
        let logits = random(4, n, scale);
        for draw in draws() {
            for draw_idx in 0..128 {
                let uniform = (f64::from(draw_idx) + 0.5) / 128.0;
                check(&format!("grid {n}"), &pair, &logits, &drawing(Draw { uniform, ..draw }));
            }
        }
    }
}

#[test]
fn what_equals_the_border_stays() {
    let Some(pair) = pair() else { return };
    // Shares 1/9, 2/9, 4/9, 2/9: top-k 2 and top-p 0.5 reach down to one of two equal logits.
    let logits = [1.0f32, 2.0, 4.0, 2.0].map(f32::ln);
    for draw in [Draw { top_k: 2, ..plain() }, Draw { top_p: 0.5, ..plain() }, Draw { min_p: 0.5, ..plain() }] {
        let token = |uniform| on_device(&pair.gpu, &logits, &drawing(Draw { uniform, ..draw })).unwrap().token;
        assert_eq!([0.0, 0.2, 0.3, 0.7, 0.8, 0.99].map(token), [1, 1, 2, 2, 3, 3], "{draw:?}");
    }
}

#[test]
fn penalise_matches_its_reference() {
    let Some(pair) = pair() else { return };
    for n in [1, 3, 16, 17, 257, 50_257] {
        let mut logits = random(5, n, 9.0);
        logits[n / 3] = NEVER;
        for stride in [1, 5, 999] {
            let biases = random(6, n, 4.0);
            // The list goes on beyond the row, where it changes nothing.
            let mut list: Vec<Adjustment> = (0..n + 2)
                .step_by(stride)
                .map(|id| Adjustment {
                    token: id as u32,
                    bias: biases[id % n],
                    repetition: 0.5 + (id % 5) as f32 * 0.4,
                    penalty: (id % 3) as f32 * 0.7 - 0.5,
                })
                .collect();
            list[0].bias = NEVER;
            let on = |open: &OpenDevice| {
                poison(&open.device, &[n]);
                let list = Adjustments::upload(&list, &open.device).unwrap();
                pollster::block_on(read_f32(penalise(&matrix(&logits, 1, &open.device), &list))).unwrap()
            };
            for (token, (gpu, cpu)) in on(&pair.gpu).into_iter().zip(on(&pair.cpu)).enumerate() {
                // A sum below 13, then one division of 2.5 ulp by no less than 0.5, then a difference.
                let close = (gpu - cpu).abs() <= 4.0 * f32::EPSILON * 26.0;
                assert!(gpu == cpu || close, "{n}, every {stride}th, token {token}: gpu {gpu}, cpu {cpu}");
            }
        }
    }
}

#[test]
fn adjusted_rows_are_what_is_chosen_from() {
    let Some(pair) = pair() else { return };
    let adjustment = |token, bias, repetition, penalty| Adjustment { token, bias, repetition, penalty };
    let extremes = vec![
        adjustment(0, f32::MAX, f32::MIN_POSITIVE, f32::MIN),
        adjustment(1, NEVER, 1.0, f32::MIN),
        adjustment(2, f32::MIN, 2.0, f32::INFINITY),
        adjustment(9_999_999, 1.0, 1.0, 1.0),
    ];
    for n in [3, 4, 300, 50_257] {
        let logits = random(7, n, 6.0);
        let soft: Vec<_> = (0..n as u32).step_by(3).map(|token| adjustment(token, 0.5, 1.3, 0.25)).collect();
        for adjustments in [extremes.clone(), soft] {
            check(&format!("adjusted {n}"), &pair, &logits, &Choice { adjustments, ..greedy_below(n) });
        }
        for draw in draws() {
            let adjustments = vec![adjustment(1, 4.0, 1.1, 0.5), adjustment(2, NEVER, 1.0, 0.0)];
            check(&format!("adjusted {n}, drawn"), &pair, &logits, &Choice { adjustments, ..drawing(draw) });
        }
    }
}

#[test]
fn a_choice_brings_eight_bytes_back() {
    let Some(pair) = pair() else { return };
    let list = vec![Adjustment { bias: 1.0, ..Adjustment::none(3) }];
    let cases = [(greedy_below(9), 1), (drawing(plain()), 2), (Choice { adjustments: list, ..drawing(plain()) }, 3)];
    let logits = matrix(&random(8, 1000, 1.0), 1, &pair.gpu.device);
    for (choice, launches) in cases {
        let adjustments = Adjustments::upload(&choice.adjustments, &pair.gpu.device);
        let mut step = drawing_step(&pair.gpu, &choice);
        let before = counts::read();
        read_picked(&pair.gpu, pick(&logits, adjustments.as_ref(), &mut step, &choice)).unwrap();
        let spent = counts::read() - before;
        assert_eq!((spent.launches, spent.readbacks, spent.readback_bytes), (launches, 1, 8), "{choice:?}");
    }
}

/// Its buffer stays mapped until somebody takes what came. Used again before, it would be a fault of the device.
#[test]
fn a_choice_that_nobody_waits_for_harms_no_other() {
    let Some(pair) = pair() else { return };
    for open in [&pair.gpu, &pair.cpu] {
        let logits = matrix(&random(9, 1000, 1.0), 1, &open.device);
        let (choice, mut step) = (greedy_below(1000), Step::new(1, &open.device));
        let mut pick = || pick(&logits, None, &mut step, &choice);
        let expected = read_picked(open, pick());
        for _ in 0..3 {
            drop(Picking::begin(pick(), &open.faults));
            assert_eq!(read_picked(open, pick()), expected);
        }
    }
}

/// A recording writes the same buffer each time; what was asked for before it runs again is what it held before.
#[test]
fn choices_that_are_waited_for_late_are_those_of_their_draws() {
    let Some(pair) = pair() else { return };
    let OpenDevice { device, faults, .. } = &pair.gpu;
    let logits = matrix(&[0.0; 2], 1, device);
    let choice = drawing(plain());
    let mut step = drawing_step(&pair.gpu, &choice);
    let recording = record(device, || pick(&logits, None, &mut step, &choice)).unwrap();
    let pickings = [0.2, 0.8, 0.3, 0.7, 0.9].map(|uniform| {
        step.follow(0, uniform);
        Picking::begin(recording.replay(), faults)
    });
    let tokens = pickings.map(|picking| pollster::block_on(picking.wait()).unwrap().unwrap().token);
    assert_eq!(tokens, [0, 1, 0, 1, 1]);
}

/// The next step's embedding looks it up; 0 where there is no token.
#[test]
fn a_choice_leaves_its_token_for_the_step_that_follows() {
    let Some(pair) = pair() else { return };
    let row = [0.0, 1.0, 2.0];
    let drawn = || Some(Draw { top_k: 2, uniform: 0.1, ..plain() });
    let (broken, never) = ([1.0, f32::NAN, 0.0], [NEVER; 3]);
    let cases = [(row, None, 2), (row, drawn(), 1), (broken, None, 0), (broken, drawn(), 0), (never, drawn(), 0)];
    for open in [&pair.gpu, &pair.cpu] {
        let table = Weight::dense(matrix(&[10.0, 11.0, 12.0], 3, &open.device), open.kernels);
        for (logits, draw, expected) in cases {
            let choice = Choice { draw, ..greedy_below(3) };
            let mut step = Step::new(2, &open.device);
            step.set(5, &[1, 1], choice.uniform());
            drop(pick(&matrix(&logits, 1, &open.device), None, &mut step, &choice));
            step.follow(7, 0.5);
            let looked_up = pollster::block_on(read_f32(embed(&step, &table, 1.0))).unwrap();
            assert_eq!(looked_up, [10.0 + expected as f32], "{choice:?}");
        }
    }
}
