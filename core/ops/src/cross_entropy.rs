//! The loss of a language model, a chunk of tokens at a time: logits of all tokens at once never exist.
//!
//! Loss and gradient are computed together, because the gradient of the logits can take the place of the logits and is
//! used at once. What remains is the gradient of the hidden states, `[T, D]`, and of a head that is trained.

use crate::Documents;
use crate::linear::{linear, linear_gradients};
use crate::operation::{Host, HostMut, Launch, Operation};
use crate::run::{empty, into_float, run};
use crate::weight::Weight;
use burn::tensor::Tensor;
use samara_shaders::{CROSS_ENTROPY_F32, CrossEntropyParams};

/// Loss of a chunk, whose logits become their gradient.
#[derive(Debug, Clone, Copy)]
struct CrossEntropy(CrossEntropyParams);

/// What [`cross_entropy`] gives.
#[derive(Debug)]
pub struct Loss {
    /// `[T]`: each token's loss, 0 where it has no label.
    pub per_token: Tensor<1>,
    /// `[T, D]`: the gradient of `scale` times the sum of losses with respect to the hidden states.
    pub of_hidden: Tensor<2>,
    /// `[V, D]`: likewise for the head, where it is dense and was asked for.
    pub of_head: Option<Tensor<2>>,
}

/// How [`cross_entropy`] computes.
#[derive(Debug, Clone, Copy)]
pub struct LossSpec {
    /// How many tokens have logits at one time.
    pub chunk_tokens: usize,
    /// Columns of the head that are tokens; those after them are padding.
    pub limit: usize,
    /// What the sum of losses is multiplied by, usually one over the number of labels.
    pub scale: f32,
    /// Whether the gradient of a dense head is wanted.
    pub train_head: bool,
}

/// `-log softmax(hidden headᵀ)[label]` of each token that has a label, and its gradients.
///
/// # Shapes
/// - hidden `[T, D]`, without a gradient of its own
/// - head `[V, D]`
pub fn cross_entropy(hidden: &Tensor<2>, head: &Weight, documents: &Documents, spec: &LossSpec) -> Loss {
    let [n_tokens, width] = hidden.dims();
    let device = hidden.device();
    let mut losses = empty([n_tokens], &device);
    let mut of_hidden = Vec::new();
    let mut of_head: Option<Tensor<2>> = None;
    for first in (0..n_tokens).step_by(spec.chunk_tokens) {
        let rows = first..(first + spec.chunk_tokens).min(n_tokens);
        let chunk = hidden.clone().slice([rows.clone(), 0..width]);
        let (slope, filled) = one_chunk(&chunk, head, documents, losses, rows.start, spec);
        losses = filled;
        let (of_chunk, more) = linear_gradients(&chunk, head, &slope, spec.train_head);
        of_hidden.push(of_chunk);
        of_head = match (of_head, more) {
            (Some(sum), Some(more)) => Some(sum + more),
            (sum, more) => sum.or(more),
        };
    }
    Loss { per_token: losses, of_hidden: Tensor::cat(of_hidden, 0), of_head }
}

/// The gradient of a chunk's logits, and the losses with those of the chunk filled in.
fn one_chunk(
    hidden: &Tensor<2>,
    head: &Weight,
    documents: &Documents,
    losses: Tensor<1>,
    first_row: usize,
    spec: &LossSpec,
) -> (Tensor<2>, Tensor<1>) {
    let logits = linear(hidden, head);
    let [n_rows, width] = logits.dims();
    let operation = CrossEntropy(CrossEntropyParams {
        n_rows: n_rows as u32,
        width: width as u32,
        limit: spec.limit.min(width) as u32,
        first_row: first_row as u32,
        scale: spec.scale,
    });
    let mut outputs = run(operation, vec![documents.labels()], vec![into_float(logits), into_float(losses)]);
    (outputs.float(), outputs.float())
}

impl Operation for CrossEntropy {
    fn reference(&self, inputs: &[Host<'_>], outputs: &mut [HostMut<'_>]) {
        let CrossEntropyParams { n_rows, width, limit, first_row, scale } = self.0;
        let [logits, losses] = outputs else { return };
        let span = first_row as usize..(first_row + n_rows) as usize;
        let rows = inputs[0].u32()[span.clone()].iter().zip(&mut losses.f32()[span]);
        for (logits, (&label, loss)) in logits.f32().chunks_exact_mut(width as usize).zip(rows) {
            let (tokens, padding) = logits.split_at_mut(limit as usize);
            let largest = tokens.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let total: f32 = tokens.iter().map(|logit| (logit - largest).exp()).sum();
            let logit = tokens.get(label as usize).copied();
            *loss = logit.map_or(0.0, |logit| total.ln() + largest - logit);
            let scale = if logit.is_some() { scale } else { 0.0 };
            tokens.iter_mut().for_each(|logit| *logit = scale * (*logit - largest).exp() / total);
            padding.fill(0.0);
            if let Some(slope) = tokens.get_mut(label as usize) {
                *slope -= scale;
            }
        }
    }

    fn launch(&self) -> Launch {
        Launch { kernel: &CROSS_ENTROPY_F32, groups: u64::from(self.0.n_rows), params: self.0.words() }
    }
}
