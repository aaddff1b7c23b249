//! One pass over some documents: the loss of every token, and the gradient of every trained matrix.
//!
//! Burn's tape records one segment of layers at a time, last segment first. What lies between segments is kept from a pass
//! without a tape, so the activations of a segment alone are in memory (Chen et al. 2016); with one segment nothing is
//! computed twice.

use std::ops::Range;

use burn::tensor::Tensor;
use samara_model::{Decoder, Stream, Trunk};
use samara_ops::{Documents, Improbable, LossSpec, skip_improbable};

use crate::Learner;

/// How a pass is computed.
#[derive(Debug, Clone, Copy)]
pub struct PassSpec {
    /// Layers whose activations are in memory at once; none for all of them.
    pub recompute_every: Option<usize>,
    /// Tokens whose logits are in memory at once.
    pub loss_chunk_tokens: usize,
    /// What every token's loss counts in the gradient: one over the labels of all passes of the step.
    pub scale: f32,
    /// What dropout falls by.
    pub seed: u64,
    /// Documents that are left out.
    pub skip: Option<Improbable>,
}

/// What a pass gives.
#[derive(Debug)]
pub struct Pass {
    /// `[T]`: each token's loss, 0 where it has no label.
    pub losses: Tensor<1>,
    /// Of each trained matrix, in the learner's order; none where the loss does not depend on it.
    pub gradients: Vec<Option<Tensor<2>>>,
}

/// The gradients of `scale` times the summed loss.
pub fn pass(learner: &Learner, documents: &Documents, trunk: &Trunk, spec: &PassSpec) -> Pass {
    let leaves: Vec<Tensor<2>> = learner.values().iter().map(|value| leaf(value.clone())).collect();
    let frozen = learner.with(learner.values(), Some(spec.seed));
    let taped = learner.with(&leaves, Some(spec.seed));
    let segments = segments(learner.config().n_layers, spec.recompute_every);
    let borders = borders(&frozen, &segments, documents, trunk);

    let mut gradients: Vec<Option<Tensor<2>>> = vec![None; leaves.len()];
    let mut losses = None;
    let mut slope = Slope::default();
    for (segment, border) in segments.into_iter().zip(borders).rev() {
        // The embeddings are on the tape themselves, because their table may be trained.
        let start = border.map(|state| Stream { residual: leaf(state.residual), input: leaf(state.input) });
        let entered = start.clone().unwrap_or_else(|| taped.enter(documents));
        let end = taped.pass(segment, entered, documents, trunk);
        if losses.is_none() {
            let (of_tokens, of_hidden) = head(learner, &frozen, &end, documents, spec, &mut gradients);
            losses = Some(of_tokens);
            slope.input = Some(of_hidden);
        }
        let Some(sum) = slope.along(&end) else { break };
        let mut found = sum.backward();
        for (leaf, gradient) in leaves.iter().zip(&mut gradients) {
            add(gradient, leaf.grad_remove(&mut found));
        }
        let Some(start) = start else { break };
        slope = Slope { residual: start.residual.grad_remove(&mut found), input: start.input.grad_remove(&mut found) };
    }
    let losses = losses.unwrap_or_else(|| Tensor::zeros([documents.n_tokens()], learner.device()));
    Pass { losses, gradients }
}

/// The gradient with respect to what lies between two segments.
#[derive(Debug, Default)]
struct Slope {
    residual: Option<Tensor<2>>,
    input: Option<Tensor<2>>,
}

impl Slope {
    /// A sum whose gradient with respect to `end` is this one; none where nothing before `end` is trained.
    fn along(&self, end: &Stream) -> Option<Tensor<1>> {
        let terms = [(&end.residual, &self.residual), (&end.input, &self.input)];
        let term = |(value, slope): (&Tensor<2>, &Option<Tensor<2>>)| {
            let slope = slope.as_ref()?;
            value.is_tracked().then(|| (value.clone() * slope.clone()).sum())
        };
        terms.into_iter().filter_map(term).reduce(|sum, term| sum + term)
    }
}

/// The losses and the gradient of the hidden states; that of the head, where it is trained, is added to the others.
fn head(
    learner: &Learner,
    frozen: &Decoder,
    end: &Stream,
    documents: &Documents,
    spec: &PassSpec,
    gradients: &mut [Option<Tensor<2>>],
) -> (Tensor<1>, Tensor<2>) {
    let of_loss = LossSpec {
        chunk_tokens: spec.loss_chunk_tokens.max(1),
        limit: learner.config().vocab_size,
        scale: spec.scale,
        train_head: learner.head().is_some(),
    };
    let loss = frozen.loss(&end.input.clone().without_autodiff(), documents, &of_loss);
    if let Some(gradient) = learner.head().and_then(|index| gradients.get_mut(index)) {
        add(gradient, loss.of_head);
    }
    let of_hidden = match spec.skip {
        Some(improbable) => skip_improbable(loss.of_hidden, &loss.per_token, documents, improbable),
        None => loss.of_hidden,
    };
    (loss.per_token, of_hidden)
}

/// Consecutive layers, of which those of one segment are on the tape at once.
fn segments(n_layers: usize, every: Option<usize>) -> Vec<Range<usize>> {
    let every = every.unwrap_or(n_layers).clamp(1, n_layers.max(1));
    (0..n_layers).step_by(every).map(|first| first..(first + every).min(n_layers)).collect()
}

/// What each segment begins with, none for the first, which begins with the embeddings.
fn borders(frozen: &Decoder, segments: &[Range<usize>], documents: &Documents, trunk: &Trunk) -> Vec<Option<Stream>> {
    let mut borders = vec![None];
    let mut state = None;
    for segment in segments.iter().take(segments.len().saturating_sub(1)) {
        let entered = state.take().unwrap_or_else(|| frozen.enter(documents));
        let next = frozen.pass(segment.clone(), entered, documents, trunk);
        borders.push(Some(next.clone()));
        state = Some(next);
    }
    borders
}

/// The same values at the beginning of a tape.
fn leaf(value: Tensor<2>) -> Tensor<2> {
    value.autodiff().require_grad()
}

/// Adds to a sum that may not have begun.
pub(crate) fn add(sum: &mut Option<Tensor<2>>, more: Option<Tensor<2>>) {
    *sum = match (sum.take(), more) {
        (Some(sum), Some(more)) => Some(sum + more),
        (sum, more) => sum.or(more),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::single_range_in_vec_init, reason = "one segment is one range")]
    fn segments_cover_all_layers_once() {
        assert_eq!(segments(7, Some(3)), [0..3, 3..6, 6..7]);
        assert_eq!(segments(4, None), [0..4]);
        assert_eq!(segments(4, Some(9)), [0..4]);
        assert_eq!(segments(2, Some(0)), [0..1, 1..2]);
    }
}
