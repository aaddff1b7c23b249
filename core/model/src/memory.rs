//! Device bytes that a model will need, told before anything is loaded.

use samara_formats::Checkpoint;
use samara_ops::row_bytes;

use crate::{
    Config, ModelError,
    cache::slots_per_layer,
    load::format_of,
    names::{self, Piece, Plan},
};

/// Bytes of a value that is not quantised: of norms, keys and values.
const VALUE_BYTES: u64 = 4;

/// Device memory by owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceMemory {
    /// All weights, a tied head counted once.
    pub weights_bytes: u64,
    /// Keys and values for the asked context.
    pub kv_bytes: u64,
}

impl DeviceMemory {
    /// What loading `checkpoint` takes, and a cache of `context_tokens` filled in chunks of
    /// `max_chunk_tokens`.
    ///
    /// # Errors
    /// A tensor that is missing, misshapen or unknown.
    pub fn needed(
        config: &Config,
        checkpoint: &Checkpoint,
        context_tokens: usize,
        max_chunk_tokens: usize,
    ) -> Result<Self, ModelError> {
        let plan = Plan::new(config, checkpoint);
        names::check(&plan, config, checkpoint)?;
        Ok(Self {
            weights_bytes: weights_bytes(&plan, checkpoint),
            kv_bytes: kv_bytes(config, context_tokens, max_chunk_tokens),
        })
    }
}

fn weights_bytes(plan: &Plan, checkpoint: &Checkpoint) -> u64 {
    let piece_bytes = |piece: &Piece| {
        let info = checkpoint.tensor(&piece.tensor)?;
        Some(row_bytes(format_of(info), info.row_len()) * piece.rows.len() as u64)
    };
    let matrices = plan.matrices().flat_map(|matrix| &matrix.pieces).filter_map(piece_bytes);
    let vectors = plan.vectors().map(|vector| vector.len as u64 * VALUE_BYTES);
    matrices.sum::<u64>() + vectors.sum::<u64>()
}

/// Keys and values of all layers.
pub fn kv_bytes(config: &Config, context_tokens: usize, max_chunk_tokens: usize) -> u64 {
    let slots = slots_per_layer(config, context_tokens, max_chunk_tokens.min(context_tokens));
    let slot_bytes = 2 * config.kv_width() as u64 * VALUE_BYTES;
    slots.fold(0, |n_bytes: u64, n_slots| n_bytes.saturating_add(slot_bytes.saturating_mul(n_slots as u64)))
}
