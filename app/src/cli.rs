//! The command line as a whole.

use clap::Parser;

use crate::commands::Command;

const ABOUT: &str =
    "Runs OLMo-family language models on any GPU that speaks WebGPU, and on the CPU where there is none";

const EXAMPLES: &str = "\
Examples:
  samara generate --prompt \"Once upon a time\"    text from the small built-in model
  samara pull olmo2-1b                           a larger model, from the Hugging Face hub
  samara chat --model olmo2-1b                   a conversation with it
  samara devices                                 where models can run on this machine

`samara COMMAND --help` has examples for each command.";

#[derive(Parser, Debug)]
#[command(name = "samara", version, about = ABOUT, after_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct Cli {
    /// Say on stderr which device is used and why
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
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
