//! What a run would take, told before it begins.

use samara_model::Config;
use samara_train::{MemoryPlan, RunConfig, total_steps};
use serde::Serialize;

use super::setup;
use crate::Exit;
use crate::console::Console;
use crate::{memory, output};

/// The plan of a run.
#[derive(Serialize)]
struct Plan {
    model: String,
    device: String,
    n_documents: u64,
    n_tokens_per_epoch: u64,
    max_length_tokens: u64,
    steps: u64,
    memory: MemoryPlan,
    total_bytes: u64,
    /// None where nobody knows.
    free_bytes: Option<u64>,
    fits: Option<bool>,
}

/// Prints the plan of a run and trains nothing.
///
/// # Errors
/// The model, the data or the device is unusable.
pub(crate) fn plan(config: RunConfig, json: bool, console: &Console) -> anyhow::Result<Exit> {
    let checkpoint = setup::open_model(&config)?;
    let model = Config::from_checkpoint(&checkpoint)?;
    setup::refuse_unbuilt(&config, &model)?;
    let data = setup::data(&config, &checkpoint, &model)?;
    let open = setup::open_device(&config)?;
    console.detail(&format!("device: {open}"));
    let lengths = data.train.lengths();
    let memory_plan = MemoryPlan::new(&config, &model, &checkpoint, data.train.max_length())?;
    let total_bytes = memory_plan.total_bytes();
    let free_bytes = memory::free_bytes(&open);
    let plan = Plan {
        model: checkpoint.source().to_owned(),
        device: open.name,
        n_documents: data.train.n_documents() as u64,
        n_tokens_per_epoch: data.train.n_tokens(),
        max_length_tokens: data.train.max_length() as u64,
        steps: total_steps(&lengths, &config)?,
        memory: memory_plan,
        total_bytes,
        free_bytes,
        fits: free_bytes.map(|free| total_bytes <= free),
    };
    if json {
        output::json(&plan)?;
    } else {
        output::stream(&as_text(&plan, &config))?;
    }
    Ok(Exit::Done)
}

fn as_text(plan: &Plan, config: &RunConfig) -> String {
    let mut facts = vec![
        ("model", plan.model.clone()),
        ("device", plan.device.clone()),
        ("documents", format!("{}, at most {} tokens each", plan.n_documents, plan.max_length_tokens)),
        ("tokens an epoch", plan.n_tokens_per_epoch.to_string()),
        ("steps", format!("{}, {} passes of {} tokens each", plan.steps, config.batch.accumulate, config.batch.tokens)),
    ];
    facts.extend(plan.memory.owners().map(|(owner, n_bytes)| (owner, output::bytes(n_bytes))));
    facts.push(("all together", output::bytes(plan.total_bytes)));
    let advice = match (plan.free_bytes, plan.fits) {
        (Some(free), Some(true)) => format!("fits: {} are free", output::bytes(free)),
        (Some(free), _) => format!("does not fit: {} are free; {}", output::bytes(free), advice(config)),
        (None, _) => "nobody tells how much memory this device has".to_owned(),
    };
    format!("{}{advice}\n", output::facts(&facts))
}

/// What to change first.
fn advice(config: &RunConfig) -> &'static str {
    match config.memory.recompute_every {
        None => "set memory.recompute_every to 1, or a smaller batch.tokens",
        Some(_) => "set a smaller batch.tokens, or take a file with fewer bits a weight",
    }
}
