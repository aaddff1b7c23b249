//! Hugging Face folders that are wrong: each gives one error that names the file and what is wrong with it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use common::{check_error, entry, files, folder, safetensors, shard};
use samara_formats::{Checkpoint, HuggingFaceFiles};

fn check_file(bytes: impl Into<Vec<u8>>, expected: &str) {
    let files = files().with("model.safetensors", bytes.into());
    check_error(Checkpoint::from_huggingface(files), &format!("model.safetensors: {expected}"));
}

fn check_header(header: &str, n_data_bytes: usize, expected: &str) {
    check_file(safetensors(header, n_data_bytes), &format!("bad safetensors header: {expected}"));
}

#[test]
fn things_that_are_no_model() {
    check_file("", "the file is empty");
    check_file(
        "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n",
        "this is a Git LFS pointer, not the model; run `git lfs pull` in its folder, or download the file itself",
    );
    check_file(
        "<!doctype html>",
        "this is a web page, not a model; the download was refused or redirected, so download it again",
    );
    check_file(
        "Entry not found",
        "this is a text, not a model; look inside: it may be the error message of a failed download",
    );
    check_header("", 0, "it does not start with {");
    check_file(b"GGUF\x03\0\0\0", "bad safetensors header: the file is GGUF under a safetensors name");
}

#[test]
fn header_lengths() {
    check_file([1, 0, 0], "the header length needs 8 bytes at byte 0, but only 3 are left; the file is cut short");
    let mut long = shard(&["a"]);
    let left = long.len() - 8;
    for n_bytes in [left as u64 + 1, 1 << 31, u64::MAX] {
        long[..8].copy_from_slice(&n_bytes.to_le_bytes());
        check_file(
            long.clone(),
            &format!(
                "the safetensors header is said to take {n_bytes} bytes, but only {left} bytes follow; \
                 the file is cut short or damaged"
            ),
        );
    }
    let mut huge = vec![b' '; 100_000_009];
    huge[..9].copy_from_slice(b"\x01\xe1\xf5\x05\0\0\0\0{");
    check_file(huge, "the safetensors header is said to take 100000001 bytes, but at most 100000000 are allowed");
}

#[test]
fn a_file_cut_anywhere_is_an_error() {
    let whole = shard(&["a", "b"]);
    for n in 0..whole.len() {
        let files = files().with("model.safetensors", whole[..n].to_vec());
        assert!(Checkpoint::from_huggingface(files).is_err(), "cut to {n} bytes");
    }
    let data_start = whole.len() - 16;
    check_file(
        &whole[..whole.len() - 1],
        &format!(
            "bad safetensors header: the tensors take 16 bytes after byte {data_start}, but the file has 15 there; \
             it is cut short or damaged"
        ),
    );
    check_file(
        [&whole[..], b"x"].concat(),
        &format!(
            "bad safetensors header: the tensors take 16 bytes after byte {data_start}, but the file has 17 there; \
             it is cut short or damaged"
        ),
    );
}

#[test]
fn headers_that_are_not_what_they_should_be() {
    check_header("{", 0, "EOF while parsing an object at line 1 column 1");
    check_header(" {}", 0, "it does not start with {");
    check_file(
        safetensors("{\"a", 0).into_iter().chain([0xff]).collect::<Vec<_>>(),
        "bad safetensors header: EOF while parsing a string at line 1 column 3",
    );
    let mut not_text = safetensors("{\"aé\":1}", 0);
    not_text[12] = 0xff;
    check_file(not_text, "the safetensors header is not UTF-8 at byte 11");
    check_header(
        r#"{"a":{"dtype":"Q7","shape":[1],"data_offsets":[0,4]}}"#,
        4,
        "a: unknown variant `Q7`, expected one of `BOOL`, `F4`, `F6_E2M3`, `F6_E3M2`, `U8`, `I8`, `F8_E5M2`, \
         `F8_E4M3`, `F8_E8M0`, `I16`, `U16`, `F16`, `BF16`, `I32`, `U32`, `F32`, `F64`, `I64`, `U64` \
         at line 1 column 18",
    );
    check_header(r#"{"a":{"dtype":"F32","shape":[1]}}"#, 4, "a: missing field `data_offsets` at line 1 column 32");
    check_header(
        r#"{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}"#,
        4,
        "a: invalid value: integer `-1`, expected usize at line 1 column 31",
    );
}

#[test]
fn bad_extents() {
    check_header(
        &format!("{{{},{}}}", entry("a", &[2], 0, 8), entry("b", &[2], 4, 12)),
        12,
        "tensor b has the bytes 4..12 of the data, expected to start at 8",
    );
    check_header(
        &format!("{{{},{}}}", entry("a", &[2], 0, 8), entry("b", &[2], 12, 20)),
        20,
        "tensor b has the bytes 12..20 of the data, expected to start at 8",
    );
    check_header(
        &format!("{{{}}}", entry("a", &[2], 8, 0)),
        8,
        "tensor a has the bytes 8..0 of the data, expected to start at 0",
    );
    check_header(
        &format!("{{{}}}", entry("a", &[3], 0, 8)),
        8,
        "tensor a has the bytes 0..8 of the data, but [3] values of F32 take 12",
    );
    check_header(
        &format!("{{{}}}", entry("a", &[1 << 33, 1 << 33], 0, 8)),
        8,
        "tensor a has the bytes 0..8 of the data and a size beyond counting: [8589934592, 8589934592]",
    );
    check_header(
        &format!("{{{}}}", entry("a", &[2], 0, u64::MAX)),
        8,
        "tensor a has the bytes 0..18446744073709551615 of the data, but [2] values of F32 take 8",
    );
}

#[test]
fn repeated_names() {
    check_header(
        &format!("{{{},{}}}", entry("a", &[2], 0, 8), entry("a", &[2], 0, 8)),
        8,
        "a appears twice at line 1 column 57",
    );
    let index = r#"{"weight_map":{"a":"1.safetensors","a":"2.safetensors"}}"#;
    let files = files().with("model.safetensors.index.json", index.as_bytes());
    check_error(
        Checkpoint::from_huggingface(files),
        "model.safetensors.index.json: a appears twice at line 1 column 38",
    );
}

#[test]
fn types_and_shapes_that_cannot_be_read() {
    let header = r#"{"w":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}}"#;
    check_file(safetensors(header, 8), "tensor w is stored as I64 (byte 62), which cannot be read");
    let header = r#"{"w":{"dtype":"F8_E4M3","shape":[8],"data_offsets":[0,8]}}"#;
    check_file(safetensors(header, 8), "tensor w is stored as F8_E4M3 (byte 66), which cannot be read");
    let header = format!("{{{}}}", entry("w", &[0, 4], 0, 0));
    check_file(safetensors(&header, 0), "tensor w has no values: [0, 4] (byte 65)");
}

fn check_index(files: HuggingFaceFiles, index: &str, expected: &str) {
    let files = files.with("model.safetensors.index.json", index.as_bytes().to_vec());
    check_error(Checkpoint::from_huggingface(files), &format!("model.safetensors.index.json: {expected}"));
}

#[test]
fn bad_indexes() {
    check_index(
        files(),
        r#"{"weight_map":{"a":"model-00001-of-00002.safetensors"}}"#,
        "the part model-00001-of-00002.safetensors is missing, tensor a needs it",
    );
    check_index(
        files().with("1.safetensors", shard(&["b"])),
        r#"{"weight_map":{"a":"1.safetensors"}}"#,
        "tensor a is not in 1.safetensors",
    );
    for name in ["../x.safetensors", "/x.safetensors", "a/../../x"] {
        check_index(
            files(),
            &format!(r#"{{"weight_map":{{"a":"{name}"}}}}"#),
            &format!("tensor a is in {name}, outside the model's folder"),
        );
    }
    check_index(files(), r#"{"weight_map":{}}"#, "weight_map names no tensors");
    check_index(files(), "{}", "missing field `weight_map` at line 1 column 2");
    check_index(
        files(),
        r#"{"weight_map":{"a":1}}"#,
        "a: invalid type: integer `1`, expected a string at line 1 column 20",
    );
    check_index(files(), "", "EOF while parsing a value at line 1 column 0");
    check_index(
        files(),
        "version https://git-lfs.github.com/spec/v1\n",
        "this is a Git LFS pointer, not the model; run `git lfs pull` in its folder, or download the file itself",
    );
}

#[test]
fn extra_tensors_in_two_parts_are_not_guessed_between() {
    let files = files()
        .with("1.safetensors", shard(&["a", "x"]))
        .with("2.safetensors", shard(&["b", "x"]))
        .with("model.safetensors.index.json", br#"{"weight_map":{"a":"1.safetensors","b":"2.safetensors"}}"#);
    check_error(
        Checkpoint::from_huggingface(files),
        "1.safetensors: the tensor x appears twice, also in 2.safetensors",
    );
}

#[test]
fn a_cut_part_names_the_part() {
    let part = shard(&["a"]);
    let files = files()
        .with("1.safetensors", part[..part.len() - 1].to_vec())
        .with("model.safetensors.index.json", br#"{"weight_map":{"a":"1.safetensors"}}"#);
    check_error(
        Checkpoint::from_huggingface(files),
        "1.safetensors: bad safetensors header: the tensors take 8 bytes after byte 62, but the file has 7 there; \
         it is cut short or damaged",
    );
}

#[test]
fn missing_and_bad_configurations() {
    let files = HuggingFaceFiles::new("model").with("model.safetensors", shard(&["a"]));
    check_error(
        Checkpoint::from_huggingface(files.clone()),
        "model: no config.json, which a safetensors model needs beside its weights",
    );
    check_error(
        Checkpoint::from_huggingface(files.clone().with("config.json", b"{\"a\":")),
        "config.json: EOF while parsing a value at line 1 column 5",
    );
    check_error(
        Checkpoint::from_huggingface(files.with("config.json", vec![b'['; 10_000])),
        "config.json: recursion limit exceeded at line 1 column 128",
    );
    check_error(
        Checkpoint::from_huggingface(
            common::files().with("chat_template.jinja", b"ab\xff").with("model.safetensors", shard(&["a"])),
        ),
        "chat_template.jinja: the template is not UTF-8 at byte 2",
    );
}

#[test]
fn old_olmo_files_point_to_the_new_ones() {
    for config in [r#"{"model_type":"hf_olmo"}"#, r#"{"architectures":["OLMoForCausalLM"]}"#] {
        let files = files().with("config.json", config.as_bytes()).with("model.safetensors", shard(&["a"]));
        check_error(
            Checkpoint::from_huggingface(files),
            "config.json: an OLMo model in the old hf_olmo layout, which is not read; \
             take the same model from the repository whose name ends in -hf",
        );
    }
    let files = files()
        .with("config.json", br#"{"model_type":"olmo","architectures":["OlmoForCausalLM"]}"#)
        .with("model.safetensors", shard(&["a"]));
    assert!(Checkpoint::from_huggingface(files).is_ok());
}

#[test]
fn folders_without_a_model() {
    let dir = folder("no_model");
    check_error(Checkpoint::open(&dir.join("absent.gguf")), "DIR/no_model/absent.gguf: no such file or folder");
    check_error(
        Checkpoint::open(&dir),
        "DIR/no_model: no config.json, which a safetensors model needs beside its weights",
    );
    std::fs::write(dir.join("config.json"), "{}").unwrap();
    check_error(
        Checkpoint::open(&dir),
        "DIR/no_model: no model here: expected model.safetensors, model.safetensors.index.json or a .gguf file",
    );
    std::fs::write(dir.join("pytorch_model.bin"), "x").unwrap();
    let pickle = "this is a PyTorch pickle, which runs code when it is read, so it is not opened; \
                  use the model's safetensors or GGUF files, or convert it to safetensors";
    check_error(Checkpoint::open(&dir), &format!("DIR/no_model/pytorch_model.bin: {pickle}"));
    check_error(Checkpoint::open(&dir.join("pytorch_model.bin")), &format!("DIR/no_model/pytorch_model.bin: {pickle}"));
    check_error(
        Checkpoint::from_huggingface(files().with("pytorch_model.bin", b"x")),
        &format!("model/pytorch_model.bin: {pickle}"),
    );
}

#[test]
fn a_folder_with_two_ggufs_asks_which() {
    let dir = folder("two_ggufs");
    for name in ["a.gguf", "b.gguf"] {
        std::fs::write(dir.join(name), common::RawGguf::sound().bytes()).unwrap();
    }
    check_error(Checkpoint::open(&dir), "DIR/two_ggufs: several GGUF models (a.gguf, b.gguf); name one of them");
}

#[test]
fn files_on_disk_fail_like_files_in_memory() {
    let dir = folder("bad_files");
    std::fs::write(dir.join("empty.gguf"), "").unwrap();
    check_error(Checkpoint::open(&dir.join("empty.gguf")), "DIR/bad_files/empty.gguf: the file is empty");
    let whole = common::RawGguf::sound().bytes();
    std::fs::write(dir.join("cut.gguf"), &whole[..70]).unwrap();
    check_error(
        Checkpoint::open(&dir.join("cut.gguf")),
        "DIR/bad_files/cut.gguf: the shape of tensor a needs 4 bytes at byte 69, but only 1 are left; the file is cut short",
    );
    std::fs::create_dir(dir.join("config.json")).unwrap();
    std::fs::write(dir.join("m.safetensors"), shard(&["a"])).unwrap();
    check_error(Checkpoint::open(&dir.join("m.safetensors")), "DIR/bad_files/config.json: neither a file nor a folder");
}
