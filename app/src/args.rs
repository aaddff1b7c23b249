//! Arguments that several commands share.

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, ValueEnum};
use samara_chat::KvFormats;
use samara_engine::Sampling;
use samara_ops::device::{DeviceChoice, Limits};

use crate::kernels::KernelsArg;

/// Which model to run.
#[derive(Args, Debug, Clone)]
pub(crate) struct ModelArgs {
    /// A .gguf or .safetensors file, a model folder, or the name of a pulled model [default: the small built-in one]
    #[arg(short, long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
}

/// Where to run it.
#[derive(Args, Debug, Clone)]
pub(crate) struct DeviceArgs {
    /// auto, cpu, or gpu:N as `samara devices` counts them
    #[arg(long, env = "SAMARA_DEVICE", default_value = "auto", value_name = "DEVICE")]
    pub(crate) device: DeviceChoice,
    /// Limits to ask the adapter for; `default` are those that every WebGPU device has
    #[arg(long, value_enum, default_value_t = LimitsArg::Adapter)]
    pub(crate) limits: LimitsArg,
    /// auto, workgroup, invocation or subgroup; auto takes what is fastest on the adapter, see `samara devices`
    #[arg(long, default_value = "auto", value_name = "KERNELS")]
    pub(crate) kernels: KernelsArg,
}

/// `--limits`.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum LimitsArg {
    Adapter,
    Default,
}

impl From<LimitsArg> for Limits {
    fn from(limits: LimitsArg) -> Self {
        match limits {
            LimitsArg::Adapter => Self::Adapter,
            LimitsArg::Default => Self::Default,
        }
    }
}

/// How much memory for how much text.
#[derive(Args, Debug, Clone)]
pub(crate) struct ContextArgs {
    /// Tokens of prompt and answer together [default: what the model was made for, at most 4096]
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) context: Option<u32>,
    /// Tokens of the prompt computed at a time [default: 64]
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) prefill_chunk: Option<u32>,
    #[command(flatten)]
    pub(crate) kv: KvArgs,
}

/// How exact the memory of the text is.
#[derive(Args, Debug, Clone)]
pub(crate) struct KvArgs {
    /// How keys and values are kept: f32, f16, q8 or q4, or one for each, as in q8/q4
    ///
    /// Of the memory of f16, f32 takes 2 times, q8 0.56 and q4 0.31, and long texts go on faster the fewer bits are read. q8
    /// hardly changes what a model says; q4 is for texts that would not fit otherwise, and does less harm as q8/q4.
    #[arg(long, value_name = "FORMAT", default_value_t)]
    pub(crate) kv: KvFormats,
}

/// How the next token is chosen. What is left out is as the model's makers suggest, else as its help says.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Sampling")]
pub(crate) struct SamplingArgs {
    /// Randomness: 0 always takes the likeliest token [default: the model's own, else 0.8]
    #[arg(short, long, value_name = "T")]
    pub(crate) temperature: Option<f32>,
    /// Choose among the K likeliest tokens; 0 for all [default: the model's own, else 0]
    #[arg(long, value_name = "K")]
    pub(crate) top_k: Option<usize>,
    /// Choose among the likeliest tokens that together have this probability [default: the model's own, else 0.95]
    #[arg(long, value_name = "P")]
    pub(crate) top_p: Option<f32>,
    /// Drop tokens less likely than this share of the likeliest [default: the model's own, else 0]
    #[arg(long, value_name = "P")]
    pub(crate) min_p: Option<f32>,
    /// Divide the scores of tokens that have occurred; 1 is off [default: the model's own, else 1]
    #[arg(long, value_name = "X")]
    pub(crate) repeat_penalty: Option<f32>,
    /// Lower the scores of tokens that have occurred
    #[arg(long, default_value_t = 0.0, value_name = "X", allow_negative_numbers = true)]
    pub(crate) presence_penalty: f32,
    /// Lower the scores of tokens by how often they have occurred
    #[arg(long, default_value_t = 0.0, value_name = "X", allow_negative_numbers = true)]
    pub(crate) frequency_penalty: f32,
    /// Add VALUE to the score of token ID; may be given several times
    #[arg(long, value_name = "ID=VALUE", value_parser = parse_bias)]
    pub(crate) logit_bias: Vec<(u32, f32)>,
    /// The same seed, prompt and settings give the same text [default: random]
    #[arg(short, long)]
    pub(crate) seed: Option<u64>,
}

impl SamplingArgs {
    /// The settings for a model whose makers suggest `suggested`. Ranges are the engine's to check.
    pub(crate) fn sampling(&self, suggested: Option<&Sampling>) -> Sampling {
        let usual = Sampling { temperature: 0.8, top_p: 0.95, ..Sampling::default() };
        let base = suggested.cloned().unwrap_or(usual);
        Sampling {
            temperature: self.temperature.unwrap_or(base.temperature),
            top_k: self.top_k.unwrap_or(base.top_k),
            top_p: self.top_p.unwrap_or(base.top_p),
            min_p: self.min_p.unwrap_or(base.min_p),
            repetition_penalty: self.repeat_penalty.unwrap_or(base.repetition_penalty),
            presence_penalty: self.presence_penalty,
            frequency_penalty: self.frequency_penalty,
            logit_bias: self.logit_bias.clone(),
            seed: self.seed.unwrap_or_else(random_seed),
            ..base
        }
    }
}

/// A text given in place, in a file, or on standard input.
#[derive(Args, Debug, Clone)]
pub(crate) struct PromptArgs {
    /// The prompt; `-` reads it from standard input
    #[arg(short, long, value_name = "TEXT", conflicts_with = "prompt_file", required_unless_present = "prompt_file")]
    pub(crate) prompt: Option<String>,
    /// A file that holds the prompt
    #[arg(short = 'f', long, value_name = "FILE")]
    pub(crate) prompt_file: Option<PathBuf>,
}

impl PromptArgs {
    /// Whether the prompt stands in the command itself.
    pub(crate) fn is_in_place(&self) -> bool {
        self.prompt.as_ref().is_some_and(|prompt| prompt != "-")
    }

    /// The prompt's text. Files and `echo` end with a line break that nobody means; one is left out.
    ///
    /// # Errors
    /// The file or standard input cannot be read, or is not UTF-8.
    pub(crate) fn text(&self) -> anyhow::Result<String> {
        let mut text = self.whole_text()?;
        if !self.is_in_place() && text.ends_with('\n') {
            text.truncate(text.len() - if text.ends_with("\r\n") { 2 } else { 1 });
        }
        Ok(text)
    }

    fn whole_text(&self) -> anyhow::Result<String> {
        match &self.prompt_file {
            Some(path) => std::fs::read_to_string(path).with_context(|| path.display().to_string()),
            None => text_or_stdin(self.prompt.as_deref().unwrap_or_default()),
        }
    }
}

/// The text itself, or standard input where it is `-`.
pub(crate) fn text_or_stdin(text: &str) -> anyhow::Result<String> {
    if text == "-" { std::io::read_to_string(std::io::stdin()).context("standard input") } else { Ok(text.to_owned()) }
}

/// A seed nobody can foresee; the standard library keys its hash maps with the system's randomness.
fn random_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0)
}

fn parse_bias(text: &str) -> Result<(u32, f32), String> {
    let (id, value) = text.split_once('=').ok_or("give it as ID=VALUE, for example 100257=-5")?;
    let id = id.parse().map_err(|_| format!("`{id}` is no token id"))?;
    let value = value.parse().map_err(|_| format!("`{value}` is no number"))?;
    Ok((id, value))
}

#[cfg(test)]
mod tests {
    use clap::{Command, FromArgMatches};

    use super::*;

    impl SamplingArgs {
        fn parse_from_words(words: &[&str]) -> Self {
            let command = Self::augment_args(Command::new("test").no_binary_name(true));
            Self::from_arg_matches(&command.get_matches_from(words)).unwrap()
        }
    }

    #[test]
    fn a_bias_is_an_id_and_a_number() {
        assert_eq!(parse_bias("5=-inf"), Ok((5, f32::NEG_INFINITY)));
        for text in ["", "5", "=1", "-1=1", "5=x"] {
            assert!(parse_bias(text).is_err(), "{text:?} was accepted");
        }
    }

    #[test]
    fn what_the_user_says_wins_over_what_the_model_suggests() {
        let args = SamplingArgs::parse_from_words(&["--top-k", "3", "--seed", "5"]);
        let suggested = Sampling { temperature: 0.6, top_k: 9, ..Sampling::default() };
        let sampling = args.sampling(Some(&suggested));
        assert_eq!((sampling.temperature, sampling.top_k, sampling.seed), (0.6, 3, 5));
        assert_eq!(args.sampling(None).temperature, 0.8);
    }
}
