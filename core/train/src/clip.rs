//! The bound on the gradients, from step to step.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::config::Clip;

/// PyTorch adds this to a norm before it divides by it; so do we, to give the same steps.
const NORM_EPS: f64 = 1e-6;

/// Says by what gradients are multiplied. Part of a checkpoint, since a percentile is one of recent steps.
///
/// The percentile is AutoClip's (arXiv 2007.14469) over a window: the smallest norm that at least so many percent of the
/// recent ones do not exceed, the current one among them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Clipper {
    clip: Clip,
    norms: VecDeque<f64>,
}

impl Clipper {
    pub fn new(clip: Clip) -> Self {
        Self { clip, norms: VecDeque::new() }
    }

    /// The factor, at most 1, for the gradients of a step with this global norm.
    ///
    /// A norm that is not finite is not remembered, and its factor is 1: such a step must be left out.
    pub fn factor(&mut self, norm: f64) -> f64 {
        if !norm.is_finite() {
            return 1.0;
        }
        match self.clip {
            Clip::Off => 1.0,
            Clip::Norm(most) => (most / (norm + NORM_EPS)).min(1.0),
            Clip::Percentile { percentile, window } => {
                self.remember(norm, window);
                let most = self.percentile(percentile);
                if norm > most { most / norm } else { 1.0 }
            }
        }
    }

    fn remember(&mut self, norm: f64, window: usize) {
        self.norms.push_back(norm);
        while self.norms.len() > window.max(1) {
            self.norms.pop_front();
        }
    }

    fn percentile(&self, percentile: f64) -> f64 {
        let mut sorted: Vec<f64> = self.norms.iter().copied().collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let rank = (percentile / 100.0 * sorted.len() as f64).ceil() as usize;
        sorted.get(rank.saturating_sub(1)).copied().unwrap_or(f64::INFINITY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn factors(clip: Clip, norms: &[f64]) -> Vec<f64> {
        let mut clipper = Clipper::new(clip);
        norms.iter().map(|norm| clipper.factor(*norm)).collect()
    }

    #[test]
    fn a_norm_bounds_and_off_does_not() {
        assert_eq!(factors(Clip::Off, &[1e9, 0.0]), [1.0, 1.0]);
        let found = factors(Clip::Norm(2.0), &[0.0, 1.0, 2.0, 8.0, f64::NAN, f64::INFINITY]);
        let expected = [1.0, 1.0, 2.0 / 2.000001, 2.0 / 8.000001, 1.0, 1.0];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_percentile_follows_the_recent_norms() {
        let clip = Clip::Percentile { percentile: 50.0, window: 3 };
        // Recent norms are 4; 4 8; 4 8 2; 8 2 16; 2 16 16; and a norm of nothing leaves no trace.
        assert_eq!(factors(clip, &[4.0, 8.0, 2.0, 16.0, f64::NAN, 16.0]), [1.0, 0.5, 1.0, 0.5, 1.0, 1.0]);
        let clip = Clip::Percentile { percentile: 100.0, window: 3 };
        assert_eq!(factors(clip, &[4.0, 8.0, 0.0, 0.0, 0.0]), [1.0; 5]);
    }

    #[test]
    fn a_clipper_from_a_checkpoint_goes_on_as_before() {
        let mut straight = Clipper::new(Clip::Percentile { percentile: 90.0, window: 8 });
        for step in 0..30 {
            let json = serde_json::to_string(&straight).unwrap();
            let mut resumed: Clipper = serde_json::from_str(&json).unwrap();
            let norm = f64::from(step * 7 % 11) / 3.0;
            assert_eq!(resumed.factor(norm), straight.factor(norm));
        }
    }
}
