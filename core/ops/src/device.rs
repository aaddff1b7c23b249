//! Adapters: which there are, which one to take, and a Burn device opened on it with chosen limits.
//!
//! A device is opened here rather than by Burn so that its limits can be WebGPU's defaults, and so that the choice of
//! an adapter can be explained. Without any adapter Burn's pure-Rust `Flex` serves; it is slow, and `why` says so.

use crate::counts::LAUNCHES_PER_SUBMIT;
use crate::family::{Family, Kernels};
use crate::faults::Faults;
use burn::tensor::Device;
use burn::tensor::wgpu::{MemoryConfiguration, WgpuSetup, wgpu};
use std::fmt;
use std::str::FromStr;

/// The kind of an adapter without hardware.
const SOFTWARE: &str = "software";
/// The feature that [`Family::Subgroup`] needs.
const SUBGROUPS: &str = "subgroups";

/// Which device to compute on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeviceChoice {
    /// A real GPU, else a software one, else the CPU.
    #[default]
    Auto,
    /// The adapter of that index in [`adapters`].
    Gpu(usize),
    /// The pure-Rust reference.
    Cpu,
}

/// Which limits a device is opened with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Limits {
    /// All that the adapter offers.
    #[default]
    Adapter,
    /// WebGPU's defaults, which every browser grants: large tensors are split.
    Default,
}

/// What an adapter is and offers.
#[derive(Debug, Clone, PartialEq)]
pub struct AdapterInfo {
    /// Its number in `--device gpu:N`.
    pub index: usize,
    /// As its driver names it.
    pub name: String,
    /// Vulkan, Metal, Dx12 or BrowserWebGpu.
    pub backend: String,
    /// Driver and its version.
    pub driver: String,
    /// "discrete GPU", "integrated GPU", "virtual GPU", "software" or "unknown".
    pub kind: &'static str,
    /// The largest buffer.
    pub max_buffer_bytes: u64,
    /// The largest part of a buffer that a kernel can bind.
    pub max_binding_bytes: u64,
    /// Memory shared by a workgroup.
    pub max_workgroup_memory_bytes: u32,
    /// Invocations of a workgroup.
    pub max_invocations: u32,
    /// Workgroups along one dimension of a grid.
    pub max_groups: u32,
    /// Smallest and largest number of lanes that run together.
    pub subgroup_lanes: (u32, u32),
    /// Those that make a difference to Samara: `shader-f16`, `subgroups`, `timestamp-query`.
    pub features: Vec<&'static str>,
}

/// A device ready for tensors.
#[derive(Debug, Clone)]
pub struct OpenDevice {
    /// Burn's handle.
    pub device: Device,
    /// The largest part of a buffer that a kernel can bind.
    pub max_binding_bytes: u64,
    /// Which of several kernels for one operation it is given: those that are usually fast on its kind, until another
    /// choice is made, before anything is loaded.
    pub kernels: Kernels,
    /// For people.
    pub name: String,
    /// Why this one was taken.
    pub why: String,
    /// `None` on the CPU.
    pub adapter: Option<AdapterInfo>,
    /// What has gone wrong on it.
    pub faults: Faults,
    /// Kept so that it can be lost.
    handle: Option<wgpu::Device>,
}

/// Why no device could be opened.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// `--device` is none of the three forms.
    #[error("'{0}' is no device: use auto, cpu or gpu:N, where N is a number that `samara devices` lists")]
    Unparsable(String),
    /// There is no adapter of that number.
    #[error("there is no gpu:{wanted}: {found} adapter(s) were found, see `samara devices`")]
    NoSuchAdapter {
        /// The number asked for.
        wanted: usize,
        /// How many there are.
        found: usize,
    },
    /// A browser offers none, and the CPU path is left out there.
    #[error("this browser offers no WebGPU adapter: update it, or switch hardware acceleration on in its settings")]
    NoAdapter,
    /// The adapter refused.
    #[error("{name} could not be opened: {reason}")]
    Refused {
        /// The adapter.
        name: String,
        /// What it said.
        reason: String,
    },
}

impl OpenDevice {
    /// The families of kernels that it can run.
    pub fn families(&self) -> Vec<Family> {
        let subgroups = self.adapter.as_ref().is_some_and(AdapterInfo::runs_subgroup_kernels);
        Family::ALL.into_iter().filter(|family| *family != Family::Subgroup || subgroups).collect()
    }

    /// Whether it computes in software, and so is some hundred times slower than a GPU.
    pub fn is_software(&self) -> bool {
        self.adapter.as_ref().is_none_or(|adapter| adapter.kind == SOFTWARE)
    }

    /// What a driver reset looks like from here, for tests: the device and all that lies on it is gone. The CPU cannot be
    /// lost.
    pub fn lose(&self) {
        if let Some(handle) = &self.handle {
            handle.destroy();
            // The loss is reported once the device is idle. The answer says nothing: there is no device to answer.
            drop(handle.poll(wgpu::PollType::wait_indefinitely()));
        }
    }
}

/// Which device it is, why it was taken, and its kernels.
impl fmt::Display for OpenDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}; kernels: {})", self.name, self.why, self.kernels)
    }
}

impl FromStr for DeviceChoice {
    type Err = DeviceError;

    fn from_str(text: &str) -> Result<Self, DeviceError> {
        match text {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            _ => {
                let index = text.strip_prefix("gpu:").and_then(|index| index.parse().ok());
                index.map(Self::Gpu).ok_or_else(|| DeviceError::Unparsable(text.to_owned()))
            }
        }
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Gpu(index) => write!(f, "gpu:{index}"),
            Self::Cpu => f.write_str("cpu"),
        }
    }
}

/// Every adapter that can compute, in the order of their numbers.
pub async fn adapters() -> Vec<AdapterInfo> {
    let (_, found) = find_adapters().await;
    found.iter().enumerate().map(|(index, adapter)| AdapterInfo::of(index, adapter)).collect()
}

/// Opens the device of `choice`.
///
/// # Errors
/// If `choice` names an adapter that is not there, or the adapter refuses.
pub async fn open(choice: DeviceChoice, limits: Limits) -> Result<OpenDevice, DeviceError> {
    let (instance, found) = match choice {
        DeviceChoice::Cpu => return cpu("the CPU was asked for"),
        DeviceChoice::Auto | DeviceChoice::Gpu(_) => find_adapters().await,
    };
    let infos: Vec<_> = found.iter().enumerate().map(|(index, adapter)| AdapterInfo::of(index, adapter)).collect();
    let (index, why) = match choice {
        DeviceChoice::Gpu(index) => (index, "it was asked for"),
        _ => match preferred(&infos) {
            Some(preferred) => preferred,
            None => return cpu("no adapter was found; this is slow"),
        },
    };
    match (found.get(index), infos.get(index)) {
        (Some(adapter), Some(info)) => open_adapter(instance, adapter, info.clone(), limits, why).await,
        _ => Err(DeviceError::NoSuchAdapter { wanted: index, found: found.len() }),
    }
}

/// The adapter that `auto` takes, and why.
pub fn preferred(adapters: &[AdapterInfo]) -> Option<(usize, &'static str)> {
    const ORDER: [(&str, &str); 5] = [
        ("discrete GPU", "it is a discrete GPU"),
        ("integrated GPU", "it is the GPU there is"),
        ("virtual GPU", "it is the GPU there is"),
        ("unknown", "it is the only kind of adapter there is"),
        ("software", "there is no GPU; this one is software and slow"),
    ];
    ORDER.iter().find_map(|&(kind, why)| {
        adapters.iter().find(|adapter| adapter.kind == kind).map(|adapter| (adapter.index, why))
    })
}

#[cfg(not(target_arch = "wasm32"))]
fn cpu(why: &str) -> Result<OpenDevice, DeviceError> {
    Ok(OpenDevice {
        device: Device::flex(),
        max_binding_bytes: u64::MAX,
        kernels: Kernels::all(Family::Invocation),
        name: "CPU (pure-Rust reference)".to_owned(),
        why: why.to_owned(),
        adapter: None,
        faults: Faults::default(),
        handle: None,
    })
}

#[cfg(target_arch = "wasm32")]
fn cpu(_: &str) -> Result<OpenDevice, DeviceError> {
    Err(DeviceError::NoAdapter)
}

#[cfg(not(target_arch = "wasm32"))]
async fn find_adapters() -> (wgpu::Instance, Vec<wgpu::Adapter>) {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
    let backends = wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12;
    let mut found = instance.enumerate_adapters(backends).await;
    found.retain(|adapter| adapter.limits().max_compute_invocations_per_workgroup > 0);
    (instance, found)
}

#[cfg(target_arch = "wasm32")]
async fn find_adapters() -> (wgpu::Instance, Vec<wgpu::Adapter>) {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
    let power_preference = wgpu::PowerPreference::HighPerformance;
    let options = wgpu::RequestAdapterOptions { power_preference, ..Default::default() };
    let found = instance.request_adapter(&options).await.into_iter().collect();
    (instance, found)
}

async fn open_adapter(
    instance: wgpu::Instance,
    adapter: &wgpu::Adapter,
    info: AdapterInfo,
    limits: Limits,
    why: &str,
) -> Result<OpenDevice, DeviceError> {
    let refused = |reason: String| DeviceError::Refused { name: info.name.clone(), reason };
    if cfg!(target_arch = "wasm32") && !adapter.features().contains(wgpu::Features::TIMESTAMP_QUERY) {
        return Err(refused("the runtime needs the WebGPU feature timestamp-query, which is missing here".to_owned()));
    }
    let required_limits = match limits {
        Limits::Adapter => adapter.limits(),
        Limits::Default => wgpu::Limits::default(),
    };
    let max_binding_bytes = required_limits.max_storage_buffer_binding_size.min(required_limits.max_buffer_size);
    let descriptor = wgpu::DeviceDescriptor {
        label: Some("samara"),
        required_features: features(adapter),
        required_limits,
        memory_hints: wgpu::MemoryHints::MemoryUsage,
        ..Default::default()
    };
    let (device, queue) = adapter.request_device(&descriptor).await.map_err(|error| refused(error.to_string()))?;
    let backend = adapter.get_info().backend;
    let handle = device.clone();
    let setup = WgpuSetup { instance, adapter: adapter.clone(), device, queue, backend };
    let device = Device::wgpu_options()
        .memory_config(MemoryConfiguration::ExclusivePages)
        .tasks_max(LAUNCHES_PER_SUBMIT)
        .setup(setup)
        .init()
        .map_err(|error| refused(error.to_string()))?;
    let kernels = info.usual_kernels();
    let name = info.name.clone();
    let faults = Faults::listen(&handle, &device);
    let (why, adapter, handle) = (why.to_owned(), Some(info), Some(handle));
    Ok(OpenDevice { device, max_binding_bytes, kernels, name, why, adapter, faults, handle })
}

/// CubeCL looks at the adapter to see what it may use, so the device must have all of it, but for mapped buffers,
/// which would forbid browsers' limits, and for experiments.
fn features(adapter: &wgpu::Adapter) -> wgpu::Features {
    adapter.features() - wgpu::Features::MAPPABLE_PRIMARY_BUFFERS - wgpu::Features::all_experimental_mask()
}

impl AdapterInfo {
    /// [`Family::Subgroup`] asks for eight lanes; browsers have no subgroups through this wgpu.
    fn runs_subgroup_kernels(&self) -> bool {
        !cfg!(target_arch = "wasm32") && self.features.contains(&SUBGROUPS) && self.subgroup_lanes.0 >= 8
    }

    /// What is usually fast on its kind, where nothing was measured.
    pub fn usual_kernels(&self) -> Kernels {
        Kernels::all(match (self.kind == SOFTWARE, self.runs_subgroup_kernels()) {
            (false, _) => Family::Workgroup,
            (true, true) => Family::Subgroup,
            (true, false) => Family::Invocation,
        })
    }

    fn of(index: usize, adapter: &wgpu::Adapter) -> Self {
        let info = adapter.get_info();
        let limits = adapter.limits();
        Self {
            index,
            name: info.name,
            backend: format!("{:?}", info.backend),
            driver: format!("{} {}", info.driver, info.driver_info).trim().to_owned(),
            kind: kind(info.device_type),
            max_buffer_bytes: limits.max_buffer_size,
            max_binding_bytes: limits.max_storage_buffer_binding_size,
            max_workgroup_memory_bytes: limits.max_compute_workgroup_storage_size,
            max_invocations: limits.max_compute_invocations_per_workgroup,
            max_groups: limits.max_compute_workgroups_per_dimension,
            subgroup_lanes: (info.subgroup_min_size, info.subgroup_max_size),
            features: features_that_matter(adapter.features()),
        }
    }
}

fn kind(device_type: wgpu::DeviceType) -> &'static str {
    match device_type {
        wgpu::DeviceType::DiscreteGpu => "discrete GPU",
        wgpu::DeviceType::IntegratedGpu => "integrated GPU",
        wgpu::DeviceType::VirtualGpu => "virtual GPU",
        wgpu::DeviceType::Cpu => SOFTWARE,
        wgpu::DeviceType::Other => "unknown",
    }
}

fn features_that_matter(features: wgpu::Features) -> Vec<&'static str> {
    let named = [
        (wgpu::Features::SHADER_F16, "shader-f16"),
        (wgpu::Features::SUBGROUP, SUBGROUPS),
        (wgpu::Features::TIMESTAMP_QUERY, "timestamp-query"),
    ];
    named.into_iter().filter(|(feature, _)| features.contains(*feature)).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_reads_back_as_it_was_written() {
        for choice in [DeviceChoice::Auto, DeviceChoice::Cpu, DeviceChoice::Gpu(3)] {
            assert_eq!(choice.to_string().parse::<DeviceChoice>().ok(), Some(choice));
        }
        for bad in ["", "gpu", "gpu:", "gpu:-1", "GPU:0", "cuda"] {
            assert!(bad.parse::<DeviceChoice>().is_err(), "{bad}");
        }
    }

    #[test]
    fn an_invalid_buffer_is_a_fault_and_no_panic() {
        let Ok(open) = pollster::block_on(open(DeviceChoice::Gpu(0), Limits::Default)) else { return };
        let (size, usage) = (u64::MAX / 2, wgpu::BufferUsages::STORAGE);
        let descriptor = wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false };
        drop(open.handle.as_ref().map(|handle| handle.create_buffer(&descriptor)));
        assert!(matches!(open.faults.check(), Err(crate::OpsError::Refused { .. })));
    }
}
