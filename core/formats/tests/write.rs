//! Models written anew: what goes in as rows comes out of the file, and a failure leaves no file.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::ops::Range;
use std::path::Path;

use common::folder;
use samara_formats::gguf::{self, GgufLora, GgufTensor};
use samara_formats::peft::{AdapterConfig, TargetModules};
use samara_formats::{
    Checkpoint, DType, FormatError, GgufMetadata, GgufValue, HuggingFaceFiles, Metadata, NewFolder, NewTensor, codec,
    copy_companions, declare_dtype, write_companions, write_safetensors,
};

fn tensor(name: &str, shape: &[usize], dtype: DType) -> NewTensor {
    NewTensor { name: name.into(), shape: shape.to_vec(), dtype }
}

/// Small whole numbers, which every type holds exactly: the number of the value in its tensor, up to 127.
fn counted(tensor: &NewTensor, rows: Range<usize>) -> Result<Vec<f32>, FormatError> {
    let values = rows.start * tensor.row_len()..rows.end * tensor.row_len();
    Ok(values.map(|i| (i % 128) as f32).collect())
}

fn check_counted(checkpoint: &Checkpoint, tensors: &[NewTensor]) {
    assert_eq!(checkpoint.tensors().len(), tensors.len());
    for expected in tensors {
        let found = checkpoint.tensor(&expected.name).unwrap();
        assert_eq!(&NewTensor::from(found), expected);
        let values = checkpoint.rows_f32(found, 0..found.n_rows()).unwrap();
        assert_eq!(values, counted(expected, 0..expected.n_rows()).unwrap(), "{}", expected.name);
    }
}

#[test]
fn safetensors_hold_what_the_rows_said() {
    let dir = folder("write_safetensors");
    std::fs::write(dir.join("config.json"), "{}").unwrap();
    let tensors = [
        tensor("b", &[3, 5], DType::BF16),
        tensor("a", &[7], DType::F16),
        tensor("n", &[1, 3], DType::F32),
        tensor("large", &[3, 600_000], DType::BF16),
    ];
    write_safetensors(&dir.join("model.safetensors"), &tensors, counted).unwrap();
    check_counted(&Checkpoint::open(&dir).unwrap(), &tensors);
    assert!(!dir.join("model.safetensors.part").exists());
}

#[test]
fn gguf_holds_what_the_rows_said() {
    let dir = folder("write_gguf");
    for alignment in [32, 64] {
        let values = [("general.alignment".to_owned(), GgufValue::U32(alignment))];
        let metadata = GgufMetadata { values: values.into() };
        let tensors = [
            tensor("b", &[3, 5], DType::F16),
            tensor("q", &[1, 128], DType::F16),
            tensor("n", &[3], DType::F32),
            tensor("x", &[2, 3, 4], DType::BF16),
        ];
        let path = dir.join("m.gguf");
        gguf::write(&path, &metadata, &tensors, counted).unwrap();
        check_counted(&Checkpoint::open(&path).unwrap(), &tensors);
        assert_eq!(std::fs::read(&path).unwrap(), encoded(&metadata, &tensors));
    }
}

/// The same file by the way through memory.
fn encoded(metadata: &GgufMetadata, tensors: &[NewTensor]) -> Vec<u8> {
    let bytes =
        |tensor: &NewTensor| codec::encode(tensor.dtype, &counted(tensor, 0..tensor.n_rows()).unwrap()).unwrap();
    let bytes: Vec<_> = tensors.iter().map(bytes).collect();
    let tensors = tensors.iter().zip(&bytes);
    let tensors: Vec<_> =
        tensors.map(|(t, bytes)| GgufTensor { name: &t.name, shape: &t.shape, dtype: t.dtype, bytes }).collect();
    gguf::encode(metadata, &tensors).unwrap()
}

#[test]
fn every_encoder_gives_the_bytes_of_the_reference() {
    let checkpoint = Checkpoint::from_gguf("encoded.gguf", include_bytes!("golden/encoded.gguf").as_slice()).unwrap();
    let tensor = checkpoint.tensor("values").unwrap();
    let values = checkpoint.rows_f32(tensor, 0..tensor.n_rows()).unwrap();
    for dtype in [DType::F32, DType::F16, DType::BF16, DType::Q8_0] {
        let expected = checkpoint.bytes(checkpoint.tensor(&dtype.to_string()).unwrap()).unwrap();
        assert_eq!(codec::encode(dtype, &values).unwrap(), &*expected, "{dtype}");
    }
}

fn check_refused(
    tensors: &[NewTensor],
    rows: fn(&NewTensor, Range<usize>) -> Result<Vec<f32>, FormatError>,
    expected: &str,
) {
    let dir = folder("write_refused");
    let results = [
        write_safetensors(&dir.join("m.safetensors"), tensors, rows),
        gguf::write(&dir.join("m.gguf"), &GgufMetadata::default(), tensors, rows),
    ];
    for result in results {
        assert_eq!(result.unwrap_err().to_string(), expected);
    }
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn a_failure_leaves_no_file() {
    let sound = tensor("a", &[2, 2], DType::F16);
    check_refused(
        &[tensor("q", &[2, 256], DType::Q4K)],
        counted,
        "tensor q cannot be written as Q4_K with the shape [2, 256]",
    );
    check_refused(&[sound.clone(), sound.clone()], counted, "two tensors of the new file are called a");
    check_refused(
        std::slice::from_ref(&sound),
        |_, _| Ok(vec![0.0; 3]),
        "tensor a was given 3 values for the rows 0..2, expected 4",
    );
    let too_large = "tensor a has the value 1000000, which F16 cannot hold";
    check_refused(std::slice::from_ref(&sound), |_, _| Ok(vec![1e6; 4]), too_large);
    check_refused(&[sound], |_, _| Err(FormatError::NotFound { path: "x".into() }), "x: no such file or folder");
    let quantised = write_safetensors(
        &folder("write_quantised").join("m.safetensors"),
        &[tensor("q", &[1, 32], DType::Q8_0)],
        counted,
    );
    assert_eq!(quantised.unwrap_err().to_string(), "tensor q cannot be written as Q8_0 with the shape [1, 32]");
}

#[test]
fn an_old_file_stays_until_the_new_one_is_whole() {
    let path = folder("write_old").join("m.safetensors");
    std::fs::write(&path, "old").unwrap();
    let fail = |_: &NewTensor, _| Err(FormatError::NotFound { path: "x".into() });
    assert!(write_safetensors(&path, &[tensor("a", &[2], DType::F32)], fail).is_err());
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
}

#[test]
fn the_files_around_the_weights_are_copied() {
    let (from, to) = (folder("companions"), folder("companions_to"));
    for name in ["config.json", "tokenizer.json", "chat_template.jinja", "model.safetensors"] {
        std::fs::write(from.join(name), name).unwrap();
    }
    let to = to.join("new");
    copy_companions(&from, &to).unwrap();
    let mut names: Vec<_> = std::fs::read_dir(&to).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["chat_template.jinja", "config.json", "tokenizer.json"]);
    assert_eq!(std::fs::read(to.join("tokenizer.json")).unwrap(), b"tokenizer.json");
    let same = from.join("..").join("companions");
    let text = copy_companions(&from, &same).unwrap_err().to_string();
    assert_eq!(text, format!("{}: the new model would overwrite the one it is made from", same.display()));
}

#[test]
fn a_config_says_what_the_weights_are_stored_as() {
    let dir = folder("declare_dtype");
    let files =
        HuggingFaceFiles::new("memory").with("config.json", br#"{"torch_dtype": "float32", "n": 1}"#.as_slice());
    write_companions(files.with("model.safetensors", b"".as_slice()), &dir).unwrap();
    assert!(!dir.join("model.safetensors").exists());
    let config = || std::fs::read_to_string(dir.join("config.json")).unwrap();
    for (dtype, name) in [(DType::BF16, "bfloat16"), (DType::F16, "float16"), (DType::F32, "float32")] {
        declare_dtype(&dir, dtype).unwrap();
        assert!(config().contains(&format!("\"torch_dtype\": \"{name}\"")) && config().contains("\"n\": 1"));
    }
    std::fs::write(dir.join("config.json"), "{}").unwrap();
    declare_dtype(&dir, DType::F16).unwrap();
    assert_eq!(config().trim(), "{}");
}

#[test]
fn a_folder_appears_whole_or_not_at_all() {
    let dir = folder("new_folder");
    let (place, part) = (dir.join("model"), dir.join("model.part"));
    let begin = |text: &str| {
        let new = NewFolder::create(&place).unwrap();
        std::fs::write(new.path().join("a"), text).unwrap();
        assert!(part.is_dir());
        new
    };
    drop(begin("given up"));
    assert!(!place.exists() && !part.exists());
    begin("first").finish().unwrap();
    std::fs::write(place.join("b"), "other").unwrap();
    drop(begin("given up"));
    let read = |name: &str| std::fs::read_to_string(place.join(name)).unwrap();
    assert_eq!((read("a"), read("b")), ("first".to_owned(), "other".to_owned()));
    begin("second").finish().unwrap();
    assert_eq!((read("a"), read("b")), ("second".to_owned(), "other".to_owned()));
    assert!(!part.exists());
}

#[test]
fn a_merged_gguf_says_what_it_is() {
    let values = [
        ("general.file_type".to_owned(), GgufValue::U32(2)),
        ("split.count".to_owned(), GgufValue::U16(3)),
        ("general.name".to_owned(), GgufValue::String("m".into())),
    ];
    let source = GgufMetadata { values: values.into() };
    let merged = gguf::merged_metadata(&source, DType::Q8_0);
    assert_eq!(merged.u32("general.file_type"), Some(7));
    assert_eq!(merged.u32("general.quantization_version"), Some(2));
    assert_eq!((merged.u32("split.count"), merged.str("general.name")), (None, Some("m")));
    assert_eq!(gguf::merged_metadata(&merged, DType::F16).u32("general.quantization_version"), None);
    for (name, shape, expected) in [
        ("blk.0.attn_q.weight", &[4, 64][..], DType::Q8_0),
        ("blk.0.ffn_down.weight", &[4, 72], DType::F16),
        ("blk.0.ffn_gate_inp.weight", &[4, 64], DType::F32),
        ("blk.0.attn_norm.weight", &[64], DType::F32),
        ("blk.0.ffn_up_exps.weight", &[2, 4, 64], DType::Q8_0),
    ] {
        assert_eq!(gguf::merged_dtype(name, shape, DType::Q8_0), expected, "{name}");
    }
}

fn lora(alpha: f32, use_rslora: bool, use_dora: bool) -> AdapterConfig {
    let target_modules = TargetModules::AllLinear;
    AdapterConfig { rank: 4, alpha, dropout: 0.0, use_rslora, use_dora, target_modules, base_model: None }
}

#[test]
fn a_gguf_adapter_is_scaled_as_its_readers_scale() {
    let (a, b) = ([1.0; 8], [2.0; 12]);
    let module = GgufLora { name: "blk.0.attn_q.weight", d_in: 2, d_out: 3, a: &a, b: &b };
    for (config, expected) in [(lora(8.0, false, false), 8.0), (lora(8.0, true, false), 16.0)] {
        let bytes = gguf::encode_lora("olmo2", &config, std::slice::from_ref(&module)).unwrap();
        let checkpoint = Checkpoint::from_gguf("lora.gguf", bytes).unwrap();
        let Metadata::Gguf(metadata) = checkpoint.metadata() else { panic!("expected GGUF") };
        let texts = ["general.architecture", "general.type", "adapter.type"].map(|key| metadata.str(key).unwrap());
        assert_eq!(texts, ["olmo2", "adapter", "lora"]);
        assert_eq!(metadata.f32("adapter.lora.alpha"), Some(expected));
        let shape = |name: &str| checkpoint.tensor(name).unwrap().shape.clone();
        assert_eq!(shape("blk.0.attn_q.weight.lora_a"), [4, 2]);
        assert_eq!(shape("blk.0.attn_q.weight.lora_b"), [3, 4]);
    }
    let refused = |config, expected: &str| {
        let text = gguf::encode_lora("llama", &config, std::slice::from_ref(&module)).unwrap_err().to_string();
        assert!(text.contains(expected), "{text}");
    };
    refused(lora(8.0, false, true), "it is a DoRA; merge it into its model instead");
    refused(lora(0.0, false, false), "an alpha of 0 means a scale of 1");
    let short = GgufLora { a: &a[1..], ..module };
    let text = gguf::encode_lora("llama", &lora(8.0, false, false), &[short]).unwrap_err().to_string();
    assert_eq!(text, "tensor blk.0.attn_q.weight.lora_a was given 7 values for the rows 0..4, expected 8");
}

#[test]
fn what_cannot_be_created_names_its_path() {
    let path = Path::new("no/such/folder/m.gguf");
    let text = gguf::write(path, &GgufMetadata::default(), &[], counted).unwrap_err().to_string();
    assert!(text.starts_with("no/such/folder/m.gguf.part: "), "{text}");
}
