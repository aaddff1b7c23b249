//! The gradient of a dense embedding table.

use crate::gradient::{Backward, Gradient, Target, Value};
use crate::operation::{Host, HostMut, Launch, Operation};
use crate::step::HEADER_WORDS;
use samara_shaders::{EMBED_BACKWARD_F32, EmbedBackwardParams, EmbedParams};

/// `dtable[v] = scale * sum over tokens with that id of dy`.
#[derive(Debug, Clone, Copy)]
struct OfTable(EmbedBackwardParams);

pub(super) fn gradients(params: EmbedParams) -> Vec<Gradient> {
    let EmbedParams { n_tokens, n_in, first_row, n_rows, scale } = params;
    let operation = OfTable(EmbedBackwardParams { n_tokens, n_in, first_row, n_rows, scale });
    let reads = [Value::Input(0), Value::Incoming];
    vec![Gradient::of_first([Backward::new(operation, reads, [Target::Of(Value::Input(1))])])]
}

impl Operation for OfTable {
    fn reference(&self, inputs: &[Host<'_>], outputs: &mut [HostMut<'_>]) {
        let EmbedBackwardParams { n_in, first_row, n_rows, scale, .. } = self.0;
        let (ids, dy, dtable) = (&inputs[0].u32()[HEADER_WORDS..], inputs[1].f32(), outputs[0].f32());
        dtable.fill(0.0);
        for (id, dy) in ids.iter().zip(dy.chunks_exact(n_in as usize)) {
            let row = id.wrapping_sub(first_row);
            if row < n_rows {
                let dtable = &mut dtable[row as usize * n_in as usize..][..n_in as usize];
                dtable.iter_mut().zip(dy).for_each(|(sum, dy)| *sum += scale * dy);
            }
        }
    }

    fn launch(&self) -> Launch {
        let n_blocks = u64::from(self.0.n_rows) * u64::from(self.0.n_in.div_ceil(32));
        Launch { kernel: &EMBED_BACKWARD_F32, groups: n_blocks.div_ceil(64), params: self.0.words() }
    }
}
