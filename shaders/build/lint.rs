//! Holds each kernel to WebGPU's default limits and to the conventions that the launcher relies on.

use crate::reflect::Reflection;
use naga::valid::ModuleInfo;
use naga::{Module, ShaderStage};

/// `maxStorageBuffersPerShaderStage` is 8; Burn counts the uniform as one.
const MAX_STORAGE_BINDINGS: usize = 7;
/// `maxComputeInvocationsPerWorkgroup`.
const MAX_INVOCATIONS: u32 = 256;
/// `maxComputeWorkgroupStorageSize`.
const MAX_WORKGROUP_BYTES: u32 = 16 * 1024;

/// Panics with the kernel's name and the rule it breaks.
pub fn check(name: &str, module: &Module, info: &ModuleInfo, reflection: &Reflection) {
    let storage = reflection.bindings.len();
    assert!(storage <= MAX_STORAGE_BINDINGS, "{name}: {storage} storage bindings, at most {MAX_STORAGE_BINDINGS}");
    let invocations: u32 = reflection.workgroup.iter().product();
    assert!(invocations <= MAX_INVOCATIONS, "{name}: {invocations} invocations, at most {MAX_INVOCATIONS}");
    let bytes = reflection.workgroup_bytes;
    assert!(bytes <= MAX_WORKGROUP_BYTES, "{name}: {bytes} bytes of workgroup memory, at most {MAX_WORKGROUP_BYTES}");
    outputs_come_last(name, reflection);
    every_binding_is_used(name, module, info);
    stores_are_guarded(name, module);
}

/// Inputs, then outputs: the launcher splits its buffers by that order.
fn outputs_come_last(name: &str, reflection: &Reflection) {
    let written: Vec<bool> = reflection.bindings.iter().map(|(_, written)| *written).collect();
    assert!(written.is_sorted() && written.contains(&true), "{name}: `read` bindings come before `read_write` ones");
}

/// With an automatic layout a binding that `main` does not use vanishes, and every later one shifts.
fn every_binding_is_used(name: &str, module: &Module, info: &ModuleInfo) {
    let main = info.get_entry_point(0);
    for (handle, global) in module.global_variables.iter() {
        let used = global.binding.is_none() || !main[handle].is_empty();
        assert!(used, "{name}: binding {:?} is not used by main", global.name);
    }
}

/// Bounds are not checked at run time natively, so `main` must branch on a bound before it stores.
fn stores_are_guarded(name: &str, module: &Module) {
    let main = &module.entry_points[0];
    assert!(main.stage == ShaderStage::Compute, "{name}: main is a compute entry point");
    let first_store = main.function.body.iter().position(|statement| stores_to_a_buffer(main, module, statement));
    let first_branch = main.function.body.iter().position(|statement| matches!(statement, naga::Statement::If { .. }));
    let guarded = match (first_store, first_branch) {
        (None, _) => true,
        (Some(store), Some(branch)) => branch < store,
        (Some(_), None) => false,
    };
    assert!(guarded, "{name}: main stores to a buffer before any bounds check");
}

fn stores_to_a_buffer(main: &naga::EntryPoint, module: &Module, statement: &naga::Statement) -> bool {
    let naga::Statement::Store { pointer, .. } = statement else {
        return false;
    };
    let mut expression = *pointer;
    loop {
        match main.function.expressions[expression] {
            naga::Expression::Access { base, .. } | naga::Expression::AccessIndex { base, .. } => expression = base,
            naga::Expression::GlobalVariable(global) => return module.global_variables[global].binding.is_some(),
            _ => return false,
        }
    }
}
