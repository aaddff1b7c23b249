//! `samara inspect`: what a model file says about itself. Needs no device and reads no weights.

mod adapter;
mod report;
mod text;

use std::collections::BTreeMap;
use std::path::Path;

use clap::Args;
use serde::Serialize;

use crate::Exit;
use crate::adapters::AdapterArgs;
use crate::args::{KvArgs, ModelArgs};
use crate::{loading, output};

const EXAMPLES: &str = "\
Examples:
  samara inspect                                   the built-in model
  samara inspect OLMo-2-0425-1B-Instruct-Q4_K_M.gguf
  samara inspect ./OLMo-2-0425-1B-Instruct --context 8192
  samara inspect olmo2-1b --adapter ./my-adapter    the memory that both need
  samara inspect ./my-adapter                      a LoRA adapter
  samara inspect olmo2-1b --json";

/// Shows what a model is and what it needs, or what a LoRA adapter changes
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct InspectArgs {
    /// A .gguf or .safetensors file, a model folder, the name of a pulled model, or a folder with a LoRA adapter [default: the built-in model]
    #[arg(value_name = "FILE_OR_DIR")]
    model: Option<String>,
    #[command(flatten)]
    adapters: AdapterArgs,
    /// Tell the memory for this many tokens [default: what the model was made for, at most 4096]
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    context: Option<u32>,
    #[command(flatten)]
    kv: KvArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    source: String,
    format: &'static str,
    family: String,
    config: ConfigReport,
    n_parameters: u64,
    tensors: BTreeMap<String, TypeReport>,
    tokenizer: TokenizerReport,
    /// The first line of the chat template.
    template: Option<String>,
    /// Why the chat template cannot be used, where it cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    template_error: Option<String>,
    memory: MemoryReport,
}

#[derive(Serialize)]
struct ConfigReport {
    n_layers: usize,
    d_model: usize,
    d_ff: usize,
    n_heads: usize,
    n_kv_heads: usize,
    head_dim: usize,
    vocab_size: usize,
    context_length: usize,
    norm: String,
    norm_eps: f32,
    norm_placement: &'static str,
    qk_norm: String,
    activation: String,
    clip_qkv: Option<f32>,
    sliding_window: Option<usize>,
    n_sliding_layers: usize,
    n_experts: Option<usize>,
    experts_per_token: Option<usize>,
    tied_head: bool,
}

/// All tensors of one element type.
#[derive(Serialize, Default)]
struct TypeReport {
    n_tensors: usize,
    bytes: u64,
}

#[derive(Serialize)]
struct TokenizerReport {
    kind: String,
    n_tokens: usize,
    stop_ids: Vec<u32>,
    stop_tokens: Vec<String>,
}

#[derive(Serialize)]
struct MemoryReport {
    context_tokens: usize,
    /// How keys and values are kept.
    kv: String,
    weights_device_bytes: u64,
    adapters_device_bytes: u64,
    kv_device_bytes: u64,
    scratch_device_bytes: u64,
}

/// Runs the command.
///
/// # Errors
/// The file is damaged, or no model that Samara knows.
pub(crate) fn run(args: &InspectArgs) -> anyhow::Result<Exit> {
    if let Some(folder) = args.model.as_ref().map(Path::new).filter(|folder| adapter::is_alone_in(folder)) {
        return adapter::run(folder, args.json);
    }
    let model = ModelArgs { model: args.model.clone() };
    let checkpoint = loading::source(&model)?.open()?;
    let context = args.context.map(|n| n as usize);
    let report = report::of(&checkpoint, &args.adapters.open()?, context, args.kv.kv)?;
    if args.json {
        output::json(&report)?;
    } else {
        output::stream(&text::of(&report))?;
    }
    Ok(Exit::Done)
}
