//! Fine-tuning as a person sees it: from a configuration to a run, and what is shown of it.

mod full;
mod plan;
mod setup;
mod show;

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use samara_train::{Event, Run, RunConfig};

use crate::Exit;
use crate::console::Console;
pub(crate) use plan::plan;
pub(crate) use show::Show;
use show::Shown;

/// Trains until the end, or until Ctrl-C, which saves.
///
/// # Errors
/// The model, the data, the device or the output folder is unusable; or training gets nowhere.
pub(crate) fn train(config: RunConfig, resume: bool, show: Show, console: &Console) -> anyhow::Result<Exit> {
    let watching = console.interrupt.watch();
    let setup = setup::setup(&config, console)?;
    let mut shown = Shown::new(show, &setup, &config);
    let checkpoint = setup.checkpoint;
    let mut run = Run::open(config.clone(), setup.parts, resume, unix_time_s())?;
    shown.begin(run.step(), run.total_steps());
    let start = Instant::now();
    loop {
        if watching.is_raised() {
            shown.event(&pollster::block_on(run.save())?, start.elapsed())?;
            shown.stopped(&config);
            return Ok(Exit::Cancelled);
        }
        let event = pollster::block_on(run.advance(unix_time_s()))?;
        if let Event::Done { .. } = event {
            full::export(&checkpoint, run.trainer().learner(), &config)?;
            shown.event(&event, start.elapsed())?;
            return Ok(Exit::Done);
        }
        shown.event(&event, start.elapsed())?;
    }
}

/// Seconds since 1970.
fn unix_time_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64())
}
