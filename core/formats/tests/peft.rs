//! LoRA adapters that are right: read as PEFT wrote them, written as PEFT reads them, whole whatever happens.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::path::{Path, PathBuf};

use common::{folder, safetensors};
use samara_formats::HuggingFaceFiles;
use samara_formats::peft::{AdapterConfig, LoraAdapter, LoraModule, TargetModules};

const CONFIG: &str = "adapter_config.json";
const WEIGHTS: &str = "adapter_model.safetensors";

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/adapter")
}

/// One module whose values all are `value`.
fn adapter(rank: usize, value: f32) -> LoraAdapter {
    let (d_in, d_out) = (4, 2);
    let module = LoraModule {
        path: "model.layers.0.self_attn.q_proj".into(),
        d_in,
        d_out,
        a: vec![value; rank * d_in],
        b: vec![value; d_out * rank],
        magnitude: None,
    };
    let config = AdapterConfig {
        rank,
        alpha: 16.0,
        dropout: 0.0,
        use_rslora: false,
        use_dora: false,
        target_modules: TargetModules::Names(vec!["q_proj".into()]),
        base_model: None,
    };
    LoraAdapter { config, modules: vec![module] }
}

#[test]
fn what_peft_wrote_is_read() {
    let LoraAdapter { config, modules } = LoraAdapter::open(&golden()).unwrap();
    let names = ["down_proj", "q_proj", "v_proj"].map(str::to_owned).to_vec();
    let expected = AdapterConfig {
        rank: 3,
        alpha: 6.0,
        dropout: 0.05,
        use_rslora: true,
        use_dora: true,
        target_modules: TargetModules::Names(names),
        base_model: Some("made/llama".into()),
    };
    assert_eq!(config, expected);
    assert_eq!(config.scale(), (6.0 / 3f64.sqrt()) as f32);
    let shapes: Vec<_> = modules.iter().map(|module| (module.path.as_str(), module.d_in, module.d_out)).collect();
    let expected = [
        ("model.layers.0.mlp.down_proj", 20, 12),
        ("model.layers.0.self_attn.q_proj", 12, 12),
        ("model.layers.0.self_attn.v_proj", 12, 4),
        ("model.layers.1.mlp.down_proj", 20, 12),
        ("model.layers.1.self_attn.q_proj", 12, 12),
        ("model.layers.1.self_attn.v_proj", 12, 4),
    ];
    assert_eq!(shapes, expected);
    let last = &modules[5];
    assert_eq!((last.a.len(), last.b.len()), (36, 12));
    let ends = [&last.a, &last.b, last.magnitude.as_ref().unwrap()].map(|values| *values.last().unwrap());
    assert_eq!(ends, [0.054_276_798, -0.545_263_47, 1.267_005_9]);
}

#[test]
fn what_is_written_is_read_again() {
    let dir = folder("lora_round_trip");
    std::fs::write(dir.join("README.md"), "kept").unwrap();
    for original in [LoraAdapter::open(&golden()).unwrap(), adapter(2, 0.5)] {
        original.write(&dir).unwrap();
        assert_eq!(LoraAdapter::open(&dir).unwrap(), original);
        let mut names: Vec<_> = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["README.md", CONFIG, WEIGHTS]);
        let (config, weights) = original.to_bytes().unwrap();
        let files = HuggingFaceFiles::new("memory").with(CONFIG, config).with(WEIGHTS, weights);
        assert_eq!(LoraAdapter::from_files(files).unwrap(), original);
    }
}

#[test]
fn numbers_are_written_as_people_write_them() {
    let mut config = adapter(2, 1.0);
    config.config.dropout = 0.05;
    let text = String::from_utf8(config.to_bytes().unwrap().0).unwrap();
    assert!(text.contains(r#""lora_dropout": 0.05,"#) && text.contains(r#""lora_alpha": 16,"#), "{text}");
}

#[test]
fn every_kind_of_target_is_kept() {
    let mut original = adapter(1, 1.0);
    for targets in [
        TargetModules::Names(vec![]),
        TargetModules::Names(vec!["q_proj".into(), "layers.0.mlp.up_proj".into()]),
        TargetModules::Pattern(r"model\.layers\.\d+\.self_attn\.(q|v)_proj".into()),
        TargetModules::AllLinear,
    ] {
        original.config.target_modules = targets;
        let (config, weights) = original.to_bytes().unwrap();
        let files = HuggingFaceFiles::new("memory").with(CONFIG, config).with(WEIGHTS, weights);
        assert_eq!(LoraAdapter::from_files(files).unwrap(), original);
    }
}

#[test]
fn old_spellings_and_half_floats_are_read() {
    let key = "base_model.model.lm_head";
    let header = format!(
        r#"{{"{key}.lora_A.default.weight":{{"dtype":"F16","shape":[1,2],"data_offsets":[0,4]}},
        "{key}.lora_B.weight":{{"dtype":"BF16","shape":[1,1],"data_offsets":[4,6]}},
        "{key}.lora_magnitude_vector.weight":{{"dtype":"F32","shape":[1],"data_offsets":[6,10]}}}}"#
    );
    let mut weights = safetensors(&header, 0);
    weights.extend([0x00, 0x3c, 0x00, 0xc0, 0x80, 0x3f]);
    weights.extend(1.5f32.to_le_bytes());
    let config = br#"{"peft_type":"LORA","r":1,"use_dora":true}"#;
    let files = HuggingFaceFiles::new("memory").with(CONFIG, config).with(WEIGHTS, weights);
    let LoraAdapter { config, modules } = LoraAdapter::from_files(files).unwrap();
    assert_eq!((config.alpha, config.scale()), (8.0, 8.0));
    let expected = LoraModule {
        path: "lm_head".into(),
        d_in: 2,
        d_out: 1,
        a: vec![1.0, -2.0],
        b: vec![1.0],
        magnitude: Some(vec![1.5]),
    };
    assert_eq!(modules, [expected]);
}

#[test]
fn the_scale_follows_the_rule() {
    let mut config = adapter(16, 0.0).config;
    assert_eq!(config.scale(), 1.0);
    config.use_rslora = true;
    assert_eq!(config.scale(), 4.0);
}

/// A folder with the old adapter, and with the new one's files under the given names.
fn interrupted(name: &str, old: Option<&LoraAdapter>, new: &LoraAdapter, names: [Option<&str>; 2]) -> PathBuf {
    let dir = folder(name);
    if let Some(old) = old {
        old.write(&dir).unwrap();
    }
    let (config, weights) = new.to_bytes().unwrap();
    for (name, bytes) in names.into_iter().zip([weights, config]) {
        if let Some(name) = name {
            let n = if name.ends_with(".part") { bytes.len() / 2 } else { bytes.len() };
            std::fs::write(dir.join(name), &bytes[..n]).unwrap();
        }
    }
    dir
}

fn next(name: &str) -> String {
    format!("{name}.next")
}

/// What is on disk at each moment of a write, in order.
#[test]
fn a_kill_between_any_two_steps_leaves_the_old_or_the_new_adapter() {
    let (old, new, newer) = (adapter(1, 1.0), adapter(2, 2.0), adapter(3, 3.0));
    let (config, weights) = (next(CONFIG), next(WEIGHTS));
    let (config_part, weights_part) = (format!("{config}.part"), format!("{weights}.part"));
    let moments = [
        ([Some(weights_part.as_str()), None], false, &old),
        ([Some(weights.as_str()), None], false, &old),
        ([Some(weights.as_str()), Some(config_part.as_str())], false, &old),
        ([Some(weights.as_str()), Some(config.as_str())], false, &new),
        ([Some(weights.as_str()), Some(config.as_str())], true, &new),
        ([Some(WEIGHTS), Some(config.as_str())], true, &new),
        ([Some(WEIGHTS), Some(CONFIG)], false, &new),
    ];
    for (i, (names, is_config_gone, expected)) in moments.into_iter().enumerate() {
        let dir = interrupted(&format!("lora_killed_{i}"), Some(&old), &new, names);
        if is_config_gone {
            std::fs::remove_file(dir.join(CONFIG)).unwrap();
        }
        assert_eq!(&LoraAdapter::open(&dir).unwrap(), expected, "moment {i}");
        newer.write(&dir).unwrap();
        assert_eq!(LoraAdapter::open(&dir).unwrap(), newer, "after moment {i}");
        assert!(!dir.join(&config).exists() && !dir.join(&weights).exists());
    }
}

#[test]
fn a_first_write_that_was_killed_leaves_no_adapter() {
    let dir = interrupted("lora_first", None, &adapter(2, 2.0), [Some(&next(WEIGHTS)), None]);
    let text = LoraAdapter::open(&dir).unwrap_err().to_string();
    assert_eq!(text, format!("{}: no adapter_config.json, which a LoRA adapter consists of", dir.display()));
}

/// Rank and values change together, so half of each would be refused or unequal.
#[test]
fn a_reader_beside_a_writer_sees_whole_adapters() {
    let dir = folder("lora_beside");
    adapter(1, 1.0).write(&dir).unwrap();
    let writer = std::thread::spawn({
        let dir = dir.clone();
        move || (2..=40usize).for_each(|i| adapter(1 + i % 3, i as f32).write(&dir).unwrap())
    });
    let mut n_read = 0;
    while !writer.is_finished() || n_read == 0 {
        let found = LoraAdapter::open(&dir);
        // A reader can be outrun by a writer that never rests; then it says so instead of mixing.
        if let Ok(found) = found {
            let value = found.modules[0].a[0];
            let rank = if value == 1.0 { 1 } else { 1 + value as usize % 3 };
            assert_eq!(found, adapter(rank, value));
            n_read += 1;
        }
    }
    writer.join().unwrap();
    assert_eq!(LoraAdapter::open(&dir).unwrap(), adapter(1 + 40 % 3, 40.0));
}

#[test]
fn a_failing_write_keeps_the_old_adapter() {
    let dir = folder("lora_failing");
    adapter(1, 1.0).write(&dir).unwrap();
    // A folder in the place of the unfinished file stands for a disk that is full.
    std::fs::create_dir(dir.join("adapter_model.safetensors.next.part")).unwrap();
    assert!(adapter(2, 2.0).write(&dir).is_err());
    assert_eq!(LoraAdapter::open(&dir).unwrap(), adapter(1, 1.0));
}

#[test]
fn a_module_that_does_not_fit_its_config_is_not_written() {
    let mut wrong = adapter(2, 1.0);
    wrong.modules[0].b.pop();
    let text = wrong.write(&folder("lora_unfit")).unwrap_err().to_string();
    assert_eq!(
        text,
        "adapter_model.safetensors: model.layers.0.self_attn.q_proj has 8 values in A, 3 in B and None magnitudes, \
         which does not fit rank 2, 4 in, 2 out and use_dora = false"
    );
    let mut wrong = adapter(2, 1.0);
    wrong.config.use_dora = true;
    assert!(wrong.to_bytes().is_err());
    let mut twice = adapter(2, 1.0);
    twice.modules.push(twice.modules[0].clone());
    let text = twice.to_bytes().unwrap_err().to_string();
    let expected =
        "two tensors of the new file are called base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight";
    assert_eq!(text, expected);
}
