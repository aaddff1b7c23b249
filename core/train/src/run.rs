//! A run from its first step to its adapter: which batch comes next, when to measure, when to save.
//!
//! Pull-based: each call of [`Run::advance`] does one thing and says what. Whoever calls may stop between any two calls,
//! save, and go on another day with the same losses.

use std::path::{Path, PathBuf};

use samara_data::{Batch, Cursor, Dataset, Document, Objectives, Order, OrderOptions, Plan, SpanCorruption, Weights};
use serde::Serialize;

use crate::checkpoint::{self, Checkpoints, Saved};
use crate::config::{Length, RunConfig};
use crate::{Learner, Metrics, MetricsLog, StepReport, TrainError, Trainer, schedule};

/// A run.
pub struct Run {
    config: RunConfig,
    trainer: Trainer,
    train: Dataset,
    validation: Option<Dataset>,
    objectives: Option<Objectives>,
    order: Order,
    checkpoints: Checkpoints,
    log: MetricsLog,
    total: u64,
    best: Option<(f64, u64)>,
    due: Due,
    /// When the last step began, if one did.
    last_time_s: Option<f64>,
}

/// What comes after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    Step,
    Evaluation,
    Checkpoint,
}

/// What a run has done.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The weights were updated, or the step was left out.
    Step(StepReport),
    /// The validation loss.
    Evaluated { step: u64, loss: f64, n_trained: u64, is_best: bool },
    /// A checkpoint reached the disk.
    Saved { step: u64, path: PathBuf },
    /// All steps are done; the adapter is in the output folder.
    Done { step: u64, path: PathBuf },
}

/// What a run needs beside its configuration.
pub struct Parts {
    pub learner: Learner,
    pub train: Dataset,
    pub validation: Option<Dataset>,
    /// Ids of `objectives.sentinels`.
    pub sentinel_ids: Vec<u32>,
}

impl Run {
    /// A new run, or with `resume` one that goes on from its last checkpoint.
    ///
    /// # Errors
    /// The output folder holds another run, a checkpoint is damaged, or the data changed.
    pub fn open(config: RunConfig, parts: Parts, resume: bool, unix_time_s: f64) -> Result<Self, TrainError> {
        let Parts { learner, train, validation, sentinel_ids } = parts;
        let checkpoints = Checkpoints::open(&config.output)?;
        let max_length = train.max_length().max(validation.as_ref().map_or(0, Dataset::max_length));
        let mut trainer = Trainer::new(learner, &config, max_length.max(config.batch.tokens));
        let saved = match (checkpoints.last()?, resume) {
            (Some(path), true) => Some(checkpoint::restore(&path, &mut trainer)?),
            (Some(path), false) => return Err(TrainError::Exists { path }),
            (None, _) => None,
        };
        if let Some(saved) = &saved {
            check_same(saved, &config, &train)?;
        }
        let objectives = objectives(&config, sentinel_ids);
        let lengths = lengths(&train, objectives.as_ref());
        let total = total_steps(&lengths, &config)?;
        let cursor = saved.as_ref().map_or(Cursor::default(), |saved| saved.cursor);
        let order = Order::new(lengths, order_options(&config), cursor)?;
        let log = MetricsLog::open(&config.output, &config.log, trainer.memory().step + 1, unix_time_s)?;
        let best = saved.and_then(|saved| saved.best);
        let due = Due::Step;
        let last_time_s = None;
        Ok(Self {
            config,
            trainer,
            train,
            validation,
            objectives,
            order,
            checkpoints,
            log,
            total,
            best,
            due,
            last_time_s,
        })
    }

    /// Steps of the whole run.
    pub fn total_steps(&self) -> u64 {
        self.total
    }

    /// Steps that are done.
    pub fn step(&self) -> u64 {
        self.trainer.memory().step
    }

    /// What is trained, as it is now.
    pub fn trainer(&self) -> &Trainer {
        &self.trainer
    }

    /// Does the next thing. `unix_time_s` is now.
    ///
    /// # Errors
    /// The device failed, the disk is full, or too many steps in a row were bad; the last checkpoint is whole.
    pub async fn advance(&mut self, unix_time_s: f64) -> Result<Event, TrainError> {
        match self.due {
            Due::Step if self.step() >= self.total => self.finish().await,
            Due::Step => self.train_step(unix_time_s).await,
            Due::Evaluation => self.evaluate(unix_time_s).await,
            Due::Checkpoint => self.save().await,
        }
    }

    /// Writes a checkpoint of this moment, between two calls of [`Run::advance`].
    ///
    /// # Errors
    /// The device gave no answer, or the disk is full.
    pub async fn save(&mut self) -> Result<Event, TrainError> {
        let saved = Saved {
            memory: self.trainer.memory().clone(),
            cursor: self.order.cursor(),
            digest: self.train.digest().to_owned(),
            best: self.best,
            shape: shape(&self.config),
        };
        let path = self.checkpoints.save(&self.trainer, &saved).await?;
        let best = self.best.filter(|_| self.config.checkpoint.keep_best).map(|(_, step)| step);
        self.checkpoints.prune(self.config.checkpoint.keep_last, best)?;
        self.due = Due::Step;
        Ok(Event::Saved { step: self.step(), path })
    }

    async fn train_step(&mut self, unix_time_s: f64) -> Result<Event, TrainError> {
        let n_passes = schedule::passes(self.trainer.memory().tokens_seen, &self.config.batch);
        let mut batches = Vec::with_capacity(n_passes);
        while batches.len() < n_passes && !self.is_over() {
            batches.push(self.next_batch()?);
        }
        let report = self.trainer.step(&batches, self.total).await?;
        self.note(&report, unix_time_s)?;
        self.due = self.after_step();
        Ok(Event::Step(report))
    }

    /// Whether an epoch-bound run has met all its batches.
    fn is_over(&self) -> bool {
        matches!(self.config.length, Length::Epochs(n) if self.order.cursor().epoch >= n)
    }

    fn next_batch(&mut self) -> Result<Batch, TrainError> {
        let epoch = self.order.cursor().epoch;
        let documents = self.order.next_batch()?.to_vec();
        let document = |index: &u32| {
            let document = self.train.document(*index as usize)?;
            Ok::<Document, TrainError>(match &self.objectives {
                Some(objectives) => objectives.apply(document, *index as usize, epoch),
                None => document,
            })
        };
        Ok(Batch::from_documents(&documents.iter().map(document).collect::<Result<Vec<_>, _>>()?))
    }

    fn after_step(&self) -> Due {
        let (step, is_last) = (self.step(), self.step() >= self.total);
        let is_due = |every: u64| every > 0 && step.is_multiple_of(every) || is_last;
        if self.validation.is_some() && is_due(self.config.evaluate.every_steps) {
            Due::Evaluation
        } else {
            self.after_evaluation()
        }
    }

    fn after_evaluation(&self) -> Due {
        let (step, is_last) = (self.step(), self.step() >= self.total);
        let every = self.config.checkpoint.every_steps;
        let is_best = self.config.checkpoint.keep_best && self.best.is_some_and(|(_, best)| best == step);
        if every > 0 && step.is_multiple_of(every) || is_last || is_best { Due::Checkpoint } else { Due::Step }
    }

    async fn evaluate(&mut self, unix_time_s: f64) -> Result<Event, TrainError> {
        let step = self.step();
        let Some(validation) = &self.validation else {
            self.due = self.after_evaluation();
            return Ok(Event::Evaluated { step, loss: f64::NAN, n_trained: 0, is_best: false });
        };
        let options = OrderOptions { shuffle: false, packing: true, ..order_options(&self.config) };
        let plan = Plan::new(&validation.lengths(), &options, 0)?;
        let batches: Vec<Batch> =
            plan.batches().map(|documents| validation.batch(documents)).collect::<Result<_, _>>()?;
        let (loss, n_trained) = self.trainer.evaluate(batches.into_iter()).await?;
        let is_best = self.best.is_none_or(|(best, _)| loss < best);
        if is_best {
            self.best = Some((loss, step));
        }
        self.log.push(&Metrics { step, unix_time_s, values: vec![("validation/loss", loss)] })?;
        self.due = self.after_evaluation();
        Ok(Event::Evaluated { step, loss, n_trained, is_best })
    }

    fn note(&mut self, report: &StepReport, unix_time_s: f64) -> Result<(), TrainError> {
        let seconds = self.last_time_s.replace(unix_time_s).map(|last| unix_time_s - last);
        if !report.step.is_multiple_of(self.config.log.every_steps.max(1)) {
            return Ok(());
        }
        let mut values = vec![
            ("train/loss", report.loss),
            ("train/gradient_norm", report.gradient_norm),
            ("train/clip_factor", report.clip_factor),
            ("train/learning_rate", report.learning_rate),
            ("train/tokens", report.n_tokens as f64),
        ];
        if let Some(seconds) = seconds.filter(|seconds| *seconds > 0.0) {
            values.push(("train/tokens_per_s", report.n_tokens as f64 / seconds));
        }
        let names: Vec<String> = self.layer_names(report);
        values.extend(names.iter().map(String::as_str).zip(report.layer_norms.iter().copied()));
        self.log.push(&Metrics { step: report.step, unix_time_s, values })
    }

    /// Names for the gradient norms of layers, in steps that write them down.
    fn layer_names(&self, report: &StepReport) -> Vec<String> {
        match self.config.log.statistics_every {
            Some(every) if report.step.is_multiple_of(every.max(1)) => {
                let n_layers = report.layer_norms.len().saturating_sub(1);
                let name = |layer| if layer < n_layers { format!("{layer:03}") } else { "outside".to_owned() };
                (0..=n_layers).map(|layer| format!("gradient_norm/{}", name(layer))).collect()
            }
            _ => Vec::new(),
        }
    }

    async fn finish(&mut self) -> Result<Event, TrainError> {
        let path = self.config.output.clone();
        if let Some(adapter) = self.trainer.learner.to_adapter().await? {
            adapter.write(&path)?;
        }
        Ok(Event::Done { step: self.step(), path })
    }
}

/// Lengths of the documents as they are trained on.
fn lengths(train: &Dataset, objectives: Option<&Objectives>) -> Vec<u32> {
    let lengths = train.lengths();
    objectives.map_or(lengths.clone(), |objectives| objectives.lengths(&lengths))
}

fn objectives(config: &RunConfig, sentinel_ids: Vec<u32>) -> Option<Objectives> {
    let chosen = &config.objectives;
    (chosen.span_corruption > 0.0).then(|| Objectives {
        seed: config.seed,
        weights: Weights { next_token: chosen.next_token, span_corruption: chosen.span_corruption, contrastive: 0.0 },
        span_corruption: SpanCorruption {
            sentinels: sentinel_ids,
            masked_fraction: chosen.masked,
            ..SpanCorruption::default()
        },
        tokens_per_batch: config.batch.tokens,
    })
}

fn order_options(config: &RunConfig) -> OrderOptions {
    OrderOptions {
        seed: config.seed,
        tokens_per_batch: config.batch.tokens,
        shuffle: config.data.shuffle,
        packing: config.data.packing,
    }
}

/// Steps of a run over documents of these lengths.
///
/// # Errors
/// A document is longer than a batch.
pub fn total_steps(lengths: &[u32], config: &RunConfig) -> Result<u64, TrainError> {
    let n_epochs = match config.length {
        Length::Steps(steps) => return Ok(steps),
        Length::Epochs(epochs) => epochs,
    };
    let (mut steps, mut tokens_seen, mut tokens_pending, mut n_pending) = (0, 0u64, 0u64, 0);
    for epoch in 0..n_epochs {
        for batch in Plan::new(lengths, &order_options(config), epoch)?.batches() {
            n_pending += 1;
            let of_document = |index: &u32| u64::from(lengths.get(*index as usize).copied().unwrap_or_default());
            tokens_pending += batch.iter().map(of_document).sum::<u64>();
            if n_pending >= schedule::passes(tokens_seen, &config.batch) {
                steps += 1;
                tokens_seen += tokens_pending;
                (n_pending, tokens_pending) = (0, 0);
            }
        }
    }
    Ok(steps + u64::from(n_pending > 0))
}

/// What shapes the steps of a run, as text to compare: a resumed run must have the same.
fn shape(config: &RunConfig) -> String {
    let RunConfig { seed, data, adapter, batch, length, optimizer, schedule, objectives, .. } = config;
    let shape =
        (seed, data.max_length, data.shuffle, data.packing, adapter, batch, length, optimizer, schedule, objectives);
    format!("{shape:?}")
}

fn check_same(saved: &Saved, config: &RunConfig, train: &Dataset) -> Result<(), TrainError> {
    if saved.digest != train.digest() {
        return Err(TrainError::Changed { what: "the training data" });
    }
    if saved.shape != shape(config) {
        return Err(TrainError::Changed {
            what: "the configuration (seed, data, adapter, batch, length, optimizer or schedule)",
        });
    }
    Ok(())
}

/// The adapter of a checkpoint folder or of a finished run's output.
pub fn adapter_folder(checkpoint: &Path) -> PathBuf {
    let inside = checkpoint.join(checkpoint::ADAPTER);
    if inside.exists() { inside } else { checkpoint.to_owned() }
}
