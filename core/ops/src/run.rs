//! The one door to the backends: hands an [`Operation`] and its buffers to the device that holds them.
//!
//! `Flex` runs the reference body, CubeCL's wgpu runtime launches the kernel. Every operation goes through the same
//! trait method, so a new one adds a file and touches nothing here. A browser without WebGPU gets no model, so `Flex`
//! is left out of its module.

#[cfg(not(target_arch = "wasm32"))]
mod autodiff;
#[cfg(not(target_arch = "wasm32"))]
mod flex;

use crate::counts;
use crate::error::OpsError;
use crate::operation::{Launch, Operation};
use crate::peak;
use crate::readback::failed;
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Backend, Dispatch, ExtensionType, backend_extension};
use burn::tensor::{DType, Device, Int, Tensor};
use burn_cubecl::CubeBackend;
use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;
use cubecl_ir::UIntKind;
use cubecl_ir::attributes::BufferIOAttr;
use cubecl_ir::metadata::Info;
use cubecl_ir::settings::Dim3;
use cubecl_server::kernel::{CubeKernel, KernelDefinition, KernelMetadata, PrecompiledSource};
use cubecl_server::server::{KernelArguments, MetadataBindingInfo};
use samara_shaders::Kernel;
use std::future::ready;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// A buffer of an operation.
#[derive(ExtensionType)]
pub enum Slot<B: Backend> {
    /// Activations, weights, caches.
    Float(FloatTensor<B>),
    /// Ids, positions, packed words.
    Int(IntTensor<B>),
    /// Not used by this operation.
    Empty,
}

impl<B: Backend> Clone for Slot<B> {
    fn clone(&self) -> Self {
        match self {
            Self::Float(tensor) => Self::Float(tensor.clone()),
            Self::Int(tensor) => Self::Int(tensor.clone()),
            Self::Empty => Self::Empty,
        }
    }
}

impl<B: Backend> std::fmt::Debug for Slot<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Float(_) => "Float",
            Self::Int(_) => "Int",
            Self::Empty => "Empty",
        })
    }
}

/// The buffers of an operation in the order of its kernel's bindings; seven is the most that a kernel may have.
#[derive(ExtensionType)]
pub struct Slots<B: Backend> {
    /// Binding 0, and so on.
    #[extension_type]
    pub s0: Slot<B>,
    #[extension_type]
    pub s1: Slot<B>,
    #[extension_type]
    pub s2: Slot<B>,
    #[extension_type]
    pub s3: Slot<B>,
    #[extension_type]
    pub s4: Slot<B>,
    #[extension_type]
    pub s5: Slot<B>,
    #[extension_type]
    pub s6: Slot<B>,
}

/// What a backend must do to run Samara's operations.
#[cfg_attr(target_arch = "wasm32", backend_extension(Cube))]
#[cfg_attr(not(target_arch = "wasm32"), backend_extension(Cube, Flex, Autodiff))]
pub trait Run: Backend {
    /// Runs `operation`; its output buffers are written in place and come back with the rest.
    fn run(#[extension_type] slots: Slots<Self>, operation: Arc<dyn Operation>) -> Slots<Self>;

    /// Overwrites the first words of `target` in place, and no others.
    fn write_words(target: IntTensor<Self>, words: Vec<u32>) -> IntTensor<Self>;

    /// Asks for the words of `source` as they are before anything that is given to the device later.
    fn read_words(source: IntTensor<Self>) -> Words;
}

/// Words on their way from a device.
pub type Words = Pin<Box<dyn Future<Output = Result<Vec<u32>, OpsError>>>>;

/// A buffer as operations hold it, before it is handed to a backend.
pub type Buffer = Slot<Dispatch>;

/// An input: shares the tensor's buffer.
pub fn float<const R: usize>(tensor: &Tensor<R>) -> Buffer {
    Slot::Float(tensor.clone().into_dispatch())
}

/// An input of ids or words: shares the tensor's buffer.
pub fn int<const R: usize>(tensor: &Tensor<R, Int>) -> Buffer {
    Slot::Int(tensor.clone().into_dispatch())
}

/// An output: gives the tensor's buffer away, so that it can be written without a copy.
pub fn into_float<const R: usize>(tensor: Tensor<R>) -> Buffer {
    Slot::Float(tensor.into_dispatch())
}

/// An output of ids.
pub fn into_int<const R: usize>(tensor: Tensor<R, Int>) -> Buffer {
    Slot::Int(tensor.into_dispatch())
}

/// A buffer for an operation to fill.
pub fn empty<const R: usize>(shape: [usize; R], device: &Device) -> Tensor<R> {
    counts::allocated(shape.iter().product());
    Tensor::empty(shape, (device, DType::F32))
}

/// A buffer for an operation to fill with ids.
pub fn empty_int<const R: usize>(shape: [usize; R], device: &Device) -> Tensor<R, Int> {
    counts::allocated(shape.iter().product());
    Tensor::empty(shape, (device, DType::U32))
}

/// The tensors that an operation has written, in order.
pub struct Outputs(std::vec::IntoIter<Buffer>);

impl Outputs {
    /// The next output, which the operation's author knows to be of floats.
    #[expect(clippy::panic, reason = "the operation itself put a float buffer there")]
    pub fn float<const R: usize>(&mut self) -> Tensor<R> {
        match self.0.next() {
            Some(Slot::Float(tensor)) => Tensor::from_dispatch(tensor),
            _ => panic!("the next output is not a float buffer"),
        }
    }

    /// The next output, which the operation's author knows to be of integers.
    #[expect(clippy::panic, reason = "the operation itself put an integer buffer there")]
    pub fn int<const R: usize>(&mut self) -> Tensor<R, Int> {
        match self.0.next() {
            Some(Slot::Int(tensor)) => Tensor::from_dispatch(tensor),
            _ => panic!("the next output is not an integer buffer"),
        }
    }
}

/// Runs an operation on the device that holds its buffers.
pub(crate) fn run(operation: impl Operation, inputs: Vec<Buffer>, outputs: Vec<Buffer>) -> Outputs {
    let n_inputs = inputs.len();
    let slots = Slots::gather(inputs.into_iter().chain(outputs));
    let slots = <Dispatch as Run>::run(slots, Arc::new(operation));
    let mut written = slots.into_vec();
    Outputs(written.split_off(n_inputs).into_iter())
}

/// Overwrites the first words of a device buffer in place: one upload.
pub(crate) fn write_words(target: Tensor<1, Int>, words: Vec<u32>) -> Tensor<1, Int> {
    Tensor::from_dispatch(<Dispatch as Run>::write_words(target.into_dispatch(), words))
}

/// Asks for the words of a device buffer; they come without anybody waiting.
pub(crate) fn read_words(source: Tensor<1, Int>) -> Words {
    <Dispatch as Run>::read_words(source.into_dispatch())
}

impl<B: Backend> Slots<B> {
    fn gather(mut slots: impl Iterator<Item = Slot<B>>) -> Self {
        let mut next = || slots.next().unwrap_or(Slot::Empty);
        Self { s0: next(), s1: next(), s2: next(), s3: next(), s4: next(), s5: next(), s6: next() }
    }

    fn into_vec(self) -> Vec<Slot<B>> {
        let all = [self.s0, self.s1, self.s2, self.s3, self.s4, self.s5, self.s6];
        all.into_iter().filter(|slot| !matches!(slot, Slot::Empty)).collect()
    }
}

impl Run for CubeBackend {
    fn run(slots: Slots<Self>, operation: Arc<dyn Operation>) -> Slots<Self> {
        let Launch { kernel, groups, params } = operation.launch();
        let all: Vec<Slot<Self>> = slots.into_vec().into_iter().map(packed).collect();
        let mut arguments = KernelArguments::new();
        let mut client = None;
        for (slot, binding) in all.iter().zip(kernel.bindings) {
            let (Slot::Float(tensor) | Slot::Int(tensor)) = slot else { continue };
            let access = if binding.written { BufferIOAttr::ReadWrite } else { BufferIOAttr::ReadOnly };
            arguments = arguments.with_buffer_io(tensor.handle.clone().binding(), access);
            client.get_or_insert_with(|| tensor.client.clone());
        }
        let arguments = arguments.with_info(MetadataBindingInfo::custom(uniform(params)));
        if let Some(client) = client {
            let flops = operation.flops();
            // A device that is lost says so at the next readback.
            if counts::is_full_for(flops) && client.flush().is_ok() {
                counts::flushed();
            }
            client.launch(Box::new(Wgsl(kernel)), fold(groups), arguments);
            counts::launched(kernel, flops);
            peak::look(&client);
        }
        Slots::gather(all.into_iter())
    }

    fn write_words(target: IntTensor<Self>, words: Vec<u32>) -> IntTensor<Self> {
        let bytes = bytemuck::cast_slice(&words).to_vec();
        let rest = target.handle.size_in_used() - bytes.len() as u64;
        let first = target.handle.clone().offset_end(rest);
        target.client.write(&first, cubecl::bytes::Bytes::from_bytes_vec(bytes));
        counts::uploaded();
        target
    }

    fn read_words(source: IntTensor<Self>) -> Words {
        let (shape, strides) = (source.meta.shape().clone(), source.meta.strides().clone());
        let descriptor = source.handle.copy_descriptor(shape, strides, size_of::<u32>());
        let client = source.client;
        let mut words: Words = Box::pin(async move {
            let bytes = client.read_one_tensor_async(descriptor).await.map_err(failed)?;
            Ok(bytemuck::pod_collect_to_vec(&bytes))
        });
        // The runtime is asked at the first poll.
        match words.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(known) => Box::pin(ready(known)),
            Poll::Pending => words,
        }
    }
}

fn packed(slot: Slot<CubeBackend>) -> Slot<CubeBackend> {
    let packed = |tensor: CubeTensor| burn_cubecl::kernel::into_contiguous(tensor);
    match slot {
        Slot::Float(tensor) => Slot::Float(packed(tensor)),
        Slot::Int(tensor) => Slot::Int(packed(tensor)),
        Slot::Empty => Slot::Empty,
    }
}

/// `Params` as CubeCL takes it: 64-bit words, padded to the uniform's 16-byte rows.
fn uniform(mut words: Vec<u32>) -> Vec<u64> {
    words.resize(words.len().next_multiple_of(4), 0);
    words.chunks_exact(2).map(|pair| u64::from(pair[0]) | u64::from(pair[1]) << 32).collect()
}

/// `maxComputeWorkgroupsPerDimension` of WebGPU's default limits.
const MAX_GROUPS: u64 = 65_535;

/// A grid of at least `groups` workgroups, in two dimensions where one is too short; kernels guard the excess.
fn fold(groups: u64) -> CubeCount {
    let rows = groups.div_ceil(MAX_GROUPS).max(1);
    let columns = groups.div_ceil(rows).max(1);
    CubeCount::Static(columns as u32, rows as u32, 1)
}

/// A finished WGSL kernel, as CubeCL takes it.
#[derive(Debug, Clone, Copy)]
struct Wgsl(&'static Kernel);

impl Wgsl {
    fn cube_dim(self) -> Dim3 {
        let [x, y, z] = self.0.workgroup;
        Dim3 { x, y, z }
    }
}

impl KernelMetadata for Wgsl {
    fn id(&self) -> KernelId {
        let name = (self.0.name, self.0.variant);
        KernelId::new::<Self>().info(name).cube_dim(self.cube_dim()).mode(ExecutionMode::Unchecked)
    }

    fn address_type(&self) -> ElemType {
        ElemType::UInt(UIntKind::U32)
    }
}

impl CubeKernel for Wgsl {
    fn define(&self) -> KernelDefinition {
        let settings = KernelSettings::new(self.cube_dim(), ExecutionMode::Unchecked, AddressType::U32);
        KernelDefinition { body: Scope::root(settings.clone()), settings, info: Info::default() }
    }

    fn source(&self) -> Option<PrecompiledSource> {
        let source = self.0.source();
        Some(PrecompiledSource { source, entrypoint_name: "main".into(), lang: "wgsl" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_is_folded_where_one_dimension_is_too_short() {
        for groups in [0, 1, 65_535, 65_536, 1 << 20, 100_352 * 3] {
            let CubeCount::Static(x, y, z) = fold(groups) else { panic!("a static grid") };
            assert!(u64::from(x) <= MAX_GROUPS && u64::from(y) <= MAX_GROUPS && z == 1);
            assert!(u64::from(x) * u64::from(y) >= groups);
        }
    }

    #[test]
    fn a_uniform_fills_whole_rows() {
        assert_eq!(uniform(vec![1, 2, 3]), [1 | 2 << 32, 3]);
    }
}
