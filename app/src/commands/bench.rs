//! `samara bench`: how fast this machine is, what a token costs, and whether its kernels are right.

mod check;
mod model;
mod ops;
mod synthetic;

use clap::{Args, Subcommand};

use crate::Exit;
use crate::console::Console;

const EXAMPLES: &str = "\
Examples:
  samara bench check --device gpu:0
  samara bench ops --sizes 2048x2048,8192x2048 --tokens 1,64 --formats q4_1,q4_k,f32
  samara bench model --model model.gguf
  samara bench model --synthetic olmo2-1b --prompts 64,512 --contexts 0,1024,4096";

/// Measures how fast this machine runs a model, and checks its kernels
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    Check(check::CheckArgs),
    Model(model::ModelBenchArgs),
    Ops(ops::OpsBenchArgs),
}

/// Runs the command.
///
/// # Errors
/// The model or the device is unusable.
pub(crate) fn run(args: &BenchArgs, console: &Console) -> anyhow::Result<Exit> {
    match &args.what {
        What::Check(args) => check::run(args, console),
        What::Model(args) => model::run(args, console),
        What::Ops(args) => ops::run(args, console),
    }
}

/// The middle of some numbers, and the smallest.
fn median_and_least(mut numbers: Vec<f64>) -> (f64, f64) {
    numbers.sort_by(f64::total_cmp);
    let at = |index: usize| numbers.get(index).copied().unwrap_or_default();
    (at(numbers.len() / 2), at(0))
}
