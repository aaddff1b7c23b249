//! Which kernels a device is given: what `--kernels` says, else what a trial on its adapter found.
//!
//! A trial is made once for each adapter, driver and set of kernels, and remembered in the user's cache folder. Adapters
//! that are software are only measured when `samara devices --measure` asks for it: making all pipelines takes them half
//! a minute, and what is fast on them is known.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, ensure};
use samara_ops::device::{AdapterInfo, OpenDevice};
use samara_ops::family::{Family, Kernels, Task};
use samara_ops::trial::{self, Trial};
use serde::{Deserialize, Serialize};

use crate::progress::Bar;

/// `--kernels`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KernelsArg {
    /// What is fast on the adapter.
    Auto,
    /// One family for everything.
    One(Family),
}

/// Why a device has the kernels that it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    Measured,
    Usual,
}

/// A trial as it is remembered.
#[derive(Serialize, Deserialize)]
struct Remembered {
    adapter: String,
    driver: String,
    /// Tells sets of kernels apart.
    kernels: String,
    trials: Vec<Line>,
}

#[derive(Serialize, Deserialize)]
struct Line {
    task: String,
    family: String,
    seconds: Option<f64>,
}

impl FromStr for KernelsArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" { Ok(Self::Auto) } else { text.parse().map(Self::One) }
    }
}

/// Gives `open` its kernels; to be called before anything is loaded.
///
/// # Errors
/// The family that was asked for cannot run there.
pub(crate) fn choose(open: &mut OpenDevice, asked: KernelsArg) -> anyhow::Result<()> {
    let Some(adapter) = open.adapter.clone() else { return Ok(()) };
    match asked {
        KernelsArg::One(family) => {
            let families = open.families();
            let names: Vec<_> = families.iter().map(|family| family.name()).collect();
            ensure!(families.contains(&family), "--kernels {family}: {} runs {}", open.name, names.join(", "));
            open.kernels = Kernels::all(family);
        }
        KernelsArg::Auto => {
            let found = match remembered(&adapter) {
                None if !open.is_software() => measure(open).ok().map(|trials| trial::fastest(&trials)),
                found => found,
            };
            open.kernels = found.unwrap_or(open.kernels);
        }
    }
    Ok(())
}

/// The kernels that `--kernels auto` gives an adapter without measuring now.
pub(crate) fn known(adapter: &AdapterInfo) -> (Kernels, Why) {
    match remembered(adapter) {
        Some(kernels) => (kernels, Why::Measured),
        None => (adapter.usual_kernels(), Why::Usual),
    }
}

/// Tries all kernels and remembers what came out.
///
/// # Errors
/// The device failed.
pub(crate) fn measure(open: &OpenDevice) -> anyhow::Result<Vec<Trial>> {
    let bar = Bar::steps("measuring kernels, once for this adapter");
    let n_trials = (Task::ALL.len() * trial::families(open).len()) as u64;
    let mut n_done = 0;
    bar.set(0, Some(n_trials));
    let done = |_: &Trial| {
        n_done += 1;
        bar.set(n_done, Some(n_trials));
    };
    let trials = pollster::block_on(trial::trials(open, done)).with_context(|| format!("measuring {}", open.name))?;
    if let Some(adapter) = &open.adapter {
        // A folder that cannot be written costs the next run a second.
        drop(remember(adapter, &trials));
    }
    Ok(trials)
}

fn remembered(adapter: &AdapterInfo) -> Option<Kernels> {
    let text = std::fs::read_to_string(path(adapter)?).ok()?;
    let found: Remembered = serde_json::from_str(&text).ok()?;
    let is_same = found.adapter == adapter.name && found.driver == adapter.driver && found.kernels == fingerprint();
    let trials: Option<Vec<_>> = found.trials.iter().map(Line::trial).collect();
    trials.filter(|trials| is_same && !trials.is_empty()).map(|trials| trial::fastest(&trials))
}

fn remember(adapter: &AdapterInfo, trials: &[Trial]) -> anyhow::Result<()> {
    let path = path(adapter).context("this user has no cache folder")?;
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let trials = trials.iter().map(Line::of).collect();
    let (adapter, driver) = (adapter.name.clone(), adapter.driver.clone());
    let text = serde_json::to_vec_pretty(&Remembered { adapter, driver, kernels: fingerprint(), trials })?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(&text)?;
    file.persist(&path)?;
    Ok(())
}

impl Line {
    fn of(trial: &Trial) -> Self {
        let (task, family) = (trial.task.name().to_owned(), trial.family.name().to_owned());
        Self { task, family, seconds: trial.seconds }
    }

    fn trial(&self) -> Option<Trial> {
        let task = Task::ALL.into_iter().find(|task| task.name() == self.task)?;
        Some(Trial { task, family: self.family.parse().ok()?, seconds: self.seconds.filter(|seconds| *seconds > 0.0) })
    }
}

/// One file for each adapter and driver.
fn path(adapter: &AdapterInfo) -> Option<PathBuf> {
    let name = format!("{} {} {}", adapter.name, adapter.backend, adapter.driver).to_lowercase();
    let words: Vec<_> = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let short: String = words.join("-").chars().take(100).collect();
    Some(crate::places::cache_dir()?.join("kernels").join(format!("{short}.json")))
}

fn fingerprint() -> String {
    format!("{:016x}", trial::FINGERPRINT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_or_auto_can_be_asked_for() {
        assert_eq!("auto".parse(), Ok(KernelsArg::Auto));
        assert_eq!("subgroup".parse(), Ok(KernelsArg::One(Family::Subgroup)));
        assert!("fast".parse::<KernelsArg>().is_err_and(|error| error.contains("workgroup, invocation, subgroup")));
    }

    #[test]
    fn a_trial_reads_back_as_it_was_written() {
        let trial = Trial { task: Task::PromptAttention, family: Family::Invocation, seconds: Some(0.25) };
        assert_eq!(Line::of(&trial).trial(), Some(trial));
        let left_out = Trial { seconds: None, ..trial };
        assert_eq!(Line::of(&left_out).trial(), Some(left_out));
        for (task, family) in [("prefill", "subgroup"), ("matvec", "warp")] {
            let line = Line { task: task.to_owned(), family: family.to_owned(), seconds: Some(1.0) };
            assert_eq!(line.trial(), None);
        }
    }
}
