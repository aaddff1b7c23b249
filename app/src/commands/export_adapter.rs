//! `samara export-adapter`: a LoRA adapter in the form that llama.cpp reads. Needs no device.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use samara_chat::Config;
use samara_formats::Checkpoint;
use samara_formats::peft::LoraAdapter;
use samara_model::gguf_adapter;
use serde::Serialize;

use crate::{Exit, output, places};

const EXAMPLES: &str = "\
Examples:
  samara export-adapter --adapter ./my-adapter --gguf my-adapter.gguf
  samara export-adapter --adapter ./my-adapter --model ./OLMo-2-0425-1B --gguf my-adapter.gguf --force
  samara export-adapter --adapter ./my-adapter --model olmo2-1b --gguf my-adapter.gguf --json

llama.cpp takes it beside its model: llama-cli -m model.gguf --lora my-adapter.gguf
A DoRA adapter has no such form; `samara merge` works it into its model.";

/// Writes a LoRA adapter as a GGUF file
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExportAdapterArgs {
    /// The folder with the adapter, as PEFT writes it
    #[arg(long, value_name = "DIR")]
    adapter: PathBuf,
    /// The file to write
    #[arg(long, value_name = "FILE")]
    gguf: PathBuf,
    /// The model that it belongs to [default: the one that the adapter names, if that is here]
    #[arg(short, long, value_name = "MODEL")]
    model: Option<String>,
    /// Replace the file if there is one
    #[arg(long)]
    force: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    adapter: &'a Path,
    model: &'a Path,
    gguf: &'a Path,
    family: String,
    n_modules: usize,
    bytes: usize,
}

/// Runs the command.
///
/// # Errors
/// The adapter does not fit the model, has no form in GGUF, or the file cannot be written.
pub(crate) fn run(args: &ExportAdapterArgs) -> anyhow::Result<Exit> {
    output::check_free(&args.gguf, args.force)?;
    let adapter = LoraAdapter::open(&args.adapter)?;
    let model = model(args, &adapter)?;
    let config = Config::from_checkpoint(&Checkpoint::open(&model)?)?;
    let bytes = gguf_adapter(&adapter, &config).with_context(|| args.adapter.display().to_string())?;
    samara_formats::write_file(&args.gguf, &bytes)?;
    let report = Report {
        adapter: &args.adapter,
        model: &model,
        gguf: &args.gguf,
        family: config.family.to_string(),
        n_modules: adapter.modules.len(),
        bytes: bytes.len(),
    };
    if args.json {
        output::json(&report)?;
    } else {
        output::stream(&format!("{}  {}\n", output::bytes(bytes.len() as u64), args.gguf.display()))?;
    }
    Ok(Exit::Done)
}

fn model(args: &ExportAdapterArgs, adapter: &LoraAdapter) -> anyhow::Result<PathBuf> {
    if let Some(model) = &args.model {
        return places::model_path(model);
    }
    let folder = args.adapter.display();
    let Some(named) = &adapter.config.base_model else {
        anyhow::bail!("{folder}: it does not say which model it belongs to; name that with --model");
    };
    places::model_path(named).with_context(|| format!("{folder}: its model is not found; name it with --model"))
}
