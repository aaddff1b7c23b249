//! Steps that are left out because their loss or gradient is far above the recent ones.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::config::OutlierConfig;

/// Losses of equal batches differ by at least about a thousandth, so a smaller spread is an accident of few steps.
const LEAST_SPREAD: f64 = 1e-3;

/// What is to become of a step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Keep,
    /// Loss or gradient norm is no number or infinite.
    NotFinite,
    /// The loss is above this limit.
    Loss {
        limit: f64,
    },
    /// The gradient norm is above this limit.
    GradientNorm {
        limit: f64,
    },
}

/// Judges steps by the recent ones. Part of a checkpoint.
///
/// The limit is mean + sigma standard deviations over the window, as in OLMo-core's optimizers that skip steps, from half
/// a window of steps on. An outlier is remembered as no more than its limit: one cannot hide the next, yet a
/// lasting change is accepted in time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutlierSteps {
    config: OutlierConfig,
    losses: VecDeque<f64>,
    norms: VecDeque<f64>,
}

impl OutlierSteps {
    pub fn new(config: OutlierConfig) -> Self {
        Self { config, losses: VecDeque::new(), norms: VecDeque::new() }
    }

    /// What is to become of a step with this loss and this norm of all gradients. A step that is not finite is not remembered.
    pub fn judge(&mut self, loss: f64, norm: f64) -> Verdict {
        if !(loss.is_finite() && norm.is_finite()) {
            return Verdict::NotFinite;
        }
        let loss_limit = remember(&mut self.losses, loss, &self.config);
        let norm_limit = remember(&mut self.norms, norm, &self.config);
        match (loss_limit, norm_limit) {
            (Some(limit), _) if loss > limit => Verdict::Loss { limit },
            (_, Some(limit)) if norm > limit => Verdict::GradientNorm { limit },
            _ => Verdict::Keep,
        }
    }
}

/// The limit by what was known before this value, which is then known too.
fn remember(recent: &mut VecDeque<f64>, value: f64, config: &OutlierConfig) -> Option<f64> {
    let limit = limit(recent, config);
    recent.push_back(limit.map_or(value, |limit| value.min(limit)));
    while recent.len() > config.window.max(1) {
        recent.pop_front();
    }
    limit
}

fn limit(recent: &VecDeque<f64>, config: &OutlierConfig) -> Option<f64> {
    if recent.len() < (config.window / 2).max(2) {
        return None;
    }
    let n_recent = recent.len() as f64;
    let mean = recent.iter().sum::<f64>() / n_recent;
    let variance = recent.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n_recent - 1.0);
    let spread = variance.sqrt().max(mean.abs() * LEAST_SPREAD);
    Some(mean + config.sigma * spread)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: OutlierConfig = OutlierConfig { window: 16, sigma: 6.0 };

    /// Losses between 2 and 2.4 and norms between 1 and 1.4.
    fn ordinary(step: u32) -> (f64, f64) {
        (2.0 + f64::from(step * 7 % 5) / 10.0, 1.0 + f64::from(step * 3 % 5) / 10.0)
    }

    fn settled() -> OutlierSteps {
        let mut steps = OutlierSteps::new(CONFIG);
        for (loss, norm) in (0..40).map(ordinary) {
            assert_eq!(steps.judge(loss, norm), Verdict::Keep);
        }
        steps
    }

    #[test]
    fn a_step_far_above_the_recent_ones_is_left_out() {
        let mut steps = settled();
        assert!(matches!(steps.judge(9.0, 1.2), Verdict::Loss { limit } if (2.5..4.0).contains(&limit)));
        assert!(matches!(steps.judge(2.2, 50.0), Verdict::GradientNorm { limit } if (1.5..3.0).contains(&limit)));
        assert_eq!(steps.judge(0.1, 0.0), Verdict::Keep);
        assert_eq!(steps.judge(2.1, 1.1), Verdict::Keep);
    }

    #[test]
    fn what_is_not_finite_leaves_no_trace() {
        let mut steps = settled();
        let before = steps.clone();
        for (loss, norm) in [(f64::NAN, 1.0), (f64::INFINITY, 1.0), (2.0, f64::NAN), (2.0, f64::NEG_INFINITY)] {
            assert_eq!(steps.judge(loss, norm), Verdict::NotFinite);
        }
        assert_eq!(steps, before);
    }

    #[test]
    fn one_outlier_does_not_hide_the_next() {
        let mut steps = settled();
        for _ in 0..3 {
            assert!(matches!(steps.judge(1e30, 1.0), Verdict::Loss { .. }));
        }
    }

    #[test]
    fn a_lasting_change_is_accepted_in_time() {
        let mut steps = settled();
        let n_left_out = (0..40).filter(|step| steps.judge(6.0 + ordinary(*step).0, 1.0) != Verdict::Keep).count();
        assert!((1..20).contains(&n_left_out), "{n_left_out}");
        let mut steps = OutlierSteps::new(CONFIG);
        for _ in 0..20 {
            steps.judge(1.0, 1.0);
        }
        let n_left_out = (0..200).filter(|_| steps.judge(2.0, 1.0) != Verdict::Keep).count();
        assert!((1..100).contains(&n_left_out), "{n_left_out}");
    }

    #[test]
    fn the_first_half_window_is_never_judged() {
        let mut steps = OutlierSteps::new(CONFIG);
        assert!((0..8).all(|step| steps.judge(10f64.powi(step), 1.0) == Verdict::Keep));
    }

    #[test]
    fn a_checkpoint_keeps_what_was_seen() {
        let steps = settled();
        let json = serde_json::to_string(&steps).unwrap();
        assert_eq!(serde_json::from_str::<OutlierSteps>(&json).unwrap(), steps);
    }
}
