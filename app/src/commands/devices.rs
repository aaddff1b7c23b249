//! `samara devices`: the adapters of this machine, and which one `auto` takes.

use clap::Args;
use samara_ops::device::{self, AdapterInfo, DeviceChoice, OpenDevice};
use serde::Serialize;
use serde_json::{Value, json};

use crate::Exit;
use crate::args::LimitsArg;
use crate::output::{self, bytes};

const EXAMPLES: &str = "\
Examples:
  samara devices
  samara devices --json
  samara generate --device gpu:1 --prompt \"Hello\"      run on the second adapter

SAMARA_DEVICE=cpu (or gpu:N) sets the default of --device.";

/// Lists the GPUs of this machine, and says which one is used
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DevicesArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
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
    let auto = pollster::block_on(device::open(DeviceChoice::Auto, LimitsArg::Adapter.into()))?;
    let auto = Auto::from(auto);
    if args.json {
        let adapters: Vec<_> = adapters.iter().map(as_json).collect();
        output::json(&json!({ "adapters": adapters, "auto": auto }))?;
    } else {
        output::stream(&as_text(&adapters, &auto))?;
    }
    Ok(Exit::Done)
}

impl From<OpenDevice> for Auto {
    fn from(open: OpenDevice) -> Self {
        Self { device: open.name, why: open.why, adapter: open.adapter.map(|adapter| adapter.index) }
    }
}

fn as_json(adapter: &AdapterInfo) -> Value {
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
    ]);
    format!("gpu:{}  {}\n{facts}", adapter.index, adapter.name)
}
