//! What a person or a program sees of a run.

use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use samara_train::{Event, RunConfig, StepReport, Verdict};

use super::setup::Setup;
use crate::output;

/// How a run is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Show {
    /// A bar and, where nobody looks at a terminal, a line now and then.
    Bar,
    /// A line of JSON for each event on standard output.
    Json,
}

/// A run on a terminal.
pub(super) struct Shown {
    show: Show,
    bar: ProgressBar,
    total: u64,
    first_step: u64,
    tokens: u64,
    is_terminal: bool,
}

impl Shown {
    /// Says what is about to be trained.
    pub(super) fn new(show: Show, setup: &Setup, config: &RunConfig) -> Self {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(4));
        if let Ok(style) = ProgressStyle::with_template("{pos}/{len}  {wide_bar}  {msg}  {eta} left") {
            bar.set_style(style.progress_chars("━╸─"));
        }
        let is_terminal = !bar.is_hidden();
        if show == Show::Bar {
            let report = &setup.report;
            eprintln!("{} on {}", setup.checkpoint.source(), setup.device);
            eprintln!(
                "{} documents, {} tokens, at most {} each{}",
                report.n_documents,
                report.n_tokens,
                report.max_length,
                if report.n_truncated > 0 { format!(", {} cut off", report.n_truncated) } else { String::new() }
            );
            if !report.fallen.is_empty() {
                eprintln!("left out: {}", report.reasons());
            }
            eprintln!("{} values are trained; output goes to {}", setup.n_trained, config.output.display());
        }
        Self { show, bar, total: 0, first_step: 0, tokens: 0, is_terminal }
    }

    /// The run goes from `step` to `total`.
    pub(super) fn begin(&mut self, step: u64, total: u64) {
        (self.first_step, self.total) = (step, total);
        self.bar.set_length(total);
        self.bar.set_position(step);
        self.bar.reset_eta();
        if self.show == Show::Bar && step > 0 {
            eprintln!("goes on after step {step} of {total}");
        }
    }

    /// Shows what happened.
    ///
    /// # Errors
    /// Standard output is closed.
    pub(super) fn event(&mut self, event: &Event, elapsed: Duration) -> anyhow::Result<()> {
        if self.show == Show::Json {
            return output::json(event);
        }
        match event {
            Event::Step(report) => self.step(report, elapsed),
            Event::Evaluated { step, loss, is_best, .. } => {
                let best = if *is_best { ", the lowest so far" } else { "" };
                self.line(&format!("step {step}: validation loss {loss:.4}{best}"));
            }
            Event::Saved { step, path } => self.line(&format!("step {step}: saved {}", path.display())),
            Event::Done { step, path } => {
                self.bar.finish_and_clear();
                let took = HumanDuration(elapsed);
                eprintln!("{step} steps in {took}; the result is in {}", path.display());
            }
        }
        Ok(())
    }

    /// Says how to go on.
    pub(super) fn stopped(&self, config: &RunConfig) {
        self.bar.finish_and_clear();
        if self.show == Show::Bar {
            eprintln!("stopped and saved in {}; --resume goes on", config.output.display());
        }
    }

    fn step(&mut self, report: &StepReport, elapsed: Duration) {
        self.tokens += report.n_tokens;
        let rate = self.tokens as f64 / elapsed.as_secs_f64().max(1e-9);
        self.bar.set_position(report.step);
        self.bar.set_message(format!("loss {:.4}  {rate:.0} tokens/s", report.loss));
        match report.verdict {
            Verdict::Keep => {}
            Verdict::NotFinite => {
                let place = report.not_finite.as_deref().unwrap_or("the loss");
                self.line(&format!("step {}: left out, first no number in {place}", report.step));
            }
            Verdict::Loss { limit } => {
                self.line(&format!("step {}: left out, loss {:.3} is above {limit:.3}", report.step, report.loss));
            }
            Verdict::GradientNorm { limit } => {
                let norm = report.gradient_norm;
                self.line(&format!("step {}: left out, gradient norm {norm:.3} is above {limit:.3}", report.step));
            }
        }
        // Where there is no bar a log should still move: about fifty lines for a whole run.
        let every = (self.total / 50).max(1);
        if !self.is_terminal && (report.step.is_multiple_of(every) || report.step == self.first_step + 1) {
            let (step, total, loss, lr) = (report.step, self.total, report.loss, report.learning_rate);
            eprintln!("step {step}/{total}: loss {loss:.4}, learning rate {lr:.2e}, {rate:.0} tokens/s");
        }
    }

    /// A line above the bar, or alone.
    fn line(&self, text: &str) {
        if self.is_terminal {
            self.bar.println(text);
        } else {
            eprintln!("{text}");
        }
    }
}
