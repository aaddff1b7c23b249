//! One file per command: its arguments, its examples, and `run`.

mod bench;
mod chat;
mod devices;
mod export_adapter;
mod finetune;
mod generate;
mod inspect;
mod merge;
mod pull;
mod score;
mod tokenize;

use clap::Subcommand;

use crate::Exit;
use crate::console::Console;

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    Chat(chat::ChatArgs),
    Generate(generate::GenerateArgs),
    Score(score::ScoreArgs),
    Tokenize(tokenize::TokenizeArgs),
    Inspect(inspect::InspectArgs),
    Devices(devices::DevicesArgs),
    Pull(pull::PullArgs),
    Finetune(finetune::FinetuneArgs),
    Merge(merge::MergeArgs),
    ExportAdapter(export_adapter::ExportAdapterArgs),
    Bench(bench::BenchArgs),
}

/// Runs one command.
///
/// # Errors
/// What the command says went wrong.
pub(crate) fn run(command: &Command, console: &Console) -> anyhow::Result<Exit> {
    match command {
        Command::Chat(args) => chat::run(args, console),
        Command::Generate(args) => generate::run(args, console),
        Command::Score(args) => score::run(args, console),
        Command::Tokenize(args) => tokenize::run(args),
        Command::Inspect(args) => inspect::run(args),
        Command::Devices(args) => devices::run(args),
        Command::Pull(args) => pull::run(args, console),
        Command::Finetune(args) => finetune::run(args, console),
        Command::Merge(args) => merge::run(args, console),
        Command::ExportAdapter(args) => export_adapter::run(args),
        Command::Bench(args) => bench::run(args, console),
    }
}
