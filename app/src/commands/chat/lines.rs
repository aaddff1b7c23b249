//! Where messages come from: a line editor with history at a terminal, plain lines through a pipe.

use std::io::{self, BufRead, IsTerminal};
use std::path::PathBuf;

use anyhow::Context;
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

use crate::{output, places};

/// A source of messages.
pub(super) enum Lines {
    Terminal(Box<Terminal>),
    Pipe,
}

/// A line editor and the file that keeps its history, where there is one.
pub(super) struct Terminal {
    editor: DefaultEditor,
    history: Option<PathBuf>,
}

impl Lines {
    /// A line editor when a person sits at both ends and wants text.
    pub(super) fn open(wants_json: bool) -> anyhow::Result<Self> {
        if wants_json || !io::stdin().is_terminal() || !io::stdout().is_terminal() {
            return Ok(Self::Pipe);
        }
        let mut editor = DefaultEditor::new().context("opening the line editor")?;
        let history = places::history_path().ok();
        // A first run has no history, and a chat without one is still a chat.
        history.iter().for_each(|path| drop(editor.load_history(path)));
        Ok(Self::Terminal(Box::new(Terminal { editor, history })))
    }

    /// The next line; `None` at the end.
    pub(super) fn next(&mut self) -> anyhow::Result<Option<String>> {
        match self {
            Self::Terminal(terminal) => terminal.next(),
            Self::Pipe => {
                let mut line = String::new();
                let n_bytes = io::stdin().lock().read_line(&mut line).context("standard input")?;
                Ok((n_bytes > 0).then(|| line.trim_end_matches(['\r', '\n']).to_owned()))
            }
        }
    }

    pub(super) fn is_interactive(&self) -> bool {
        matches!(self, Self::Terminal(_))
    }

    /// A remark of the program, not of the model. Pipes carry answers only.
    pub(super) fn say(&self, text: &str) {
        if self.is_interactive() && !text.is_empty() {
            // Whoever closed the terminal is told nothing more.
            drop(output::stream(&format!("{}\n", output::dim(text))));
        }
    }
}

impl Terminal {
    fn next(&mut self) -> anyhow::Result<Option<String>> {
        loop {
            match self.editor.readline("> ") {
                Ok(line) => {
                    self.remember(&line);
                    return Ok(Some(line));
                }
                Err(ReadlineError::Interrupted) => output::stream(&output::dim("(Ctrl-D or /quit to leave)\n"))?,
                Err(ReadlineError::Eof) => return Ok(None),
                Err(error) => return Err(error).context("reading a line"),
            }
        }
    }

    /// Written at once, so that a lost terminal loses nothing. A history that cannot be written is no reason to stop.
    fn remember(&mut self, line: &str) {
        let is_new = self.editor.add_history_entry(line).unwrap_or(false);
        let Some(path) = self.history.as_ref().filter(|_| is_new) else { return };
        drop(path.parent().map(std::fs::create_dir_all));
        drop(self.editor.append_history(path));
    }
}
