//! Asks a checkpoint everything that `samara inspect` tells.

use std::collections::BTreeMap;

use samara_chat::{ChatError, Config, Dialect, KvFormats, ScaledAdapter, SessionConfig};
use samara_formats::{Checkpoint, Metadata};
use samara_model::{Attention, DeviceMemory, NormPlacement};

use super::{ConfigReport, MemoryReport, Report, TokenizerReport, TypeReport};
use crate::commands::tokenize::piece;

/// What a session takes when nobody asks for more.
const USUAL_CONTEXT_TOKENS: usize = 4096;

/// The whole report.
pub(super) fn of(
    checkpoint: &Checkpoint,
    adapters: &[ScaledAdapter],
    context: Option<usize>,
    kv: KvFormats,
) -> anyhow::Result<Report> {
    let config = Config::from_checkpoint(checkpoint).map_err(ChatError::from)?;
    let dialect = Dialect::from_checkpoint(checkpoint)?;
    let (template, template_error) = template(&dialect);
    let context_tokens = context.unwrap_or(config.context_length.min(USUAL_CONTEXT_TOKENS));
    Ok(Report {
        source: checkpoint.source().to_owned(),
        format: match checkpoint.metadata() {
            Metadata::Gguf(_) => "GGUF",
            Metadata::HuggingFace(_) => "safetensors",
        },
        family: config.family.to_string(),
        n_parameters: checkpoint.tensors().map(|tensor| tensor.n_elements() as u64).sum(),
        tensors: by_type(checkpoint),
        tokenizer: tokenizer(checkpoint, &dialect),
        template,
        template_error,
        memory: memory(checkpoint, &config, adapters, context_tokens, kv)?,
        config: config_report(&config),
    })
}

fn config_report(config: &Config) -> ConfigReport {
    let windows = config.attention.iter().filter_map(|attention| match attention {
        Attention::Sliding(window) => Some(*window),
        Attention::Full => None,
    });
    ConfigReport {
        n_layers: config.n_layers,
        d_model: config.d_model,
        d_ff: config.d_ff,
        n_heads: config.n_heads,
        n_kv_heads: config.n_kv_heads,
        head_dim: config.head_dim,
        vocab_size: config.vocab_size,
        context_length: config.context_length,
        norm: format!("{:?}", config.norm),
        norm_eps: config.norm_eps,
        norm_placement: placement(config.placement),
        qk_norm: format!("{:?}", config.qk_norm),
        activation: format!("{:?}", config.activation),
        clip_qkv: config.clip_qkv,
        sliding_window: windows.clone().next(),
        n_sliding_layers: windows.count(),
        n_experts: config.moe.map(|moe| moe.n_experts),
        experts_per_token: config.moe.map(|moe| moe.top_k),
        tied_head: config.tied_head,
    }
}

fn placement(placement: NormPlacement) -> &'static str {
    match placement {
        NormPlacement::Pre => "before each sublayer",
        NormPlacement::Post => "after each sublayer",
        NormPlacement::Sandwich => "before and after each sublayer",
    }
}

fn by_type(checkpoint: &Checkpoint) -> BTreeMap<String, TypeReport> {
    checkpoint.tensors().fold(BTreeMap::new(), |mut types: BTreeMap<_, TypeReport>, tensor| {
        let of_type = types.entry(tensor.dtype.to_string()).or_default();
        of_type.n_tensors += 1;
        of_type.bytes += tensor.n_bytes() as u64;
        types
    })
}

fn tokenizer(checkpoint: &Checkpoint, dialect: &Dialect) -> TokenizerReport {
    let kind = match checkpoint.metadata() {
        Metadata::HuggingFace(_) => "tokenizer.json".to_owned(),
        Metadata::Gguf(values) => {
            let keys = ["tokenizer.ggml.model", "tokenizer.ggml.pre"];
            keys.iter().filter_map(|key| values.str(key)).collect::<Vec<_>>().join(", ")
        }
    };
    let stop_ids = dialect.turn_end_ids();
    let stop_tokens = stop_ids.iter().map(|&id| piece(dialect, id)).collect();
    TokenizerReport { kind, n_tokens: dialect.tokenizer().n_tokens(), stop_ids, stop_tokens }
}

/// The template's first line, or why there is none. A model without a template is a whole model.
fn template(dialect: &Dialect) -> (Option<String>, Option<String>) {
    match dialect.template(false) {
        Ok(template) => (template.source().lines().next().map(str::to_owned), None),
        Err(ChatError::NoTemplate { .. }) => (None, None),
        Err(error) => (None, Some(error.to_string())),
    }
}

fn memory(
    checkpoint: &Checkpoint,
    config: &Config,
    adapters: &[ScaledAdapter],
    context_tokens: usize,
    kv: KvFormats,
) -> Result<MemoryReport, ChatError> {
    // Sliding layers keep a chunk of the prompt beside their window.
    let chunk_tokens = SessionConfig::default().prefill_chunk_tokens;
    let needed = DeviceMemory::needed(config, checkpoint, adapters, context_tokens, chunk_tokens, kv)?;
    Ok(MemoryReport {
        context_tokens,
        kv: kv.to_string(),
        weights_device_bytes: needed.weights_bytes,
        adapters_device_bytes: needed.adapters_bytes,
        kv_device_bytes: needed.kv_bytes,
        scratch_device_bytes: needed.scratch_bytes,
    })
}
