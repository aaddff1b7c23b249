//! Kernels that others bring: WGSL that is checked at run time as ours is at build time.

#[path = "../build/check.rs"]
mod check;

use crate::{Binding, Kernel};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Why some WGSL is no kernel.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kernel}: {problem}")]
pub struct KernelError {
    /// The name that it was to have.
    pub kernel: String,
    /// What naga says, or which rule is broken.
    pub problem: String,
}

impl Kernel {
    /// A kernel from complete WGSL: one entry point `main`, storage bindings 0, 1, .. of group 0 with inputs before
    /// outputs, and after them `var<uniform> params: Params` with scalars of four bytes.
    ///
    /// It lives as long as the program, as its pipeline does, so make each once: keep it in a `LazyLock`. The source
    /// tells kernels of one name apart.
    ///
    /// # Errors
    /// What does not compile, exceeds WebGPU's default limits, uses subgroups, or stores before it checks a bound.
    pub fn from_wgsl(name: &str, source: &str) -> Result<&'static Self, KernelError> {
        let failed = |problem| KernelError { kernel: name.to_owned(), problem };
        let found = check::check(name, source, false).map_err(failed)?;
        let binding = |(name, written): (String, bool)| Binding { name: name.leak(), written };
        Ok(Box::leak(Box::new(Self {
            name: name.to_owned().leak(),
            variant: fingerprint(source).leak(),
            workgroup: found.workgroup,
            bindings: found.bindings.into_iter().map(binding).collect::<Vec<_>>().leak(),
            n_params: found.params.len(),
            subgroups: false,
            texts: vec![&*source.to_owned().leak()].leak(),
        })))
    }
}

/// Pipelines are kept by name and variant, so another source must give another variant.
fn fingerprint(source: &str) -> String {
    let mut hasher = DefaultHasher::new();
    source.hash(&mut hasher);
    format!("custom_{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "
        struct Params { n: u32, scale: f32 }
        @group(0) @binding(0) var<storage, read> x: array<f32>;
        @group(0) @binding(1) var<storage, read_write> y: array<f32>;
        @group(0) @binding(2) var<uniform> params: Params;
        @compute @workgroup_size(32)
        fn main(@builtin(global_invocation_id) id: vec3<u32>) {
            if id.x < params.n { y[id.x] = params.scale * x[id.x]; }
        }";

    #[test]
    fn a_kernel_tells_what_it_asks_of_its_launcher() {
        let kernel = Kernel::from_wgsl("scale", SOURCE).unwrap();
        assert_eq!((kernel.n_inputs(), kernel.bindings.len(), kernel.n_params), (1, 2, 2));
        assert_eq!((kernel.name, kernel.workgroup, kernel.source().as_str()), ("scale", [32, 1, 1], SOURCE));
        let other = Kernel::from_wgsl("scale", &SOURCE.replace("size(32)", "size(64)")).unwrap();
        assert_ne!(kernel.variant, other.variant);
    }

    #[test]
    fn what_is_no_kernel_is_refused_by_name_and_reason() {
        let cases = [
            ("x[id.x]; }", "x[id.z] }", "expected"),
            ("params.scale *", "params.n *", "Multiply"),
            ("read_write", "read", ""),
            ("if id.x < params.n { y[id.x] = params.scale * x[id.x]; }", "y[id.x] = params.scale * x[id.x];", "bounds"),
            ("workgroup_size(32)", "workgroup_size(257)", "256"),
            ("* x[id.x]", "", "not used"),
            ("fn main", "fn start", "`main`"),
            ("scale: f32", "scale: vec2<f32>", ""),
            ("@binding(2)", "@binding(3)", "bindings are 0, 1, 2"),
        ];
        for (from, to, problem) in cases {
            let error = Kernel::from_wgsl("scale", &SOURCE.replace(from, to)).unwrap_err();
            assert!(error.kernel == "scale" && error.problem.contains(problem), "{from} -> {to}: {error}");
        }
    }
}
