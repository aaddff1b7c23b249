// Every kernel that is built: its name, its file in `kernels/`, the files of `shared/` that go before it, its variants.
//
// A variant is a list of declarations put first: `alias` or `const`, never a change of text. The first variant of a kernel
// is the plain one. A kernel that reads weights has a variant for each `Format`, in that order.

const WORKGROUP_64: &str = "const WORKGROUP: u32 = 64u;";
/// Formats of keys and values with their bits a channel, in the order of `KvFormat`.
const KV_FORMATS: [(&str, u32); 4] = [("f32", 32), ("f16", 16), ("q8", 8), ("q4", 4)];
/// What the norm of queries and keys spans.
const QK_NORMS: [(&str, &str); 3] = [("none", "const NORM: u32 = 0u;"), ("full", "const NORM: u32 = 1u;"), ("per_head", "const NORM: u32 = 2u;")];
/// The activation of a gate.
const GATES: [(&str, &str); 2] = [("silu", "const GELU: bool = false;"), ("gelu_tanh", "const GELU: bool = true;")];

fn kernels() -> Vec<KernelFile> {
    let reduce: &[&str] = &["index", "reduce"];
    let centering = |name| kernel(name, reduce, &[("rms", "const CENTER: bool = false;"), ("layer", "const CENTER: bool = true;")]);
    vec![
        reading_weights("embed", "embed", &["index"], &[WORKGROUP_64]),
        reading_weights("matvec", "matvec", &["index", "x", "plain"], &[WORKGROUP_64, "const LANES: u32 = 16u;", "const ROWS: u32 = 2u;"]),
        reading_weights("gated_matvec", "matvec", &["index", "x", "gated", "activation"], &[WORKGROUP_64, "const LANES: u32 = 16u;", "const ROWS: u32 = 4u;"]),
        reading_weights("matmul", "matmul", &["index", "x"], &[]),
        tiling("matvec_tile", &["alone", "x_alone", "plain"], 16, 1, 8),
        tiling("matmul_tile", &["alone", "x_alone", "plain"], 8, 16, 16),
        tiling("gated_tile", &["alone", "x_alone", "gated", "activation"], 16, 1, 8),
        tiling("matvec_lanes", &["together", "x_together", "plain"], 8, 1, 8),
        tiling("matmul_lanes", &["together", "x_together", "plain"], 8, 32, 8),
        tiling("gated_lanes", &["together", "x_together", "gated", "activation"], 8, 1, 8),
        reading_weights("moe_linear", "moe_linear", &["index", "x"], &[WORKGROUP_64, "const LANES: u32 = 8u;"]),
        centering("norm"),
        centering("norm_add"),
        centering("add_norm"),
        caching("qk_norm_rope", "qk_norm_rope", "kv_out", reduce, WORKGROUP_64, &QK_NORMS),
        caching("attention", "attention", "kv", &["index", "rows", "splits"], WORKGROUP_64, &[("r1", "const ROWS: u32 = 1u;"), ("r4", "const ROWS: u32 = 4u;"), ("r8", "const ROWS: u32 = 8u;")]),
        caching("attention_keys", "attention_keys", "kv", &["index", "splits"], "const WORKGROUP: u32 = 8u;\nconst KEYS: u32 = 2u;", &[
            ("c64_h1", "const CHANNELS: u32 = 64u;\nconst HEADS: u32 = 1u;"),
            ("c64_h2", "const CHANNELS: u32 = 64u;\nconst HEADS: u32 = 2u;"),
            ("c64_h3", "const CHANNELS: u32 = 64u;\nconst HEADS: u32 = 3u;"),
            ("c64_h4", "const CHANNELS: u32 = 64u;\nconst HEADS: u32 = 4u;"),
            ("c128_h1", "const CHANNELS: u32 = 128u;\nconst HEADS: u32 = 1u;"),
            ("c128_h2", "const CHANNELS: u32 = 128u;\nconst HEADS: u32 = 2u;"),
            ("c256_h1", "const CHANNELS: u32 = 256u;\nconst HEADS: u32 = 1u;"),
        ]),
        attention_tile("attention_tile", ["alone", "octets_alone"]),
        attention_tile("attention_lanes", ["together", "octets_together"]),
        kernel("glu", &["index", "activation"], &GATES),
        kernel("moe_route", &[], &[("f32", "")]),
        kernel("moe_combine", &["index"], &[("f32", "")]),
        reading_weights("linear_backward", "linear_backward", &["index"], &["const WORKGROUP: u32 = 8u;", "const TOKENS: u32 = 4u;"]),
        kernel("linear_weight_backward", &["index"], &[("f32", "")]),
        kernel("low_rank_add", &["index"], &[("f32", "")]),
        kernel("low_rank_backward", &["index"], &[("f32", "")]),
        kernel("low_rank_weight_backward", &["index"], &[("f32", "")]),
        reading_weights("row_lengths", "row_lengths", &["index", "x"], &[WORKGROUP_64, "const LANES: u32 = 8u;"]),
        kernel("scale_columns", &["index"], &[("f32", "")]),
        kernel("scale_columns_backward", &["index"], &[("f32", "")]),
        kernel("scale_columns_weight_backward", &["index"], &[("f32", "")]),
        kernel("dropout", &["index", "hash"], &[("f32", "")]),
        kernel("skip_improbable", &["index", "reduce", "hash"], &[("f32", "")]),
        centering("norm_backward"),
        kernel("norm_weight_backward", &["index"], &[("f32", "")]),
        kernel("rope_rows", reduce, &QK_NORMS),
        kernel("rope_rows_backward", &["index", "reduce", "turned"], &QK_NORMS),
        kernel("rope_rows_weight_backward", &["index", "turned"], &QK_NORMS),
        attention_rows("attention_rows"),
        attention_rows("attention_rows_backward_q"),
        attention_rows("attention_rows_backward_kv"),
        kernel("glu_backward", &["index"], &GATES),
        kernel("moe_route_backward", &[], &[("f32", "")]),
        kernel("moe_combine_backward", reduce, &[("f32", "")]),
        reading_weights("moe_linear_backward", "moe_linear_backward", &["index"], &[WORKGROUP_64]),
        kernel("moe_linear_weight_backward", &["index"], &[("f32", "")]),
        kernel("embed_backward", &["index"], &[("f32", "")]),
        kernel("cross_entropy", reduce, &[("f32", "")]),
        kernel("sum_squares", &["reduce"], &[("f32", "")]),
        kernel("penalise", &[], &[("f32", "")]),
        choosing("greedy", &["keys"]),
        choosing("sample", &["keys", "histogram", "draw"]),
        kernel("ceiling_copy", &["index"], &[("f32", "")]),
        kernel("ceiling_multiply_add", &["index"], &[("f32", "")]),
    ]
}

/// A kernel of 64 invocations that reads no weights: each variant has a name and a declaration.
fn kernel(name: &'static str, shared: &[&'static str], variants: &[(&'static str, &'static str)]) -> KernelFile {
    let variant = |&(name, declaration): &(&'static str, &str)| Variant {
        name,
        prelude: format!("{WORKGROUP_64}\n{declaration}\n"),
        shared: shared.to_vec(),
    };
    KernelFile { name, file: name, variants: variants.iter().map(variant).collect() }
}

/// `attention_tile` for heads of 64, 128 and 256 channels; `sharing` names the pieces that say what invocations do for each
/// other.
fn attention_tile(name: &'static str, sharing: [&'static str; 2]) -> KernelFile {
    let shared = ["index", "rows", sharing[0], sharing[1]];
    caching(name, "attention_tile", "kv", &shared, "const WORKGROUP: u32 = 8u;\nconst KEYS: u32 = 1u;", &[
        ("c64", "const CHANNELS: u32 = 64u;\nconst ROWS: u32 = 8u;"),
        ("c128", "const CHANNELS: u32 = 128u;\nconst ROWS: u32 = 4u;"),
        ("c256", "const CHANNELS: u32 = 256u;\nconst ROWS: u32 = 2u;"),
    ])
}

/// A kernel with variants for each format of keys and of values, in the order of `KvFormats`; `kv` names the piece that reads
/// or writes them.
fn caching(name: &'static str, file: &'static str, kv: &'static str, shared: &[&'static str], declarations: &str, variants: &[(&'static str, &str)]) -> KernelFile {
    let variant = |&(variant, more): &(&'static str, &str), (keys, key_bits): (&str, u32), (values, value_bits): (&str, u32)| Variant {
        name: format!("{variant}_{keys}_{values}").leak(),
        prelude: format!("{declarations}\n{more}\nconst KEY_BITS: u32 = {key_bits}u;\nconst VALUE_BITS: u32 = {value_bits}u;\n"),
        shared: shared.iter().copied().chain(["kv_layout", kv]).collect(),
    };
    let of_values = |each, keys| KV_FORMATS.map(|values| variant(each, keys, values));
    let of_formats = |each| KV_FORMATS.into_iter().flat_map(move |keys| of_values(each, keys));
    KernelFile { name, file, variants: variants.iter().flat_map(of_formats).collect() }
}

/// Attention over documents laid end to end, for heads of so many channels, or of at most so many.
fn attention_rows(name: &'static str) -> KernelFile {
    let variant = |(variant, channels, exact): (&'static str, u32, bool)| Variant {
        name: variant,
        prelude: format!("const WORKGROUP: u32 = 8u;\nconst CHANNELS: u32 = {channels}u;\nconst EXACT: bool = {exact};\n"),
        shared: vec!["index"],
    };
    let widths = [("c64", 64, true), ("c128", 128, true), ("to64", 64, false), ("to256", 256, false)];
    KernelFile { name, file: name, variants: widths.into_iter().map(variant).collect() }
}

/// A kernel of one workgroup that strides over a row of logits, in packs of one or of four.
fn choosing(name: &'static str, shared: &[&'static str]) -> KernelFile {
    let variant = |(name, pack): (&'static str, &str)| Variant {
        name,
        prelude: format!("const WORKGROUP: u32 = 256u;\n{pack}\n"),
        shared: shared.to_vec(),
    };
    let packs = [("scalar", "alias Pack = u32;\nconst PACK: u32 = 1u;"), ("vec4", "alias Pack = vec4<u32>;\nconst PACK: u32 = 4u;")];
    KernelFile { name, file: name, variants: packs.into_iter().map(variant).collect() }
}

/// A kernel with a variant for each format of weights; `"x"` among `shared` stands for the activations that go with it.
fn reading_weights(name: &'static str, file: &'static str, shared: &[&'static str], declarations: &[&str]) -> KernelFile {
    let variant = |format: Format| Variant {
        name: format.name(),
        prelude: format!("{}\n{}", declarations.join("\n"), constants(format.layout())),
        shared: shared.iter().map(|&piece| if piece == "x" { activations(format) } else { piece }).chain([weights(format)]).collect(),
    };
    KernelFile { name, file, variants: Format::ALL.into_iter().map(variant).collect() }
}

/// `linear_tile` for so many invocations, each with so many tokens and rows; `pieces` say what they do for each other and
/// what becomes of their sums.
fn tiling(name: &'static str, pieces: &[&'static str], workgroup: u32, tokens: u32, rows: u32) -> KernelFile {
    let declarations = format!("const WORKGROUP: u32 = {workgroup}u;\nconst TOKENS: u32 = {tokens}u;\nconst ROWS: u32 = {rows}u;");
    reading_weights(name, "linear_tile", &[&["index", "x"], pieces].concat(), &[&declarations])
}

fn activations(format: Format) -> &'static str {
    if format == Format::Ragged { "x_ragged" } else { "x_quads" }
}

fn weights(format: Format) -> &'static str {
    match (format, format.layout().book) {
        (Format::Ragged, _) => "ragged",
        (_, Book::Float) => "floats",
        _ => "quantised",
    }
}

/// A layout as WGSL sees it. Books and scales are numbered in the order of their enums.
fn constants(layout: Layout) -> String {
    let Layout { main_bits, extra_bits, offset, book, scales } = layout;
    if book == Book::Float {
        return format!("const MAIN_BITS: u32 = {main_bits}u;\nconst BFLOAT: bool = {};\n", offset == 1);
    }
    let numbers = [
        ("MAIN_BITS", main_bits),
        ("EXTRA_BITS", extra_bits),
        ("OFFSET", offset),
        ("BOOK", book as u32),
        ("SIGNED", Book::Signed as u32),
        ("NON_LINEAR", Book::NonLinear as u32),
        ("E2M1", Book::E2m1 as u32),
        ("SCALES", scales as u32),
        ("HALF", Scales::Half as u32),
        ("POWER", Scales::Power as u32),
        ("PAIR", Scales::Pair as u32),
        ("BYTES_32", Scales::Bytes32 as u32),
        ("SIGNED_32", Scales::Signed32 as u32),
        ("SIGNED_16", Scales::Signed16 as u32),
        ("NIBBLES_16", Scales::Nibbles16 as u32),
        ("RECORD_VALUES", scales.block_len() as u32),
        ("RECORD_BYTES", scales.record_bytes() as u32),
    ];
    numbers.iter().map(|(name, value)| format!("const {name}: u32 = {value}u;\n")).collect()
}
