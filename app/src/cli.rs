//! The command line as a whole.

use clap::builder::Resettable;
use clap::{Arg, Command as Clap, Parser};

use crate::commands::Command;

const ABOUT: &str =
    "Runs OLMo-family language models on any GPU that speaks WebGPU, and on the CPU where there is none";

const EXAMPLES: &str = "\
Examples:
  samara generate --prompt \"Once upon a time\"    text from the small built-in model
  samara pull olmo2-1b                           a larger model, from the Hugging Face hub
  samara chat --model olmo2-1b                   a conversation with it
  samara finetune run.yaml                       teach a model from a file of examples
  samara chat --adapter ./my-adapter             a conversation with what it has learnt
  samara devices                                 where models can run on this machine

`samara COMMAND --help` has examples for each command.";

#[derive(Parser, Debug)]
#[command(name = "samara", version, about = ABOUT, after_help = EXAMPLES, max_term_width = 100)]
#[command(mut_subcommands(without_empty_variables))]
pub(crate) struct Cli {
    /// Say on stderr which device is used and why
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// A variable that is set to nothing counts as not set, as a script leaves it that has no value for it.
fn without_empty_variables(command: Clap) -> Clap {
    let is_empty = |arg: &Arg| arg.get_env().and_then(std::env::var_os).is_some_and(|value| value.is_empty());
    let heeded = |arg: Arg| if is_empty(&arg) { arg.env(Resettable::Reset) } else { arg };
    command.mut_args(heeded).mut_subcommands(without_empty_variables)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_examples() {
        for command in Cli::command().get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(
                help.contains("Examples:") && help.contains(&format!("samara {}", command.get_name())),
                "{}",
                command.get_name()
            );
        }
    }
}
