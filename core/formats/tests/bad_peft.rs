//! LoRA adapters that are wrong: each gives one error that names the file and the key or tensor.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use common::{entry, folder, safetensors};
use samara_formats::HuggingFaceFiles;
use samara_formats::peft::LoraAdapter;

const A: &str = "base_model.model.l.lora_A.weight";
const B: &str = "base_model.model.l.lora_B.weight";

fn check(config: &str, weights: Vec<u8>, expected: &str) {
    let files = HuggingFaceFiles::new("memory")
        .with("adapter_config.json", config.as_bytes().to_vec())
        .with("adapter_model.safetensors", weights);
    assert_eq!(LoraAdapter::from_files(files).expect_err(expected).to_string(), expected);
}

/// A file of f32 tensors, all zeros.
fn weights(tensors: Tensors<'_>) -> Vec<u8> {
    let (mut entries, mut start) = (Vec::new(), 0);
    for (name, shape) in tensors {
        let end = start + 4 * shape.iter().product::<u64>();
        entries.push(entry(name, shape, start, end));
        start = end;
    }
    safetensors(&format!("{{{}}}", entries.join(",")), start as usize)
}

fn sound() -> Vec<u8> {
    weights(&[(A, &[2, 3]), (B, &[4, 2])])
}

#[test]
fn configs() {
    for (keys, expected) in [
        (r#""r":2"#, "peft_type is absent, only LORA is read"),
        (r#""peft_type":"IA3","r":2"#, "peft_type is IA3, only LORA is read"),
        (r#""peft_type":7,"r":2"#, "peft_type is 7, expected a text"),
        (r#""peft_type":"LORA""#, "r is missing"),
        (r#""peft_type":"LORA","r":0"#, "r is 0, expected a whole number of at least 1"),
        (r#""peft_type":"LORA","r":2.5"#, "r is 2.5, expected a whole number of at least 1"),
        (r#""peft_type":"LORA","r":-1"#, "r is -1, expected a whole number of at least 1"),
        (r#""peft_type":"LORA","r":2,"lora_alpha":"x""#, "lora_alpha is \\\"x\\\", expected a number"),
        (r#""peft_type":"LORA","r":2,"lora_alpha":1e99"#, "lora_alpha is 1e+99, expected a number"),
        (r#""peft_type":"LORA","r":2,"lora_dropout":1"#, "lora_dropout is 1, expected a number from 0 to under 1"),
        (r#""peft_type":"LORA","r":2,"use_dora":1"#, "use_dora is 1, expected true or false"),
        (
            r#""peft_type":"LORA","r":2,"target_modules":[1]"#,
            "target_modules is [1], expected a list of names or a text",
        ),
        (r#""peft_type":"LORA","r":2,"bias":"all""#, "bias is all, but trained biases are not supported"),
        (
            r#""peft_type":"LORA","r":2,"modules_to_save":["lm_head"]"#,
            "modules_to_save is used, which is not supported",
        ),
        (r#""peft_type":"LORA","r":2,"rank_pattern":{"q":1}"#, "rank_pattern is used, which is not supported"),
        (r#""peft_type":"LORA","r":2,"alpha_pattern":{"q":1}"#, "alpha_pattern is used, which is not supported"),
        (r#""peft_type":"LORA","r":2,"fan_in_fan_out":true"#, "fan_in_fan_out is used, which is not supported"),
        (
            r#""peft_type":"LORA","r":2,"init_lora_weights":"pissa_niter_4""#,
            "init_lora_weights is pissa_niter_4, which changes the base model's weights; convert the adapter to a plain one",
        ),
    ] {
        check(&format!("{{{keys}}}"), sound(), &format!("adapter_config.json: {expected}"));
    }
    check("[]", sound(), "adapter_config.json: invalid type: sequence, expected a map at line 1 column 0");
    let page = "adapter_config.json: this is a web page, not a model; the download was refused or redirected, \
                so download it again";
    check("<!doctype html>", sound(), page);
}

#[test]
fn keys_that_change_nothing_are_passed_over() {
    let config = r#"{"peft_type":"LORA","r":2,"bias":null,"modules_to_save":[],"rank_pattern":{},"use_qalora":false,
        "layers_to_transform":[0],"init_lora_weights":"gaussian","from_the_future":{"x":1}}"#;
    let files = HuggingFaceFiles::new("memory")
        .with("adapter_config.json", config.as_bytes())
        .with("adapter_model.safetensors", sound());
    assert_eq!(LoraAdapter::from_files(files).unwrap().modules.len(), 1);
}

/// Names and shapes.
type Tensors<'a> = &'a [(&'a str, &'a [u64])];

const LORA: &str = r#"{"peft_type":"LORA","r":2}"#;
const DORA: &str = r#"{"peft_type":"LORA","r":2,"use_dora":true}"#;

#[test]
fn tensors() {
    let m = "base_model.model.l.lora_magnitude_vector";
    let embedding = "base_model.model.e.lora_embedding_A";
    let cases: [(&str, Tensors<'_>, &str); 12] = [
        (LORA, &[], "the file holds no LoRA tensors"),
        (LORA, &[("l.lora_A.weight", &[2, 3])], "l.lora_A.weight does not begin with base_model.model."),
        (LORA, &[(A, &[2, 3])], "base_model.model.l.lora_B.weight is missing"),
        (LORA, &[(B, &[4, 2])], "base_model.model.l.lora_A.weight is missing"),
        (
            LORA,
            &[(A, &[3, 3]), (B, &[4, 3])],
            "base_model.model.l.lora_A.weight has the shape [3, 3], expected [r = 2, d_in]",
        ),
        (
            LORA,
            &[(A, &[2, 3]), (B, &[2, 4])],
            "base_model.model.l.lora_B.weight has the shape [2, 4], expected [d_out, r = 2]",
        ),
        (
            LORA,
            &[(A, &[6]), (B, &[4, 2])],
            "base_model.model.l.lora_A.weight has the shape [6], expected [r = 2, d_in]",
        ),
        (
            LORA,
            &[(embedding, &[2, 3])],
            "base_model.model.e.lora_embedding_A adapts an embedding, which is not supported",
        ),
        (
            LORA,
            &[("base_model.model.lm_head.weight", &[2, 3])],
            "base_model.model.lm_head.weight is no part of a LoRA; whole layers stored in an adapter are not supported",
        ),
        (
            LORA,
            &[(A, &[2, 3]), (B, &[4, 2]), (m, &[4])],
            "base_model.model.l.lora_magnitude_vector is there, but use_dora is false",
        ),
        (DORA, &[(A, &[2, 3]), (B, &[4, 2])], "base_model.model.l.lora_magnitude_vector is missing"),
        (
            DORA,
            &[(A, &[2, 3]), (B, &[4, 2]), (m, &[3])],
            "base_model.model.l.lora_magnitude_vector has the shape [3], expected [4]",
        ),
    ];
    for (config, tensors, expected) in cases {
        check(config, weights(tensors), &format!("adapter_model.safetensors: {expected}"));
    }
    let twice = weights(&[(A, &[2, 3]), ("base_model.model.l.lora_A.default.weight", &[2, 3]), (B, &[4, 2])]);
    let text = "adapter_model.safetensors: base_model.model.l.lora_A.default.weight is there twice, \
                once under another spelling";
    check(LORA, twice, text);
}

#[test]
fn values_that_are_no_numbers() {
    let mut file = sound();
    let end = file.len();
    file[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    check(LORA, file, "adapter_model.safetensors: base_model.model.l.lora_B.weight is not finite at value 7");
}

#[test]
fn missing_files_and_pickles() {
    let text = LoraAdapter::from_files(HuggingFaceFiles::new("memory")).unwrap_err().to_string();
    assert_eq!(text, "memory: no adapter_config.json, which a LoRA adapter consists of");
    let dir = folder("lora_pickle");
    std::fs::write(dir.join("adapter_config.json"), LORA).unwrap();
    std::fs::write(dir.join("adapter_model.bin"), "PK").unwrap();
    let text = LoraAdapter::open(&dir).unwrap_err().to_string();
    assert!(text.contains("lora_pickle/adapter_model.bin: this is a PyTorch pickle"), "{text}");
}
