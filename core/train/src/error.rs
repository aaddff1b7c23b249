//! What can go wrong with a run.

use samara_data::DataError;
use samara_formats::FormatError;
use samara_model::ModelError;
use samara_ops::OpsError;
use std::fmt;
use std::path::PathBuf;

/// Why there is no run.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// The file system refused.
    #[error("{}: cannot {action}: {source}", path.display())]
    File { path: PathBuf, action: &'static str, source: std::io::Error },
    /// The model or the adapter cannot be used.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] OpsError),
    /// Training data cannot be used.
    #[error(transparent)]
    Data(#[from] DataError),
    /// An adapter cannot be read or written.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// A file of a checkpoint is not what was written.
    #[error("{}: not a checkpoint of this run: {reason}", path.display())]
    Damaged { path: PathBuf, reason: String },
    /// A new run would mix with an old one.
    #[error(
        "{}: there is a run already; go on with it by --resume, or choose another output folder", path.display()
    )]
    Exists { path: PathBuf },
    /// A resumed run would not be the same run.
    #[error(
        "{what} changed since the last checkpoint, so the run cannot go on; begin a new one in another output folder"
    )]
    Changed { what: &'static str },
    /// Nothing to train.
    #[error("adapter.target_modules: no module of this model is {what}; there are {}", names.join(", "))]
    NoTargets { what: String, names: Vec<String> },
    /// Training does not get anywhere.
    #[error(
        "{n_steps} steps in a row were left out: loss {loss}, gradient norm {gradient_norm}{}; the last checkpoint is from \
         before them. A lower learning rate helps most",
        place.as_ref().map(|name| format!(", first no number in {name}")).unwrap_or_default()
    )]
    BadSteps { n_steps: u64, loss: f64, gradient_norm: f64, place: Option<String> },
    /// The YAML of a run has mistakes; all of them are here.
    #[error("{}", list(name, problems))]
    Config { name: String, problems: Vec<Problem> },
}

/// A mistake in the YAML of a run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Counted from 1.
    pub line: usize,
    /// The key with its sections, `optimizer.clip.norm`; empty where it is the file as a whole.
    pub key: String,
    pub reason: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.key.as_str() {
            "" => write!(f, "{}: {}", self.line, self.reason),
            key => write!(f, "{}: {key}: {}", self.line, self.reason),
        }
    }
}

/// One line a problem, each with the name of the file, so that editors find the place.
fn list(name: &str, problems: &[Problem]) -> String {
    problems.iter().map(|problem| format!("{name}:{problem}")).collect::<Vec<_>>().join("\n")
}
