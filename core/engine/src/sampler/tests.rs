//! Each rule against small cases computed by hand, then what must hold for any logits.

use samara_ops::{Picked, SampleError, log_prob, pick_on_host};

use super::*;

const NEVER: f32 = f32::NEG_INFINITY;

fn sample(
    logits: &[f32],
    limit: usize,
    history: &[u32],
    sampling: &Sampling,
    uniform: f64,
) -> Result<Picked, SampleError> {
    pick_on_host(logits, &choice(sampling, limit, history, uniform))
}

/// Logits whose softmax is `shares`.
fn logits(shares: &[f32]) -> Vec<f32> {
    shares.iter().map(|p| p.ln()).collect()
}

fn warm() -> Sampling {
    Sampling { temperature: 1.0, ..Sampling::default() }
}

/// Draws evenly over [0, 1) and checks which share of the draws each token gets.
fn check_shares(logits: &[f32], history: &[u32], sampling: &Sampling, expected: &[f64]) {
    let n_draws = 2000;
    let mut shares = vec![0.0; logits.len()];
    for draw_idx in 0..n_draws {
        let draw = (f64::from(draw_idx) + 0.5) / f64::from(n_draws);
        let picked = sample(logits, usize::MAX, history, sampling, draw).unwrap();
        shares[picked.token as usize] += 1.0 / f64::from(n_draws);
    }
    for (token, (share, expected)) in shares.iter().zip(expected).enumerate() {
        assert!((share - expected).abs() < 1.5e-3, "token {token}: {share} instead of {expected}: {shares:?}");
    }
}

fn check_greedy(logits: &[f32], history: &[u32], sampling: Sampling, expected: u32) {
    let picked = sample(logits, usize::MAX, history, &sampling, 0.5).unwrap();
    assert_eq!(picked.token, expected, "{logits:?}, history {history:?}, {sampling:?}");
}

#[test]
fn temperature_0_takes_the_highest_and_of_equals_the_first() {
    check_greedy(&[0.0, 3.0, 1.0], &[], Sampling::default(), 1);
    check_greedy(&[0.0, 2.0, 2.0], &[], Sampling::default(), 1);
    check_greedy(&[NEVER, NEVER, -7.0], &[], Sampling::default(), 2);
}

#[test]
fn temperature_divides_the_logits() {
    // Shares 4 : 1 become 2 : 1 at temperature 2 and 16 : 1 at temperature 0.5.
    let logits = logits(&[0.8, 0.2]);
    let at = |temperature| Sampling { temperature, ..Sampling::default() };
    check_shares(&logits, &[], &at(1.0), &[0.8, 0.2]);
    check_shares(&logits, &[], &at(2.0), &[2.0 / 3.0, 1.0 / 3.0]);
    check_shares(&logits, &[], &at(0.5), &[16.0 / 17.0, 1.0 / 17.0]);
    check_shares(&logits, &[], &at(1e-38), &[1.0, 0.0]);
}

#[test]
fn top_k_keeps_ties_with_the_kth() {
    let logits = logits(&[0.1, 0.4, 0.2, 0.2, 0.1]);
    let of = |top_k| Sampling { top_k, ..warm() };
    check_shares(&logits, &[], &of(1), &[0.0, 1.0, 0.0, 0.0, 0.0]);
    check_shares(&logits, &[], &of(2), &[0.0, 0.5, 0.25, 0.25, 0.0]);
    check_shares(&logits, &[], &of(4), &[0.1, 0.4, 0.2, 0.2, 0.1]);
    check_shares(&logits, &[], &of(0), &[0.1, 0.4, 0.2, 0.2, 0.1]);
    check_shares(&logits, &[], &of(99), &[0.1, 0.4, 0.2, 0.2, 0.1]);
}

#[test]
fn top_p_keeps_the_token_that_crosses() {
    let logits = logits(&[0.15, 0.5, 0.05, 0.3]);
    let of = |top_p| Sampling { top_p, ..warm() };
    check_shares(&logits, &[], &of(0.4), &[0.0, 1.0, 0.0, 0.0]);
    check_shares(&logits, &[], &of(0.6), &[0.0, 0.625, 0.0, 0.375]);
    check_shares(&logits, &[], &of(0.9), &[0.15 / 0.95, 0.5 / 0.95, 0.0, 0.3 / 0.95]);
    check_shares(&logits, &[], &of(1e-9), &[0.0, 1.0, 0.0, 0.0]);
    check_shares(&logits, &[], &of(1.0), &[0.15, 0.5, 0.05, 0.3]);
}

#[test]
fn top_p_counts_shares_of_what_top_k_left() {
    // Top-k 2 leaves 0.625 and 0.375; the first alone reaches 0.6.
    let logits = logits(&[0.15, 0.5, 0.05, 0.3]);
    check_shares(&logits, &[], &Sampling { top_k: 2, top_p: 0.6, ..warm() }, &[0.0, 1.0, 0.0, 0.0]);
}

#[test]
fn top_p_keeps_ties_with_the_token_that_crosses() {
    let logits = logits(&[0.2, 0.4, 0.2, 0.2]);
    check_shares(&logits, &[], &Sampling { top_p: 0.5, ..warm() }, &[0.2, 0.4, 0.2, 0.2]);
    check_shares(&logits, &[], &Sampling { top_p: 0.3, ..warm() }, &[0.0, 1.0, 0.0, 0.0]);
}

#[test]
fn min_p_is_relative_to_the_likeliest() {
    let logits = logits(&[0.5, 0.3, 0.15, 0.05]);
    let of = |min_p| Sampling { min_p, ..warm() };
    check_shares(&logits, &[], &of(0.2), &[0.5 / 0.95, 0.3 / 0.95, 0.15 / 0.95, 0.0]);
    check_shares(&logits, &[], &of(0.5), &[0.625, 0.375, 0.0, 0.0]);
    check_shares(&logits, &[], &of(1.0), &[1.0, 0.0, 0.0, 0.0]);
}

#[test]
fn repetition_divides_positive_and_multiplies_negative_logits() {
    let penalty = |repetition_penalty| Sampling { repetition_penalty, ..Sampling::default() };
    check_greedy(&[3.0, 2.0], &[0], penalty(1.4), 0); // 3 / 1.4 = 2.14
    check_greedy(&[3.0, 2.0], &[0], penalty(1.6), 1); // 3 / 1.6 = 1.88
    check_greedy(&[-1.0, -1.5], &[0], penalty(1.4), 0); // -1.4
    check_greedy(&[-1.0, -1.5], &[0], penalty(1.6), 1); // -1.6
    check_greedy(&[3.0, 2.0], &[0, 0, 0], penalty(1.4), 0); // Once, however often it occurs.
}

#[test]
fn presence_counts_once_and_frequency_each_time() {
    let presence = |presence_penalty| Sampling { presence_penalty, ..Sampling::default() };
    let frequency = |frequency_penalty| Sampling { frequency_penalty, ..Sampling::default() };
    check_greedy(&[3.0, 2.0], &[0, 0, 0], presence(0.9), 0);
    check_greedy(&[3.0, 2.0], &[0], presence(1.1), 1);
    check_greedy(&[3.0, 2.0], &[0, 0], frequency(0.4), 0);
    check_greedy(&[3.0, 2.0], &[0, 0, 0], frequency(0.4), 1);
    check_greedy(&[3.0, 2.0], &[1], frequency(-1.1), 1); // A negative penalty is a reward.
}

#[test]
fn penalties_see_only_their_window() {
    let window = |penalty_window| Sampling { presence_penalty: 5.0, penalty_window, ..Sampling::default() };
    check_greedy(&[3.0, 2.0, 1.0], &[0, 1], window(2), 2);
    check_greedy(&[3.0, 2.0, 1.0], &[0, 1], window(1), 0);
    check_greedy(&[3.0, 2.0, 1.0], &[0, 1], window(0), 0);
    check_greedy(&[3.0, 2.0], &[0, 999], window(9), 1); // An id outside the row changes nothing.
}

#[test]
fn logit_bias_is_added_and_can_ban() {
    let bias = |token, by| Sampling { logit_bias: vec![(token, by)], ..Sampling::default() };
    check_greedy(&[3.0, 2.0], &[], bias(1, 1.5), 1);
    check_greedy(&[3.0, 2.0], &[], bias(0, NEVER), 1);
    let twice = Sampling { logit_bias: vec![(1, 0.6), (1, 0.6)], ..Sampling::default() };
    check_greedy(&[3.0, 2.0], &[], twice, 1);
}

#[test]
fn no_setting_makes_a_logit_break_down() {
    let (huge, tiny) = (f32::MAX, f32::MIN_POSITIVE);
    let bias = Sampling { logit_bias: vec![(0, huge), (0, huge), (1, NEVER), (1, huge)], ..Sampling::default() };
    check_greedy(&[huge, 2.0], &[], bias, 0);
    let penalties =
        Sampling { repetition_penalty: tiny, presence_penalty: huge, frequency_penalty: huge, ..Sampling::default() };
    check_greedy(&[3.0, 2.0, NEVER], &[0, 0, 2], penalties, 1);
}

#[test]
fn ids_from_the_limit_on_are_never_chosen() {
    let logits = [1.0, 2.0, 50.0, 60.0];
    let greedy = sample(&logits, 2, &[], &Sampling::default(), 0.0).unwrap();
    assert_eq!(greedy.token, 1);
    for draw in [0.0, 0.3, 0.7, 0.999_999_999_999_999_9] {
        assert!(sample(&logits, 2, &[], &warm(), draw).unwrap().token < 2);
    }
}

#[test]
fn broken_numbers_are_an_error_and_not_a_token() {
    let check = |logits: &[f32]| sample(logits, 2, &[], &Sampling::default(), 0.0).unwrap_err();
    assert_eq!(check(&[0.0, f32::NAN]), SampleError::NotFinite { token: 1 });
    assert_eq!(check(&[f32::INFINITY, 0.0]), SampleError::NotFinite { token: 0 });
    assert_eq!(check(&[0.0, 0.0, f32::NAN]), SampleError::NotFinite { token: 2 }, "beyond the limit too");
    assert_eq!(check(&[NEVER, NEVER, 1.0]), SampleError::NothingLeft);
}

#[test]
fn logprob_is_the_models_own() {
    // Neither temperature, bias nor limit changes it.
    let row = logits(&[0.5, 0.25, 0.25]);
    let odd = Sampling { temperature: 0.3, logit_bias: vec![(1, 9.0)], ..Sampling::default() };
    let picked = sample(&row, 2, &[], &odd, 0.9).unwrap();
    assert_eq!(picked.token, 1);
    assert!((picked.logprob - 0.25f32.ln()).abs() < 1e-6);
}

#[test]
fn log_prob_survives_huge_logits() {
    assert!((log_prob(&[3e38, 3e38], 0) + std::f64::consts::LN_2).abs() < 1e-12);
    assert_eq!(log_prob(&[0.0, NEVER], 1), f64::NEG_INFINITY);
    assert!(log_prob(&[0.0], 1).is_nan());
}

/// Rows of distinct pseudo-random logits.
fn rows() -> impl Iterator<Item = Vec<f32>> {
    (0..50).map(|row| (0..300).map(|id| (uniform(row, id) * 12.0 - 6.0) as f32).collect())
}

#[test]
fn top_k_1_equals_greedy() {
    let one = Sampling { top_k: 1, ..warm() };
    for (row_idx, row) in rows().enumerate() {
        let greedy = sample(&row, usize::MAX, &[], &Sampling::default(), 0.0).unwrap();
        let draw = uniform(99, row_idx as u64);
        assert_eq!(sample(&row, usize::MAX, &[], &one, draw).unwrap(), greedy);
    }
}

#[test]
fn filters_that_keep_all_change_no_choice() {
    let idle = Sampling { top_k: 300, min_p: 1e-12, repetition_penalty: 1.0, ..warm() };
    for (row_idx, row) in rows().enumerate() {
        let draw = uniform(7, row_idx as u64);
        let plain = sample(&row, usize::MAX, &[1, 2], &warm(), draw).unwrap();
        assert_eq!(sample(&row, usize::MAX, &[1, 2], &idle, draw).unwrap(), plain);
    }
}

#[test]
fn seeds_give_the_expected_distribution() {
    // 20 000 draws; a share of p then has a standard deviation of sqrt(p (1 - p) / n) <= 0.0036.
    let row = logits(&[0.1, 0.2, 0.3, 0.4]);
    let mut counts = [0.0_f64; 4];
    for token_idx in 0..20_000 {
        let picked = sample(&row, usize::MAX, &[], &warm(), uniform(42, token_idx)).unwrap();
        counts[picked.token as usize] += 1.0 / 20_000.0;
    }
    for (count, expected) in counts.iter().zip([0.1, 0.2, 0.3, 0.4]) {
        assert!((count - expected).abs() < 5.0 * 0.0036, "{counts:?}");
    }
}

#[test]
fn uniform_is_the_same_everywhere_and_for_ever() {
    // First key stream bytes of ChaCha8 with 64-bit stream numbers, computed apart from this crate.
    let of = |key_stream: u64| (key_stream >> 11) as f64 / 2f64.powi(53);
    assert_eq!(uniform(0, 0), of(0xd6405f892fef003e));
    assert_eq!(uniform(42, 7), of(0x2f88af39a26c4769));
    assert!((0..1000).all(|idx| (0.0..1.0).contains(&uniform(3, idx))));
}
