//! Documents that a model finds improbable, left out of the gradient at random, without asking the device what they are.

use crate::Documents;
use crate::documents::IGNORE;
use crate::dropout::{hash, threshold};
use crate::operation::{Host, HostMut, Launch, Operation};
use crate::run::{float, into_float, run};
use burn::tensor::Tensor;
use samara_shaders::{SKIP_IMPROBABLE_F32, SkipImprobableParams};

/// Which documents are left out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Improbable {
    /// Those with a mean probability of their tokens below this,
    pub below: f32,
    /// with this probability,
    pub rate: f32,
    /// by this seed.
    pub seed: u32,
}

/// Rows of improbable documents become 0.
#[derive(Debug, Clone, Copy)]
struct Skip(SkipImprobableParams);

/// The gradient of the hidden states without that of improbable documents.
///
/// # Shapes
/// - of_hidden `[T, D]`, losses `[T]`
/// - result `[T, D]`
pub fn skip_improbable(
    of_hidden: Tensor<2>,
    losses: &Tensor<1>,
    documents: &Documents,
    improbable: Improbable,
) -> Tensor<2> {
    let [n_tokens, width] = of_hidden.dims();
    let operation = Skip(SkipImprobableParams {
        n_tokens: n_tokens as u32,
        width: width as u32,
        below: improbable.below,
        threshold: threshold(improbable.rate),
        seed: improbable.seed,
    });
    let inputs = vec![documents.positions(), documents.labels(), float(losses)];
    run(operation, inputs, vec![into_float(of_hidden)]).float()
}

impl Operation for Skip {
    fn reference(&self, inputs: &[Host<'_>], outputs: &mut [HostMut<'_>]) {
        let (positions, labels, losses) = (inputs[0].u32(), inputs[1].u32(), inputs[2].f32());
        let rows = outputs[0].f32().chunks_exact_mut(self.0.width as usize);
        for (token, row) in rows.enumerate() {
            let first = token - positions[token] as usize;
            let own = (first..positions.len()).take_while(|t| positions[*t] as usize == t - first);
            let trained: Vec<f32> = own.filter(|t| labels[*t] != IGNORE).map(|t| (-losses[t]).exp()).collect();
            let is_improbable = trained.iter().sum::<f32>() < self.0.below * trained.len() as f32;
            if is_improbable && hash(hash(first as u32) ^ self.0.seed) < self.0.threshold {
                row.fill(0.0);
            }
        }
    }

    fn launch(&self) -> Launch {
        Launch { kernel: &SKIP_IMPROBABLE_F32, groups: u64::from(self.0.n_tokens), params: self.0.words() }
    }
}
