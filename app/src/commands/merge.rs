//! `samara merge`: a model with LoRA adapters worked into its weights. Needs no device and little memory.

mod plan;

use std::ops::Range;
use std::path::{Path, PathBuf};

use clap::Args;
use samara_chat::Source;
use samara_formats::{Checkpoint, Metadata, NewFolder, NewTensor, declare_dtype, gguf, write_safetensors};
use samara_model::Merge;
use serde::Serialize;

use crate::adapters::{AdapterArg, AdapterReport, open_all};
use crate::args::ModelArgs;
use crate::console::Console;
use crate::interrupt::{Cancelled, Watching};
use crate::progress::Bar;
use crate::{Exit, loading, output};
use plan::{DtypeArg, NewModel};

const EXAMPLES: &str = "\
Examples:
  samara merge --model ./OLMo-2-0425-1B --adapter ./my-adapter --output ./merged
  samara merge --model ./OLMo-2-0425-1B --adapter ./facts --adapter ./style:0.5 --output ./merged --dtype bf16
  samara merge --model olmo2-1b --adapter ./my-adapter --output merged.gguf --dtype q8_0

A model in safetensors becomes a folder with its config and tokenizer, a GGUF becomes one GGUF file.
Of GGUF types F32, F16, BF16 and Q8_0 are written; a model with other types needs --dtype.";

/// Works LoRA adapters into a model's weights
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct MergeArgs {
    #[command(flatten)]
    model: ModelArgs,
    /// A folder with a LoRA adapter as PEFT writes it, and how strongly it acts [default scale: 1]; may be given several times
    #[arg(long = "adapter", value_name = "DIR[:SCALE]", required = true)]
    adapters: Vec<AdapterArg>,
    /// The new folder, or the new .gguf file where the model is one
    #[arg(short, long, value_name = "PATH")]
    output: PathBuf,
    /// What the new weights are stored as
    #[arg(long, value_enum, default_value_t = DtypeArg::Source)]
    dtype: DtypeArg,
    /// Replace what is there
    #[arg(long)]
    force: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    model: &'a str,
    adapters: Vec<AdapterReport>,
    output: &'a Path,
    format: &'static str,
    dtype: DtypeArg,
    n_tensors: usize,
    n_changed: usize,
    bytes: u64,
}

/// Runs the command.
///
/// # Errors
/// An adapter does not fit, the type cannot be written, something is there already, or the disk refuses.
pub(crate) fn run(args: &MergeArgs, console: &Console) -> anyhow::Result<Exit> {
    let source = loading::source(&args.model)?;
    let checkpoint = source.open()?;
    let adapters = open_all(&args.adapters)?;
    let merge = Merge::new(&checkpoint, &adapters)?;
    let model = NewModel::new(&checkpoint, args.dtype)?;
    plan::check_output(&source, &checkpoint, &args.output, args.force)?;
    let watching = console.interrupt.watch();
    console.detail(&format!("merging into {} of {} tensors", merge.changed().len(), model.tensors.len()));
    match write(args, &source, &checkpoint, &model, Rows::new(&merge, &model, &watching)) {
        Ok(()) => {}
        Err(error) if error.is::<Cancelled>() => {
            eprintln!("{error}; nothing was written");
            return Ok(Exit::Cancelled);
        }
        Err(error) => return Err(error),
    }
    let report = Report {
        model: checkpoint.source(),
        adapters: adapters.iter().map(AdapterReport::of).collect(),
        output: &args.output,
        format: model.format,
        dtype: args.dtype,
        n_tensors: model.tensors.len(),
        n_changed: merge.changed().len(),
        bytes: model.n_bytes(),
    };
    if args.json {
        output::json(&report)?;
    } else {
        output::stream(&text(&report))?;
    }
    Ok(Exit::Done)
}

fn write(
    args: &MergeArgs,
    source: &Source,
    checkpoint: &Checkpoint,
    model: &NewModel,
    mut rows: Rows<'_>,
) -> anyhow::Result<()> {
    let next = |tensor: &NewTensor, range| rows.next(tensor, range);
    if let Metadata::Gguf(metadata) = checkpoint.metadata() {
        let metadata = match args.dtype.kind() {
            Some(kind) => gguf::merged_metadata(metadata, kind),
            None => gguf::unsplit_metadata(metadata),
        };
        return gguf::write(&args.output, &metadata, &model.tensors, next);
    }
    let folder = NewFolder::create(&args.output)?;
    source.copy_companions(folder.path())?;
    if let Some(kind) = args.dtype.kind() {
        declare_dtype(folder.path(), kind)?;
    }
    write_safetensors(&folder.path().join("model.safetensors"), &model.tensors, next)?;
    Ok(folder.finish()?)
}

/// Merged rows for a writer, with a bar; Ctrl-C ends them.
struct Rows<'a> {
    merge: &'a Merge<'a>,
    watching: &'a Watching,
    bar: Bar,
    done: u64,
    total: u64,
}

impl<'a> Rows<'a> {
    fn new(merge: &'a Merge<'a>, model: &NewModel, watching: &'a Watching) -> Self {
        Self { merge, watching, bar: Bar::bytes("merging"), done: 0, total: model.n_bytes() }
    }

    fn next(&mut self, tensor: &NewTensor, rows: Range<usize>) -> anyhow::Result<Vec<f32>> {
        if self.watching.is_raised() {
            return Err(Cancelled.into());
        }
        self.done += plan::bytes_of(tensor, rows.len());
        let values = self.merge.rows(&tensor.name, rows)?;
        self.bar.set(self.done, Some(self.total));
        Ok(values)
    }
}

fn text(report: &Report<'_>) -> String {
    format!(
        "{}  {} ({}, {} of {} tensors changed)\nTry it:  samara chat --model {}\n",
        output::bytes(report.bytes),
        report.output.display(),
        report.format,
        report.n_changed,
        report.n_tensors,
        report.output.display()
    )
}
