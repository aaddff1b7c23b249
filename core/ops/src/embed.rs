//! Token ids to vectors.

mod backward;

use crate::gradient::Gradient;
use crate::operation::{Host, HostMut, Launch, Operation};
use crate::run::{empty, into_float, run};
use crate::step::{HEADER_WORDS, Step};
use crate::weight::{Weight, rows};
use burn::tensor::Tensor;
use samara_shaders::{EMBED, EmbedParams, Format};

/// `y[t] = scale * table[ids[t]]`, for the rows of one part of the table.
#[derive(Debug, Clone, Copy)]
struct Embed {
    format: Format,
    params: EmbedParams,
}

/// Rows of `table` for the ids of `step`, times `scale` (Gemma's square root of D, otherwise 1).
///
/// # Shapes
/// - table `[V, D]`
/// - result `[T, D]`
///
/// Every id must be below V: the engine checks that at its border.
pub fn embed(step: &Step, table: &Weight, scale: f32) -> Tensor<2> {
    let mut y = empty([step.n_tokens(), table.n_in()], &step.device());
    for part in table.parts() {
        let params = EmbedParams {
            n_tokens: step.n_tokens() as u32,
            n_in: table.n_in() as u32,
            first_row: part.first_row as u32,
            n_rows: part.n_rows as u32,
            scale,
        };
        let inputs = std::iter::once(step.buffer()).chain(part.buffers()).collect();
        y = run(Embed { format: part.format, params }, inputs, vec![into_float(y)]).float();
    }
    y
}

impl Operation for Embed {
    fn reference(&self, inputs: &[Host<'_>], outputs: &mut [HostMut<'_>]) {
        let EmbedParams { n_in, first_row, n_rows, scale, .. } = self.params;
        let ids = &inputs[0].u32()[HEADER_WORDS..];
        let (table, _) = rows(self.format, n_in, &inputs[1..]);
        for (&id, out) in ids.iter().zip(outputs[0].f32().chunks_exact_mut(n_in as usize)) {
            let row = id.wrapping_sub(first_row);
            if row < n_rows {
                out.iter_mut().zip(table.decode(row as usize).iter()).for_each(|(y, w)| *y = scale * w);
            }
        }
    }

    fn launch(&self) -> Launch {
        let n_blocks = u64::from(self.params.n_tokens) * u64::from(self.params.n_in.div_ceil(32));
        Launch { kernel: EMBED[self.format as usize], groups: n_blocks.div_ceil(64), params: self.params.words() }
    }

    fn gradients(&self) -> Vec<Gradient> {
        backward::gradients(self.params)
    }
}
