//! `samara devices`: the adapters of this machine, and which one `auto` takes.

use std::collections::BTreeMap;

use clap::Args;
use samara_ops::device::{self, AdapterInfo, DeviceChoice, OpenDevice};
use samara_ops::family::Task;
use samara_ops::trial::{self, Trial};
use serde::Serialize;
use serde_json::{Value, json};

use crate::Exit;
use crate::args::LimitsArg;
use crate::kernels::{self, Why};
use crate::output::{self, bytes};

const EXAMPLES: &str = "\
Examples:
  samara devices
  samara devices --json
  samara devices --measure                               try all kernels on each GPU, and remember the fastest
  samara generate --device gpu:1 --prompt \"Hello\"      run on the second adapter

SAMARA_DEVICE=cpu (or gpu:N) sets the default of --device.";

/// Lists the GPUs of this machine, and says which one is used and with which kernels
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DevicesArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Try every family of kernels on every GPU; from then on each gets what was fastest on it
    #[arg(long)]
    measure: bool,
}

/// What `--device auto` takes.
#[derive(Serialize)]
struct Auto {
    device: String,
    why: String,
    /// As `gpu:N` counts; none for the CPU.
    adapter: Option<usize>,
}

/// Runs the command.
///
/// # Errors
/// Not even the CPU can be used.
pub(crate) fn run(args: &DevicesArgs) -> anyhow::Result<Exit> {
    let adapters = pollster::block_on(device::adapters());
    let measured =
        if args.measure { adapters.iter().map(measured).collect::<anyhow::Result<_>>()? } else { Vec::new() };
    let auto = pollster::block_on(device::open(DeviceChoice::Auto, LimitsArg::Adapter.into()))?;
    let auto = Auto::from(auto);
    if args.json {
        let adapters: Vec<_> = adapters.iter().map(as_json).collect();
        let trials = args.measure.then(|| measured.iter().flatten().map(trial_as_json).collect::<Vec<_>>());
        output::json(&json!({ "adapters": adapters, "auto": auto, "trials": trials }))?;
    } else {
        let tables: String = measured.iter().map(|trials| format!("{}\n", as_table(trials))).collect();
        output::stream(&format!("{tables}{}", as_text(&adapters, &auto)))?;
    }
    Ok(Exit::Done)
}

impl From<OpenDevice> for Auto {
    fn from(open: OpenDevice) -> Self {
        Self { device: open.name, why: open.why, adapter: open.adapter.map(|adapter| adapter.index) }
    }
}

/// One family at one task on one adapter.
struct Measured {
    adapter: usize,
    trial: Trial,
    is_taken: bool,
}

fn measured(adapter: &AdapterInfo) -> anyhow::Result<Vec<Measured>> {
    let open = pollster::block_on(device::open(DeviceChoice::Gpu(adapter.index), LimitsArg::Adapter.into()))?;
    let trials = kernels::measure(&open)?;
    let taken = trial::fastest(&trials);
    let measured = |trial: &Trial| Measured {
        adapter: adapter.index,
        trial: *trial,
        is_taken: taken.of(trial.task) == trial.family,
    };
    Ok(trials.iter().map(measured).collect())
}

fn trial_as_json(measured: &Measured) -> Value {
    let Measured { adapter, trial, is_taken } = measured;
    let microseconds = trial.seconds.map(|seconds| 1e6 * seconds);
    let (task, family) = (trial.task.name(), trial.family.name());
    json!({ "adapter": adapter, "task": task, "family": family, "us": microseconds, "taken": is_taken })
}

fn as_table(measured: &[Measured]) -> String {
    let head = ["gpu", "task", "family", "us", ""].map(str::to_owned).to_vec();
    let row = |Measured { adapter, trial, is_taken }: &Measured| {
        let time =
            trial.seconds.map_or_else(|| "gives other results".to_owned(), |seconds| format!("{:.1}", 1e6 * seconds));
        let taken = if *is_taken { "taken" } else { "" };
        vec![adapter.to_string(), trial.task.to_string(), trial.family.to_string(), time, taken.to_owned()]
    };
    output::table(&[vec![head], measured.iter().map(row).collect()].concat())
}

fn as_json(adapter: &AdapterInfo) -> Value {
    let (kernels, why) = kernels::known(adapter);
    json!({
        "index": adapter.index,
        "name": adapter.name,
        "backend": adapter.backend,
        "driver": adapter.driver,
        "kind": adapter.kind,
        "max_buffer_bytes": adapter.max_buffer_bytes,
        "max_binding_bytes": adapter.max_binding_bytes,
        "max_workgroup_memory_bytes": adapter.max_workgroup_memory_bytes,
        "max_invocations": adapter.max_invocations,
        "max_groups": adapter.max_groups,
        "subgroup_lanes": adapter.subgroup_lanes,
        "features": adapter.features,
        "kernels": Task::ALL.iter().map(|task| (task.name(), kernels.of(*task).name())).collect::<BTreeMap<_, _>>(),
        "kernels_were_measured": why == Why::Measured,
    })
}

fn as_text(adapters: &[AdapterInfo], auto: &Auto) -> String {
    let described: String = adapters.iter().map(|adapter| format!("{}\n", describe(adapter))).collect();
    let none = "No adapter: no GPU driver with Vulkan, Metal or DX12 was found.\n\n";
    let found = if adapters.is_empty() { none } else { &described };
    format!("{found}cpu    pure Rust, always there\n\nauto takes {}: {}\n", auto.device, auto.why)
}

fn describe(adapter: &AdapterInfo) -> String {
    let features =
        if adapter.features.is_empty() { "none of those that matter".to_owned() } else { adapter.features.join(", ") };
    let kernels = match kernels::known(adapter) {
        (kernels, Why::Measured) => format!("{kernels}; measured"),
        (kernels, Why::Usual) => format!("{kernels}; usual for its kind, nothing was measured yet"),
    };
    let facts = output::facts(&[
        ("       kind", adapter.kind.to_owned()),
        ("       backend", adapter.backend.clone()),
        ("       driver", adapter.driver.clone()),
        (
            "       buffer",
            format!("at most {}, bound at most {}", bytes(adapter.max_buffer_bytes), bytes(adapter.max_binding_bytes)),
        ),
        (
            "       workgroup",
            format!(
                "{} invocations, {} of memory",
                adapter.max_invocations,
                bytes(adapter.max_workgroup_memory_bytes.into())
            ),
        ),
        ("       features", features),
        ("       kernels", kernels),
    ]);
    format!("gpu:{}  {}\n{facts}", adapter.index, adapter.name)
}
