//! Which family of kernels is fast on an adapter, found by running all of them for a moment.
//!
//! Nothing is assumed of vendors. Each task is done by several families, on the same inputs; a family
//! whose results differ from the plain one's is left out, and of the others the fastest is taken.

use crate::bench::{OLMO2_1B_HEADS, Ready, Subject, largest_error};
use crate::device::OpenDevice;
use crate::error::OpsError;
use crate::family::{Family, Kernels, Task};
use crate::kv::{KvFormat, KvFormats};
pub use samara_shaders::FINGERPRINT;
use samara_shaders::Format;

/// Rows and width of the weight, and tokens of a prompt, that the trial computes with.
const WEIGHT: [usize; 2] = [1024, 2048];
const PROMPT_TOKENS: usize = 64;
/// Keys that attention sees.
const N_KEYS: usize = 512;
/// Weights of a matvec take turns over so many bytes, so that none is in a cache.
const COLD_BYTES: u64 = 32 << 20;
/// Rounds, the fastest of which counts, and what the launches of a round should take together.
const N_ROUNDS: usize = 3;
const ROUND_S: f64 = 0.004;
const MAX_LAUNCHES: usize = 200;
/// A family must be faster than the plain one by this much to be taken in its place.
const GAIN: f64 = 1.03;

/// One family at one task.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trial {
    /// What was done.
    pub task: Task,
    /// By which family.
    pub family: Family,
    /// How long a launch took, in seconds; none where its results are not those of the plain family.
    pub seconds: Option<f64>,
}

/// Tries [`families`] at every task; `done` hears of each. It takes a second or so on a GPU, most of it for making pipelines.
///
/// # Errors
/// The device was lost, or its timestamps gave no number.
pub async fn trials(open: &OpenDevice, mut done: impl FnMut(&Trial)) -> Result<Vec<Trial>, OpsError> {
    let mut trials = Vec::new();
    for task in Task::ALL {
        let mut expected = Vec::new();
        for family in families(open) {
            let subject = subject(task, family);
            let mut ready = subject.ready(open, COLD_BYTES);
            let found = ready.values().await?;
            if expected.is_empty() {
                expected.clone_from(&found);
            }
            // Both may be off.
            let agrees = largest_error(&found, &expected) <= 2.0 * subject.bound();
            let seconds = if agrees { Some(least_seconds(&mut ready).await?) } else { None };
            let trial = Trial { task, family, seconds };
            done(&trial);
            trials.push(trial);
        }
    }
    Ok(trials)
}

/// What there is to choose from: all that the device can run, but hardware is not asked to try invocations that share
/// nothing. Their large tiles take long to compile, and gain nothing where barriers are cheap.
pub fn families(open: &OpenDevice) -> Vec<Family> {
    open.families().into_iter().filter(|family| open.is_software() || *family != Family::Invocation).collect()
}

/// The fastest family for each task; the plain one where no other is faster by enough to tell.
pub fn fastest(trials: &[Trial]) -> Kernels {
    Kernels::each(Task::ALL.map(|task| {
        let of_task = || trials.iter().filter(|trial| trial.task == task);
        let timed = of_task().filter_map(|trial| Some((trial.family, trial.seconds?)));
        let best = timed.min_by(|a, b| a.1.total_cmp(&b.1));
        let plain = of_task().find(|trial| trial.family == Family::Workgroup).and_then(|trial| trial.seconds);
        match (best, plain) {
            (Some((family, seconds)), Some(plain)) if seconds * GAIN < plain => family,
            (Some((family, _)), None) => family,
            _ => Family::Workgroup,
        }
    }))
}

fn subject(task: Task, family: Family) -> Subject {
    let [n_out, n_in] = WEIGHT;
    let product = |n_tokens| Subject::Linear { format: Format::Q4_0, family, n_tokens, n_out, n_in };
    let (heads, kv) = (OLMO2_1B_HEADS, KvFormats::from(KvFormat::F16));
    let attention = |n_tokens| Subject::Attention { family, kv, heads, n_tokens, n_keys: N_KEYS };
    match task {
        Task::Matvec => product(1),
        Task::Matmul => product(PROMPT_TOKENS),
        Task::TokenAttention => attention(1),
        Task::PromptAttention => attention(PROMPT_TOKENS),
    }
}

async fn least_seconds(ready: &mut Ready) -> Result<f64, OpsError> {
    let once = ready.seconds(1).await?;
    let n_launches = ((ROUND_S / once.max(1e-7)) as usize).clamp(1, MAX_LAUNCHES);
    let mut least = f64::INFINITY;
    for _ in 0..N_ROUNDS {
        least = least.min(ready.seconds(n_launches).await? / n_launches as f64);
    }
    Ok(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(task: Task, family: Family, seconds: Option<f64>) -> Trial {
        Trial { task, family, seconds }
    }

    #[test]
    fn the_fastest_that_is_right_is_taken() {
        let [workgroup, invocation, subgroup] = Family::ALL;
        let trials = [
            trial(Task::Matvec, workgroup, Some(2.0)),
            trial(Task::Matvec, invocation, Some(1.0)),
            trial(Task::Matvec, subgroup, None),
            trial(Task::Matmul, workgroup, Some(1.0)),
            trial(Task::Matmul, invocation, Some(0.99)),
            trial(Task::TokenAttention, workgroup, None),
            trial(Task::TokenAttention, subgroup, Some(9.0)),
        ];
        assert_eq!(fastest(&trials), Kernels::each([invocation, workgroup, subgroup, workgroup]));
    }
}
