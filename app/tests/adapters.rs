//! LoRA adapters through the real binary: beside a model, worked into it, and as GGUF.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use samara_formats::peft::{AdapterConfig, LoraAdapter, LoraModule, TargetModules};
use samara_formats::{Checkpoint, Metadata};
use samara_model::{Config, Site};
use serde_json::Value;
use support::{arg, check_refused, copy_of_tiny, json, output, samara, text, tiny};
use tempfile::TempDir;

const GREEDY: [&str; 7] = ["generate", "--temperature", "0", "--max-tokens", "12", "--prompt", "Once upon a time"];

/// An adapter of every module of a model, drawn from `seed`.
fn write_adapter(folder: &Path, model: &Path, rank: usize, seed: u64) {
    let config = Config::from_checkpoint(&Checkpoint::open(model).unwrap()).unwrap();
    let mut state = seed;
    let mut draw = |n: usize| -> Vec<f32> {
        // Knuth's MMIX generator; its upper half is random enough.
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1u32 << 23) as f32 - 1.0
        };
        (0..n).map(|_| 0.25 * next()).collect()
    };
    let mut modules: Vec<_> = Site::all(&config)
        .into_iter()
        .map(|site| LoraModule {
            path: site.path.clone(),
            d_in: site.n_in,
            d_out: site.columns.len(),
            a: draw(rank * site.n_in),
            b: draw(rank * site.columns.len()),
            magnitude: None,
        })
        .collect();
    modules.sort_by(|a, b| a.path.cmp(&b.path));
    let config = AdapterConfig {
        rank,
        alpha: 2.0 * rank as f32,
        dropout: 0.0,
        use_rslora: false,
        use_dora: false,
        target_modules: TargetModules::AllLinear,
        base_model: Some(model.display().to_string()),
    };
    LoraAdapter { config, modules }.write(folder).unwrap();
}

/// A folder with an adapter of the embedded model in `a`.
fn with_adapter() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let adapter = folder.path().join("a");
    write_adapter(&adapter, &tiny(), 4, 1);
    (folder, adapter)
}

fn gguf(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/gguf").join(name)
}

fn greedy(more: &[&str]) -> Value {
    json(&[&GREEDY[..], &["--json"], more].concat())
}

/// Log-probabilities of some ids.
fn scores(more: &[&str]) -> Vec<f64> {
    let report = json(&[&["score", "--ids", "3,4,5,6,7,8,9,10,11", "--json"], more].concat());
    report["logprobs"].as_array().unwrap().iter().filter_map(Value::as_f64).collect()
}

fn check_near(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    let off = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(off <= tolerance, "off by {off}: {found:?} {expected:?}");
}

/// The names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn adapters_change_what_is_written_as_strongly_as_asked() {
    let (folder, adapter) = with_adapter();
    let adapter = arg(&adapter);
    let (base, with) = (greedy(&[]), greedy(&["--adapter", adapter]));
    assert_ne!(with["ids"], base["ids"]);
    assert_eq!(greedy(&["--adapter", &format!("{adapter}:0")])["ids"], base["ids"]);
    let half = format!("{adapter}:0.5");
    let halves = greedy(&["--adapter", &half, "--adapter", &half]);
    assert_eq!(halves["ids"], with["ids"]);
    let stats = &halves["stats"];
    assert_eq!(stats["adapters"][1]["adapter"], half[..half.len() - 4]);
    assert_eq!((&stats["adapters"][1]["scale"], &stats["adapters"][1]["rank"]), (&0.5.into(), &4.into()));
    assert_eq!(base["stats"]["adapters"].as_array().unwrap().len(), 0);
    assert_eq!(base["stats"]["adapters_device_bytes"], 0);
    let told = &json(&["inspect", "--json", "--adapter", adapter])["memory"]["adapters_device_bytes"];
    assert_eq!(told, &with["stats"]["adapters_device_bytes"]);
    drop(folder);
}

#[test]
fn chat_score_and_bench_take_adapters_too() {
    let (_folder, adapter) = with_adapter();
    let adapter = arg(&adapter);
    assert!(scores(&["--adapter", adapter]) != scores(&[]));
    let chat = samara(&["chat", "--json", "--max-tokens", "4", "--adapter", adapter]).write_stdin("Hi\n").output();
    let report: Value = serde_json::from_slice(&chat.unwrap().stdout).unwrap();
    assert_eq!(report["stats"]["adapters"][0]["adapter"], adapter);
    let bench = ["bench", "model", "--json", "-n", "1", "-r", "1", "--prompts", "2", "--adapter", adapter];
    assert!(json(&bench)["adapters_device_bytes"].as_u64().unwrap() > 0);
}

#[test]
fn what_is_no_adapter_of_the_model_is_refused() {
    let (folder, adapter) = with_adapter();
    let with = |adapter: &str, words: &[&str]| {
        check_refused(&[&GREEDY[..], &["--adapter", adapter]].concat(), words);
    };
    with("no/such/folder", &["no/such/folder", "no such file"]);
    with(arg(&tiny()), &["tiny", "adapter_config.json"]);
    let other = folder.path().join("other");
    write_adapter(&other, &gguf("llama.gguf"), 2, 1);
    let words = ["other: the LoRA adapter does not fit", "model.layers.0.self_attn.q_proj: made for", "the model's is"];
    with(arg(&other), &words);
    let to = folder.path().join("to");
    check_refused(&["merge", "--adapter", arg(&other), "--output", arg(&to)], &words);
    assert!(!to.exists());
    for scale in ["inf", "nan"] {
        let run = samara(&[&GREEDY[..], &["--adapter", &format!("{}:{scale}", adapter.display())]].concat());
        assert_eq!({ run }.output().unwrap().status.code(), Some(2));
    }
}

#[test]
fn inspect_tells_what_an_adapter_is() {
    let (_folder, adapter) = with_adapter();
    let report = json(&["inspect", "--json", arg(&adapter)]);
    let config = Config::from_checkpoint(&Checkpoint::open(&tiny()).unwrap()).unwrap();
    assert_eq!((&report["rank"], &report["alpha"], &report["scale"]), (&4.into(), &8.0.into(), &2.0.into()));
    assert_eq!(report["modules"]["q_proj"], config.n_layers);
    assert_eq!(report["n_modules"], 7 * config.n_layers);
    assert_eq!(report["n_parameters"].as_u64().unwrap() * 4, report["device_bytes"].as_u64().unwrap());
    assert_eq!(report["base_model"], arg(&tiny()));
    let text = text(&["inspect", arg(&adapter)]);
    for word in ["LoRA", "rank", "alpha", "modules", "q_proj (", "parameters", "base model"] {
        assert!(text.contains(word), "{word} is missing:\n{text}");
    }
}

#[test]
fn a_merged_folder_is_a_whole_model() {
    let (folder, adapter) = with_adapter();
    let to = folder.path().join("merged");
    let half = format!("{}:0.5", adapter.display());
    let report = json(&["merge", "--adapter", &half, "--output", arg(&to), "--dtype", "f32", "--json"]);
    assert_eq!((&report["format"], &report["dtype"]), (&"safetensors".into(), &"f32".into()));
    assert!(report["n_changed"].as_u64().unwrap() < report["n_tensors"].as_u64().unwrap());
    assert_eq!(names(folder.path()), ["a", "merged"]);
    let expected = greedy(&["--adapter", &half]);
    assert_eq!(greedy(&["--model", arg(&to)])["ids"], expected["ids"]);
    check_near(&scores(&["--model", arg(&to)]), &scores(&["--adapter", &half]), 1e-3);
    assert!(text(&["tokenize", "--model", arg(&to), "Hi"]).contains("tokens"));
}

#[test]
fn a_merged_model_keeps_the_types_of_its_source_unless_told() {
    let (folder, adapter) = with_adapter();
    let types = |more: &[&str]| {
        let to = folder.path().join("merged");
        output(&[&["merge", "--adapter", arg(&adapter), "--output", arg(&to), "--force"], more].concat());
        let config: Value = serde_json::from_slice(&fs::read(to.join("config.json")).unwrap()).unwrap();
        let declared = config.get("dtype").or(config.get("torch_dtype")).cloned();
        (json(&["inspect", "--json", arg(&to)])["tensors"].clone(), declared)
    };
    let (tensors, declared) = types(&["--model", arg(&tiny())]);
    assert_eq!(tensors, json(&["inspect", "--json"])["tensors"]);
    let own: Value = serde_json::from_slice(&fs::read(tiny().join("config.json")).unwrap()).unwrap();
    assert_eq!(declared, own.get("dtype").or(own.get("torch_dtype")).cloned());
    for (dtype, name, in_config) in [("bf16", "BF16", "bfloat16"), ("f16", "F16", "float16")] {
        let (tensors, declared) = types(&["--dtype", dtype]);
        assert_eq!(tensors.as_object().unwrap().keys().collect::<Vec<_>>(), [name]);
        assert!(declared.is_none_or(|declared| declared == in_config));
    }
}

#[test]
fn a_quantised_gguf_becomes_another() {
    let folder = tempfile::tempdir().unwrap();
    let (adapter, model) = (folder.path().join("a"), gguf("llama.q4_0.gguf"));
    write_adapter(&adapter, &model, 3, 5);
    let beside = scores(&["--model", arg(&model), "--adapter", arg(&adapter)]);
    let merge = |to: &Path, dtype: &[&str]| {
        let merge = ["merge", "--model", arg(&model), "--adapter", arg(&adapter), "--output", arg(to)];
        [&merge[..], dtype].concat().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let to = folder.path().join("merged.gguf");
    for (dtype, name, tolerance) in [("f32", "F32", 1e-4), ("f16", "F16", 1e-2), ("q8_0", "Q8_0", 0.6)] {
        let words = merge(&to, &["--dtype", dtype, "--force"]);
        output(&words.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(json(&["inspect", "--json", arg(&to)])["tensors"][name]["n_tensors"].as_u64().unwrap() > 20);
        check_near(&scores(&["--model", arg(&to)]), &beside, tolerance);
    }
    let words = merge(&folder.path().join("own.gguf"), &[]);
    check_refused(&words.iter().map(String::as_str).collect::<Vec<_>>(), &["Q4_0", "--dtype f16, bf16 or q8_0"]);
    assert_eq!(names(folder.path()), ["a", "merged.gguf"]);
}

#[test]
fn a_merge_refuses_places_of_the_wrong_kind() {
    let (folder, adapter) = with_adapter();
    let model = copy_of_tiny();
    let refuse = |model: &Path, adapter: &Path, to: &Path, more: &[&str], words: &[&str]| {
        let merge = ["merge", "--model", arg(model), "--adapter", arg(adapter), "--output", arg(to)];
        check_refused(&[&merge[..], more].concat(), words);
    };
    let here = folder.path();
    refuse(model.path(), &adapter, &adapter, &[], &["a: exists already", "--force"]);
    refuse(model.path(), &adapter, model.path(), &["--force"], &["overwrite the one it is made from"]);
    let weights = model.path().join("model.safetensors");
    refuse(&weights, &adapter, model.path(), &["--force"], &["overwrite the one it is made from"]);
    refuse(model.path(), &adapter, &here.join("x.gguf"), &[], &["x.gguf", "must be a folder"]);
    refuse(model.path(), &adapter, &here.join("x"), &["--dtype", "q8_0"], &["safetensors hold no q8_0"]);
    let llama = here.join("llama");
    fs::create_dir(&llama).unwrap();
    fs::copy(gguf("llama.gguf"), llama.join("llama.gguf")).unwrap();
    let of_llama = here.join("of_llama");
    write_adapter(&of_llama, &llama, 2, 1);
    refuse(&llama, &of_llama, &here.join("x"), &[], &["ends in .gguf"]);
    refuse(&llama, &of_llama, &llama.join("llama.gguf"), &["--force"], &["overwrite the one it is made from"]);
    assert_eq!(names(here), ["a", "llama", "of_llama"]);
    assert!(names(&adapter).iter().all(|name| name.starts_with("adapter_")));
}

/// Merging is made slow by a rank of thousands; the flag is up before the line that the test waits for.
#[cfg(unix)]
#[test]
fn ctrl_c_leaves_no_half_of_a_merged_model() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    let folder = tempfile::tempdir().unwrap();
    let (adapter, to) = (folder.path().join("a"), folder.path().join("merged"));
    write_adapter(&adapter, &tiny(), 8192, 1);
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("samara"))
        .args(["-v", "merge", "--adapter", arg(&adapter), "--output", arg(&to)])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(stderr.any(|line| line.unwrap().starts_with("merging ")));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(stderr.any(|line| line.unwrap() == "cancelled; nothing was written"));
    assert_eq!(names(folder.path()), ["a"]);
}

#[test]
fn an_adapter_is_exported_for_the_model_that_it_names() {
    let folder = tempfile::tempdir().unwrap();
    let (adapter, to) = (folder.path().join("a"), folder.path().join("a.gguf"));
    write_adapter(&adapter, &gguf("llama.gguf"), 3, 1);
    let export = ["export-adapter", "--adapter", arg(&adapter), "--gguf", arg(&to)];
    let report = json(&[&export[..], &["--json"]].concat());
    assert_eq!((&report["family"], &report["n_modules"]), (&"llama".into(), &21.into()));
    assert_eq!(report["bytes"].as_u64().unwrap(), fs::metadata(&to).unwrap().len());
    let exported = Checkpoint::open(&to).unwrap();
    let Metadata::Gguf(metadata) = exported.metadata() else { panic!("a GGUF") };
    assert_eq!(metadata.str("general.architecture"), Some("llama"));
    assert_eq!(exported.tensor("blk.0.attn_q.weight.lora_a").unwrap().shape, [3, 32]);
    check_refused(&export, &["a.gguf", "--force"]);
    let quantised = gguf("llama.q4_0.gguf");
    output(&[&export[..], &["--force", "--model", arg(&quantised)]].concat());
    let olmo2 = gguf("olmo2.gguf");
    let other = ["--force", "--model", arg(&olmo2)];
    check_refused(&[&export[..], &other].concat(), &["does not fit the model", "k_proj"]);
    fs::write(adapter.join("adapter_config.json"), r#"{"peft_type": "LORA", "r": 3, "lora_alpha": 6}"#).unwrap();
    check_refused(&[&export[..], &["--force"]].concat(), &["does not say which model", "--model"]);
}
