//! One update of the weights after another: passes, bounds on the gradient, AdamW.
//!
//! A step asks the device for one readback: the losses, and the squared length of every gradient. What is to become of the
//! step is decided on the host from those, before anything is changed.

use burn::tensor::Tensor;
use samara_data::Batch;
use samara_model::Trunk;
use samara_ops::{Documents, Improbable, LossSpec, read_f32, sum_squares};
use serde::{Deserialize, Serialize};

use crate::config::RunConfig;
use crate::gradient_norms::present;
use crate::optimizer::Moments;
use crate::pass::add;
use crate::{Clipper, GradientNorms, Learner, OutlierSteps, PassSpec, TrainError, Verdict, pass, schedule};

/// A model in training.
pub struct Trainer {
    pub(crate) learner: Learner,
    pub(crate) moments: Moments,
    pub(crate) memory: Memory,
    trunk: Trunk,
    config: RunConfig,
}

/// What a trainer remembers beside matrices: part of a checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// Steps that were taken, bad ones among them.
    pub step: u64,
    /// Tokens that went through the model.
    pub tokens_seen: u64,
    /// Bad steps since the last good one.
    pub bad_steps: u64,
    pub(crate) clipper: Clipper,
    pub(crate) outliers: Option<OutlierSteps>,
}

/// What a step did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepReport {
    /// Counted from 1.
    pub step: u64,
    /// Mean over the labels, in nats.
    pub loss: f64,
    /// Of all gradients together, before clipping.
    pub gradient_norm: f64,
    /// What the gradients were multiplied by.
    pub clip_factor: f64,
    /// The highest of all layers.
    pub learning_rate: f64,
    pub n_tokens: u64,
    /// Tokens with a label.
    pub n_trained: u64,
    pub verdict: Verdict,
    /// The matrix with the first gradient that is no number, where there is one.
    pub not_finite: Option<String>,
    /// The norm of each layer's gradients, the part outside of layers last.
    #[serde(skip)]
    pub layer_norms: Vec<f64>,
}

impl Trainer {
    /// A trainer for documents of at most `max_length` tokens.
    pub fn new(learner: Learner, config: &RunConfig, max_length: usize) -> Self {
        let moments = Moments::new(&config.optimizer, learner.values().len());
        let trunk = learner.model().trunk(max_length);
        let memory = Memory {
            step: 0,
            tokens_seen: 0,
            bad_steps: 0,
            clipper: Clipper::new(config.optimizer.clip),
            outliers: config.optimizer.skip_outliers.map(OutlierSteps::new),
        };
        Self { learner, moments, memory, trunk, config: config.clone() }
    }

    /// What is trained.
    pub fn learner(&self) -> &Learner {
        &self.learner
    }

    /// How far it is.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// One update, of the loss over all labels of all batches, as step of a run of `total` steps.
    ///
    /// # Errors
    /// The device failed, or too many steps in a row were bad.
    pub async fn step(&mut self, batches: &[Batch], total: u64) -> Result<StepReport, TrainError> {
        let n_trained: usize = batches.iter().map(Batch::n_trained).sum();
        let mut losses = Vec::new();
        let mut gradients = vec![None; self.learner.values().len()];
        for (index, batch) in batches.iter().enumerate().filter(|(_, batch)| batch.n_trained() > 0) {
            let spec = self.pass_spec(n_trained, index);
            let found = pass(&self.learner, &upload(batch, &self.learner), &self.trunk, &spec);
            losses.push(found.losses);
            gradients.iter_mut().zip(found.gradients).for_each(|(sum, more)| add(sum, more));
        }
        let (loss, squares) = self.read(losses, &gradients).await?;
        let n_tokens: usize = batches.iter().map(Batch::n_tokens).sum();
        let report = self.decide(loss / n_trained.max(1) as f64, &squares, [n_tokens, n_trained], total);
        if report.verdict == Verdict::Keep && n_trained > 0 {
            let rates = self.rates(total);
            let rate = |index: usize| rates.get(index).copied().unwrap_or_default();
            let updated = self.moments.update(self.learner.values(), gradients, report.clip_factor, rate);
            self.learner.replace(updated);
        }
        self.memory.step += 1;
        self.memory.tokens_seen += report.n_tokens;
        self.count(&report)?;
        Ok(report)
    }

    /// The mean loss over the labels of some batches, and how many there are. Nothing is dropped.
    ///
    /// # Errors
    /// The device failed.
    pub async fn evaluate(&self, batches: impl Iterator<Item = Batch>) -> Result<(f64, u64), TrainError> {
        let model = self.learner.model();
        let (mut sum, mut n_labels) = (0.0, 0);
        let spec = LossSpec {
            chunk_tokens: self.config.memory.loss_chunk_tokens.max(1),
            limit: model.config().vocab_size,
            scale: 1.0,
            train_head: false,
        };
        for batch in batches.filter(|batch| batch.n_trained() > 0) {
            let documents = upload(&batch, &self.learner);
            let end = model.pass(0..model.config().n_layers, model.enter(&documents), &documents, &self.trunk);
            let losses = read_f32(model.loss(&end.input, &documents, &spec).per_token).await?;
            sum += losses.iter().map(|loss| f64::from(*loss)).sum::<f64>();
            n_labels += batch.n_trained() as u64;
        }
        Ok((sum / n_labels.max(1) as f64, n_labels))
    }

    fn pass_spec(&self, n_trained: usize, pass: usize) -> PassSpec {
        // Each pass of each step drops other values, and a resumed run the same.
        let seed = self.config.seed ^ (self.memory.step << 20 | pass as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        PassSpec {
            recompute_every: self.config.memory.recompute_every,
            loss_chunk_tokens: self.config.memory.loss_chunk_tokens,
            scale: 1.0 / n_trained as f32,
            seed,
            skip: self.config.stability.skip_improbable.map(|skip| Improbable {
                below: skip.below as f32,
                rate: skip.rate as f32,
                seed: (seed >> 32) as u32,
            }),
        }
    }

    /// The summed loss, and the squared length of each gradient: one readback.
    async fn read(
        &self,
        losses: Vec<Tensor<1>>,
        gradients: &[Option<Tensor<2>>],
    ) -> Result<(f64, Vec<(usize, f64)>), TrainError> {
        let (indices, found) = present(gradients);
        if losses.is_empty() || found.is_empty() {
            return Ok((0.0, Vec::new()));
        }
        let squares = sum_squares(found.into_iter(), self.learner.device());
        let values = read_f32(Tensor::cat([losses, vec![squares]].concat(), 0)).await?;
        let (losses, squares) = values.split_at(values.len() - indices.len());
        let loss = losses.iter().map(|loss| f64::from(*loss)).sum();
        Ok((loss, indices.into_iter().zip(squares.iter().copied().map(f64::from)).collect()))
    }

    fn decide(&mut self, loss: f64, squares: &[(usize, f64)], n: [usize; 2], total: u64) -> StepReport {
        let norms = GradientNorms::of_squares(&self.learner, squares);
        let gradient_norm = norms.total();
        let finite = loss.is_finite() && gradient_norm.is_finite();
        let verdict = match &mut self.memory.outliers {
            Some(outliers) => outliers.judge(loss, gradient_norm),
            None if finite => Verdict::Keep,
            None => Verdict::NotFinite,
        };
        let is_kept = verdict == Verdict::Keep;
        let rate = schedule::learning_rate(self.memory.step, total, &self.config.schedule);
        StepReport {
            step: self.memory.step + 1,
            loss,
            gradient_norm,
            clip_factor: if is_kept { self.memory.clipper.factor(gradient_norm) } else { 1.0 },
            learning_rate: rate * self.config.optimizer.learning_rate,
            n_tokens: n[0] as u64,
            n_trained: n[1] as u64,
            verdict,
            not_finite: norms.not_finite,
            layer_norms: norms.layers,
        }
    }

    /// The learning rate of each matrix at this step.
    fn rates(&self, total: u64) -> Vec<f64> {
        let (step, schedule) = (self.memory.step, self.config.schedule);
        let n_layers = self.learner.config().n_layers;
        let rate = schedule::learning_rate(step, total, &schedule) * self.config.optimizer.learning_rate;
        let of_layer = |layer| rate * schedule::layer_multiplier(layer, n_layers, step, total, &schedule);
        let layers = (0..self.learner.values().len()).map(|index| self.learner.layer_of(index));
        layers.map(|layer| layer.map_or(rate, of_layer)).collect()
    }

    fn count(&mut self, report: &StepReport) -> Result<(), TrainError> {
        if report.verdict == Verdict::Keep {
            self.memory.bad_steps = 0;
            return Ok(());
        }
        self.memory.bad_steps += 1;
        if self.memory.bad_steps >= self.config.stability.max_bad_steps {
            let (n_steps, place) = (self.memory.bad_steps, report.not_finite.clone());
            return Err(TrainError::BadSteps {
                n_steps,
                loss: report.loss,
                gradient_norm: report.gradient_norm,
                place,
            });
        }
        Ok(())
    }
}

fn upload(batch: &Batch, learner: &Learner) -> Documents {
    Documents::new(&batch.ids, &batch.positions, &batch.labels, learner.device())
}
