//! The numbers of a run, written down step by step: as JSON Lines, and as an event file for TensorBoard.
//!
//! Each record is one write at the end of a file. A run that is killed leaves at most half a record, and a run that goes on
//! first takes away half records and those of steps that it will do again, so that a resumed log reads like a straight one.

mod events;
mod jsonl;

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::config::LogConfig;
use crate::error::TrainError;

const JSONL: &str = "metrics.jsonl";
/// TensorBoard reads files with `tfevents` in their names.
const EVENTS: &str = "events.out.tfevents.samara";

/// Numbers of one step.
#[derive(Debug, Clone, PartialEq)]
pub struct Metrics<'a> {
    pub step: u64,
    /// Seconds since 1970, as the caller's clock says.
    pub unix_time_s: f64,
    /// What was measured, by name; TensorBoard groups names by what stands before a slash.
    pub values: Vec<(&'a str, f64)>,
}

/// The files that metrics go to.
#[derive(Debug)]
pub struct MetricsLog {
    jsonl: Option<LogFile>,
    events: Option<LogFile>,
}

impl MetricsLog {
    /// Opens `metrics.jsonl` and an event file in this folder, as far as they are wanted. What they hold of steps from
    /// `from_step` on is taken away; a new run begins at 0.
    ///
    /// # Errors
    /// A file cannot be opened, read or shortened.
    pub fn open(folder: &Path, config: &LogConfig, from_step: u64, unix_time_s: f64) -> Result<Self, TrainError> {
        let jsonl = || LogFile::open(folder.join(JSONL), |file| jsonl::kept_bytes(file, from_step));
        let events = || {
            let mut file = LogFile::open(folder.join(EVENTS), |file| events::kept_bytes(file, from_step))?;
            if file.is_empty {
                file.append(&events::version(unix_time_s))?;
            }
            Ok::<_, TrainError>(file)
        };
        Ok(Self { jsonl: config.jsonl.then(jsonl).transpose()?, events: config.tensorboard.then(events).transpose()? })
    }

    /// Writes the numbers of a step.
    ///
    /// # Errors
    /// A file cannot be written, as on a full disk.
    pub fn push(&mut self, metrics: &Metrics<'_>) -> Result<(), TrainError> {
        if let Some(file) = &mut self.jsonl {
            file.append(&jsonl::line(metrics))?;
        }
        if let Some(file) = &mut self.events {
            file.append(&events::scalars(metrics))?;
        }
        Ok(())
    }
}

/// A file that only grows.
#[derive(Debug)]
struct LogFile {
    path: PathBuf,
    file: File,
    is_empty: bool,
}

impl LogFile {
    /// Opens a file, or makes it, and cuts it to the bytes that `kept_bytes` finds good.
    fn open(path: PathBuf, kept_bytes: impl Fn(&mut File) -> io::Result<u64>) -> Result<Self, TrainError> {
        let open = || {
            let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path)?;
            let n_bytes = kept_bytes(&mut file)?;
            file.set_len(n_bytes)?;
            file.seek(SeekFrom::Start(n_bytes))?;
            Ok((file, n_bytes == 0))
        };
        match open() {
            Ok((file, is_empty)) => Ok(Self { path, file, is_empty }),
            Err(source) => Err(TrainError::File { path, action: "go on with", source }),
        }
    }

    fn append(&mut self, record: &[u8]) -> Result<(), TrainError> {
        let written = io::Write::write_all(&mut self.file, record);
        written.map_err(|source| TrainError::File { path: self.path.clone(), action: "write", source })
    }
}
