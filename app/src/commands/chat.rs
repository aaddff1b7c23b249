//! `samara chat`: a conversation, at a terminal or through a pipe.

mod lines;
mod slash;

use std::path::PathBuf;

use clap::Args;
use samara_chat::{Conversation, FinishReason, Settings};

use crate::Exit;
use crate::adapters::AdapterArgs;
use crate::answer::{Answer, answer, show};
use crate::args::{ContextArgs, DeviceArgs, ModelArgs, SamplingArgs};
use crate::console::Console;
use crate::loading::{self, Loaded};
use crate::output;
use crate::report::Report;
use lines::Lines;
use slash::Slash;

const EXAMPLES: &str = "\
Examples:
  samara chat
  samara chat --model olmo2-1b --system \"Answer in one sentence.\"
  samara chat --model olmo2-1b --load talk.json
  samara chat --model olmo2-1b --adapter ./my-adapter:0.8
  printf 'Hi\\nWhat did I just say?\\n' | samara chat --model olmo2-1b

At the prompt, /help lists what else can be typed. Through a pipe each line is one message.
Ctrl-C stops an answer; Ctrl-D ends the conversation.";

/// Talks with a model
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ChatArgs {
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    adapters: AdapterArgs,
    /// Instructions for the model
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// Go on with a conversation that /save wrote
    #[arg(long, value_name = "FILE")]
    load: Option<PathBuf>,
    /// Most tokens of one answer [default: until the context is full]
    #[arg(short = 'n', long, value_name = "N")]
    max_tokens: Option<usize>,
    #[command(flatten)]
    context: ContextArgs,
    #[command(flatten)]
    device: DeviceArgs,
    /// Print one JSON object for each answer
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    sampling: SamplingArgs,
}

/// A conversation under way.
struct Chat<'a> {
    loaded: Loaded,
    talk: Conversation,
    settings: Settings,
    console: &'a Console,
    as_json: bool,
}

/// Runs the command.
///
/// # Errors
/// The model has no chat template, the model or the device is unusable, or (through a pipe) a message cannot be answered.
pub(crate) fn run(args: &ChatArgs, console: &Console) -> anyhow::Result<Exit> {
    let talk = conversation(args)?;
    let loaded = loading::session(&args.model, &args.adapters, &args.device, &args.context, console)?;
    loaded.session.dialect().template(false)?;
    let sampling = args.sampling.sampling(loaded.session.dialect().suggested_sampling());
    let settings = Settings { max_tokens: args.max_tokens, sampling, stop_strings: Vec::new() };
    let mut lines = Lines::open(args.json)?;
    lines.say("Type a message, /help for more, Ctrl-D to leave.");
    Chat { loaded, talk, settings, console, as_json: args.json }.run(&mut lines)
}

fn conversation(args: &ChatArgs) -> anyhow::Result<Conversation> {
    let Some(path) = &args.load else { return Ok(Conversation::new(args.system.as_deref())) };
    let mut talk = Conversation::load(path)?;
    if let Some(system) = &args.system {
        talk.set_system(Some(system));
    }
    Ok(talk)
}

impl Chat<'_> {
    fn run(&mut self, lines: &mut Lines) -> anyhow::Result<Exit> {
        while let Some(line) = lines.next()? {
            match self.take(&line, lines) {
                Ok(None) => {}
                Ok(Some(exit)) => return Ok(exit),
                Err(error) if lines.is_interactive() => lines.say(&crate::error_line(&error)),
                Err(error) => return Err(error),
            }
        }
        Ok(Exit::Done)
    }

    /// One line, a command or a message; says how the conversation ends where it does.
    fn take(&mut self, line: &str, lines: &Lines) -> anyhow::Result<Option<Exit>> {
        match Slash::parse(line) {
            Some(Slash::Quit) => return Ok(Some(Exit::Done)),
            Some(slash) => lines.say(&slash.run(&mut self.talk)?),
            None if line.trim().is_empty() => {}
            None => {
                let reason = self.turn(slash::message(line))?;
                let ends_pipe = reason == FinishReason::Cancelled && !lines.is_interactive();
                return Ok(ends_pipe.then_some(Exit::Cancelled));
            }
        }
        Ok(None)
    }

    /// One message and its answer. A message that cannot be answered is taken back.
    fn turn(&mut self, text: &str) -> anyhow::Result<FinishReason> {
        self.talk.say(text);
        let answer = self.answer().inspect_err(|_| drop(self.talk.undo()))?;
        self.talk.answered(&answer.done.written);
        if self.as_json {
            output::json(&Report::new(&answer, &self.loaded))?;
        } else {
            output::stream("\n")?;
            self.console.detail(&format!("[{}]", answer.summary()));
        }
        Ok(answer.done.reason)
    }

    fn answer(&mut self) -> anyhow::Result<Answer> {
        let watching = self.console.interrupt.watch();
        let as_json = self.as_json;
        let mut on_text = |channel, text: &str| if as_json { Ok(()) } else { show(channel, text) };
        // Each turn draws anew, and the whole conversation follows from one seed.
        self.settings.sampling.seed = self.settings.sampling.seed.wrapping_add(1);
        answer(&mut self.loaded.session, &self.talk.prompt(), &self.settings, &watching, &mut on_text)
    }
}
