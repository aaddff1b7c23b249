//! Changes the logits of single tokens: bias, then penalties.

use crate::operation::{Host, HostMut, Launch, Operation};
use crate::run::{empty, empty_int, float, int, into_float, run, write_words};
use burn::tensor::{Device, Int, Tensor};
use samara_shaders::{PENALISE_F32, PenaliseParams};

/// Logits that one invocation takes.
const RUN: u32 = 16;
/// Words of an entry on the device.
const ENTRY_WORDS: usize = 4;

/// What happens to the logit x of one token: `x + bias`, then divided by `repetition` where above 0 and multiplied
/// elsewhere (CTRL, Keskar et al. 2019), then `- penalty`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adjustment {
    /// Whose logit.
    pub token: u32,
    /// -inf rules the token out; never NaN or +inf.
    pub bias: f32,
    /// Above 0; 1 changes nothing.
    pub repetition: f32,
    /// Taken from the logit.
    pub penalty: f32,
}

/// A list of adjustments in device memory.
#[derive(Debug, Clone)]
pub struct Adjustments(Tensor<1, Int>);

/// The changed row, for a list of n tokens.
#[derive(Debug, Clone, Copy)]
struct Penalise(PenaliseParams);

impl Adjustment {
    /// One that changes nothing yet.
    pub fn none(token: u32) -> Self {
        Self { token, bias: 0.0, repetition: 1.0, penalty: 0.0 }
    }

    /// Sums and products stay finite, so no setting makes a logit NaN or +inf; -inf stays, whatever is taken or added.
    fn of(&self, logit: f32) -> f32 {
        if logit == f32::NEG_INFINITY || self.bias == f32::NEG_INFINITY {
            return f32::NEG_INFINITY;
        }
        let biased = finite(logit + self.bias);
        let repeated = finite(if biased > 0.0 { biased / self.repetition } else { biased * self.repetition });
        finite(repeated - self.penalty)
    }

    fn words(&self) -> [u32; ENTRY_WORDS] {
        [self.token, self.bias.to_bits(), self.repetition.to_bits(), self.penalty.to_bits()]
    }

    fn from_words(&[token, bias, repetition, penalty]: &[u32; ENTRY_WORDS]) -> Self {
        let [bias, repetition, penalty] = [bias, repetition, penalty].map(f32::from_bits);
        Self { token, bias, repetition, penalty }
    }
}

impl Adjustments {
    /// Uploads a list; `None` where it is empty. Do it before a forward pass: an upload closes the launches before it.
    ///
    /// # Panics
    /// If the list is not in ascending order of tokens, each at most once.
    pub fn upload(list: &[Adjustment], device: &Device) -> Option<Self> {
        assert!(list.is_sorted_by(|a, b| a.token < b.token), "penalise: tokens ascend");
        if list.is_empty() {
            return None;
        }
        let words: Vec<u32> = list.iter().flat_map(Adjustment::words).collect();
        let entries = empty_int([words.len()], device);
        Some(Self(write_words(entries, words)))
    }
}

/// The logits after the adjustments; entries beyond the row change nothing.
///
/// # Shapes
/// - logits `[1, V]`
/// - result `[1, V]`
pub fn penalise(logits: &Tensor<2>, adjustments: &Adjustments) -> Tensor<2> {
    let n_entries = adjustments.0.dims()[0] / ENTRY_WORDS;
    let params = PenaliseParams { n_logits: logits.dims()[1] as u32, n_entries: n_entries as u32 };
    let inputs = vec![float(logits), int(&adjustments.0)];
    run(Penalise(params), inputs, vec![into_float(empty(logits.dims(), &logits.device()))]).float()
}

/// Adjusts a row in host memory.
pub(crate) fn adjust(row: &mut [f32], list: impl Iterator<Item = Adjustment>) {
    for adjustment in list {
        if let Some(logit) = row.get_mut(adjustment.token as usize) {
            *logit = adjustment.of(*logit);
        }
    }
}

fn finite(x: f32) -> f32 {
    x.clamp(f32::MIN, f32::MAX)
}

impl Operation for Penalise {
    fn reference(&self, inputs: &[Host<'_>], outputs: &mut [HostMut<'_>]) {
        let adjusted = outputs[0].f32();
        adjusted.copy_from_slice(inputs[0].f32());
        let (entries, _) = inputs[1].u32().as_chunks::<ENTRY_WORDS>();
        adjust(adjusted, entries.iter().map(Adjustment::from_words));
    }

    fn launch(&self) -> Launch {
        let groups = u64::from(self.0.n_logits.div_ceil(64 * RUN));
        Launch { kernel: &PENALISE_F32, groups, params: self.0.words() }
    }
}
