//! What can go wrong while a model is fetched, each with what the user can do about it.

use std::path::PathBuf;

/// Why a download did not finish.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    #[error("`{0}` is neither a catalogue name nor `owner/repo[:file]` (`samara pull --list` shows the catalogue)")]
    Reference(String),
    #[error("{url}: access denied ({status}); {advice}")]
    Denied { url: String, status: u16, advice: &'static str },
    #[error(
        "{url}: not found (404); check the owner, the repository, the revision and the file name for spelling and upper case"
    )]
    NotFound { url: String },
    #[error("{url}: the server answered {status}")]
    Status { url: String, status: u16, retry_after_s: Option<u64> },
    #[error("{url}: {source}")]
    Network { url: String, source: ureq::Error },
    #[error("{url}: the transfer broke off after {got} of {expected} bytes")]
    BrokeOff { url: String, got: u64, expected: u64 },
    #[error("{url}: {what}")]
    Answer { url: String, what: String },
    #[error("{repo} has no file `{wanted}`; it has {}", list(.available))]
    NoSuchFile { repo: String, wanted: String, available: Vec<String> },
    #[error("`{wanted}` fits several files of {repo}; name one: {}", list(.candidates))]
    Ambiguous { repo: String, wanted: String, candidates: Vec<String> },
    #[error("{repo} holds no model file (neither .gguf nor .safetensors)")]
    NoModel { repo: String },
    #[error("{}: the file should have {expected} bytes and has {found}; what arrived was removed, run the command again", .path.display())]
    WrongSize { path: PathBuf, expected: u64, found: u64 },
    #[error("{}: the SHA-256 should be {expected} and is {found}; what arrived was removed, run the command again", .path.display())]
    WrongDigest { path: PathBuf, expected: String, found: String },
    #[error("{}: the disk is full; {missing} more bytes are needed, and what has arrived is kept", .path.display())]
    DiskFull { path: PathBuf, missing: u64 },
    #[error("{}: another download of this file is under way", .path.display())]
    Busy { path: PathBuf },
    #[error("{}: {source}", .path.display())]
    File { path: PathBuf, source: std::io::Error },
    #[error("cancelled; what has arrived is kept and the next `samara pull` goes on from there")]
    Cancelled,
}

impl HubError {
    /// Whether the same request may succeed a little later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Network { source, .. } => is_transient_transport(source),
            Self::BrokeOff { .. } => true,
            Self::Status { status, .. } => matches!(status, 408 | 429 | 500..=599),
            _ => false,
        }
    }

    /// How long the server asked to wait, in seconds.
    pub fn retry_after_s(&self) -> Option<u64> {
        match self {
            Self::Status { retry_after_s, .. } => *retry_after_s,
            _ => None,
        }
    }
}

/// Broken connections and timeouts pass; malformed addresses and refused certificates do not.
fn is_transient_transport(error: &ureq::Error) -> bool {
    use ureq::Error::{BodyStalled, ConnectionFailed, HostNotFound, Io, Protocol, Timeout};
    matches!(error, Io(_) | Timeout(_) | HostNotFound | ConnectionFailed | Protocol(_) | BodyStalled)
}

/// At most eight names, then how many more.
fn list(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let mut text = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text.push_str(&format!(" and {} more", names.len() - SHOWN));
    }
    if text.is_empty() { "none".to_owned() } else { text }
}
