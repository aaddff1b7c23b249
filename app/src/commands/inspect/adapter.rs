//! What `samara inspect` tells of a LoRA adapter.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use samara_chat::ScaledAdapter;
use samara_formats::peft::{LoraAdapter, LoraModule};
use serde::Serialize;

use crate::{Exit, output};

#[derive(Serialize)]
struct Report {
    source: String,
    format: &'static str,
    /// `LoRA` or `DoRA`.
    kind: &'static str,
    rank: usize,
    alpha: f32,
    /// What its product is multiplied by.
    scale: f32,
    use_rslora: bool,
    dropout: f32,
    base_model: Option<String>,
    /// How many there are of each name.
    modules: BTreeMap<String, usize>,
    n_modules: usize,
    n_parameters: usize,
    device_bytes: u64,
}

/// Whether a folder holds an adapter and no model.
pub(super) fn is_alone_in(folder: &Path) -> bool {
    LoraAdapter::is_in(folder) && !folder.join("config.json").exists()
}

/// Reads the adapter and shows it.
///
/// # Errors
/// It is damaged, or asks for something that is not supported.
pub(super) fn run(folder: &Path, as_json: bool) -> anyhow::Result<Exit> {
    let name = folder.display().to_string();
    let report = report(ScaledAdapter { name, adapter: Arc::new(LoraAdapter::open(folder)?), strength: 1.0 });
    if as_json {
        output::json(&report)?;
    } else {
        output::stream(&text(&report))?;
    }
    Ok(Exit::Done)
}

fn report(scaled: ScaledAdapter) -> Report {
    let (device_bytes, ScaledAdapter { name, adapter, .. }) = (scaled.n_bytes(), scaled);
    let mut modules = BTreeMap::new();
    for module in &adapter.modules {
        let name = module.path.rsplit('.').next().unwrap_or_default();
        *modules.entry(name.to_owned()).or_default() += 1;
    }
    Report {
        source: name,
        format: "PEFT",
        kind: if adapter.config.use_dora { "DoRA" } else { "LoRA" },
        rank: adapter.config.rank,
        alpha: adapter.config.alpha,
        scale: adapter.config.scale(),
        use_rslora: adapter.config.use_rslora,
        dropout: adapter.config.dropout,
        base_model: adapter.config.base_model.clone(),
        modules,
        n_modules: adapter.modules.len(),
        n_parameters: adapter.modules.iter().map(n_parameters).sum(),
        device_bytes,
    }
}

fn n_parameters(module: &LoraModule) -> usize {
    module.a.len() + module.b.len() + module.magnitude.as_ref().map_or(0, Vec::len)
}

fn text(report: &Report) -> String {
    let modules = report.modules.iter().map(|(name, n)| format!("{name} ({n})")).collect::<Vec<_>>().join(", ");
    let divisor = if report.use_rslora { "alpha / sqrt(rank)" } else { "alpha / rank" };
    output::facts(&[
        ("adapter", report.source.clone()),
        ("format", format!("{}, {}", report.format, report.kind)),
        ("base model", report.base_model.clone().unwrap_or("not named".to_owned())),
        ("rank", report.rank.to_string()),
        ("alpha", report.alpha.to_string()),
        ("scale", format!("{} ({divisor})", report.scale)),
        ("modules", format!("{}: {modules}", report.n_modules)),
        ("parameters", format!("{:.3} million", report.n_parameters as f64 / 1e6)),
        ("memory", format!("{} beside the model", output::bytes(report.device_bytes))),
    ])
}
