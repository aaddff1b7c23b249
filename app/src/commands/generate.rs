//! `samara generate`: continues one prompt.

use std::io::IsTerminal;

use clap::Args;
use samara_chat::{Conversation, FinishReason, Prompt, Settings};

use crate::Exit;
use crate::adapters::AdapterArgs;
use crate::answer::{Answer, answer, show};
use crate::args::{ContextArgs, DeviceArgs, ModelArgs, PromptArgs, SamplingArgs};
use crate::console::Console;
use crate::loading::{self, Loaded};
use crate::output;
use crate::report::Report;

const EXAMPLES: &str = "\
Examples:
  samara generate --prompt \"Once upon a time\"
  samara generate --prompt \"Once upon a time\" --temperature 0 --max-tokens 48 --json
  samara generate --model olmo2-1b --chat --prompt \"Why is the sky blue?\"
  samara generate --model ./OLMo-2-0425-1B-Instruct --prompt-file question.txt --stop $'\\n\\n'
  samara generate --model olmo2-1b --adapter ./my-adapter --adapter ./style:0.5 --chat --prompt \"Hi\"
  echo \"The capital of France is\" | samara generate --model model.gguf --prompt - --device cpu";

/// Continues a prompt
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct GenerateArgs {
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    adapters: AdapterArgs,
    #[command(flatten)]
    prompt: PromptArgs,
    /// Put the prompt through the model's chat template, as one message of a user
    #[arg(long, conflicts_with = "raw")]
    chat: bool,
    /// Continue the prompt as it is (this is the default)
    #[arg(long)]
    raw: bool,
    /// Instructions for the model; only with --chat
    #[arg(long, value_name = "TEXT", requires = "chat")]
    system: Option<String>,
    /// Most tokens to generate
    #[arg(short = 'n', long, value_name = "N", default_value_t = 256)]
    max_tokens: usize,
    /// End at this text, which is not shown; may be given several times
    #[arg(long, value_name = "TEXT")]
    stop: Vec<String>,
    #[command(flatten)]
    context: ContextArgs,
    #[command(flatten)]
    device: DeviceArgs,
    /// Print one JSON object at the end instead of text on the way
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    sampling: SamplingArgs,
}

/// Runs the command.
///
/// # Errors
/// The prompt, the model or the device is unusable.
pub(crate) fn run(args: &GenerateArgs, console: &Console) -> anyhow::Result<Exit> {
    let text = args.prompt.text()?;
    let mut loaded = loading::session(&args.model, &args.adapters, &args.device, &args.context, console)?;
    let settings = settings(args, &loaded);
    let watching = console.interrupt.watch();
    console.detail(&format!("seed {}, temperature {}", settings.sampling.seed, settings.sampling.temperature));
    if !args.json && !args.chat && args.prompt.is_in_place() {
        echo(&text)?;
    }
    let mut on_text = |channel, text: &str| if args.json { Ok(()) } else { show(channel, text) };
    let answer = answer(&mut loaded.session, &prompt(args, text), &settings, &watching, &mut on_text)?;
    if args.json {
        output::json(&Report::new(&answer, &loaded))?;
    } else {
        output::stream("\n")?;
        sum_up(&answer, &loaded, console);
    }
    Ok(if answer.done.reason == FinishReason::Cancelled { Exit::Cancelled } else { Exit::Done })
}

fn prompt(args: &GenerateArgs, text: String) -> Prompt {
    if !args.chat {
        return Prompt::Text(text);
    }
    let mut conversation = Conversation::new(args.system.as_deref());
    conversation.say(&text);
    conversation.prompt()
}

fn settings(args: &GenerateArgs, loaded: &Loaded) -> Settings {
    Settings {
        max_tokens: Some(args.max_tokens),
        sampling: args.sampling.sampling(loaded.session.dialect().suggested_sampling()),
        stop_strings: args.stop.clone(),
    }
}

/// At a terminal a continuation reads better after what it continues.
fn echo(prompt: &str) -> std::io::Result<()> {
    if std::io::stdout().is_terminal() { output::stream(&output::dim(prompt)) } else { Ok(()) }
}

/// For people only: programs ask for JSON.
fn sum_up(answer: &Answer, loaded: &Loaded, console: &Console) {
    if console.is_verbose || std::io::stderr().is_terminal() {
        eprintln!("[{}; {}]", answer.summary(), loaded.device);
    }
}
