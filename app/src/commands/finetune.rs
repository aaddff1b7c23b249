//! `samara finetune`: a model file and a file of examples in, an adapter out.

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Subcommand};
use samara_train::RunConfig;

use crate::Exit;
use crate::console::Console;
use crate::finetune::{self, Show};
use crate::output;

const EXAMPLES: &str = "\
Examples:
  samara finetune init                   writes run.yaml with every key, its default and what it means
  samara finetune plan run.yaml          tells steps, tokens and memory, and trains nothing
  samara finetune run.yaml               trains; Ctrl-C saves and stops
  samara finetune run.yaml --resume      goes on from the last checkpoint
  samara finetune run.yaml --json        a line of JSON for each event, for programs

The adapter goes to the folder that `output` names, in the format that PEFT, llama.cpp's converters and `samara chat
--adapter` read; checkpoints, metrics.jsonl and an event file for TensorBoard lie beside it.";

/// Teaches a model from a file of examples
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct FinetuneArgs {
    #[command(subcommand)]
    step: Option<Step>,
    /// The run: a YAML file as `samara finetune init` writes it
    #[arg(value_name = "RUN.YAML", required = true)]
    config: Option<PathBuf>,
    /// Go on from the last checkpoint in the output folder
    #[arg(long)]
    resume: bool,
    /// Print a line of JSON for each event
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand, Debug)]
enum Step {
    /// Writes a run with every key, its default and what it means
    Init {
        /// Where to; `-` is standard output
        #[arg(default_value = "run.yaml", value_name = "FILE")]
        file: PathBuf,
        /// Overwrite the file
        #[arg(long)]
        force: bool,
    },
    /// Tells what a run would take, and trains nothing
    Plan {
        /// The run
        #[arg(value_name = "RUN.YAML")]
        config: PathBuf,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

/// Runs the command.
///
/// # Errors
/// The run, the model, the data, the device or the output folder is unusable; or training gets nowhere.
pub(crate) fn run(args: &FinetuneArgs, console: &Console) -> anyhow::Result<Exit> {
    match (&args.step, &args.config) {
        (Some(Step::Init { file, force }), _) => init(file, *force),
        (Some(Step::Plan { config, json }), _) => finetune::plan(RunConfig::open(config)?, *json, console),
        (None, Some(config)) => {
            let show = if args.json { Show::Json } else { Show::Bar };
            finetune::train(RunConfig::open(config)?, args.resume, show, console)
        }
        (None, None) => Ok(Exit::Done),
    }
}

fn init(file: &PathBuf, force: bool) -> anyhow::Result<Exit> {
    if file.as_os_str() == "-" {
        output::stream(RunConfig::example())?;
        return Ok(Exit::Done);
    }
    anyhow::ensure!(force || !file.exists(), "{}: exists already; --force overwrites it", file.display());
    std::fs::write(file, RunConfig::example()).with_context(|| file.display().to_string())?;
    eprintln!("{} is written; set model, output and data.train, then run: samara finetune {0}", file.display());
    Ok(Exit::Done)
}
