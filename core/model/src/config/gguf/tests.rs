//! Metadata as converters write it, and what must be refused.

use samara_formats::{GgufArray, GgufMetadata, GgufValue};

use super::{TensorFacts, from_metadata};
use crate::{
    Activation, Attention, Config, Family, ModelError, Moe, NormKind, NormPlacement, QkNorm,
    rope::{Rope, RopeScaling, Yarn},
};

type Pairs = Vec<(&'static str, GgufValue)>;

fn u32(value: u32) -> GgufValue {
    GgufValue::U32(value)
}

fn f32(value: f32) -> GgufValue {
    GgufValue::F32(value)
}

fn text(value: &str) -> GgufValue {
    GgufValue::String(value.to_owned())
}

/// Reads pairs without prefix as those of `architecture`; later pairs replace earlier ones.
fn read(architecture: &str, pairs: &Pairs) -> Result<Config, ModelError> {
    let facts = TensorFacts { vocab_size: 256, tied_head: false, rope_divisors: None };
    read_with(architecture, pairs, facts)
}

fn read_with(architecture: &str, pairs: &Pairs, facts: TensorFacts) -> Result<Config, ModelError> {
    let mut metadata = GgufMetadata::default();
    metadata.values.insert("general.architecture".to_owned(), text(architecture));
    for (key, value) in pairs {
        metadata.values.insert(format!("{architecture}.{key}"), value.clone());
    }
    from_metadata("m.gguf", &metadata, facts)
}

/// The keys every architecture has.
fn common() -> Pairs {
    vec![
        ("block_count", u32(4)),
        ("context_length", u32(512)),
        ("embedding_length", u32(64)),
        ("feed_forward_length", u32(128)),
        ("attention.head_count", u32(4)),
        ("attention.head_count_kv", u32(2)),
        ("attention.layer_norm_rms_epsilon", f32(1e-6)),
        ("rope.freq_base", f32(500_000.0)),
    ]
}

fn common_and(more: Pairs) -> Pairs {
    [common(), more].concat()
}

fn olmo2() -> Config {
    Config {
        family: Family::Olmo2,
        vocab_size: 256,
        d_model: 64,
        d_ff: 128,
        n_layers: 4,
        n_heads: 4,
        n_kv_heads: 2,
        head_dim: 16,
        context_length: 512,
        norm: NormKind::Rms,
        norm_eps: 1e-6,
        placement: NormPlacement::Post,
        qk_norm: QkNorm::Full,
        clip_qkv: None,
        activation: Activation::Silu,
        moe: None,
        tied_head: false,
        embed_scale: 1.0,
        attention_scale: 0.25,
        attention: vec![Attention::Full; 4],
        rope_full: Rope::plain(5e5),
        rope_sliding: Rope::plain(5e5),
    }
}

fn olmo3() -> Config {
    let window = Attention::Sliding(8);
    let yarn = Yarn {
        factor: 8.0,
        original_context: 64,
        beta_fast: 32.0,
        beta_slow: 1.0,
        attention_factor: Yarn::default_attention_factor(8.0),
        truncate: true,
    };
    Config {
        family: Family::Olmo3,
        attention: vec![window, window, window, Attention::Full],
        rope_full: Rope { theta: 5e5, scaling: RopeScaling::Yarn(yarn) },
        ..olmo2()
    }
}

/// Olmo 3 as mainline converters write it.
fn olmo3_pairs() -> Pairs {
    common_and(vec![
        ("rope.scaling.type", text("yarn")),
        ("rope.scaling.factor", f32(8.0)),
        ("rope.scaling.original_context_length", u32(64)),
        ("rope.scaling.yarn_attn_factor", f32(1.207_944_2)),
        ("attention.sliding_window", u32(8)),
    ])
}

#[test]
fn every_architecture_is_read() {
    let pre = || Config { placement: NormPlacement::Pre, qk_norm: QkNorm::None, ..olmo2() };
    let olmo = Config { family: Family::Olmo, norm: NormKind::Layer, norm_eps: 1e-5, clip_qkv: Some(8.0), ..pre() };
    let olmo_pairs = vec![("attention.layer_norm_epsilon", f32(1e-5)), ("attention.clamp_kqv", f32(8.0))];
    let moe = Moe { n_experts: 8, top_k: 2, renormalise: false };
    let olmoe = Config { family: Family::Olmoe, qk_norm: QkNorm::Full, moe: Some(moe), ..pre() };
    let olmoe_pairs = vec![("expert_count", u32(8)), ("expert_used_count", u32(2))];
    for (architecture, pairs, expected) in [
        ("llama", common(), Config { family: Family::Llama, ..pre() }),
        ("olmo", common_and(olmo_pairs), olmo),
        ("olmo2", common(), olmo2()),
        ("olmo2", olmo3_pairs(), olmo3()),
        ("olmo3", olmo3_pairs(), olmo3()),
        ("olmoe", common_and(olmoe_pairs), olmoe),
    ] {
        assert_eq!(read(architecture, &pairs).unwrap(), expected, "{architecture}");
    }
}

#[test]
fn gemma3_is_read_with_its_own_head_width_and_bases() {
    let pairs = common_and(vec![
        ("attention.key_length", u32(32)),
        ("attention.value_length", u32(32)),
        ("attention.sliding_window", u32(8)),
        ("attention.sliding_window_pattern", u32(2)),
        ("rope.freq_base", f32(1e6)),
        ("rope.scaling.type", text("linear")),
        ("rope.scaling.factor", f32(8.0)),
    ]);
    let window = Attention::Sliding(8);
    let expected = Config {
        family: Family::Gemma3,
        head_dim: 32,
        placement: NormPlacement::Sandwich,
        qk_norm: QkNorm::PerHead,
        activation: Activation::GeluTanh,
        embed_scale: 8.0,
        attention_scale: 32f32.powf(-0.5),
        attention: vec![window, Attention::Full, window, Attention::Full],
        rope_full: Rope { theta: 1e6, scaling: RopeScaling::Linear { factor: 8.0 } },
        rope_sliding: Rope::plain(1e4),
        ..olmo2()
    };
    assert_eq!(read("gemma3", &pairs).unwrap(), expected);
}

/// The factor is applied once, whichever of its keys a file has.
#[test]
fn yarn_attention_factor_is_applied_once() {
    let mut pairs = olmo3_pairs();
    pairs.retain(|(key, _)| *key != "rope.scaling.yarn_attn_factor");
    for more in [
        vec![],
        vec![("rope.scaling.attn_factor", f32(1.207_944_2)), ("rope.scaling.extrapolation_factor", f32(1.0))],
        vec![("rope.scaling.attn_factor", f32(1.0))],
    ] {
        let config = read("olmo3", &[pairs.clone(), more].concat()).unwrap();
        assert_eq!(config.rope_full, olmo3().rope_full);
    }
}

#[test]
fn sliding_layers_come_from_flags_a_period_or_the_family() {
    let (full, window) = (Attention::Full, Attention::Sliding(8));
    let flags = GgufValue::Array(GgufArray::Bool(vec![true, false, false, true]));
    for (pattern, expected) in [
        (Some(flags), [window, full, full, window]),
        (Some(u32(2)), [window, full, window, full]),
        (None, [window, window, window, full]),
    ] {
        let more = pattern.map(|value| ("attention.sliding_window_pattern", value));
        let pairs = [olmo3_pairs(), more.into_iter().collect()].concat();
        assert_eq!(read("olmo2", &pairs).unwrap().attention, expected);
    }
}

#[test]
fn a_base_for_sliding_layers_is_read() {
    let pairs = [olmo3_pairs(), vec![("rope.freq_base_swa", f32(1e4))]].concat();
    assert_eq!(read("olmo2", &pairs).unwrap().rope_sliding, Rope::plain(1e4));
}

#[test]
fn llama3_divisors_come_from_a_tensor() {
    let by = vec![1.0, 1.0, 1.5, 2.0, 4.0, 8.0, 8.0, 8.0];
    let facts = |by| TensorFacts { vocab_size: 256, tied_head: true, rope_divisors: Some(by) };
    let config = read_with("llama", &common(), facts(by.clone())).unwrap();
    assert_eq!(config.rope_full.scaling, RopeScaling::Divisors(by));
    assert!(config.tied_head);
    let message = read_with("llama", &common(), facts(vec![1.0])).unwrap_err().to_string();
    assert!(message.contains("rotary divisors"), "{message}");
}

#[test]
fn impossible_and_unbuilt_values_are_refused() {
    let heads = GgufValue::Array(GgufArray::U32(vec![4, 4, 4, 4]));
    let flags = GgufValue::Array(GgufArray::Bool(vec![true; 3]));
    for (key, value, words) in [
        ("block_count", u32(0), "olmo2.block_count"),
        ("block_count", u32(u32::MAX), "layers"),
        ("embedding_length", u32(u32::MAX), "width"),
        ("attention.head_count", heads, "olmo2.attention.head_count"),
        ("attention.head_count_kv", u32(3), "key-value heads"),
        ("attention.key_length", u32(15), "head width"),
        ("attention.value_length", u32(8), "olmo2.attention.value_length"),
        ("rope.dimension_count", u32(8), "olmo2.rope.dimension_count"),
        ("rope.freq_base", f32(f32::NAN), "olmo2.rope.freq_base"),
        ("rope.freq_base", f32(f32::INFINITY), "olmo2.rope.freq_base"),
        ("rope.scaling.type", text("longrope"), "longrope"),
        ("rope.scaling.factor", f32(0.0), "olmo2.rope.scaling.factor"),
        ("attention.sliding_window", u32(0), "olmo2.attention.sliding_window"),
        ("attention.sliding_window_pattern", flags, "layer types"),
        ("expert_count", u32(8), "olmo2.expert_count"),
    ] {
        let pairs = [olmo3_pairs(), vec![(key, value)]].concat();
        let message = read("olmo2", &pairs).unwrap_err().to_string();
        assert!(message.contains(words) && message.starts_with("m.gguf: "), "{key}: {message}");
    }
}

#[test]
fn unknown_architectures_are_named_with_the_known_ones() {
    let message = read("qwen2", &common()).unwrap_err().to_string();
    assert!(message.contains("`qwen2`") && message.contains("olmo2"), "{message}");
    let none = from_metadata(
        "m.gguf",
        &GgufMetadata::default(),
        TensorFacts { vocab_size: 1, tied_head: true, rope_divisors: None },
    );
    assert!(none.unwrap_err().to_string().contains("general.architecture"));
}
