//! The report of `samara inspect` for people.

use super::{ConfigReport, MemoryReport, Report, TokenizerReport};
use crate::output::{self, bytes};

/// Two columns of names and values.
pub(super) fn of(report: &Report) -> String {
    let (config, memory) = (&report.config, &report.memory);
    let mut facts = vec![
        ("model", report.source.clone()),
        ("format", report.format.to_owned()),
        ("family", report.family.clone()),
        ("parameters", format!("{:.1} million", report.n_parameters as f64 / 1e6)),
        ("layers", layers(config)),
        ("width", format!("{} (feed-forward {})", config.d_model, config.d_ff)),
        (
            "heads",
            format!("{} of width {}, {} for keys and values", config.n_heads, config.head_dim, config.n_kv_heads),
        ),
        (
            "norm",
            format!(
                "{} (eps {:e}), {}; of queries and keys: {}",
                config.norm, config.norm_eps, config.norm_placement, config.qk_norm
            ),
        ),
        ("activation", config.activation.clone()),
        (
            "vocabulary",
            format!(
                "{} rows{}",
                config.vocab_size,
                if config.tied_head { ", shared with the output head" } else { "" }
            ),
        ),
        ("context", format!("{} tokens", config.context_length)),
    ];
    if let (Some(n_experts), Some(top_k)) = (config.n_experts, config.experts_per_token) {
        facts.push(("experts", format!("{n_experts} a layer, {top_k} for each token")));
    }
    if let Some(clip) = config.clip_qkv {
        facts.push(("clip", format!("queries, keys and values at ±{clip}")));
    }
    facts.extend(
        report.tensors.iter().map(|(dtype, tensors)| {
            ("tensors", format!("{dtype:<7} {:>5}  {}", tensors.n_tensors, bytes(tensors.bytes)))
        }),
    );
    facts.extend([
        ("tokenizer", format!("{}, {} tokens", report.tokenizer.kind, report.tokenizer.n_tokens)),
        ("stops at", stops(&report.tokenizer)),
        ("template", template_line(report)),
        (
            "memory",
            format!(
                "{} for weights,{} {} for {} tokens, {} to compute in",
                bytes(memory.weights_device_bytes),
                adapters(memory),
                bytes(memory.kv_device_bytes),
                memory.context_tokens,
                bytes(memory.scratch_device_bytes)
            ),
        ),
    ]);
    output::facts(&facts)
}

fn adapters(memory: &MemoryReport) -> String {
    match memory.adapters_device_bytes {
        0 => String::new(),
        n_bytes => format!(" {} for LoRA adapters,", bytes(n_bytes)),
    }
}

fn layers(config: &ConfigReport) -> String {
    match config.sliding_window {
        Some(window) => {
            format!("{}, {} of them attend to the last {window} tokens only", config.n_layers, config.n_sliding_layers)
        }
        None => config.n_layers.to_string(),
    }
}

fn stops(tokenizer: &TokenizerReport) -> String {
    let stops = tokenizer.stop_ids.iter().zip(&tokenizer.stop_tokens);
    stops.map(|(id, token)| format!("{token} ({id})")).collect::<Vec<_>>().join(", ")
}

/// At most 70 characters of the first line.
fn template_line(report: &Report) -> String {
    const SHOWN: usize = 70;
    match (&report.template, &report.template_error) {
        (Some(line), _) if line.chars().count() > SHOWN => {
            format!("{} ...", line.chars().take(SHOWN).collect::<String>())
        }
        (Some(line), _) => line.clone(),
        (None, Some(error)) => format!("unusable: {error}"),
        (None, None) => "none; chat needs one".to_owned(),
    }
}
