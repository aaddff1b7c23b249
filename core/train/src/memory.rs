//! Device bytes that a run will need at its peak, by owner, told before anything is loaded.
//!
//! Activations are counted operation by operation, as the tape keeps them: what no gradient reads is not there.

use samara_formats::Checkpoint;
use samara_model::{Config, DeviceMemory, NormPlacement, Site};
use serde::Serialize;

use crate::config::{AdapterKind, RunConfig};
use crate::{TrainError, targets};

const VALUE_BYTES: u64 = 4;

/// Bytes by owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MemoryPlan {
    /// The model's weights, as they are stored, or as `f32` where all of them are trained.
    pub weights_bytes: u64,
    /// What is trained beside them.
    pub adapter_bytes: u64,
    /// Gradients of what is trained.
    pub gradients_bytes: u64,
    /// Both moments of AdamW.
    pub optimizer_bytes: u64,
    /// What the tape keeps of one pass.
    pub activations_bytes: u64,
    /// Logits of one chunk and their gradients.
    pub loss_bytes: u64,
}

impl MemoryPlan {
    /// For a run over documents of at most `max_length` tokens.
    ///
    /// # Errors
    /// The model lacks what the configuration names.
    pub fn new(
        config: &RunConfig,
        model: &Config,
        checkpoint: &Checkpoint,
        max_length: usize,
    ) -> Result<Self, TrainError> {
        let stored = DeviceMemory::needed(model, checkpoint, &[], 1, 1)?.weights_bytes;
        let n_parameters: u64 = checkpoint.tensors().map(|tensor| tensor.shape.iter().product::<usize>() as u64).sum();
        let is_full = config.adapter.kind == AdapterKind::Full;
        let n_trained = if is_full { n_parameters } else { adapter_values(config, model)? };
        let tokens = config.batch.tokens as u64;
        let segment = config.memory.recompute_every.unwrap_or(model.n_layers).clamp(1, model.n_layers.max(1));
        let n_segments = model.n_layers.div_ceil(segment) as u64;
        let d_model = model.d_model as u64;
        // After a post-norm the residual stream is also what the next layer is given.
        let states = if model.placement == NormPlacement::Post { d_model } else { 2 * d_model };
        let borders = (n_segments - 1) * states;
        let rope = 2 * max_length.max(config.batch.tokens) as u64 * model.head_dim as u64;
        let of_layer = kept_of_layer(config, model) + scaled_of_layer(config, model)?;
        let per_token = segment as u64 * of_layer + borders + in_flight(model);
        Ok(Self {
            weights_bytes: if is_full { VALUE_BYTES * n_parameters } else { stored },
            adapter_bytes: if is_full { 0 } else { VALUE_BYTES * n_trained },
            gradients_bytes: VALUE_BYTES * n_trained,
            optimizer_bytes: 2 * VALUE_BYTES * n_trained,
            activations_bytes: VALUE_BYTES * (tokens * per_token + rope),
            loss_bytes: VALUE_BYTES * loss_values(config, model, is_full),
        })
    }

    /// The owners in words, with their bytes.
    pub fn owners(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [
            ("weights", self.weights_bytes),
            ("adapter", self.adapter_bytes),
            ("gradients", self.gradients_bytes),
            ("optimizer", self.optimizer_bytes),
            ("activations", self.activations_bytes),
            ("logits", self.loss_bytes),
        ]
        .into_iter()
    }

    /// All of it.
    pub fn total_bytes(&self) -> u64 {
        self.owners().map(|(_, n_bytes)| n_bytes).sum()
    }
}

/// Values of all adapters.
fn adapter_values(config: &RunConfig, model: &Config) -> Result<u64, TrainError> {
    let sites = targets::sites(&config.adapter.target_modules, model)?;
    let magnitudes = usize::from(config.adapter.kind == AdapterKind::Dora);
    let of_site =
        |site: &Site| config.adapter.rank * (site.n_in + site.columns.len()) + magnitudes * site.columns.len();
    Ok(sites.iter().map(|site| of_site(site) as u64).sum())
}

/// Values of a token that the magnitudes of a DoRA keep in one layer: the columns that they scale, where these are most.
fn scaled_of_layer(config: &RunConfig, model: &Config) -> Result<u64, TrainError> {
    if config.adapter.kind != AdapterKind::Dora {
        return Ok(0);
    }
    let sites = targets::sites(&config.adapter.target_modules, model)?;
    let of_layer = |layer| sites.iter().filter(|site| site.layer == layer).map(|site| site.columns.len() as u64).sum();
    Ok((0..model.n_layers).map(of_layer).max().unwrap_or_default())
}

/// Values that the tape keeps of a token in one layer.
fn kept_of_layer(config: &RunConfig, model: &Config) -> u64 {
    let qkv = model.q_width() + 2 * model.kv_width();
    let rows = model.moe.map_or(1, |moe| moe.top_k);
    let attention = 2 * qkv + model.q_width() + 2 * model.n_heads + model.n_kv_heads;
    let feed_forward = rows * 3 * model.d_ff;
    let streams = 4 * model.d_model;
    let low_rank = if config.adapter.kind == AdapterKind::Full { 0 } else { 7 * config.adapter.rank };
    (attention + feed_forward + streams + low_rank) as u64
}

/// Values of a token that the gradient of one operation holds at once.
fn in_flight(model: &Config) -> u64 {
    let rows = model.moe.map_or(1, |moe| moe.top_k);
    (rows * 3 * model.d_ff + 3 * model.d_model) as u64
}

/// Logits of a chunk, hidden states and their gradients, and what a trained head adds.
fn loss_values(config: &RunConfig, model: &Config, is_full: bool) -> u64 {
    let chunk = config.memory.loss_chunk_tokens.min(config.batch.tokens) as u64;
    let (vocab, d_model) = (model.vocab_size as u64, model.d_model as u64);
    let head = if is_full { vocab * d_model } else { 0 };
    chunk * (vocab + 2 * d_model) + 2 * config.batch.tokens as u64 * d_model + head
}
