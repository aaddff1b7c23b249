//! Holds each kernel to WebGPU's default limits and to the conventions that the launcher relies on.

use super::reflect::{Reflection, ensure};
use naga::valid::ModuleInfo;
use naga::{Module, ShaderStage};

/// `maxStorageBuffersPerShaderStage` is 8; Burn counts the uniform as one.
const MAX_STORAGE_BINDINGS: usize = 7;
/// `maxComputeInvocationsPerWorkgroup`.
const MAX_INVOCATIONS: u64 = 256;
/// `maxComputeWorkgroupStorageSize`.
const MAX_WORKGROUP_BYTES: u32 = 16 * 1024;

/// The rule that a kernel breaks, if it breaks one.
pub fn check(module: &Module, info: &ModuleInfo, reflection: &Reflection) -> Result<(), String> {
    let storage = reflection.bindings.len();
    ensure(storage <= MAX_STORAGE_BINDINGS, || format!("{storage} storage bindings, at most {MAX_STORAGE_BINDINGS}"))?;
    let invocations: u64 = reflection.workgroup.into_iter().map(u64::from).product();
    ensure(invocations <= MAX_INVOCATIONS, || format!("{invocations} invocations, at most {MAX_INVOCATIONS}"))?;
    let bytes = reflection.workgroup_bytes;
    ensure(bytes <= MAX_WORKGROUP_BYTES, || {
        format!("{bytes} bytes of workgroup memory, at most {MAX_WORKGROUP_BYTES}")
    })?;
    outputs_come_last(reflection)?;
    every_binding_is_used(module, info)?;
    stores_are_guarded(module)
}

/// Inputs, then outputs: the launcher splits its buffers by that order.
fn outputs_come_last(reflection: &Reflection) -> Result<(), String> {
    let written: Vec<bool> = reflection.bindings.iter().map(|(_, written)| *written).collect();
    let come_last = written.is_sorted() && written.contains(&true);
    ensure(come_last, || "`read` bindings come before `read_write` ones".into())
}

/// With an automatic layout a binding that `main` does not use vanishes, and every later one shifts.
fn every_binding_is_used(module: &Module, info: &ModuleInfo) -> Result<(), String> {
    let main = info.get_entry_point(0);
    for (handle, global) in module.global_variables.iter() {
        let used = global.binding.is_none() || !main[handle].is_empty();
        ensure(used, || format!("binding {:?} is not used by main", global.name))?;
    }
    Ok(())
}

/// Bounds are not checked at run time natively, so `main` must branch on a bound before it stores.
fn stores_are_guarded(module: &Module) -> Result<(), String> {
    let main = &module.entry_points[0];
    ensure(main.stage == ShaderStage::Compute, || "main is a compute entry point".into())?;
    let first_store = main.function.body.iter().position(|statement| stores_to_a_buffer(main, module, statement));
    let first_branch = main.function.body.iter().position(|statement| matches!(statement, naga::Statement::If { .. }));
    let guarded = match (first_store, first_branch) {
        (None, _) => true,
        (Some(store), Some(branch)) => branch < store,
        (Some(_), None) => false,
    };
    ensure(guarded, || "main stores to a buffer before any bounds check".into())
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
