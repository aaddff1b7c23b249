//! What every operation says of itself: its reference body and its launch.

use crate::gradient::Gradient;
use samara_shaders::Kernel;
use std::fmt::Debug;

/// One operation over up to seven buffers, inputs first.
pub trait Operation: Debug + Send + Sync + 'static {
    /// The reference twin: fills `outputs` from `inputs`, both in the order of the kernel's bindings.
    fn reference(&self, inputs: &[Host<'_>], outputs: &mut [HostMut<'_>]);

    /// The kernel, its grid and its `Params`.
    fn launch(&self) -> Launch;

    /// Multiplications and additions, about; 0 where they are too few to matter. A submission is closed before its sum of
    /// these could keep a slow device busy for longer than an operating system lets it be.
    fn flops(&self) -> u64 {
        0
    }

    /// How the gradients of the outputs reach the inputs. An operation without any cannot be differentiated: running it on
    /// an input that needs a gradient panics.
    fn gradients(&self) -> Vec<Gradient> {
        Vec::new()
    }
}

/// How an operation is launched on a device.
#[derive(Debug)]
pub struct Launch {
    /// Which kernel variant.
    pub kernel: &'static Kernel,
    /// How many workgroups; folded to two dimensions by the launcher where they exceed one.
    pub groups: u64,
    /// The words of the kernel's `Params`.
    pub params: Vec<u32>,
}

/// An input in host memory.
#[derive(Debug, Clone, Copy)]
pub enum Host<'a> {
    /// Activations, weights.
    F32(&'a [f32]),
    /// Ids, positions, packed words.
    U32(&'a [u32]),
}

/// An output in host memory.
#[derive(Debug)]
pub enum HostMut<'a> {
    /// Activations, caches.
    F32(&'a mut [f32]),
    /// Ids.
    U32(&'a mut [u32]),
}

impl<'a> Host<'a> {
    /// The floats; an empty slice where the operation was given integers, which its own caller rules out.
    pub fn f32(self) -> &'a [f32] {
        match self {
            Self::F32(values) => values,
            Self::U32(_) => &[],
        }
    }

    /// The words; an empty slice where the operation was given floats, which its own caller rules out.
    pub fn u32(self) -> &'a [u32] {
        match self {
            Self::U32(values) => values,
            Self::F32(_) => &[],
        }
    }

    /// Either as words, for weights: rows of `f32` may come as such.
    pub(crate) fn words(self) -> &'a [u32] {
        match self {
            Self::U32(values) => values,
            Self::F32(values) => bytemuck::cast_slice(values),
        }
    }
}

impl HostMut<'_> {
    /// The floats to fill.
    pub fn f32(&mut self) -> &mut [f32] {
        match self {
            Self::F32(values) => values,
            Self::U32(_) => &mut [],
        }
    }

    /// The words to fill.
    pub fn u32(&mut self) -> &mut [u32] {
        match self {
            Self::U32(values) => values,
            Self::F32(_) => &mut [],
        }
    }
}
