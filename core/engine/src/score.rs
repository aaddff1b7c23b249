//! How likely the model finds given tokens.

use samara_ops::{check_finite, log_prob};

use crate::engine::empty;
use crate::request::check_ids;
use crate::{ComputeError, Engine, EngineError, LanguageModel};

/// Logits of one chunk stay below this, well inside the smallest binding that WebGPU grants (128 MiB).
const MAX_CHUNK_BYTES: usize = 64 << 20;

impl<M: LanguageModel> Engine<M> {
    /// The log-probability of each token after the first, given those before it: `[T - 1]`, natural logarithm,
    /// log-sum-exp over the whole row in f64.
    ///
    /// `on_row` sees every row of logits `[V]` with its position, T of them. A sequence that is running goes on
    /// afterwards, but runs its tokens anew: scoring uses the one cache.
    ///
    /// # Errors
    /// No ids, more than the context holds, an id without an embedding row, a logit that is NaN or +inf, or the device
    /// gave no answer.
    pub async fn score(&mut self, ids: &[u32], mut on_row: impl FnMut(usize, &[f32])) -> Result<Vec<f64>, EngineError> {
        check_ids(ids, self.model.vocab_size(), self.config.context_tokens)?;
        self.settle().await;
        let mut kept = self.kept.take().unwrap_or_else(|| empty(&self.model, self.config));
        kept.align(&[]);
        let mut log_probs = Vec::with_capacity(ids.len());
        let mut position = 0;
        for chunk in ids.chunks(self.score_chunk_tokens()) {
            let logits = kept.logits(&self.model, chunk).await.map_err(device)?;
            for row in logits.chunks_exact(self.model.vocab_size()) {
                check_finite(row).map_err(|source| EngineError::Score(ComputeError::Sample { position, source }))?;
                on_row(position, row);
                position += 1;
                log_probs.extend(ids.get(position).map(|&next| log_prob(row, next)));
            }
        }
        self.kept = Some(kept);
        Ok(log_probs)
    }

    fn score_chunk_tokens(&self) -> usize {
        let row_bytes = self.model.vocab_size() * size_of::<f32>();
        self.config.prefill_chunk_tokens.min(MAX_CHUNK_BYTES / row_bytes.max(1)).max(1)
    }
}

fn device(source: samara_ops::OpsError) -> EngineError {
    EngineError::Score(ComputeError::Device(source))
}
