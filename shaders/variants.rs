// Every kernel that is built: its file in `kernels/`, the files of `shared/` it names, and its variants.
//
// A variant is a list of declarations put before the file: `alias` or `const`, never a change of text.
// The first variant of a kernel is the plain one.

const WORKGROUP_64: &str = "const WORKGROUP: u32 = 64u;";

const KERNELS: &[KernelFile] = &[
    KernelFile { name: "embed", shared: &["index"], variants: &[Variant { name: "f32", prelude: &[WORKGROUP_64] }] },
    KernelFile {
        name: "matvec",
        shared: &["index"],
        variants: &[
            Variant { name: "scalar", prelude: &[WORKGROUP_64, "alias Pack = f32;", "const PACK: u32 = 1u;", "const LANES: u32 = 8u;"] },
            Variant { name: "vec4", prelude: &[WORKGROUP_64, "alias Pack = vec4<f32>;", "const PACK: u32 = 4u;", "const LANES: u32 = 8u;"] },
        ],
    },
    KernelFile { name: "matmul", shared: &["index"], variants: &[Variant { name: "f32", prelude: &[] }] },
    KernelFile {
        name: "norm",
        shared: &["index", "reduce"],
        variants: &[
            Variant { name: "rms", prelude: &[WORKGROUP_64, "const CENTER: bool = false;"] },
            Variant { name: "layer", prelude: &[WORKGROUP_64, "const CENTER: bool = true;"] },
        ],
    },
    KernelFile {
        name: "norm_add",
        shared: &["index", "reduce"],
        variants: &[
            Variant { name: "rms", prelude: &[WORKGROUP_64, "const CENTER: bool = false;"] },
            Variant { name: "layer", prelude: &[WORKGROUP_64, "const CENTER: bool = true;"] },
        ],
    },
    KernelFile {
        name: "add_norm",
        shared: &["index", "reduce"],
        variants: &[
            Variant { name: "rms", prelude: &[WORKGROUP_64, "const CENTER: bool = false;"] },
            Variant { name: "layer", prelude: &[WORKGROUP_64, "const CENTER: bool = true;"] },
        ],
    },
    KernelFile {
        name: "qk_norm_rope",
        shared: &["index", "reduce"],
        variants: &[
            Variant { name: "none", prelude: &[WORKGROUP_64, "const NORM: u32 = 0u;"] },
            Variant { name: "full", prelude: &[WORKGROUP_64, "const NORM: u32 = 1u;"] },
            Variant { name: "per_head", prelude: &[WORKGROUP_64, "const NORM: u32 = 2u;"] },
        ],
    },
    KernelFile { name: "attention", shared: &["index", "reduce"], variants: &[Variant { name: "f32", prelude: &[WORKGROUP_64] }] },
    KernelFile {
        name: "glu",
        shared: &["index"],
        variants: &[
            Variant { name: "silu", prelude: &[WORKGROUP_64, "const GELU: bool = false;"] },
            Variant { name: "gelu_tanh", prelude: &[WORKGROUP_64, "const GELU: bool = true;"] },
        ],
    },
    KernelFile { name: "moe_route", shared: &[], variants: &[Variant { name: "f32", prelude: &[WORKGROUP_64] }] },
    KernelFile { name: "moe_linear", shared: &["index"], variants: &[Variant { name: "f32", prelude: &[WORKGROUP_64, "const LANES: u32 = 8u;"] }] },
    KernelFile { name: "moe_combine", shared: &["index"], variants: &[Variant { name: "f32", prelude: &[WORKGROUP_64] }] },
];
