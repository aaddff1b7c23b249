//! Rotary position embedding: the angle per position of each pair of a head's coordinates.
//!
//! Frequencies are computed in the order and the precision of the official implementation (f32
//! after each power), because an angle at position 50 000 multiplies every rounding by 50 000.
//! The rotation itself happens on the device.

use std::f64::consts::TAU;

/// One kind of rotary embedding.
#[derive(Debug, Clone, PartialEq)]
pub struct Rope {
    /// Base of the geometric series of wavelengths.
    pub theta: f32,
    pub scaling: RopeScaling,
}

/// How wavelengths are stretched so that a model reads further than it was first trained on.
#[derive(Debug, Clone, PartialEq)]
pub enum RopeScaling {
    None,
    /// Every wavelength grows by `factor`.
    Linear {
        factor: f32,
    },
    /// Long wavelengths grow, short ones stay, a ramp lies between (Peng et al. 2023).
    Yarn(Yarn),
    /// As Llama 3.1 does it: the ramp is over wavelengths.
    Llama3(Llama3),
    /// Each frequency is divided by its own number, as GGUF files give them; `head_dim / 2` of them.
    Divisors(Vec<f32>),
}

/// Parameters of YaRN.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Yarn {
    pub factor: f32,
    /// Tokens of the first training stage.
    pub original_context: usize,
    /// Turns over the original context from which a frequency stays as it is.
    pub beta_fast: f32,
    /// Turns over the original context up to which a frequency is divided by `factor`.
    pub beta_slow: f32,
    /// Factor on both cosine and sine.
    pub attention_factor: f32,
    /// The ramp's ends are rounded outwards to whole coordinates.
    pub truncate: bool,
}

/// Parameters of Llama 3.1's scaling.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Llama3 {
    pub factor: f32,
    pub low_freq_factor: f32,
    pub high_freq_factor: f32,
    /// Tokens of the first training stage.
    pub original_context: usize,
}

impl Rope {
    pub fn plain(theta: f32) -> Self {
        Self { theta, scaling: RopeScaling::None }
    }

    /// Radians per position for each of the `head_dim / 2` coordinate pairs.
    pub fn inv_freq(&self, head_dim: usize) -> Vec<f32> {
        let plain = plain_inv_freq(self.theta, head_dim);
        match &self.scaling {
            RopeScaling::None => plain,
            RopeScaling::Linear { factor } => plain.iter().map(|f| f / factor).collect(),
            RopeScaling::Yarn(yarn) => yarn.stretch(&plain, self.theta, head_dim),
            RopeScaling::Llama3(llama3) => plain.iter().map(|&f| llama3.stretch(f)).collect(),
            RopeScaling::Divisors(by) => plain.iter().zip(by).map(|(f, d)| f / d).collect(),
        }
    }

    /// Factor on both cosine and sine.
    pub fn attention_factor(&self) -> f32 {
        match &self.scaling {
            RopeScaling::Yarn(yarn) => yarn.attention_factor,
            _ => 1.0,
        }
    }
}

impl Yarn {
    /// The attention factor where a file gives none: `0.1 ln(factor) + 1`.
    pub fn default_attention_factor(factor: f32) -> f32 {
        if factor > 1.0 { (0.1 * f64::from(factor).ln() + 1.0) as f32 } else { 1.0 }
    }

    fn stretch(&self, plain: &[f32], theta: f32, head_dim: usize) -> Vec<f32> {
        let (low, high) = self.ramp_ends(f64::from(theta), head_dim);
        let width = if high > low { high - low } else { 0.001 };
        let stretched = |(i, &inv): (usize, &f32)| {
            let ramp = ((i as f32 - low as f32) / width as f32).clamp(0.0, 1.0);
            let kept = 1.0 - ramp;
            inv / self.factor * (1.0 - kept) + inv * kept
        };
        plain.iter().enumerate().map(stretched).collect()
    }

    /// The coordinate pairs between which the ramp falls from 1 to 0.
    fn ramp_ends(&self, theta: f64, head_dim: usize) -> (f64, f64) {
        let pair_that_turns = |turns: f32| {
            let wavelengths = self.original_context as f64 / (f64::from(turns) * TAU);
            head_dim as f64 * wavelengths.ln() / (2.0 * theta.ln())
        };
        let (low, high) = (pair_that_turns(self.beta_fast), pair_that_turns(self.beta_slow));
        let (low, high) = if self.truncate { (low.floor(), high.ceil()) } else { (low, high) };
        (low.max(0.0), high.min(head_dim as f64 - 1.0))
    }
}

impl Llama3 {
    fn stretch(&self, inv: f32) -> f32 {
        let turns = self.original_context as f32 * inv / TAU as f32;
        if turns < self.low_freq_factor {
            inv / self.factor
        } else if turns > self.high_freq_factor {
            inv
        } else {
            let range = self.high_freq_factor - self.low_freq_factor;
            let kept = (turns - self.low_freq_factor) / range;
            (1.0 - kept) * inv / self.factor + kept * inv
        }
    }
}

/// `theta^(-2i / head_dim)`.
fn plain_inv_freq(theta: f32, head_dim: usize) -> Vec<f32> {
    let power = |pair: usize| {
        let exponent = (2 * pair) as f32 / head_dim as f32;
        f64::from(theta).powf(f64::from(exponent)) as f32
    };
    (0..head_dim / 2).map(|pair| 1.0 / power(pair)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_near(found: f32, expected: f64) {
        let off = (f64::from(found) - expected).abs();
        assert!(off <= 1e-6 * expected.abs(), "{found} is not {expected}");
    }

    fn olmo3() -> Rope {
        let yarn = Yarn {
            factor: 8.0,
            original_context: 8192,
            beta_fast: 32.0,
            beta_slow: 1.0,
            attention_factor: Yarn::default_attention_factor(8.0),
            truncate: true,
        };
        Rope { theta: 5e5, scaling: RopeScaling::Yarn(yarn) }
    }

    #[test]
    fn olmo3_yarn_gives_the_published_frequencies() {
        let inv = olmo3().inv_freq(128);
        assert_eq!(inv.len(), 64);
        for (i, expected) in [(0, 1.0), (1, 0.81461722), (20, 0.01485569), (63, 3.0689259e-7)] {
            check_near_7_digits(inv[i], expected);
        }
        check_near(olmo3().attention_factor(), 1.2079441541679836);
    }

    /// The published numbers have seven or eight digits.
    fn check_near_7_digits(found: f32, expected: f64) {
        assert!((f64::from(found) - expected).abs() <= 4e-7 * expected, "{found} {expected}");
    }

    #[test]
    fn olmo3_yarn_ramp_lies_between_pairs_18_and_35() {
        let (full, plain) = (olmo3().inv_freq(128), Rope::plain(5e5).inv_freq(128));
        let ratios: Vec<f32> = full.iter().zip(&plain).map(|(a, b)| a / b).collect();
        for (i, expected) in [
            (0, 1.0),
            (18, 1.0),
            (19, 1.0 - 0.875 / 17.0),
            (26, 1.0 - 0.875 * 8.0 / 17.0),
            (34, 1.0 - 0.875 * 16.0 / 17.0),
            (35, 0.125),
            (63, 0.125),
        ] {
            check_near(ratios[i], expected);
        }
    }

    #[test]
    fn sliding_layers_turn_without_scaling() {
        let plain = Rope::plain(5e5);
        check_near(plain.inv_freq(128)[63], f64::from(5e5_f32).powf(-126.0 / 128.0));
        assert_eq!(plain.attention_factor(), 1.0);
    }

    #[test]
    fn yarn_with_factor_one_changes_nothing() {
        let mut rope = olmo3();
        if let RopeScaling::Yarn(yarn) = &mut rope.scaling {
            yarn.factor = 1.0;
            yarn.attention_factor = Yarn::default_attention_factor(1.0);
        }
        assert_eq!(rope.attention_factor(), 1.0);
        let plain = Rope::plain(5e5).inv_freq(128);
        for (found, expected) in rope.inv_freq(128).iter().zip(plain) {
            check_near(*found, f64::from(expected));
        }
    }

    #[test]
    fn linear_scaling_divides_every_frequency() {
        let linear = Rope { theta: 1e6, scaling: RopeScaling::Linear { factor: 8.0 } };
        for (found, plain) in linear.inv_freq(256).iter().zip(Rope::plain(1e6).inv_freq(256)) {
            assert_eq!(*found, plain / 8.0);
        }
    }

    #[test]
    fn llama3_keeps_short_waves_and_stretches_long_ones() {
        let llama3 = Llama3 { factor: 32.0, low_freq_factor: 1.0, high_freq_factor: 4.0, original_context: 8192 };
        let rope = Rope { theta: 5e5, scaling: RopeScaling::Llama3(llama3) };
        let (found, plain) = (rope.inv_freq(64), Rope::plain(5e5).inv_freq(64));
        assert_eq!(found[0], plain[0]);
        assert_eq!(found[31], plain[31] / 32.0);
        let between = (0..32).filter(|&i| found[i] < plain[i] && found[i] > plain[i] / 32.0);
        assert!(between.count() >= 2);
    }

    #[test]
    fn divisors_divide_pair_by_pair() {
        let rope = Rope { theta: 1e4, scaling: RopeScaling::Divisors(vec![1.0, 4.0]) };
        let plain = Rope::plain(1e4).inv_freq(4);
        assert_eq!(rope.inv_freq(4), vec![plain[0], plain[1] / 4.0]);
    }
}
