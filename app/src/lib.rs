//! The commands of `samara`: they read arguments, call the crates that do the work, and write what a person or a program wants to see.
//!
//! Everything that core crates must not touch lives here: clocks, terminals, Ctrl-C, the network. One file per command, in [`commands`].
#![deny(clippy::indexing_slicing)]

mod adapters;
mod answer;
mod args;
mod cli;
mod commands;
mod console;
mod finetune;
pub mod hub;
mod interrupt;
mod kernels;
mod loading;
mod logits_file;
mod memory;
mod output;
mod places;
mod progress;
mod report;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

use console::Console;
use interrupt::Interrupt;

/// How a command ended when nothing went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Done,
    /// The user stopped it.
    Cancelled,
}

/// Runs the program. Errors are one line on stderr and exit code 1; Ctrl-C gives 130, wrong usage 2.
pub fn main(args: impl Iterator<Item = OsString>) -> ExitCode {
    std::panic::set_hook(Box::new(|info| report_panic(&one_line(&info.to_string()))));
    let cli = cli::Cli::parse_from(args);
    match run(cli) {
        Ok(Exit::Done) => ExitCode::SUCCESS,
        Ok(Exit::Cancelled) => ExitCode::from(interrupt::EXIT_CODE),
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}", error_line(&error));
            ExitCode::FAILURE
        }
    }
}

fn run(cli: cli::Cli) -> anyhow::Result<Exit> {
    let console = Console { is_verbose: cli.verbose, interrupt: Interrupt::install()? };
    commands::run(&cli.command, &console)
}

/// A lost device makes threads of the runtime panic. That is no bug of ours, and the engine reports it.
fn report_panic(text: &str) {
    if !samara_ops::is_panic_of_loss(text) {
        eprintln!("error: a bug in samara: {text}");
    }
}

/// Whoever read our output has seen enough; that is no error.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let is_pipe = |cause: &std::io::Error| cause.kind() == std::io::ErrorKind::BrokenPipe;
    let in_json = |cause: &serde_json::Error| cause.io_error_kind() == Some(std::io::ErrorKind::BrokenPipe);
    error.chain().any(|cause| cause.downcast_ref().is_some_and(is_pipe) || cause.downcast_ref().is_some_and(in_json))
}

/// `error: ` and all that is known, in one line; a list of mistakes keeps its lines, which editors read.
pub(crate) fn error_line(error: &anyhow::Error) -> String {
    match error.downcast_ref() {
        Some(list @ samara_train::TrainError::Config { .. }) => format!("error: the run has mistakes\n{list}"),
        _ => format!("error: {}", one_line(&chain(error))),
    }
}

/// The message and its causes, without those that the message has quoted already.
fn chain(error: &anyhow::Error) -> String {
    error.chain().skip(1).fold(error.to_string(), |text, cause| {
        let cause = cause.to_string();
        if text.contains(&cause) { text } else { format!("{text}: {cause}") }
    })
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use anyhow::{Context, anyhow};

    use super::*;

    #[test]
    fn an_error_is_one_line_that_names_every_cause_once() {
        let error = anyhow!("byte 7 is\n wrong").context("a.gguf: byte 7 is\n wrong").context("loading");
        assert_eq!(one_line(&chain(&error)), "loading: a.gguf: byte 7 is wrong");
    }

    #[test]
    fn a_closed_pipe_is_recognised_below_other_errors() {
        let pipe = || std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        let error = Err::<(), _>(pipe()).context("writing").unwrap_err();
        assert!(is_broken_pipe(&error));
        assert!(!is_broken_pipe(&anyhow!("writing")));
    }
}
