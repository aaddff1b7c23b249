//! What a run is told: plain data with defaults, and the YAML that it is written in.
//!
//! `read` takes the YAML apart and checks each value alone, `check` compares values with each other. Both only list
//! what is wrong, so that a user sees all of it at once.

mod check;
mod parts;
mod problems;
mod read;
mod section;

use std::path::{Path, PathBuf};

pub use parts::*;
pub use samara_data::{OnBadRow, TrainOn};
use serde::{Deserialize, Serialize};

use crate::error::{Problem, TrainError};

/// A YAML file larger than this is no configuration.
const MAX_BYTES: u64 = 1 << 20;

/// A run of fine-tuning. Paths are relative to the folder that the run is started in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunConfig {
    /// A model folder or file.
    pub model: PathBuf,
    /// The folder for the LoRA adapter, checkpoints and logs.
    pub output: PathBuf,
    /// All that is random follows from it.
    pub seed: u64,
    /// `auto`, `cpu` or `gpu:N`.
    pub device: String,
    pub data: DataConfig,
    pub adapter: AdapterConfig,
    pub batch: BatchConfig,
    pub length: Length,
    pub optimizer: OptimizerConfig,
    pub schedule: ScheduleConfig,
    pub memory: MemoryConfig,
    pub checkpoint: CheckpointConfig,
    pub evaluate: EvaluateConfig,
    pub log: LogConfig,
    pub stability: StabilityConfig,
    pub objectives: ObjectivesConfig,
}

/// How long a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Length {
    /// Updates of the weights.
    Steps(u64),
    /// Passes over the training data.
    Epochs(u64),
}

impl RunConfig {
    /// A run with the defaults.
    pub fn new(model: impl Into<PathBuf>, output: impl Into<PathBuf>, train: Vec<PathBuf>) -> Self {
        Self {
            model: model.into(),
            output: output.into(),
            seed: 0,
            device: "auto".to_owned(),
            data: DataConfig { train, ..DataConfig::default() },
            adapter: AdapterConfig::default(),
            batch: BatchConfig::default(),
            length: Length::Epochs(3),
            optimizer: OptimizerConfig::default(),
            schedule: ScheduleConfig::default(),
            memory: MemoryConfig::default(),
            checkpoint: CheckpointConfig::default(),
            evaluate: EvaluateConfig::default(),
            log: LogConfig::default(),
            stability: StabilityConfig::default(),
            objectives: ObjectivesConfig::default(),
        }
    }

    /// The run that this YAML describes.
    ///
    /// # Errors
    /// Every mistake in it, in the order of lines.
    pub fn from_yaml(yaml: &str) -> Result<Self, Vec<Problem>> {
        let (config, mut log) = read::run(yaml);
        if let Some(config) = &config {
            check::run(config, &mut log);
        }
        match (config, log.into_problems()) {
            (Some(config), problems) if problems.is_empty() => Ok(config),
            (_, problems) => Err(problems),
        }
    }

    /// The run that a YAML file describes.
    ///
    /// # Errors
    /// The file cannot be read, or has mistakes: all of them.
    pub fn open(path: &Path) -> Result<Self, TrainError> {
        let yaml =
            read_text(path).map_err(|source| TrainError::File { path: path.to_owned(), action: "read", source })?;
        Self::from_yaml(&yaml).map_err(|problems| TrainError::Config { name: path.display().to_string(), problems })
    }

    /// YAML with every key, its default and what it means.
    pub fn example() -> &'static str {
        include_str!("config/example.yaml")
    }
}

fn read_text(path: &Path) -> std::io::Result<String> {
    use std::io::Read;
    let mut text = String::new();
    let n_bytes = std::fs::File::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)? as u64;
    if n_bytes > MAX_BYTES {
        return Err(std::io::Error::other(format!("more than {MAX_BYTES} bytes")));
    }
    Ok(text)
}
