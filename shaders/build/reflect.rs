//! Reads from a naga module what Rust must know of a kernel: its bindings, workgroup and `Params`.

use naga::{AddressSpace, Handle, Module, ScalarKind, StorageAccess, Type, TypeInner};

/// What one linked kernel asks of its launcher.
pub struct Reflection {
    /// Name of each storage binding in order, and whether the kernel writes it.
    pub bindings: Vec<(String, bool)>,
    /// Invocations along x, y, z.
    pub workgroup: [u32; 3],
    /// Bytes of workgroup memory.
    pub workgroup_bytes: u32,
    /// Fields of `Params`: name and Rust type. Scalars only, so that offsets are 4 apart.
    pub params: Vec<(String, &'static str)>,
}

/// Collects bindings in order, or tells which convention is broken.
pub fn reflect(module: &Module) -> Result<Reflection, String> {
    let entry = match module.entry_points.as_slice() {
        [entry] if entry.name == "main" => entry,
        _ => return Err("exactly one entry point, `main`".into()),
    };
    let mut globals: Vec<_> = module.global_variables.iter().filter_map(|(_, g)| Some((g.binding?, g))).collect();
    globals.sort_by_key(|(binding, _)| binding.binding);
    let mut bindings = Vec::new();
    let mut params = Vec::new();
    for (index, (binding, global)) in globals.iter().enumerate() {
        let is_next = binding.group == 0 && binding.binding as usize == index;
        ensure(is_next, || "bindings are 0, 1, 2 .. in group 0".into())?;
        let label = global.name.clone().unwrap_or_default();
        match global.space {
            AddressSpace::Storage { access } => bindings.push((label, access.contains(StorageAccess::STORE))),
            AddressSpace::Uniform if label == "params" => params = fields(module, global.ty)?,
            space => return Err(format!("binding {label} is in {space:?}")),
        }
    }
    let has_params = bindings.len() + 1 == globals.len();
    ensure(has_params, || "the last binding is `var<uniform> params: Params`".into())?;
    let workgroup_bytes = module
        .global_variables
        .iter()
        .filter(|(_, global)| global.space == AddressSpace::WorkGroup)
        .map(|(_, global)| module.types[global.ty].inner.size(module.to_ctx()))
        .sum();
    Ok(Reflection { bindings, workgroup: entry.workgroup_size, workgroup_bytes, params })
}

/// The problem, unless all is well.
pub fn ensure(is_well: bool, problem: impl FnOnce() -> String) -> Result<(), String> {
    if is_well { Ok(()) } else { Err(problem()) }
}

fn fields(module: &Module, ty: Handle<Type>) -> Result<Vec<(String, &'static str)>, String> {
    let TypeInner::Struct { members, .. } = &module.types[ty].inner else {
        return Err("params is a struct".into());
    };
    let field = |(index, member): (usize, &naga::StructMember)| {
        ensure(member.offset as usize == 4 * index, || "Params holds scalars only".into())?;
        let rust = match module.types[member.ty].inner {
            TypeInner::Scalar(scalar) if scalar.width == 4 => match scalar.kind {
                ScalarKind::Uint => "u32",
                ScalarKind::Sint => "i32",
                ScalarKind::Float => "f32",
                kind => return Err(format!("Params holds {kind:?}")),
            },
            _ => return Err("Params holds scalars of 4 bytes only".into()),
        };
        Ok((member.name.clone().unwrap_or_default(), rust))
    };
    members.iter().enumerate().map(field).collect()
}
