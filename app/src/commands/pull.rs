//! `samara pull`: brings a published model here.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::bail;
use clap::Args;
use serde::Serialize;

use crate::Exit;
use crate::console::Console;
use crate::hub::{Catalogue, Download, Hub, HubError, Outcome, RemoteFile, RepoRef, Watch, choose_files};
use crate::interrupt::{Interrupt, Watching};
use crate::output::{self, bytes};
use crate::places::models_dir;
use crate::progress::Bar;

const EXAMPLES: &str = "\
Examples:
  samara pull --list                                   what the catalogue has
  samara pull olmo2-1b                                 a model by its short name
  samara pull allenai/OLMo-2-0425-1B-Instruct          every file of a safetensors model
  samara pull allenai/OLMo-2-0425-1B-Instruct-GGUF:Q8_0  one file, named by a part of its name

A download that was stopped goes on where it was. Private and gated models need an access token in HF_TOKEN.";

/// Downloads a model from the Hugging Face hub
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PullArgs {
    /// A catalogue name, or owner/repo[:file]
    #[arg(value_name = "NAME_OR_REPO", required_unless_present = "list")]
    model: Option<String>,
    /// Show the catalogue and stop
    #[arg(long)]
    list: bool,
    /// Branch, tag or commit
    #[arg(long, default_value = "main")]
    revision: String,
    /// The hub, or a mirror of it
    #[arg(long, env = "HF_ENDPOINT", default_value = "https://huggingface.co", value_name = "URL")]
    endpoint: String,
    /// Folder for models [default: samara/models in your data folder]
    #[arg(long, env = "SAMARA_MODELS", value_name = "DIR")]
    to: Option<PathBuf>,
    /// Print one JSON object at the end
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    repo: String,
    revision: String,
    /// What to give to `--model`.
    model: PathBuf,
    files: Vec<FileReport>,
}

#[derive(Serialize)]
struct FileReport {
    path: PathBuf,
    bytes: u64,
    sha256: Option<String>,
    /// `downloaded`, or `present` when it was here already.
    status: &'static str,
}

/// Runs the command.
///
/// # Errors
/// When the model is unknown, the server refuses, or the disk does.
pub(crate) fn run(args: &PullArgs, console: &Console) -> anyhow::Result<Exit> {
    let catalogue = Catalogue::embedded()?;
    let Some(name) = args.model.as_deref().filter(|_| !args.list) else { return show(&catalogue, args.json) };
    let repo = catalogue.resolve(name)?;
    let folder = repo.folder(&args.to.clone().map_or_else(models_dir, Ok)?);
    match pull(args, &repo, &folder, &console.interrupt) {
        Ok(report) if args.json => output::json(&report)?,
        Ok(report) => output::stream(&summary(name, &report))?,
        Err(HubError::Cancelled) => {
            eprintln!("{}", HubError::Cancelled);
            return Ok(Exit::Cancelled);
        }
        Err(error) => bail!(error),
    }
    Ok(Exit::Done)
}

fn pull(args: &PullArgs, repo: &RepoRef, folder: &Path, interrupt: &Interrupt) -> Result<Report, HubError> {
    let hub = Hub::new(&args.endpoint, std::env::var("HF_TOKEN").ok())?;
    let watching = interrupt.watch();
    let mut pause = |delay| sleep_unless_cancelled(delay, &watching);
    let files = choose_files(&hub.list(repo, &args.revision, &mut pause)?, repo)?;
    let mut reports = Vec::new();
    for file in &files {
        let url = hub.file_url(repo, &args.revision, &file.path);
        let download = Download {
            hub: &hub,
            url,
            file,
            path: file.path.split('/').fold(folder.to_owned(), |path, part| path.join(part)),
        };
        let mut watch = BarWatch { bar: Bar::bytes(&file.path), watching: &watching };
        let outcome = download.run(&mut watch, &mut pause)?;
        reports.push(file_report(file, download.path, outcome));
    }
    Ok(Report {
        repo: repo.repo_id(),
        revision: args.revision.clone(),
        model: model_path(folder, &files),
        files: reports,
    })
}

/// A bar for the person, and Ctrl-C from them.
struct BarWatch<'a> {
    bar: Bar,
    watching: &'a Watching,
}

impl Watch for BarWatch<'_> {
    fn progress(&mut self, here: u64, total: Option<u64>) {
        self.bar.set(here, total);
    }

    fn is_cancelled(&self) -> bool {
        self.watching.is_raised()
    }
}

/// Sleeps in short naps, so that Ctrl-C is heard.
fn sleep_unless_cancelled(delay: Duration, watching: &Watching) -> bool {
    let start = Instant::now();
    while start.elapsed() < delay && !watching.is_raised() {
        std::thread::sleep(Duration::from_millis(50).min(delay));
    }
    !watching.is_raised()
}

/// A GGUF is opened by its (first) file, a safetensors model by its folder.
fn model_path(folder: &Path, files: &[RemoteFile]) -> PathBuf {
    match files.first().filter(|file| file.path.ends_with(".gguf")) {
        Some(first) => folder.join(&first.path),
        None => folder.to_owned(),
    }
}

fn file_report(file: &RemoteFile, path: PathBuf, outcome: Outcome) -> FileReport {
    let on_disk = std::fs::metadata(&path).map_or(0, |found| found.len());
    let status = match outcome {
        Outcome::Present => "present",
        Outcome::Downloaded => "downloaded",
    };
    FileReport { path, bytes: on_disk, sha256: file.sha256.clone(), status }
}

fn summary(name: &str, report: &Report) -> String {
    let rows: Vec<_> = report
        .files
        .iter()
        .map(|file| vec![file.status.to_owned(), bytes(file.bytes), file.path.display().to_string()])
        .collect();
    format!("{}\nTry it:  samara chat --model {name}\n", output::table(&rows))
}

fn show(catalogue: &Catalogue, as_json: bool) -> anyhow::Result<Exit> {
    if as_json {
        output::json(&catalogue.entries)?;
        return Ok(Exit::Done);
    }
    let rows: Vec<_> = catalogue
        .entries
        .iter()
        .map(|entry| {
            let size = entry.size_gb.map_or(String::new(), |size| format!("{size:.2} GB"));
            vec![entry.name.clone(), size, entry.licence.clone(), entry.about.clone()]
        })
        .collect();
    output::stream(&output::table(&rows))?;
    Ok(Exit::Done)
}
