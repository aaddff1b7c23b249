//! Learning rate and tokens of a step, as functions of how far a run is.

use std::f64::consts::PI;

use crate::config::{BatchConfig, ScheduleConfig, ScheduleKind, Warmup};

/// The part of the layers, from the lowest, that `lowest_layers_warmup` holds for.
const LOWEST: f64 = 0.25;

/// The part of the highest learning rate that step `step` of `total` has, both counted from 0.
///
/// It rises in a line over the `W` steps of the warm-up, `(step + 1) / W`, and falls over the others, with
/// `p = (step - W) / (total - W)`, from 1 to the final fraction `f`: `f + (1 - f) (1 + cos(pi p)) / 2`, or `1 - (1 - f) p`.
pub fn learning_rate(step: u64, total: u64, config: &ScheduleConfig) -> f64 {
    let warmup = warmup_steps(total, config.warmup);
    if step < warmup {
        return (step + 1) as f64 / warmup as f64;
    }
    let progress = (step - warmup) as f64 / total.saturating_sub(warmup).max(1) as f64;
    let (progress, end) = (progress.min(1.0), config.final_fraction);
    match config.kind {
        ScheduleKind::Cosine => end + (1.0 - end) * (1.0 + (PI * progress).cos()) / 2.0,
        ScheduleKind::Linear => 1.0 - (1.0 - end) * progress,
        ScheduleKind::Constant => 1.0,
    }
}

/// What the learning rate of a layer is multiplied by: 1 but for the lowest quarter of layers during the warm-up,
/// where it rises in a line from `lowest_layers_warmup` to 1.
pub fn layer_multiplier(layer_idx: usize, n_layers: usize, step: u64, total: u64, config: &ScheduleConfig) -> f64 {
    let warmup = warmup_steps(total, config.warmup);
    let is_low = (layer_idx as f64) < n_layers as f64 * LOWEST;
    if !is_low || step >= warmup {
        return 1.0;
    }
    let least = config.lowest_layers_warmup;
    least + (1.0 - least) * step as f64 / warmup as f64
}

/// Steps over which the rate rises.
pub fn warmup_steps(total: u64, warmup: Warmup) -> u64 {
    match warmup {
        Warmup::Fraction(fraction) => ((total as f64 * fraction).round() as u64).min(total),
        Warmup::Steps(steps) => steps.min(total),
    }
}

/// Passes that make the next step, after so many tokens were seen.
///
/// Without growth that is `accumulate`. With it, it is as many passes as hold `tokens * accumulate` grown by the factor once
/// for each `every_tokens` seen, rounded to the nearest, and no more than `max_tokens`.
pub fn passes(tokens_seen: u64, config: &BatchConfig) -> usize {
    let Some(growth) = config.growth else { return config.accumulate };
    let n_grown = (tokens_seen / growth.every_tokens.max(1)).min(i32::MAX as u64) as i32;
    let grown = config.accumulate as f64 * growth.factor.powi(n_grown);
    let most = (growth.max_tokens / config.tokens.max(1) as u64) as f64;
    (grown.min(most).round() as usize).max(config.accumulate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::GrowthConfig;

    fn check_rates(config: ScheduleConfig, total: u64, expected: &[(u64, f64)]) {
        for (step, expected) in expected {
            let found = learning_rate(*step, total, &config);
            assert!((found - expected).abs() < 1e-12, "step {step} of {config:?}: {found}, expected {expected}");
        }
    }

    #[test]
    fn the_rate_rises_and_falls_as_configured() {
        let cosine = ScheduleConfig::default();
        let halfway = 0.1 + 0.9 / 2.0;
        check_rates(cosine, 100, &[(0, 0.2), (4, 1.0), (5, 1.0), (100, 0.1), (1000, 0.1)]);
        check_rates(
            ScheduleConfig { warmup: Warmup::Steps(10), ..cosine },
            110,
            &[(9, 1.0), (60, halfway), (110, 0.1)],
        );
        let linear = ScheduleConfig { kind: ScheduleKind::Linear, final_fraction: 0.0, ..cosine };
        check_rates(ScheduleConfig { warmup: Warmup::Fraction(0.0), ..linear }, 4, &[(0, 1.0), (1, 0.75), (3, 0.25)]);
        let constant = ScheduleConfig { kind: ScheduleKind::Constant, warmup: Warmup::Steps(2), ..cosine };
        check_rates(constant, 10, &[(0, 0.5), (1, 1.0), (9, 1.0), (99, 1.0)]);
    }

    #[test]
    fn odd_lengths_give_rates_between_zero_and_one() {
        for total in 0..8 {
            for warmup in [Warmup::Fraction(0.0), Warmup::Fraction(0.99), Warmup::Steps(5)] {
                for kind in [ScheduleKind::Cosine, ScheduleKind::Linear, ScheduleKind::Constant] {
                    let config = ScheduleConfig { kind, warmup, ..ScheduleConfig::default() };
                    assert!((0..12).all(|step| (0.0..=1.0).contains(&learning_rate(step, total, &config))));
                }
            }
        }
    }

    #[test]
    fn only_the_lowest_layers_are_gentler_and_only_while_warming_up() {
        let config =
            ScheduleConfig { warmup: Warmup::Steps(4), lowest_layers_warmup: 0.2, ..ScheduleConfig::default() };
        let multipliers =
            |layer_idx| [0, 1, 2, 3, 4, 50].map(|step| layer_multiplier(layer_idx, 8, step, 100, &config));
        assert_eq!(multipliers(1), [0.2, 0.4, 0.6000000000000001, 0.8, 1.0, 1.0]);
        assert_eq!(multipliers(2), [1.0; 6]);
    }

    #[test]
    fn steps_grow_with_the_tokens_seen() {
        let growth = GrowthConfig { factor: 1.5, every_tokens: 1000, max_tokens: 900 };
        let config = BatchConfig { tokens: 100, accumulate: 2, growth: Some(growth) };
        let found = [0, 999, 1000, 2000, 3000, 4000, u64::MAX].map(|seen| passes(seen, &config));
        assert_eq!(found, [2, 2, 3, 5, 7, 9, 9]);
        assert_eq!(passes(u64::MAX, &BatchConfig { growth: None, ..config }), 2);
    }
}
