//! Published configurations, the spellings met in the wild, and what must be refused.

use serde_json::{Value, json};

use crate::{
    Activation, Attention, Config, Family, ModelError, Moe, NormKind, NormPlacement, QkNorm,
    rope::{Llama3, Rope, RopeScaling, Yarn},
};

const FULL: Attention = Attention::Full;

/// The text of a published file, by the name of its repository.
macro_rules! published {
    ($name:literal) => {
        include_str!(concat!("../../../tests/configs/", $name, ".json"))
    };
}

fn read(text: &str) -> Result<Config, ModelError> {
    let value: Value = serde_json::from_str(text).unwrap();
    Config::from_huggingface("config.json", &value)
}

/// A published file with some keys changed; `null` stands for a key taken away.
fn changed(text: &str, changes: Value) -> Result<Config, ModelError> {
    let mut value: Value = serde_json::from_str(text).unwrap();
    let map = value.as_object_mut().unwrap();
    for (key, change) in changes.as_object().unwrap() {
        map.insert(key.clone(), change.clone());
    }
    map.retain(|_, value| !value.is_null());
    Config::from_huggingface("config.json", &value)
}

fn sliding(n_layers: usize, period: usize, window: usize) -> Vec<Attention> {
    (1..=n_layers).map(|i| if i % period == 0 { FULL } else { Attention::Sliding(window) }).collect()
}

fn olmo_1b() -> Config {
    Config {
        family: Family::Olmo,
        vocab_size: 50304,
        d_model: 2048,
        d_ff: 8192,
        n_layers: 16,
        n_heads: 16,
        n_kv_heads: 16,
        head_dim: 128,
        context_length: 2048,
        norm: NormKind::Layer,
        norm_eps: 1e-5,
        placement: NormPlacement::Pre,
        qk_norm: QkNorm::None,
        clip_qkv: None,
        activation: Activation::Silu,
        moe: None,
        tied_head: true,
        embed_scale: 1.0,
        attention_scale: 128f32.powf(-0.5),
        attention: vec![FULL; 16],
        rope_full: Rope::plain(1e4),
        rope_sliding: Rope::plain(1e4),
    }
}

fn olmo2_1b() -> Config {
    Config {
        family: Family::Olmo2,
        vocab_size: 100352,
        context_length: 4096,
        norm: NormKind::Rms,
        norm_eps: 1e-6,
        placement: NormPlacement::Post,
        qk_norm: QkNorm::Full,
        tied_head: false,
        rope_full: Rope::plain(5e5),
        rope_sliding: Rope::plain(5e5),
        ..olmo_1b()
    }
}

fn wide_7b(small: Config) -> Config {
    let attention = vec![FULL; 32];
    Config { d_model: 4096, d_ff: 11008, n_layers: 32, n_heads: 32, n_kv_heads: 32, attention, ..small }
}

fn wide_32b(small: Config) -> Config {
    let attention = vec![FULL; 64];
    Config { d_model: 5120, d_ff: 27648, n_layers: 64, n_heads: 40, n_kv_heads: 8, attention, ..small }
}

fn olmo3(wide: Config) -> Config {
    let yarn = Yarn {
        factor: 8.0,
        original_context: 8192,
        beta_fast: 32.0,
        beta_slow: 1.0,
        attention_factor: 1.207_944_2,
        truncate: true,
    };
    Config {
        family: Family::Olmo3,
        vocab_size: 100278,
        context_length: 65536,
        attention: sliding(wide.n_layers, 4, 4096),
        rope_full: Rope { theta: 5e5, scaling: RopeScaling::Yarn(yarn) },
        ..wide
    }
}

fn olmoe() -> Config {
    Config {
        family: Family::Olmoe,
        d_ff: 1024,
        context_length: 4096,
        norm: NormKind::Rms,
        qk_norm: QkNorm::Full,
        moe: Some(Moe { n_experts: 64, top_k: 8, renormalise: false }),
        tied_head: false,
        ..olmo_1b()
    }
}

fn smollm2() -> Config {
    Config {
        family: Family::Llama,
        vocab_size: 49152,
        d_model: 576,
        d_ff: 1536,
        n_layers: 30,
        n_heads: 9,
        n_kv_heads: 3,
        head_dim: 64,
        context_length: 8192,
        norm: NormKind::Rms,
        attention_scale: 0.125,
        attention: vec![FULL; 30],
        rope_full: Rope::plain(1e5),
        rope_sliding: Rope::plain(1e5),
        ..olmo_1b()
    }
}

fn llama32_1b() -> Config {
    let llama3 = Llama3 { factor: 32.0, low_freq_factor: 1.0, high_freq_factor: 4.0, original_context: 8192 };
    Config {
        vocab_size: 128_256,
        d_model: 2048,
        d_ff: 8192,
        n_layers: 16,
        n_heads: 32,
        n_kv_heads: 8,
        context_length: 131_072,
        attention: vec![FULL; 16],
        rope_full: Rope { theta: 5e5, scaling: RopeScaling::Llama3(llama3) },
        rope_sliding: Rope::plain(5e5),
        ..smollm2()
    }
}

fn gemma3_270m() -> Config {
    Config {
        family: Family::Gemma3,
        vocab_size: 262_144,
        d_model: 640,
        d_ff: 2048,
        n_layers: 18,
        n_heads: 4,
        n_kv_heads: 1,
        head_dim: 256,
        context_length: 32768,
        norm: NormKind::Rms,
        norm_eps: 1e-6,
        placement: NormPlacement::Sandwich,
        qk_norm: QkNorm::PerHead,
        activation: Activation::GeluTanh,
        embed_scale: 640f32.sqrt(),
        attention_scale: 0.0625,
        attention: sliding(18, 6, 512),
        rope_full: Rope::plain(1e6),
        rope_sliding: Rope::plain(1e4),
        ..olmo_1b()
    }
}

fn gemma3_4b() -> Config {
    Config {
        vocab_size: 262_208,
        d_model: 2560,
        d_ff: 10240,
        n_layers: 34,
        n_heads: 8,
        n_kv_heads: 4,
        context_length: 131_072,
        embed_scale: 2560f32.sqrt(),
        attention: sliding(34, 6, 1024),
        rope_full: Rope { theta: 1e6, scaling: RopeScaling::Linear { factor: 8.0 } },
        ..gemma3_270m()
    }
}

#[test]
fn published_files_are_read() {
    let clip = |config: Config, clip_qkv| Config { clip_qkv, context_length: 4096, tied_head: false, ..config };
    let cases = [
        (published!("OLMo-1B-hf"), olmo_1b()),
        (published!("OLMo-1B-0724-hf"), clip(olmo_1b(), Some(8.0))),
        (published!("OLMo-7B-0724-Instruct-hf"), clip(wide_7b(olmo_1b()), None)),
        (published!("OLMo-2-0425-1B"), olmo2_1b()),
        (published!("OLMo-2-1124-7B-Instruct"), wide_7b(olmo2_1b())),
        (published!("OLMo-2-0325-32B"), wide_32b(olmo2_1b())),
        (published!("Olmo-3-1025-7B"), olmo3(wide_7b(olmo2_1b()))),
        (published!("Olmo-3.1-32B-Think"), olmo3(wide_32b(olmo2_1b()))),
        (published!("OLMoE-1B-7B-0924"), olmoe()),
        (published!("SmolLM2-135M-Instruct"), smollm2()),
        (published!("Llama-3.2-1B-Instruct"), llama32_1b()),
        (published!("gemma-3-270m-it"), gemma3_270m()),
        (published!("gemma-3-4b-it"), gemma3_4b()),
    ];
    for (text, expected) in cases {
        assert_eq!(read(text).unwrap(), expected);
    }
}

/// Olmo 3's YaRN in the spellings that files have; all mean full layers only.
#[test]
fn yarn_is_read_in_every_spelling_and_for_full_layers_only() {
    let yarn = json!({"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 8192,
        "attention_factor": 1.2079441541679836, "beta_fast": 32, "beta_slow": 1});
    let with = |key: &str, value: Value| {
        let mut yarn = yarn.clone();
        yarn.as_object_mut().unwrap().insert(key.to_owned(), value);
        yarn.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        yarn
    };
    let old_name = json!({"type": "yarn", "factor": 8.0, "original_max_position_embeddings": 8192});
    let plain = json!({"rope_type": "default", "rope_theta": 500000.0});
    let nested = json!({"full_attention": with("rope_theta", json!(500000.0)), "sliding_attention": plain});
    for spelling in [
        json!({"rope_scaling": old_name}),
        json!({"rope_scaling": with("attention_factor", Value::Null)}),
        json!({"rope_scaling": null, "rope_theta": null, "rope_parameters": with("rope_theta", json!(500000))}),
        json!({"rope_scaling": null, "rope_theta": null, "rope_parameters": nested}),
        json!({"rope_theta": null}),
        json!({"layer_types": null, "num_key_value_heads": null}),
    ] {
        let found = changed(published!("Olmo-3-1025-7B"), spelling.clone()).unwrap();
        assert_eq!(found, olmo3(wide_7b(olmo2_1b())), "{spelling}");
    }
}

#[test]
fn spellings_in_the_wild_are_read() {
    let seven = || olmo3(wide_7b(olmo2_1b()));
    let stage_1 = Config { context_length: 8192, rope_full: Rope::plain(5e5), ..seven() };
    let linear = Rope { theta: 5e5, scaling: RopeScaling::Linear { factor: 8.0 } };
    let tiny = Config {
        d_model: 8,
        d_ff: 32,
        n_layers: 2,
        n_heads: 8,
        n_kv_heads: 4,
        head_dim: 32,
        attention_scale: 32f32.powf(-0.5),
        attention: vec![Attention::Sliding(4096); 2],
        ..seven()
    };
    let cases = [
        (json!({"rope_scaling": null, "max_position_embeddings": 8192}), stage_1),
        (json!({"rope_scaling": {"type": "linear", "factor": 8}}), Config { rope_full: linear, ..seven() }),
        (
            json!({"hidden_size": 8, "intermediate_size": 32, "num_hidden_layers": 2, "head_dim": 32,
                "num_attention_heads": 8, "num_key_value_heads": 4, "layer_types": null}),
            tiny,
        ),
        (json!({"torch_dtype": null, "dtype": "bfloat16"}), seven()),
        (json!({"vocab_size": 48000}), Config { vocab_size: 48000, ..seven() }),
    ];
    for (change, expected) in cases {
        let found = changed(published!("Olmo-3-1025-7B"), change.clone()).unwrap();
        assert_eq!(found, expected, "{change}");
    }
}

#[test]
fn gemma_rope_is_read_nested_and_flat() {
    let nested = json!({"full_attention": {"rope_type": "default", "rope_theta": 1e6},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}});
    for spelling in [
        json!({"rope_parameters": nested, "rope_theta": null, "rope_local_base_freq": null}),
        json!({"rope_theta": null, "rope_local_base_freq": null}),
        json!({"layer_types": null}),
        json!({"layer_types": null, "_sliding_window_pattern": null}),
    ] {
        assert_eq!(changed(published!("gemma-3-270m-it"), spelling).unwrap(), gemma3_270m());
    }
}

/// Olmo 3 with one key changed is refused with a message that names the key and what was found.
#[test]
fn impossible_and_unbuilt_values_are_refused() {
    let yarn_without_factor = json!({"rope_type": "linear"});
    for (change, words) in [
        (json!({"num_hidden_layers": 0}), ["num_hidden_layers", "0"]),
        (json!({"num_hidden_layers": 1025}), ["layers", "1025"]),
        (json!({"num_hidden_layers": 4_000_000_000_u32}), ["layers", "4000000000"]),
        (json!({"num_hidden_layers": -1}), ["num_hidden_layers", "-1"]),
        (json!({"num_hidden_layers": 1e300}), ["num_hidden_layers", "1e"]),
        (json!({"num_hidden_layers": 31}), ["layer types", "32"]),
        (json!({"hidden_size": null}), ["hidden_size", "missing"]),
        (json!({"hidden_size": "wide"}), ["hidden_size", "wide"]),
        (json!({"hidden_size": 4_294_967_296_u64}), ["hidden_size", "4294967296"]),
        (json!({"hidden_size": 4_294_967_295_u64}), ["width", "4294967295"]),
        (json!({"hidden_size": 8}), ["head width", "0"]),
        (json!({"head_dim": 127}), ["head width", "127"]),
        (json!({"num_key_value_heads": 33}), ["key-value heads", "33"]),
        (json!({"num_key_value_heads": 5}), ["key-value heads", "5"]),
        (json!({"sliding_window": 0}), ["sliding_window", "0"]),
        (json!({"rms_norm_eps": -1e-6}), ["rms_norm_eps", "-1e-6"]),
        (json!({"rope_theta": 0}), ["rope_theta", "0"]),
        (json!({"rope_theta": 1e300}), ["rope_theta", "1e"]),
        (json!({"rope_theta": 1}), ["rotary base", "1"]),
        (json!({"rope_scaling": {"rope_type": "dynamic", "factor": 2}}), ["rope_scaling.rope_type", "dynamic"]),
        (json!({"rope_scaling": yarn_without_factor}), ["rope_scaling.factor", "missing"]),
        (json!({"rope_scaling": 8}), ["rope_scaling", "8"]),
        (json!({"layer_types": ["linear_attention"]}), ["layer_types", "linear_attention"]),
        (json!({"hidden_act": "gelu"}), ["hidden_act", "gelu"]),
        (json!({"attention_bias": true}), ["attention_bias", "true"]),
        (json!({"quantization_config": {"quant_method": "gptq"}}), ["quantization_config", "gptq"]),
        (json!({"partial_rotary_factor": 0.5}), ["partial_rotary_factor", "0.5"]),
        (json!({"model_type": "olmo_hybrid"}), ["olmo_hybrid", "olmo3"]),
        (json!({"architectures": ["OLMoForCausalLM"]}), ["OLMoForCausalLM", "-hf"]),
        (json!({"model_type": "hf_olmo"}), ["hf_olmo", "-hf"]),
        (json!({"model_type": null}), ["model_type", "missing"]),
    ] {
        let message = changed(published!("Olmo-3-1025-7B"), change.clone()).unwrap_err().to_string();
        let told = words.iter().all(|word| message.contains(word)) && message.starts_with("config.json: ");
        assert!(told, "{change}: {message}");
    }
}

#[test]
fn unbuilt_features_of_other_families_are_refused() {
    for (text, change, words) in [
        (published!("SmolLM2-135M-Instruct"), json!({"mlp_bias": true}), "mlp_bias"),
        (published!("SmolLM2-135M-Instruct"), json!({"attention_bias": true}), "attention_bias"),
        (published!("gemma-3-270m-it"), json!({"final_logit_softcapping": 30.0}), "final_logit_softcapping"),
        (published!("gemma-3-270m-it"), json!({"use_bidirectional_attention": true}), "bidirectional"),
        (published!("OLMoE-1B-7B-0924"), json!({"num_experts_per_tok": 65}), "experts per token"),
        (published!("OLMo-1B-0724-hf"), json!({"clip_qkv": 0}), "clip_qkv"),
    ] {
        let message = changed(text, change).unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
    }
}

/// Whatever stands at whatever key, reading ends with a configuration or a message.
#[test]
fn no_value_at_any_key_panics() {
    let odd =
        json!([null, true, -1, 0, 1, 3, 1e-300, 1e300, 4_294_967_295_u64, u64::MAX, "", [], [7], {}, {"factor": 0}]);
    for text in [
        published!("OLMo-1B-0724-hf"),
        published!("Olmo-3-1025-7B"),
        published!("OLMoE-1B-7B-0924"),
        published!("Llama-3.2-1B-Instruct"),
        published!("gemma-3-4b-it"),
    ] {
        let keys: serde_json::Map<String, Value> = serde_json::from_str(text).unwrap();
        for key in keys.keys() {
            for value in odd.as_array().unwrap() {
                if let Ok(config) = changed(text, json!({key: value})) {
                    assert_eq!(config.attention.len(), config.n_layers);
                }
            }
        }
    }
}

#[test]
fn a_configuration_that_is_no_object_misses_its_keys() {
    let message = Config::from_huggingface("config.json", &json!([])).unwrap_err().to_string();
    assert_eq!(message, "config.json: `model_type` is missing");
}
