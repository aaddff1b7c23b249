//! Operators of your own: a WGSL kernel, its twin in Rust and its gradient, under the same roof as ours.
//!
//! Make the kernels once with [`Kernel::from_wgsl`], implement [`Operation`] for a value that holds the
//! `Params`, and wrap [`run`] in a function. That function is then one line of a model, wherever its tensors lie: a wgpu
//! device launches the kernel, the CPU runs the twin, and under autodiff the [`Gradient`]s go on Burn's tape.
//!
//! The example `custom_op` of this crate is a whole one:
//!
//! ```ignore
#![doc = include_str!("../examples/custom_op.rs")]
//! ```

pub use crate::gradient::{Backward, Gradient, Target, Value};
pub use crate::operation::{Host, HostMut, Launch, Operation};
pub use crate::run::{Buffer, Outputs, empty, empty_int, float, int, into_float, into_int};
pub use samara_shaders::{Kernel, KernelError};

/// Runs an operation on the device that holds its buffers, and puts it on the tape where an input is on one.
///
/// # Panics
/// If the buffers or `Params` of the operation, or of a launch of its gradient, are not as many as its kernel has.
pub fn run(operation: impl Operation, inputs: Vec<Buffer>, outputs: Vec<Buffer>) -> Outputs {
    check(&operation, [inputs.len(), outputs.len()]);
    for launch in operation.gradients().iter().flat_map(|gradient| &gradient.launches) {
        check(&*launch.operation, [launch.reads.len(), launch.writes.len()]);
    }
    crate::run::run(operation, inputs, outputs)
}

fn check(operation: &dyn Operation, [n_inputs, n_outputs]: [usize; 2]) {
    let Launch { kernel, params, .. } = operation.launch();
    let expected = [kernel.n_inputs(), kernel.bindings.len() - kernel.n_inputs(), kernel.n_params];
    let found = [n_inputs, n_outputs, params.len()];
    assert_eq!(found, expected, "{}: inputs, outputs and words of Params", kernel.name);
}
