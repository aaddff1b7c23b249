//! Whether a model and its context fit a device, asked before minutes of loading.

use samara_formats::Checkpoint;
use samara_model::memory::{self, Room};
use samara_model::{Config, ScaledAdapter};
use samara_ops::device::OpenDevice;

use crate::{ChatError, SessionConfig};

/// Refuses what `open` cannot hold, and adapters for another model. `free_bytes` is the device's free memory; `None` where nobody knows it.
///
/// # Errors
/// What is needed by whom, and which context would fit. Also what is wrong with the checkpoint.
pub fn check_fits(
    checkpoint: &Checkpoint,
    adapters: &[ScaledAdapter],
    open: &OpenDevice,
    session: SessionConfig,
    free_bytes: Option<u64>,
) -> Result<(), ChatError> {
    let config = Config::from_checkpoint(checkpoint)?;
    let room = Room { max_binding_bytes: open.max_binding_bytes, free_bytes };
    let usual = session.usual_context(&config, memory::max_cache_tokens(&config, session.kv, open.max_binding_bytes));
    let context_tokens = session.context_tokens.unwrap_or(usual);
    if context_tokens > config.context_length {
        // The engine says so in its own words.
        adapters.iter().try_for_each(|adapter| adapter.check(&config))?;
        return Ok(());
    }
    let chunk_tokens = session.prefill_chunk_tokens;
    Ok(memory::check_fits(&config, checkpoint, adapters, context_tokens, chunk_tokens, session.kv, room)?)
}
