//! `samara bench`: how fast this machine is, and what a token costs.

mod model;

use clap::{Args, Subcommand};

use crate::Exit;
use crate::console::Console;

const EXAMPLES: &str = "\
Examples:
  samara bench model --model model.gguf
  samara bench model --model model.gguf --prompts 64,512 --contexts 0,1024,4096
  samara bench model --device gpu:0 --json";

/// Measures how fast this machine runs a model
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    Model(model::ModelBenchArgs),
}

/// Runs the command.
///
/// # Errors
/// The model or the device is unusable.
pub(crate) fn run(args: &BenchArgs, console: &Console) -> anyhow::Result<Exit> {
    match &args.what {
        What::Model(args) => model::run(args, console),
    }
}
