//! Progress bars: on stderr, and only when a person is looking.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar of bytes; invisible when stderr is not a terminal.
pub(crate) struct Bar {
    bar: ProgressBar,
}

impl Bar {
    /// A bar named `label`, empty.
    pub(crate) fn bytes(label: &str) -> Self {
        let template = "{msg}  {wide_bar}  {bytes} of {total_bytes}  {binary_bytes_per_sec}  {eta}";
        Self::new(label, template)
    }

    /// A bar of steps that all take about as long.
    pub(crate) fn steps(label: &str) -> Self {
        Self::new(label, "{msg}  {wide_bar}  {pos} of {len}  {eta}")
    }

    fn new(label: &str, template: &str) -> Self {
        // `stderr` hides itself when it is no terminal.
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(10));
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("━╸─"));
        }
        // Nothing is drawn before the first number is known.
        Self { bar: bar.with_message(label.to_owned()) }
    }

    /// `done` of `total` are through; without a total the bar only counts.
    pub(crate) fn set(&self, done: u64, total: Option<u64>) {
        match total {
            Some(total) => self.bar.set_length(total),
            None => self.bar.unset_length(),
        }
        self.bar.set_position(done);
    }
}

impl Drop for Bar {
    /// A finished bar leaves no trace.
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
