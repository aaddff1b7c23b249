//! One token from one row of logits: what may be asked, the launches that answer it, and the eight bytes that come back.

use crate::OpsError;
use crate::error::SampleError;
use crate::faults::Faults;
use crate::greedy::{greedy, likeliest};
use crate::penalise::{Adjustment, Adjustments, adjust, penalise};
use crate::readback::Reading;
use crate::sample::{Draw, drawn, sample};
use crate::step::Step;
use burn::tensor::{Int, Tensor};

/// How one token is chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// Changes of single logits, in ascending order of tokens, each at most once.
    pub adjustments: Vec<Adjustment>,
    /// Tokens from here on are never chosen: rows that only pad the vocabulary.
    pub limit: usize,
    /// `None` takes the highest logit.
    pub draw: Option<Draw>,
}

/// A chosen token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Picked {
    /// Its id.
    pub token: u32,
    /// The model's own log-probability of it: the softmax over every row, before any setting.
    pub logprob: f32,
}

/// In place of a token: the second word is the first logit that is NaN or +inf.
const NOT_FINITE: u32 = u32::MAX;
/// In place of a token: every one is ruled out.
const NOTHING_LEFT: u32 = u32::MAX - 1;

/// Launches a choice. `adjustments` are those of `choice`, uploaded before the forward pass that gave `logits`; `step` is
/// that of the pass and was set with the choice's draw; it gets the token as its first id, for a [`Step::follow`].
///
/// # Shapes
/// - logits `[1, V]`
/// - result `[2]`, for [`Picking`]
pub fn pick(logits: &Tensor<2>, adjustments: Option<&Adjustments>, step: &mut Step, choice: &Choice) -> Tensor<1, Int> {
    let adjusted = adjustments.map_or_else(|| logits.clone(), |list| penalise(logits, list));
    let likeliest = greedy(logits, &adjusted, choice.limit, step);
    match &choice.draw {
        Some(draw) => sample(logits, &adjusted, &likeliest, step, choice.limit, draw),
        None => likeliest,
    }
}

/// A choice on its way to the host: eight bytes.
#[derive(Debug)]
pub struct Picking(Reading);

impl Picking {
    /// Asks for what [`pick`] gave, as it is before anything that is launched later.
    pub fn begin(picked: Tensor<1, Int>, faults: &Faults) -> Self {
        Self(Reading::begin(picked, faults))
    }

    /// Waits for it.
    ///
    /// # Errors
    /// The device gave no answer, or no token could be chosen from what it computed.
    pub async fn wait(self) -> Result<Result<Picked, SampleError>, OpsError> {
        Ok(Picked::from_words(&self.0.wait().await?))
    }
}

/// [`pick`] on a row in host memory: the same rules, in f64.
///
/// # Errors
/// A logit that is NaN or +inf, or no token left to choose.
pub fn pick_on_host(logits: &[f32], choice: &Choice) -> Result<Picked, SampleError> {
    let mut adjusted = logits.to_vec();
    adjust(&mut adjusted, choice.adjustments.iter().copied());
    let likeliest = likeliest(logits, &adjusted, choice.limit)?;
    match &choice.draw {
        Some(draw) => {
            let draw = Draw { uniform: f64::from(choice.uniform()), ..*draw };
            Ok(drawn(logits, &adjusted, likeliest, choice.limit, &draw))
        }
        None => Ok(likeliest),
    }
}

impl Choice {
    /// Where in `[0, 1)` a draw falls, as [`Step::set`] takes it; 0 where nothing is drawn.
    pub fn uniform(&self) -> f32 {
        self.draw.map_or(0.0, |draw| (draw.uniform as f32).min(1.0 - f32::EPSILON / 2.0))
    }

    /// Whether it differs from `other` in nothing but where a draw falls, so that the same launches serve both.
    pub fn is_like(&self, other: &Self) -> bool {
        let still = |draw: Option<Draw>| draw.map(|draw| Draw { uniform: 0.0, ..draw });
        self.limit == other.limit && still(self.draw) == still(other.draw) && self.adjustments == other.adjustments
    }
}

impl Picked {
    pub(crate) fn words(picked: Result<Self, SampleError>) -> [u32; 2] {
        match picked {
            Ok(Self { token, logprob }) => [token, logprob.to_bits()],
            Err(SampleError::NotFinite { token }) => [NOT_FINITE, token as u32],
            Err(SampleError::NothingLeft) => [NOTHING_LEFT, 0],
        }
    }

    pub(crate) fn from_words(words: &[u32]) -> Result<Self, SampleError> {
        match *words {
            [NOT_FINITE, token] => Err(SampleError::NotFinite { token: token as usize }),
            [token, logprob] if token < NOTHING_LEFT => Ok(Self { token, logprob: f32::from_bits(logprob) }),
            _ => Err(SampleError::NothingLeft),
        }
    }
}

/// Packs of four logits, or of one where that does not divide the row.
pub(crate) fn packs(n_logits: usize) -> u32 {
    let pack = if n_logits.is_multiple_of(4) { 4 } else { 1 };
    (n_logits / pack) as u32
}
