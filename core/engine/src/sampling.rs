//! The sampling settings and their ranges. Plain data; the rules themselves are operations, [`samara_ops::pick`].

use crate::EngineError;

/// How a token is chosen from its logits. The default is greedy.
///
/// The settings apply in this order: logit bias, penalties, temperature, top-k, top-p, min-p, draw. Devices compute in f32,
/// so a draw within rounding of the border between two tokens may fall to either, device by device.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampling {
    /// Divides the logits; 0 takes the highest logit and draws nothing. Range: finite, >= 0.
    pub temperature: f32,
    /// Keeps the `top_k` highest logits, and any equal to the lowest of them. 0 keeps all.
    pub top_k: usize,
    /// Keeps the fewest most likely tokens whose probabilities reach `top_p`, the one that crosses it included, and any
    /// equal to that one.
    /// Range: (0, 1]; 1 keeps all.
    pub top_p: f32,
    /// Keeps tokens at least `min_p` times as likely as the likeliest. Range: [0, 1]; 0 keeps all.
    pub min_p: f32,
    /// Divides positive and multiplies negative logits of tokens in the window (CTRL, Keskar et al. 2019).
    /// Range: finite, > 0; 1 changes nothing.
    pub repetition_penalty: f32,
    /// Taken once from the logit of each token in the window. Range: finite.
    pub presence_penalty: f32,
    /// Taken from the logit of each token in the window, times its count there. Range: finite.
    pub frequency_penalty: f32,
    /// How many of the last tokens, prompt included, the three penalties look at. `usize::MAX` is all of them.
    pub penalty_window: usize,
    /// Added to the logits of single tokens; -inf bans one. Range: not NaN, below +inf.
    pub logit_bias: Vec<(u32, f32)>,
    /// The same seed, prompt and settings give the same tokens.
    pub seed: u64,
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            temperature: 0.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            repetition_penalty: 1.0,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            penalty_window: usize::MAX,
            logit_bias: Vec::new(),
            seed: 0,
        }
    }
}

impl Sampling {
    /// Checks every setting against its range.
    ///
    /// # Errors
    /// [`EngineError::Setting`] or [`EngineError::UnknownToken`] naming the first value that is outside.
    pub fn check(&self, vocab_size: usize) -> Result<(), EngineError> {
        let finite = f32::is_finite;
        within("temperature", self.temperature, |x| finite(x) && x >= 0.0, "a finite number, 0 or more")?;
        within("top_p", self.top_p, |x| x > 0.0 && x <= 1.0, "more than 0 and at most 1")?;
        within("min_p", self.min_p, |x| (0.0..=1.0).contains(&x), "between 0 and 1")?;
        let penalty = self.repetition_penalty;
        within("repetition_penalty", penalty, |x| finite(x) && x > 0.0, "a finite number above 0")?;
        within("presence_penalty", self.presence_penalty, finite, "a finite number")?;
        within("frequency_penalty", self.frequency_penalty, finite, "a finite number")?;
        self.logit_bias.iter().try_for_each(|&(token, bias)| check_bias(token, bias, vocab_size))
    }
}

fn check_bias(token: u32, bias: f32, vocab_size: usize) -> Result<(), EngineError> {
    if token as usize >= vocab_size {
        let (found, expected) = (token.to_string(), format!("below the vocabulary's {vocab_size} rows"));
        return Err(EngineError::Setting { name: "a token id in logit_bias", found, expected });
    }
    within("a logit_bias value", bias, |x| x < f32::INFINITY, "a number below +inf")
}

fn within(name: &'static str, x: f32, ok: impl Fn(f32) -> bool, expected: &str) -> Result<(), EngineError> {
    if ok(x) {
        return Ok(());
    }
    Err(EngineError::Setting { name, found: x.to_string(), expected: expected.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_refused(name: &str, found: &str, sampling: Sampling) {
        let message = sampling.check(10).unwrap_err().to_string();
        assert!(message.starts_with(&format!("{name} is {found}; it must be ")), "{message}");
    }

    #[test]
    fn settings_outside_their_range_are_named() {
        let ok = Sampling::default;
        check_refused("temperature", "-1", Sampling { temperature: -1.0, ..ok() });
        check_refused("temperature", "NaN", Sampling { temperature: f32::NAN, ..ok() });
        check_refused("temperature", "inf", Sampling { temperature: f32::INFINITY, ..ok() });
        check_refused("top_p", "0", Sampling { top_p: 0.0, ..ok() });
        check_refused("top_p", "1.5", Sampling { top_p: 1.5, ..ok() });
        check_refused("top_p", "NaN", Sampling { top_p: f32::NAN, ..ok() });
        check_refused("min_p", "-0.1", Sampling { min_p: -0.1, ..ok() });
        check_refused("min_p", "2", Sampling { min_p: 2.0, ..ok() });
        check_refused("repetition_penalty", "0", Sampling { repetition_penalty: 0.0, ..ok() });
        check_refused("presence_penalty", "inf", Sampling { presence_penalty: f32::INFINITY, ..ok() });
        check_refused("frequency_penalty", "NaN", Sampling { frequency_penalty: f32::NAN, ..ok() });
        check_refused("a token id in logit_bias", "10", Sampling { logit_bias: vec![(10, 1.0)], ..ok() });
        check_refused("a logit_bias value", "inf", Sampling { logit_bias: vec![(1, f32::INFINITY)], ..ok() });
        check_refused("a logit_bias value", "NaN", Sampling { logit_bias: vec![(1, f32::NAN)], ..ok() });
    }

    #[test]
    fn the_borders_of_every_range_are_allowed() {
        let edge = Sampling { top_p: 1.0, min_p: 1.0, logit_bias: vec![(9, f32::NEG_INFINITY)], ..Sampling::default() };
        edge.check(10).unwrap();
    }
}
