//! `samara score`: how likely a model finds a text.

use std::path::PathBuf;

use clap::Args;
use samara_chat::{Dialect, Prompt, Session};
use serde::Serialize;

use crate::Exit;
use crate::adapters::{AdapterArgs, AdapterReport};
use crate::args::{ContextArgs, DeviceArgs, ModelArgs, text_or_stdin};
use crate::console::Console;
use crate::loading::{self, Loaded};
use crate::logits_file::LogitsFile;
use crate::output;
use crate::progress::Bar;

const EXAMPLES: &str = "\
Examples:
  samara score \"The cat sat on the mat.\"
  samara score --model olmo2-1b --json - < chapter.txt
  samara score --model olmo2-1b --adapter ./my-adapter \"The cat sat on the mat.\"
  samara score --model model.gguf --ids 1,2,3 --logits logits.safetensors
  samara score --model model.gguf --window 512 --json - < book.txt

Perplexity is exp(-mean log-probability) over all tokens but the first; bits per byte divides their total by the bytes they stand for.";

/// Tells the log-probability of each token of a text
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ScoreArgs {
    /// The text; `-` reads it from standard input
    #[arg(value_name = "TEXT", required_unless_present = "ids", conflicts_with = "ids")]
    text: Option<String>,
    /// Token ids instead of a text
    #[arg(long, value_name = "ID,ID,...", value_delimiter = ',')]
    ids: Option<Vec<u32>>,
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    adapters: AdapterArgs,
    /// Score separate windows of this many tokens, and of each the second half, as other runtimes' perplexity tools do
    #[arg(long, value_name = "TOKENS", conflicts_with = "logits", value_parser = clap::value_parser!(u32).range(2..))]
    window: Option<u32>,
    /// Write the logits, f32 [tokens, vocabulary], to this safetensors file
    #[arg(long, value_name = "FILE")]
    logits: Option<PathBuf>,
    #[command(flatten)]
    context: ContextArgs,
    #[command(flatten)]
    device: DeviceArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    ids: Vec<u32>,
    pieces: Vec<String>,
    /// Natural logarithms; the first token has nothing before it and none, nor have those that a window passes over.
    logprobs: Vec<Option<f64>>,
    total_logprob: f64,
    /// None for a single token.
    perplexity: Option<f64>,
    /// None where the tokens stand for no bytes.
    bits_per_byte: Option<f64>,
    n_bytes: usize,
    adapters: Vec<AdapterReport>,
    device: String,
}

/// Runs the command.
///
/// # Errors
/// The tokens, the model, the device or the output file is unusable.
pub(crate) fn run(args: &ScoreArgs, console: &Console) -> anyhow::Result<Exit> {
    let prompt = match &args.ids {
        Some(ids) => Prompt::Ids(ids.clone()),
        None => Prompt::Text(text_or_stdin(args.text.as_deref().unwrap_or_default())?),
    };
    let mut loaded = loading::session(&args.model, &args.adapters, &args.device, &args.context, console)?;
    let ids = loaded.session.dialect().encode(&prompt)?.ids;
    let logprobs = score(&mut loaded.session, &ids, args)?;
    let report = report(&loaded, ids, logprobs);
    if args.json {
        output::json(&report)?;
    } else {
        output::stream(&as_text(&report))?;
    }
    Ok(Exit::Done)
}

/// Log-probabilities `[T]`.
fn score(session: &mut Session, ids: &[u32], args: &ScoreArgs) -> anyhow::Result<Vec<Option<f64>>> {
    let Some(window) = args.window else {
        let logprobs = score_all(session, ids, args)?;
        return Ok(std::iter::once(None).chain(logprobs.into_iter().map(Some)).collect());
    };
    let window = window as usize;
    anyhow::ensure!(ids.len() >= window, "the text has {} tokens, fewer than one window of {window}", ids.len());
    let bar = Bar::steps("scoring");
    let mut logprobs = Vec::with_capacity(ids.len());
    for (n_done, ids) in ids.chunks_exact(window).enumerate() {
        bar.set((n_done * window) as u64, Some(logprobs.capacity() as u64));
        let scored = pollster::block_on(session.score(ids, |_, _| {}))?;
        logprobs.extend(std::iter::repeat_n(None, window / 2 + 1));
        logprobs.extend(scored.into_iter().skip(window / 2).map(Some));
    }
    logprobs.resize(ids.len(), None);
    Ok(logprobs)
}

/// Log-probabilities `[T - 1]`; logits go to the file on the way.
fn score_all(session: &mut Session, ids: &[u32], args: &ScoreArgs) -> anyhow::Result<Vec<f64>> {
    let vocab_size = session.config().vocab_size;
    let create = |path: &PathBuf| LogitsFile::create(path, ids.len(), vocab_size);
    let mut file = args.logits.as_ref().map(create).transpose()?;
    let mut written = Ok(());
    let bar = Bar::steps("scoring");
    let on_row = |position: usize, row: &[f32]| {
        bar.set(position as u64 + 1, Some(ids.len() as u64));
        if let (Some(file), Ok(())) = (&mut file, &written) {
            written = file.push(row);
        }
    };
    let logprobs = pollster::block_on(session.score(ids, on_row))?;
    written?;
    file.map_or(Ok(()), LogitsFile::finish)?;
    Ok(logprobs)
}

fn report(loaded: &Loaded, ids: Vec<u32>, logprobs: Vec<Option<f64>>) -> Report {
    let dialect = loaded.session.dialect();
    // Not `sum`, which gives -0 where there is nothing to add.
    let total = logprobs.iter().flatten().fold(0.0, |total, logprob| total + logprob);
    let n_scored = logprobs.iter().flatten().count();
    let scored = ids.iter().zip(&logprobs).filter(|(_, logprob)| logprob.is_some());
    let n_bytes = scored.map(|(&id, _)| text_bytes(dialect, id)).sum();
    let bits = -total / std::f64::consts::LN_2;
    Report {
        pieces: ids.iter().map(|&id| super::tokenize::piece(dialect, id)).collect(),
        ids,
        logprobs,
        total_logprob: total,
        perplexity: (n_scored > 0).then(|| (-total / n_scored as f64).exp()),
        bits_per_byte: (n_bytes > 0).then(|| bits / n_bytes as f64),
        n_bytes,
        adapters: loaded.adapters.clone(),
        device: loaded.device.clone(),
    }
}

/// Control tokens are no text.
fn text_bytes(dialect: &Dialect, id: u32) -> usize {
    let tokenizer = dialect.tokenizer();
    if tokenizer.is_special(id) { 0 } else { tokenizer.token_bytes(id).len() }
}

fn as_text(report: &Report) -> String {
    let rows = report.ids.iter().zip(&report.pieces).zip(&report.logprobs);
    let row = |((id, piece), logprob): ((&u32, &String), &Option<f64>)| {
        let logprob = logprob.map_or("-".to_owned(), |logprob| format!("{logprob:.4}"));
        vec![format!("{id:>7}"), format!("{logprob:>9}"), piece.clone()]
    };
    let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.4}"));
    let totals = output::facts(&[
        ("tokens", report.ids.len().to_string()),
        ("log-probability", format!("{:.4}", report.total_logprob)),
        ("perplexity", number(report.perplexity)),
        ("bits per byte", number(report.bits_per_byte)),
    ]);
    format!("{}\n{totals}", output::table(&rows.map(row).collect::<Vec<_>>()))
}
