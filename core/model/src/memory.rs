//! Device bytes that a model will need, told before anything is loaded, and whether a device can hold them.
//!
//! WebGPU does not tell how much memory a device has. Where nobody else does either, an allocation that fails says so.

use samara_formats::Checkpoint;
use samara_ops::{KvFormat, KvFormats, attention_scratch_bytes, row_bytes};

use crate::{
    Config, ModelError, ScaledAdapter,
    cache::slots_per_layer,
    load::format_of,
    names::{self, Piece, Plan},
};

/// Bytes of a value that is not quantised: of norms, and all that is computed.
const VALUE_BYTES: u64 = 4;

/// Device memory by owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceMemory {
    /// All weights, a tied head counted once.
    pub weights_bytes: u64,
    /// LoRA adapters.
    pub adapters_bytes: u64,
    /// Keys and values for the asked context.
    pub kv_bytes: u64,
    /// Rotations of every position, what attention puts aside, and about what one layer's chunk and one row of logits take
    /// while they are computed.
    pub scratch_bytes: u64,
}

/// What a device can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// The largest part of a buffer that a kernel can bind.
    pub max_binding_bytes: u64,
    /// Memory that is free; `None` where nobody knows.
    pub free_bytes: Option<u64>,
}

impl DeviceMemory {
    /// What loading `checkpoint` takes with these adapters on it, and a cache of `context_tokens` filled in chunks of
    /// `max_chunk_tokens`.
    ///
    /// # Errors
    /// A tensor that is missing, misshapen or unknown; an adapter for another model.
    pub fn needed(
        config: &Config,
        checkpoint: &Checkpoint,
        adapters: &[ScaledAdapter],
        context_tokens: usize,
        max_chunk_tokens: usize,
        kv: impl Into<KvFormats>,
    ) -> Result<Self, ModelError> {
        let plan = Plan::new(config, checkpoint);
        names::check(&plan, config, checkpoint)?;
        adapters.iter().try_for_each(|adapter| adapter.check(config))?;
        Ok(Self {
            weights_bytes: weights_bytes(&plan, checkpoint),
            adapters_bytes: adapters.iter().map(ScaledAdapter::n_bytes).sum(),
            kv_bytes: 0,
            scratch_bytes: 0,
        }
        .with_context(config, context_tokens, max_chunk_tokens, kv.into()))
    }

    /// All of it.
    pub fn total_bytes(&self) -> u64 {
        let owners = [self.adapters_bytes, self.kv_bytes, self.scratch_bytes];
        owners.into_iter().fold(self.weights_bytes, u64::saturating_add)
    }

    /// The same model with another context, or another way to keep it.
    fn with_context(self, config: &Config, context_tokens: usize, max_chunk_tokens: usize, kv: KvFormats) -> Self {
        Self {
            kv_bytes: kv_bytes(config, context_tokens, max_chunk_tokens, kv),
            scratch_bytes: scratch_bytes(config, context_tokens, max_chunk_tokens),
            ..self
        }
    }
}

/// Refuses a context that a device cannot hold beside the model, before anything is loaded.
///
/// # Errors
/// [`ModelError::ContextTooLong`] or [`ModelError::DoesNotFit`], with what would be possible; and as
/// [`DeviceMemory::needed`].
pub fn check_fits(
    config: &Config,
    checkpoint: &Checkpoint,
    adapters: &[ScaledAdapter],
    context_tokens: usize,
    max_chunk_tokens: usize,
    kv: KvFormats,
    room: Room,
) -> Result<(), ModelError> {
    let source_name = checkpoint.source().to_owned();
    let Room { max_binding_bytes, free_bytes } = room;
    let max_tokens = max_cache_tokens(config, kv, max_binding_bytes);
    if context_tokens > max_tokens {
        return Err(ModelError::ContextTooLong { source_name, context_tokens, max_tokens, max_binding_bytes });
    }
    let needed = DeviceMemory::needed(config, checkpoint, adapters, context_tokens, max_chunk_tokens, kv)?;
    match free_bytes {
        Some(free_bytes) if needed.total_bytes() > free_bytes => {
            let of = |n_tokens, kv| needed.with_context(config, n_tokens, max_chunk_tokens, kv);
            let fitting_tokens = largest(context_tokens, |n_tokens| of(n_tokens, kv).total_bytes() <= free_bytes);
            let mut exact_first = KvFormat::ALL.map(KvFormats::from).into_iter();
            let fitting_kv = exact_first.find(|&kv| of(context_tokens, kv).total_bytes() <= free_bytes);
            Err(ModelError::DoesNotFit { source_name, needed, context_tokens, free_bytes, fitting_tokens, fitting_kv })
        }
        _ => Ok(()),
    }
}

/// The most tokens that a cache can hold: one layer's keys are one binding, its values another, and so are the rotations.
pub fn max_cache_tokens(config: &Config, kv: KvFormats, max_binding_bytes: u64) -> usize {
    let [keys, values] = [kv.keys, kv.values].map(|format| format.row_bytes(&config.heads()));
    let per_token = keys.max(values).max(VALUE_BYTES * config.head_dim as u64);
    // Keys and values fill whole 16 bytes.
    usize::try_from((max_binding_bytes & !15) / per_token).unwrap_or(usize::MAX)
}

/// The largest `n` below `refused` that fits, 0 where none does; whatever is smaller than what fits does too.
fn largest(refused: usize, fits: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, refused);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits(middle) { low = middle } else { high = middle }
    }
    low
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
pub fn kv_bytes(config: &Config, context_tokens: usize, max_chunk_tokens: usize, kv: KvFormats) -> u64 {
    let slots = slots_per_layer(config, context_tokens, max_chunk_tokens.min(context_tokens));
    slots.fold(0, |n_bytes: u64, n_slots| n_bytes.saturating_add(kv.bytes(n_slots, &config.heads())))
}

fn scratch_bytes(config: &Config, context_tokens: usize, max_chunk_tokens: usize) -> u64 {
    let n_chunk = max_chunk_tokens.min(context_tokens) as u64;
    let n_tables = 2;
    let rotations = (n_tables * config.head_dim * context_tokens) as u64;
    // The stream twice, what attention mixed twice, and gate, up and their product of every expert that a token meets.
    let heads = (2 * config.n_heads * config.head_dim) as u64 + 2 * config.kv_width() as u64;
    let n_experts = config.moe.map_or(1, |moe| moe.top_k) as u64;
    let per_token = 4 * config.d_model as u64 + heads + 3 * n_experts * config.d_ff as u64;
    let of_attention = config.n_layers as u64 * attention_scratch_bytes(&config.heads());
    of_attention + VALUE_BYTES * (rotations + n_chunk * per_token + config.vocab_size as u64)
}

/// A number of bytes for people: "93.8 MiB".
pub fn readable(n_bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if n_bytes < 1024 {
        return format!("{n_bytes} B");
    }
    let mut value = n_bytes as f64;
    let mut unit = "B";
    for larger in UNITS {
        if value < 1024.0 {
            break;
        }
        (value, unit) = (value / 1024.0, larger);
    }
    if value < 10.0 { format!("{value:.2} {unit}") } else { format!("{value:.1} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_read_well() {
        let cases = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1536, "1.50 KiB"),
            (98_362_432, "93.8 MiB"),
            (1 << 40, "1.00 TiB"),
            (u64::MAX, "16777216.0 TiB"),
        ];
        for (n_bytes, text) in cases {
            assert_eq!(readable(n_bytes), text);
        }
    }

    #[test]
    fn the_largest_that_fits_is_found() {
        for most in [0, 1, 2, 500, 998, 999] {
            assert_eq!(largest(1000, |n| n <= most), most);
        }
        assert_eq!(largest(1, |_| true), 0);
    }
}
