//! The one gate that every kernel passes, ours when they are built and those of others when they are made: naga's full
//! validation, WebGPU's default limits, and what the launcher relies on.

mod lint;
mod reflect;

use naga::valid::{Capabilities, ShaderStages, SubgroupOperationSet, ValidationFlags, Validator};
pub use reflect::Reflection;

/// What a complete kernel asks of its launcher, or what is wrong with it; `subgroups` says whether it may use them.
pub fn check(name: &str, source: &str, subgroups: bool) -> Result<Reflection, String> {
    let path = format!("kernels/{name}.wgsl");
    let module = naga::front::wgsl::parse_str(source).map_err(|error| error.emit_to_string_with_path(source, &path))?;
    // `unpack2x16float` is in every WebGPU; only adapters below it lack this.
    let mut capabilities = Capabilities::SHADER_FLOAT16_IN_FLOAT32;
    capabilities.set(Capabilities::SUBGROUP, subgroups);
    let info = Validator::new(ValidationFlags::all(), capabilities)
        .subgroup_stages(ShaderStages::COMPUTE)
        .subgroup_operations(SubgroupOperationSet::all())
        .validate(&module)
        .map_err(|error| error.emit_to_string_with_path(source, &path))?;
    let reflection = reflect::reflect(&module)?;
    lint::check(&module, &info, &reflection)?;
    Ok(reflection)
}
