//! How gradients come about: an operation names the launches that give those of its inputs.
//!
//! A gradient is data, not a closure, so one executor serves every backend and every operation, and a new operation needs
//! no more than its kernels and a list of buffers. The executor keeps no buffer that no launch reads, and makes no launch
//! whose results nobody asks for. Burn's tape decides the order.

use crate::operation::Operation;
use std::sync::Arc;

/// A buffer that the gradient of an operation reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Value {
    /// An input, in the order of the operation.
    Input(usize),
    /// An output, as it was when the operation had run.
    Output(usize),
    /// The gradient of the loss with respect to [`Gradient::of`].
    Incoming,
    /// What an earlier launch has left.
    Scratch(usize),
    /// What the output [`Gradient::of`] held before the operation wrote over it: a target only.
    Before,
}

/// A buffer that the gradient of an operation writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The gradient of an input or of an earlier output, with its shape. Several launches may fill parts of one.
    Of(Value),
    /// So many values for a later launch.
    Scratch(usize, usize),
}

/// One launch of a gradient.
#[derive(Debug, Clone)]
pub struct Backward {
    /// What runs.
    pub operation: Arc<dyn Operation>,
    /// Its inputs.
    pub reads: Vec<Value>,
    /// Its outputs.
    pub writes: Vec<Target>,
}

/// How the gradient of one output reaches what it was computed from.
///
/// What the output held before gets the gradient unchanged, as operations that add to it or write over a part want. Where
/// an operation changes it otherwise, a launch fills [`Value::Before`].
#[derive(Debug, Clone)]
pub struct Gradient {
    /// The output, by its place among the outputs.
    pub of: usize,
    /// Inputs or earlier outputs whose gradient is that of the output, such as the terms of a sum.
    pub passes_to: Vec<Value>,
    /// What has to be computed, in order.
    pub launches: Vec<Backward>,
}

impl Backward {
    /// Runs `operation` on `reads` and lets it write `writes`.
    pub fn new(operation: impl Operation, reads: impl Into<Vec<Value>>, writes: impl Into<Vec<Target>>) -> Self {
        Self { operation: Arc::new(operation), reads: reads.into(), writes: writes.into() }
    }
}

impl Gradient {
    /// The gradient of the first output, computed by `launches`.
    pub fn of_first(launches: impl Into<Vec<Backward>>) -> Self {
        Self { of: 0, passes_to: Vec::new(), launches: launches.into() }
    }
}

/// What the tape asks; a browser has none.
#[cfg(not(target_arch = "wasm32"))]
impl Gradient {
    /// Everything that gets a gradient, each once.
    pub(crate) fn parents(&self) -> Vec<Value> {
        let written = self.launches.iter().flat_map(|launch| &launch.writes);
        let computed = written.filter_map(|target| match target {
            Target::Of(value) => Some(*value),
            Target::Scratch(..) => None,
        });
        let mut parents = Vec::new();
        for value in self.passes_to.iter().copied().chain(computed) {
            if !parents.contains(&value) {
                parents.push(value);
            }
        }
        parents
    }

    /// The launches without which `wanted` would have no gradient, in order.
    pub(crate) fn launches_for(&self, wanted: &[Value]) -> Vec<&Backward> {
        let mut scratch: Vec<usize> = Vec::new();
        let mut needed = Vec::new();
        for launch in self.launches.iter().rev() {
            let is_needed = launch.writes.iter().any(|target| match target {
                Target::Of(value) => wanted.contains(value),
                Target::Scratch(index, _) => scratch.contains(index),
            });
            if is_needed {
                scratch.extend(launch.reads.iter().filter_map(|value| match value {
                    Value::Scratch(index) => Some(*index),
                    _ => None,
                }));
                needed.push(launch);
            }
        }
        needed.reverse();
        needed
    }
}
