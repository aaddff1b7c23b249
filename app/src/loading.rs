//! From arguments to a session: which model, on which device, with a bar while it loads.

use std::time::Instant;

use anyhow::Context;
use samara_chat::{LoadProgress, Model, OpenDevice, Reload, Session, SessionConfig, Source, check_fits};
use samara_ops::device;

use crate::adapters::{AdapterArgs, AdapterReport};
use crate::args::{ContextArgs, DeviceArgs, ModelArgs};
use crate::console::Console;
use crate::kernels;
use crate::memory;
use crate::places;
use crate::progress::Bar;

/// A session and what it took to get it.
pub(crate) struct Loaded {
    pub(crate) session: Session,
    /// LoRA adapters on the model.
    pub(crate) adapters: Vec<AdapterReport>,
    /// Opening the device and bringing the weights to it.
    pub(crate) load_s: f64,
    /// The device's name.
    pub(crate) device: String,
}

/// The model that `--model` names; the built-in one where it names none.
pub(crate) fn source(model: &ModelArgs) -> anyhow::Result<Source> {
    match &model.model {
        None => Ok(Source::Embedded),
        Some(name) => places::model_path(name).map(Source::Path),
    }
}

/// Opens the device that the arguments ask for.
pub(crate) fn open_device(args: &DeviceArgs) -> anyhow::Result<OpenDevice> {
    let opened = pollster::block_on(device::open(args.device, args.limits.into()));
    let mut open = opened.with_context(|| format!("--device {}", args.device))?;
    kernels::choose(&mut open, args.kernels)?;
    Ok(open)
}

/// Loads the model and its LoRA adapters onto the device.
pub(crate) fn session(
    model: &ModelArgs,
    adapters: &AdapterArgs,
    device: &DeviceArgs,
    context: &ContextArgs,
    console: &Console,
) -> anyhow::Result<Loaded> {
    let start = Instant::now();
    // Files are looked at first: what is wrong with them should not wait for a device.
    let source = source(model)?;
    let checkpoint = source.open()?;
    let scaled = adapters.open()?;
    let open = open_device(device)?;
    console.detail(&format!("device: {open}"));
    let config = session_config(context);
    check_fits(&checkpoint, &scaled, &open, config, memory::free_bytes(&open))?;
    let bar = Bar::bytes("loading");
    let mut progress = |progress: LoadProgress| bar.set(progress.done_bytes, Some(progress.total_bytes));
    let model = Model::from_checkpoint(&checkpoint, &open, &mut progress)?.with_adapters(&scaled)?;
    drop(bar);
    let adapters: Vec<_> = scaled.iter().map(AdapterReport::of).collect();
    adapters.iter().for_each(|adapter| console.detail(&adapter.to_string()));
    let reload = Reload::from_source(source, device.device, device.limits.into(), open.kernels).with_adapters(scaled);
    let session = Session::with_reload(model, config, reload)?;
    let load_s = start.elapsed().as_secs_f64();
    console.detail(&format!("loaded {} in {load_s:.2} s", checkpoint.source()));
    Ok(Loaded { session, adapters, load_s, device: open.name })
}

fn session_config(context: &ContextArgs) -> SessionConfig {
    let plain = SessionConfig::default();
    SessionConfig {
        context_tokens: context.context.map(|n| n as usize),
        prefill_chunk_tokens: context.prefill_chunk.map_or(plain.prefill_chunk_tokens, |n| n as usize),
        kv: context.kv.kv,
    }
}
