//! Samara's WGSL kernels as typed constants: source, bindings, workgroup and `Params`, checked at build time; and
//! [`Kernel::from_wgsl`] for kernels of one's own.
//!
//! One file in `kernels/` is one operation with one entry point, `main`; pieces that several kernels need are in
//! `shared/`. This crate has no GPU API and launches nothing.

#[cfg(not(target_arch = "wasm32"))]
mod custom;

#[cfg(not(target_arch = "wasm32"))]
pub use custom::KernelError;

/// One linked variant of a kernel.
#[derive(Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The operation, which is also the file's name.
    pub name: &'static str,
    /// Which set of declarations was put before the file.
    pub variant: &'static str,
    /// Invocations along x, y, z.
    pub workgroup: [u32; 3],
    /// Storage bindings 0, 1, .. of group 0: inputs, then outputs. The uniform `params` follows them.
    pub bindings: &'static [Binding],
    /// 32-bit words of `Params`.
    pub n_params: usize,
    /// Whether it runs only where the device has subgroups of eight lanes or more.
    pub subgroups: bool,
    /// Its WGSL in parts: declarations, shared pieces, the kernel. Variants point to the same texts.
    pub texts: &'static [&'static str],
}

/// One storage binding of a kernel.
#[derive(Debug, PartialEq, Eq)]
pub struct Binding {
    /// Its name in the WGSL file.
    pub name: &'static str,
    /// Whether the kernel writes it.
    pub written: bool,
}

impl Kernel {
    /// How many bindings are inputs; the rest are outputs.
    pub fn n_inputs(&self) -> usize {
        self.bindings.iter().filter(|binding| !binding.written).count()
    }

    /// Complete WGSL.
    pub fn source(&self) -> String {
        self.texts.concat()
    }
}

include!("format.rs");
include!(concat!(env!("OUT_DIR"), "/kernels.rs"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variant_is_listed_once() {
        let mut names: Vec<_> = ALL.iter().copied().flatten().map(|kernel| (kernel.name, kernel.variant)).collect();
        let n_variants = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), n_variants);
    }

    #[test]
    fn variants_that_read_weights_follow_the_order_of_formats() {
        for kernels in [
            &EMBED,
            &MATVEC,
            &MATMUL,
            &GATED_MATVEC,
            &GATED_TILE,
            &GATED_LANES,
            &MATVEC_TILE,
            &MATMUL_TILE,
            &MATVEC_LANES,
            &MATMUL_LANES,
            &MOE_LINEAR,
        ] {
            let names: Vec<_> = kernels.iter().map(|kernel| kernel.variant).collect();
            assert_eq!(names, Format::ALL.map(Format::name));
        }
        for (index, format) in Format::ALL.into_iter().enumerate() {
            assert_eq!(format as usize, index);
        }
    }

    #[test]
    fn params_follow_the_layout_of_the_shader() {
        let params = NormParams { n_rows: 3, width: 5, eps: 1.5 };
        assert_eq!(params.words(), [3, 5, 1.5f32.to_bits()]);
    }
}
