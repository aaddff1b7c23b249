//! Fine-tuning: what a run is told, and what it decides from step to step.
//!
//! - [`Learner`]: a model and the matrices of it that are trained; [`pass`] gives their gradients over some documents.
//! - [`Run`]: step after step, with measurements and checkpoints; [`Trainer`] takes one step.
//! - [`RunConfig`]: the YAML of a run, checked as a whole; every mistake is listed with its line.
//! - [`schedule`]: learning rate and batch size as functions of the step.
//! - [`Clipper`], [`OutlierSteps`]: small machines that remember recent steps; they are part of a checkpoint.
//! - [`MetricsLog`]: the numbers of each step, as JSON Lines and for TensorBoard.
//!
//! Deliberately absent: clocks, threads, terminals. Whoever runs a step brings what it measured.
#![deny(clippy::indexing_slicing)]

pub mod checkpoint;
mod clip;
pub mod config;
mod error;
mod gradient_norms;
mod learner;
mod log;
mod memory;
mod optimizer;
mod outlier;
mod pass;
mod run;
pub mod schedule;
pub mod targets;
mod trainer;

pub use clip::Clipper;
pub use config::RunConfig;
pub use error::{Problem, TrainError};
pub use gradient_norms::{GradientNorms, gradient_norms};
pub use learner::Learner;
pub use log::{Metrics, MetricsLog};
pub use memory::MemoryPlan;
pub use outlier::{OutlierSteps, Verdict};
pub use pass::{Pass, PassSpec, pass};
pub use run::{Event, Parts, Run, adapter_folder, total_steps};
pub use trainer::{Memory, StepReport, Trainer};
