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

/// Collects bindings in order; panics with the kernel's name where the conventions are broken.
pub fn reflect(name: &str, module: &Module) -> Reflection {
    let entry = match module.entry_points.as_slice() {
        [entry] if entry.name == "main" => entry,
        _ => panic!("{name}: exactly one entry point, `main`"),
    };
    let mut globals: Vec<_> = module.global_variables.iter().filter_map(|(_, g)| Some((g.binding?, g))).collect();
    globals.sort_by_key(|(binding, _)| binding.binding);
    let mut bindings = Vec::new();
    let mut params = Vec::new();
    for (index, (binding, global)) in globals.iter().enumerate() {
        assert!(binding.group == 0 && binding.binding as usize == index, "{name}: bindings are 0, 1, 2 .. in group 0");
        let label = global.name.clone().unwrap_or_default();
        match global.space {
            AddressSpace::Storage { access } => bindings.push((label, access.contains(StorageAccess::STORE))),
            AddressSpace::Uniform if label == "params" => params = fields(name, module, global.ty),
            space => panic!("{name}: binding {label} is in {space:?}"),
        }
    }
    assert!(bindings.len() + 1 == globals.len(), "{name}: the last binding is `var<uniform> params: Params`");
    let workgroup_bytes = module
        .global_variables
        .iter()
        .filter(|(_, global)| global.space == AddressSpace::WorkGroup)
        .map(|(_, global)| module.types[global.ty].inner.size(module.to_ctx()))
        .sum();
    Reflection { bindings, workgroup: entry.workgroup_size, workgroup_bytes, params }
}

fn fields(name: &str, module: &Module, ty: Handle<Type>) -> Vec<(String, &'static str)> {
    let TypeInner::Struct { members, .. } = &module.types[ty].inner else {
        panic!("{name}: params is a struct");
    };
    let field = |(index, member): (usize, &naga::StructMember)| {
        assert!(member.offset as usize == 4 * index, "{name}: Params holds scalars only");
        let rust = match module.types[member.ty].inner {
            TypeInner::Scalar(scalar) if scalar.width == 4 => match scalar.kind {
                ScalarKind::Uint => "u32",
                ScalarKind::Sint => "i32",
                ScalarKind::Float => "f32",
                kind => panic!("{name}: Params holds {kind:?}"),
            },
            _ => panic!("{name}: Params holds scalars of 4 bytes only"),
        };
        (member.name.clone().unwrap_or_default(), rust)
    };
    members.iter().enumerate().map(field).collect()
}
