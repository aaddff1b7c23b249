//! Plans against the tensors that published files hold.

use samara_formats::{Checkpoint, HuggingFaceFiles};
use serde_json::{Value, json};

use super::{MatrixPlan, Plan, RowOrder, check};
use crate::{Config, DeviceMemory, KvFormat};

type Shapes = Vec<(String, Vec<usize>)>;

/// Two layers, sizes that no two dimensions share.
fn config(family: &str) -> Value {
    json!({"model_type": family, "hidden_size": 12, "intermediate_size": 20, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 4, "vocab_size": 30,
        "num_experts": 3, "num_experts_per_tok": 2, "tie_word_embeddings": false})
}

fn shapes(list: &[(&str, &[usize])]) -> Shapes {
    list.iter().map(|(name, shape)| ((*name).to_owned(), shape.to_vec())).collect()
}

/// The tensors of both layers, from their names after the layer's number.
fn layers(root: &str, list: &[(&str, &[usize])]) -> Shapes {
    let of = |layer: usize| shapes(list).into_iter().map(move |(name, shape)| (format!("{root}{layer}.{name}"), shape));
    (0..2).flat_map(of).collect()
}

const ATTENTION: [(&str, &[usize]); 4] = [
    ("self_attn.q_proj.weight", &[16, 12]),
    ("self_attn.k_proj.weight", &[8, 12]),
    ("self_attn.v_proj.weight", &[8, 12]),
    ("self_attn.o_proj.weight", &[12, 16]),
];
const MLP: [(&str, &[usize]); 3] =
    [("mlp.gate_proj.weight", &[20, 12]), ("mlp.up_proj.weight", &[20, 12]), ("mlp.down_proj.weight", &[12, 20])];
const PRE_NORMS: [(&str, &[usize]); 2] =
    [("input_layernorm.weight", &[12]), ("post_attention_layernorm.weight", &[12])];
const POST_NORMS: [(&str, &[usize]); 2] =
    [("post_attention_layernorm.weight", &[12]), ("post_feedforward_layernorm.weight", &[12])];
const FULL_QK_NORMS: [(&str, &[usize]); 2] = [("self_attn.q_norm.weight", &[16]), ("self_attn.k_norm.weight", &[8])];
const TOP: [(&str, &[usize]); 2] = [("model.embed_tokens.weight", &[30, 12]), ("lm_head.weight", &[30, 12])];
const FINAL_NORM: [(&str, &[usize]); 1] = [("model.norm.weight", &[12])];

/// The tensors of a published file of `family` with the sizes of [`config`].
fn published(family: &str) -> Shapes {
    let in_layers = |list: &[(&str, &[usize])]| layers("model.layers.", list);
    let common = [shapes(&TOP), in_layers(&ATTENTION)].concat();
    let dense = [common.clone(), in_layers(&MLP)].concat();
    match family {
        "llama" => [dense, shapes(&FINAL_NORM), in_layers(&PRE_NORMS)].concat(),
        "olmo" => dense,
        "olmo2" | "olmo3" => [dense, shapes(&FINAL_NORM), in_layers(&POST_NORMS), in_layers(&FULL_QK_NORMS)].concat(),
        "olmoe" => {
            let expert =
                |e: usize| MLP.map(|(name, shape)| (format!("mlp.experts.{e}.{}", &name[4..]), shape.to_vec()));
            let experts: Shapes = (0..3).flat_map(expert).collect();
            let named: Vec<(&str, &[usize])> =
                experts.iter().map(|(name, shape)| (name.as_str(), shape.as_slice())).collect();
            let router: [(&str, &[usize]); 1] = [("mlp.gate.weight", &[3, 12])];
            let rest = [PRE_NORMS, FULL_QK_NORMS].concat();
            [common, shapes(&FINAL_NORM), in_layers(&rest), in_layers(&router), in_layers(&named)].concat()
        }
        _ => {
            let more: [(&str, &[usize]); 4] = [
                ("pre_feedforward_layernorm.weight", &[12]),
                ("post_feedforward_layernorm.weight", &[12]),
                ("self_attn.q_norm.weight", &[4]),
                ("self_attn.k_norm.weight", &[4]),
            ];
            [dense, shapes(&FINAL_NORM), in_layers(&PRE_NORMS), in_layers(&more)].concat()
        }
    }
}

/// A checkpoint in memory whose values are all zero.
fn checkpoint(config: &Value, tensors: &Shapes) -> Checkpoint {
    let mut header = serde_json::Map::new();
    let mut end = 0;
    for (name, shape) in tensors {
        let start = end;
        end += 2 * shape.iter().product::<usize>();
        header.insert(name.clone(), json!({"dtype": "BF16", "shape": shape, "data_offsets": [start, end]}));
    }
    let header = Value::from(header).to_string();
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.resize(bytes.len() + end, 0);
    let files = HuggingFaceFiles::new("memory");
    let files = files.with("config.json", config.to_string().into_bytes()).with("model.safetensors", bytes);
    Checkpoint::from_huggingface(files).unwrap()
}

fn checked(config: &Value, tensors: &Shapes) -> Result<Plan, crate::ModelError> {
    let checkpoint = checkpoint(config, tensors);
    let config = Config::from_checkpoint(&checkpoint)?;
    let plan = Plan::new(&config, &checkpoint);
    check(&plan, &config, &checkpoint)?;
    Ok(plan)
}

const FAMILIES: [&str; 6] = ["llama", "olmo", "olmo2", "olmo3", "olmoe", "gemma3_text"];

#[test]
fn published_tensors_are_all_placed() {
    for family in FAMILIES {
        let plan = checked(&config(family), &published(family)).unwrap();
        let qkv = &plan.layers[1].qkv;
        assert_eq!((n_out(qkv), qkv.n_in), (32, 12), "{family}");
        let gate_up = &plan.layers[1].feed_forward.gate_up;
        assert_eq!(n_out(gate_up), if family == "olmoe" { 120 } else { 40 });
    }
}

#[test]
fn every_tensor_that_is_taken_away_is_missed_by_name() {
    for family in FAMILIES {
        let all = published(family);
        for gone in 0..all.len() {
            let mut rest = all.clone();
            let (name, shape) = rest.remove(gone);
            let message = checked(&config(family), &rest).unwrap_err().to_string();
            let expected = format!("memory: tensor `{name}` is missing, expected shape {shape:?}");
            assert_eq!(message, expected, "{family}");
        }
    }
}

#[test]
fn every_tensor_with_another_shape_is_refused() {
    for family in FAMILIES {
        for changed in 0..published(family).len() {
            let mut all = published(family);
            all[changed].1.reverse();
            all[changed].1[0] += 1;
            let (name, found) = all[changed].clone();
            let message = checked(&config(family), &all).unwrap_err().to_string();
            let told = message.contains(&format!("`{name}` has shape {found:?}"));
            assert!(told, "{family}: {message}");
        }
    }
}

#[test]
fn tensors_without_a_place_are_refused_but_for_known_ones() {
    let with = |family: &str, name: &str| {
        let extra = shapes(&[(name, &[12])]);
        let mut config = config(family);
        config["tie_word_embeddings"] = json!(family == "llama");
        checked(&config, &[published(family), extra].concat()).map(|_| ())
    };
    assert!(with("llama", "model.layers.0.self_attn.rotary_emb.inv_freq").is_ok());
    assert!(with("gemma3_text", "vision_tower.patch.weight").is_ok());
    for (family, name) in [
        ("llama", "model.layers.0.self_attn.q_proj.bias"),
        ("llama", "model.layers.2.input_layernorm.weight"),
        ("llama", "vision_tower.patch.weight"),
        ("olmo2", "model.layers.0.input_layernorm.weight"),
        ("olmo", "model.norm.weight"),
    ] {
        let message = with(family, name).unwrap_err().to_string();
        assert!(message.contains(name) && message.contains(family), "{message}");
    }
}

#[test]
fn experts_may_be_fused() {
    let mut all = published("olmoe");
    all.retain(|(name, _)| !name.contains("experts"));
    let fused: [(&str, &[usize]); 2] =
        [("mlp.experts.gate_up_proj", &[3, 40, 12]), ("mlp.experts.down_proj", &[3, 12, 20])];
    all.extend(layers("model.layers.", &fused));
    let plan = checked(&config("olmoe"), &all).unwrap();
    let mlp = &plan.layers[0].feed_forward;
    assert_eq!(rows(&mlp.gate_up), [(0, 40), (40, 80), (80, 120)]);
    assert_eq!(rows(&mlp.down), [(0, 12), (12, 24), (24, 36)]);
}

fn rows(plan: &MatrixPlan) -> Vec<(usize, usize)> {
    plan.pieces.iter().map(|piece| (piece.rows.start, piece.rows.end)).collect()
}

#[test]
fn gemma_with_pictures_keeps_its_language_model_deeper() {
    let mut config = json!({"model_type": "gemma3", "text_config": config("gemma3_text")});
    config["text_config"]["tie_word_embeddings"] = json!(true);
    for root in ["language_model.", "model.language_model."] {
        let old = "model.";
        let deeper = |(name, shape): (String, Vec<usize>)| {
            let rest = name.strip_prefix(old)?.to_owned();
            let inner = if root == "language_model." { "model." } else { "" };
            Some((format!("{root}{inner}{rest}"), shape))
        };
        let tensors: Shapes = published("gemma3").into_iter().filter_map(deeper).collect();
        assert!(checked(&config, &tensors).unwrap().head.is_none());
    }
}

#[test]
fn only_llama_and_olmo_files_in_gguf_are_interleaved() {
    for family in FAMILIES {
        let config = Config::from_huggingface("config.json", &config(family)).unwrap();
        let plan = Plan::gguf(&config, &|_| true);
        let orders: Vec<RowOrder> = plan.layers[0].qkv.pieces.iter().map(|piece| piece.order).collect();
        let qk = match family {
            "llama" | "olmo" => RowOrder::Interleaved { head_dim: 4 },
            _ => RowOrder::AsStored,
        };
        assert_eq!(orders, [qk, qk, RowOrder::AsStored], "{family}");
    }
}

#[test]
fn gemma_norms_are_distances_from_one_in_safetensors_only() {
    let config = Config::from_huggingface("config.json", &config("gemma3_text")).unwrap();
    let added = |plan: Plan| plan.vectors().map(|vector| vector.add).collect::<Vec<_>>();
    assert!(added(Plan::huggingface(&config, &|_| false)).iter().all(|add| *add == 1.0));
    assert!(added(Plan::gguf(&config, &|_| false)).iter().all(|add| *add == 0.0));
}

#[test]
fn stacked_experts_alternate_gate_and_up() {
    let config = Config::from_huggingface("config.json", &config("olmoe")).unwrap();
    let plan = Plan::gguf(&config, &|_| false);
    let pieces = &plan.layers[0].feed_forward.gate_up.pieces;
    let found: Vec<(&str, usize)> = pieces.iter().map(|p| (p.tensor.as_str(), p.rows.start)).collect();
    let (gate, up) = ("blk.0.ffn_gate_exps.weight", "blk.0.ffn_up_exps.weight");
    assert_eq!(found, [(gate, 0), (up, 0), (gate, 20), (up, 20), (gate, 40), (up, 40)]);
    assert_eq!(pieces[0].shape, [3, 20, 12]);
}

#[test]
fn memory_is_told_before_loading() {
    let checkpoint = checkpoint(&config("olmo2"), &published("olmo2"));
    let config = Config::from_checkpoint(&checkpoint).unwrap();
    let memory = DeviceMemory::needed(&config, &checkpoint, &[], 100, 8, KvFormat::F32).unwrap();
    let n_values: usize = published("olmo2").iter().map(|(_, shape)| shape.iter().product::<usize>()).sum();
    assert_eq!(memory.weights_bytes, 4 * n_values as u64);
    // Keys and values of two layers; a head of four channels takes a whole octet.
    assert_eq!(memory.kv_bytes, 4 * 2 * 2 * (2 * 8) * 100);
    let halves = DeviceMemory::needed(&config, &checkpoint, &[], 100, 8, KvFormat::F16).unwrap();
    assert_eq!((halves.kv_bytes, halves.weights_bytes), (memory.kv_bytes / 2, memory.weights_bytes));
}

#[test]
fn sliding_layers_take_memory_for_their_window_only() {
    let mut text = config("olmo3");
    text["sliding_window"] = json!(16);
    let config = Config::from_huggingface("config.json", &text).unwrap();
    let bytes_per_slot = 4 * 2 * (2 * 8) * 2;
    assert_eq!(crate::memory::kv_bytes(&config, 1000, 8, KvFormat::F32.into()), bytes_per_slot * 24);
    assert_eq!(crate::memory::kv_bytes(&config, 10, 8, KvFormat::F32.into()), bytes_per_slot * 10);
}

fn n_out(matrix: &MatrixPlan) -> usize {
    matrix.pieces.iter().map(|piece| piece.rows.len()).sum()
}
