//! Hugging Face folders that are right, odd ones included.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use common::{entry, files, folder, names, safetensors, shard};
use samara_formats::{Checkpoint, DType, HuggingFaceMetadata, Metadata};

fn metadata(checkpoint: &Checkpoint) -> &HuggingFaceMetadata {
    match checkpoint.metadata() {
        Metadata::HuggingFace(metadata) => metadata,
        Metadata::Gguf(_) => panic!("expected Hugging Face metadata"),
    }
}

/// An index of these (tensor, part) pairs.
fn index(pairs: &[(&str, &str)]) -> Vec<u8> {
    let pairs: Vec<_> = pairs.iter().map(|(tensor, shard)| format!(r#""{tensor}":"{shard}""#)).collect();
    format!(r#"{{"weight_map":{{{}}}}}"#, pairs.join(",")).into_bytes()
}

#[test]
fn the_three_float_types_are_read() {
    let header = r#"{"__metadata__":{"format":"pt"},
        "c":{"dtype":"BF16","shape":[2],"data_offsets":[12,16]},
        "a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},
        "b":{"shape":[2],"data_offsets":[8,12],"dtype":"F16"}}   "#;
    let mut file = safetensors(header, 0);
    file.extend(1.5f32.to_le_bytes());
    file.extend((-2.0f32).to_le_bytes());
    file.extend([0x00, 0x3c, 0xff, 0x7b, 0x80, 0x3f, 0x80, 0xff]);
    let checkpoint = Checkpoint::from_huggingface(files().with("model.safetensors", file)).unwrap();
    let values = |name: &str| {
        let tensor = checkpoint.tensor(name).unwrap();
        (tensor.dtype, checkpoint.rows_f32(tensor, 0..1).unwrap())
    };
    assert_eq!(names(&checkpoint), ["a", "b", "c"]);
    assert_eq!(values("a"), (DType::F32, vec![1.5, -2.0]));
    assert_eq!(values("b"), (DType::F16, vec![1.0, 65504.0]));
    assert_eq!(values("c"), (DType::BF16, vec![1.0, f32::NEG_INFINITY]));
}

#[test]
fn the_files_around_the_weights_are_kept() {
    let files = files()
        .with("model.safetensors", shard(&["a"]))
        .with("generation_config.json", br#"{"eos_token_id":[1,2]}"#)
        .with("tokenizer_config.json", br#"{"chat_template":"field"}"#)
        .with("special_tokens_map.json", b"{}")
        .with("tokenizer.json", b"{\"model\":{}}")
        .with("chat_template.jinja", "file é".as_bytes());
    let checkpoint = Checkpoint::from_huggingface(files).unwrap();
    let metadata = metadata(&checkpoint);
    assert_eq!(metadata.config["model_type"], "olmo2");
    assert_eq!(metadata.generation_config.as_ref().unwrap()["eos_token_id"][1], 2);
    assert_eq!(metadata.tokenizer_config.as_ref().unwrap()["chat_template"], "field");
    assert_eq!(metadata.tokenizer_json.as_deref(), Some(&b"{\"model\":{}}"[..]));
    assert_eq!(metadata.chat_template.as_deref(), Some("file é"));
    assert!(metadata.special_tokens_map.is_some());
    assert_eq!(checkpoint.source(), "model");
}

#[test]
fn an_index_without_metadata_and_with_subfolders_is_read() {
    let files = files()
        .with("model.safetensors.index.json", index(&[("a", "x/1.safetensors"), ("b", "2.safetensors")]))
        .with("x/1.safetensors", shard(&["a"]))
        .with("2.safetensors", shard(&["b"]));
    assert_eq!(names(&Checkpoint::from_huggingface(files).unwrap()), ["a", "b"]);
}

#[test]
fn tensors_beyond_the_index_are_kept_and_the_index_decides_between_two() {
    let mut second = shard(&["a", "b"]);
    let a_at = second.len() - 16;
    second[a_at..a_at + 4].copy_from_slice(&9.0f32.to_le_bytes());
    let files = files()
        .with("model.safetensors.index.json", index(&[("a", "2.safetensors"), ("c", "1.safetensors")]))
        .with("1.safetensors", shard(&["a", "c", "extra"]))
        .with("2.safetensors", second);
    let checkpoint = Checkpoint::from_huggingface(files).unwrap();
    assert_eq!(names(&checkpoint), ["a", "b", "c", "extra"]);
    assert_eq!(checkpoint.rows_f32(checkpoint.tensor("a").unwrap(), 0..1).unwrap(), [9.0, 0.0]);
}

#[test]
fn a_single_file_wins_over_an_index() {
    let files = files()
        .with("model.safetensors.index.json", index(&[("b", "gone.safetensors")]))
        .with("model.safetensors", shard(&["a"]));
    assert_eq!(names(&Checkpoint::from_huggingface(files).unwrap()), ["a"]);
}

#[test]
fn folders_and_files_on_disk_open() {
    let dir = folder("hf");
    let write = |name: &str, bytes: &[u8]| std::fs::write(dir.join(name), bytes).unwrap();
    write("config.json", b"{}");
    write("1.safetensors", &shard(&["a"]));
    write("2.safetensors", &shard(&["b"]));
    write("other.safetensors", &shard(&["z"]));
    write("model.safetensors.index.json", &index(&[("a", "1.safetensors"), ("b", "2.safetensors")]));
    assert_eq!(names(&Checkpoint::open(&dir).unwrap()), ["a", "b"]);
    assert_eq!(names(&Checkpoint::open(&dir.join("2.safetensors")).unwrap()), ["a", "b"]);
    assert_eq!(names(&Checkpoint::open(&dir.join("other.safetensors")).unwrap()), ["z"]);
    write("model.safetensors", &shard(&["s"]));
    assert_eq!(names(&Checkpoint::open(&dir).unwrap()), ["s"]);
    assert_eq!(names(&Checkpoint::open(&dir.join("model.safetensors")).unwrap()), ["s"]);
}

#[test]
fn a_folder_may_hold_one_gguf() {
    let dir = folder("gguf_folder");
    std::fs::write(dir.join("config.json"), "{}").unwrap();
    std::fs::write(dir.join("m.gguf"), common::RawGguf::sound().bytes()).unwrap();
    assert_eq!(names(&Checkpoint::open(&dir).unwrap()), ["a", "b"]);
}

#[test]
fn a_checkpoint_can_cross_threads() {
    fn check<T: Send + Sync>() {}
    check::<Checkpoint>();
}

#[test]
fn numbers_in_a_header_may_come_in_any_order() {
    let header = format!("{{{},{}}}", entry("b", &[2], 8, 16), entry("a", &[2], 0, 8));
    let files = files().with("model.safetensors", safetensors(&header, 16));
    assert_eq!(names(&Checkpoint::from_huggingface(files).unwrap()), ["a", "b"]);
}
