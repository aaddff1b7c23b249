//! `samara tokenize`: text or a conversation to token ids. Needs no device.

use std::path::PathBuf;

use clap::Args;
use samara_chat::{Conversation, Dialect, Encoded, Prompt, RenderOptions};
use serde::Serialize;

use crate::Exit;
use crate::args::{ModelArgs, text_or_stdin};
use crate::{loading, output};

const EXAMPLES: &str = "\
Examples:
  samara tokenize \"Once upon a time\"
  samara tokenize --model olmo2-1b --json \"Hello, world\"
  samara tokenize --model olmo2-1b --chat messages.json
  samara tokenize --model olmo2-1b --chat messages.json --no-generation-prompt --json

messages.json holds a list such as [{\"role\": \"user\", \"content\": \"Hi\"}].";

/// Shows the token ids of a text or of a conversation
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TokenizeArgs {
    /// The text; `-` reads it from standard input
    #[arg(value_name = "TEXT", required_unless_present = "chat", conflicts_with = "chat")]
    text: Option<String>,
    #[command(flatten)]
    model: ModelArgs,
    /// A file with a list of messages, put through the model's chat template
    #[arg(long, value_name = "MESSAGES.JSON")]
    chat: Option<PathBuf>,
    /// End after the last message, without asking the model to answer
    #[arg(long, requires = "chat")]
    no_generation_prompt: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    ids: Vec<u32>,
    /// The vocabulary's own spelling of each id.
    pieces: Vec<String>,
    /// The text, or the rendered prompt.
    text: String,
}

/// Runs the command.
///
/// # Errors
/// The model has no usable tokenizer or template, or the text cannot be encoded.
pub(crate) fn run(args: &TokenizeArgs) -> anyhow::Result<Exit> {
    let checkpoint = loading::source(&args.model)?.open()?;
    let dialect = Dialect::from_checkpoint(&checkpoint)?;
    let Encoded { ids, text, .. } = dialect.encode(&prompt(args)?)?;
    let pieces = ids.iter().map(|&id| piece(&dialect, id)).collect();
    let report = Report { ids, pieces, text };
    if args.json {
        output::json(&report)?;
    } else {
        output::stream(&as_table(&report))?;
    }
    Ok(Exit::Done)
}

fn prompt(args: &TokenizeArgs) -> anyhow::Result<Prompt> {
    let Some(path) = &args.chat else {
        return Ok(Prompt::Text(text_or_stdin(args.text.as_deref().unwrap_or_default())?));
    };
    let messages = Conversation::load(path)?.messages().to_vec();
    let options = RenderOptions { add_generation_prompt: !args.no_generation_prompt, ..RenderOptions::default() };
    Ok(Prompt::Chat { messages, options })
}

/// The vocabulary's own spelling of an id.
pub(super) fn piece(dialect: &Dialect, id: u32) -> String {
    dialect.tokenizer().token(id).unwrap_or_default()
}

fn as_table(report: &Report) -> String {
    let row = |(id, piece): (&u32, &String)| vec![format!("{id:>7}"), piece.clone()];
    let rows: Vec<_> = report.ids.iter().zip(&report.pieces).map(row).collect();
    format!("{}{} tokens\n", output::table(&rows), report.ids.len())
}
