//! What can go wrong with a run.

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
