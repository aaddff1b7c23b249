//! The sections of a run, each with its defaults.

use std::path::PathBuf;

use samara_data::{OnBadRow, TrainOn};
use serde::{Deserialize, Serialize};

/// What is learned from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DataConfig {
    /// JSON Lines, plain or compressed by gzip or zstd.
    pub train: Vec<PathBuf>,
    pub validation: Validation,
    /// The longest document, in tokens; none for 1.5 times the mean.
    pub max_length: Option<usize>,
    /// The longest line, in bytes.
    pub max_line_bytes: usize,
    pub on_bad_row: OnBadRow,
    pub train_on: TrainOn,
    /// Whether texts and completions end with the end-of-sequence token.
    pub append_end: bool,
    /// Whether each epoch has its own random order.
    pub shuffle: bool,
    /// Whether a batch takes as many documents as fit.
    pub packing: bool,
}

impl Default for DataConfig {
    fn default() -> Self {
        Self {
            train: Vec::new(),
            validation: Validation::default(),
            max_length: None,
            max_line_bytes: 64 << 20,
            on_bad_row: OnBadRow::default(),
            train_on: TrainOn::default(),
            append_end: true,
            shuffle: true,
            packing: true,
        }
    }
}

/// Where documents for validation come from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Validation {
    /// There are none.
    #[default]
    Off,
    /// This part of the training documents is set apart.
    Fraction(f64),
    /// Files of their own.
    Files(Vec<PathBuf>),
}

/// What is learned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AdapterConfig {
    pub kind: AdapterKind,
    /// Rank of the two small matrices.
    pub rank: usize,
    /// Their product is scaled by `alpha / rank`, or by `alpha / sqrt(rank)` with `rslora`.
    pub alpha: f64,
    /// The part of a LoRA matrix's inputs that is set to zero at random.
    pub dropout: f64,
    pub rslora: bool,
    pub target_modules: TargetModules,
}

impl Default for AdapterConfig {
    fn default() -> Self {
        Self {
            kind: AdapterKind::default(),
            rank: 16,
            alpha: 32.0,
            dropout: 0.0,
            rslora: false,
            target_modules: TargetModules::default(),
        }
    }
}

/// Which weights change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdapterKind {
    /// Two small matrices beside each linear layer. Over a quantised model this is QLoRA.
    #[default]
    Lora,
    /// LoRA with the magnitude of each row apart.
    Dora,
    /// All weights of the model.
    Full,
}

/// Which linear layers get LoRA matrices.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetModules {
    /// All but the output layer.
    #[default]
    AllLinear,
    /// Those whose name is, or ends with a dot and, one of these.
    Names(Vec<String>),
    /// Those whose whole name matches.
    Regex(String),
}

/// How many tokens make a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BatchConfig {
    /// Tokens of one forward and backward pass.
    pub tokens: usize,
    /// Passes before the weights are updated.
    pub accumulate: usize,
    pub growth: Option<GrowthConfig>,
}

impl Default for BatchConfig {
    fn default() -> Self {
        Self { tokens: 2048, accumulate: 1, growth: None }
    }
}

/// Steps that grow with the tokens seen, by more passes a step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct GrowthConfig {
    /// A step grows by this factor
    pub factor: f64,
    /// each time that so many tokens were seen,
    pub every_tokens: u64,
    /// to at most so many tokens.
    pub max_tokens: u64,
}

impl Default for GrowthConfig {
    fn default() -> Self {
        Self { factor: 1.5, every_tokens: 10_000_000, max_tokens: 65_536 }
    }
}

/// AdamW and what keeps its steps in bounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OptimizerConfig {
    /// The highest of the schedule. By default 2e-4, and 2e-5 where all weights change.
    pub learning_rate: f64,
    /// How slowly the two moments forget.
    pub betas: [f64; 2],
    /// Added to the root of the second moment.
    pub eps: f64,
    /// The part of a weight that is taken away each step, times the learning rate.
    pub weight_decay: f64,
    pub clip: Clip,
    pub skip_outliers: Option<OutlierConfig>,
}

impl Default for OptimizerConfig {
    fn default() -> Self {
        Self {
            learning_rate: 2e-4,
            betas: [0.9, 0.999],
            eps: 1e-8,
            weight_decay: 0.0,
            clip: Clip::default(),
            skip_outliers: Some(OutlierConfig::default()),
        }
    }
}

/// The bound on the global norm of the gradients.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clip {
    Off,
    /// This norm.
    Norm(f64),
    /// This percentile of the norms of the last `window` steps.
    Percentile {
        percentile: f64,
        window: usize,
    },
}

impl Default for Clip {
    fn default() -> Self {
        Self::Norm(1.0)
    }
}

/// Which steps are left out: those whose loss or gradient norm is far above the recent ones.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct OutlierConfig {
    /// So many steps are recent.
    pub window: usize,
    /// So many standard deviations above the mean are far.
    pub sigma: f64,
}

impl Default for OutlierConfig {
    fn default() -> Self {
        Self { window: 128, sigma: 6.0 }
    }
}

/// How the learning rate changes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ScheduleConfig {
    pub kind: ScheduleKind,
    pub warmup: Warmup,
    /// Where the lowest quarter of layers begins the warm-up, as a part of the rate of the others. 1 makes no difference.
    pub lowest_layers_warmup: f64,
    /// Where the rate ends, as a part of the highest.
    pub final_fraction: f64,
}

impl Default for ScheduleConfig {
    fn default() -> Self {
        Self {
            kind: ScheduleKind::default(),
            warmup: Warmup::Fraction(0.05),
            lowest_layers_warmup: 1.0,
            final_fraction: 0.1,
        }
    }
}

/// The shape of the way down.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScheduleKind {
    #[default]
    Cosine,
    Linear,
    /// No way down.
    Constant,
}

/// How long the rate rises.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Warmup {
    /// This part of all steps.
    Fraction(f64),
    Steps(u64),
}

/// What is computed again rather than kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryConfig {
    /// Activations are kept after every so many layers, and computed again in between; none keeps all.
    pub recompute_every: Option<usize>,
    /// Logits exist for so many tokens at once.
    pub loss_chunk_tokens: usize,
}

impl Default for MemoryConfig {
    fn default() -> Self {
        Self { recompute_every: None, loss_chunk_tokens: 128 }
    }
}

/// What a run can go on from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointConfig {
    pub every_steps: u64,
    /// The last so many stay.
    pub keep_last: usize,
    /// Whether the one with the lowest validation loss stays too; without validation there is none.
    pub keep_best: bool,
}

impl Default for CheckpointConfig {
    fn default() -> Self {
        Self { every_steps: 100, keep_last: 2, keep_best: true }
    }
}

/// When the validation loss is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvaluateConfig {
    pub every_steps: u64,
}

impl Default for EvaluateConfig {
    fn default() -> Self {
        Self { every_steps: 100 }
    }
}

/// What is written down about a run, in its output folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogConfig {
    /// Whether there is a file of JSON Lines.
    pub jsonl: bool,
    /// Whether there is an event file for TensorBoard.
    pub tensorboard: bool,
    pub every_steps: u64,
    /// Gradient norms by layer and attention by head, every so many steps; none for never.
    pub statistics_every: Option<u64>,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self { jsonl: true, tensorboard: true, every_steps: 1, statistics_every: None }
    }
}

/// When a run gives up, and what it leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StabilityConfig {
    /// After so many bad steps in a row the run ends with its last good checkpoint.
    pub max_bad_steps: u64,
    pub skip_improbable: Option<ImprobableConfig>,
}

impl Default for StabilityConfig {
    fn default() -> Self {
        Self { max_bad_steps: 5, skip_improbable: None }
    }
}

/// Documents that the model finds improbable are left out at random.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ImprobableConfig {
    /// Improbable is a mean probability of its tokens below this.
    pub below: f64,
    /// The part of them that is left out.
    pub rate: f64,
}

impl Default for ImprobableConfig {
    fn default() -> Self {
        Self { below: 0.1, rate: 0.5 }
    }
}

/// How often each objective is chosen for a document; only the proportions matter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ObjectivesConfig {
    pub next_token: f64,
    pub span_corruption: f64,
    pub contrastive: f64,
    /// The part of the tokens that span corruption cuts out.
    pub masked: f64,
    /// Tokens that stand for what was cut out, as the vocabulary spells them.
    pub sentinels: Vec<String>,
    /// Other documents that the contrastive objective compares with.
    pub negatives: usize,
}

impl Default for ObjectivesConfig {
    fn default() -> Self {
        Self {
            next_token: 1.0,
            span_corruption: 0.0,
            contrastive: 0.0,
            masked: 0.15,
            sentinels: Vec::new(),
            negatives: 5,
        }
    }
}
