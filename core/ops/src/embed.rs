//! Token ids to vectors.

use crate::operation::{Host, HostMut, Launch, Operation};
use crate::run::{into_float, run};
use crate::step::{HEADER_WORDS, Step};
use crate::weight::Weight;
use burn::tensor::{DType, Tensor};
use samara_shaders::{EMBED_F32, EmbedParams};

/// `y[t] = scale * table[ids[t]]`, for the rows of one part of the table.
#[derive(Debug, Clone, Copy)]
struct Embed(EmbedParams);

/// Rows of `table` for the ids of `step`, times `scale` (Gemma's square root of D, otherwise 1).
///
/// # Shapes
/// - table `[V, D]`
/// - result `[T, D]`
///
/// Every id must be below V: the engine checks that at its border.
pub fn embed(step: &Step, table: &Weight, scale: f32) -> Tensor<2> {
    let mut y = Tensor::empty([step.n_tokens(), table.n_in()], (&step.device(), DType::F32));
    for part in table.parts() {
        let operation = Embed(EmbedParams {
            n_tokens: step.n_tokens() as u32,
            d_model: table.n_in() as u32,
            first_row: part.first_row as u32,
            n_rows: part.n_rows as u32,
            scale,
        });
        y = run(operation, vec![step.buffer(), part.buffer()], vec![into_float(y)]).float();
    }
    y
}

impl Operation for Embed {
    fn reference(&self, inputs: &[Host<'_>], outputs: &mut [HostMut<'_>]) {
        let (ids, table, y) = (&inputs[0].u32()[HEADER_WORDS..], inputs[1].f32(), outputs[0].f32());
        let width = self.0.d_model as usize;
        for (&id, out) in ids.iter().zip(y.chunks_exact_mut(width)) {
            let row = id.wrapping_sub(self.0.first_row);
            if row < self.0.n_rows {
                let row = &table[row as usize * width..][..width];
                out.iter_mut().zip(row).for_each(|(y, w)| *y = self.0.scale * w);
            }
        }
    }

    fn launch(&self) -> Launch {
        let n_elements = u64::from(self.0.n_tokens) * u64::from(self.0.d_model);
        Launch { kernel: &EMBED_F32, groups: n_elements.div_ceil(64), params: self.0.words() }
    }
}
