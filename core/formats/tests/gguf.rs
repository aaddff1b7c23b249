//! GGUF files that are right: what they say comes out as they say it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeMap;

use common::{RawGguf, folder, names, pair, string};
use samara_formats::gguf::{GgufTensor, encode};
use samara_formats::{Checkpoint, DType, GgufArray, GgufMetadata, GgufValue, Metadata, codec};

fn metadata(checkpoint: &Checkpoint) -> &GgufMetadata {
    match checkpoint.metadata() {
        Metadata::Gguf(metadata) => metadata,
        Metadata::HuggingFace(_) => panic!("expected GGUF metadata"),
    }
}

/// A value of each type, and a list of each type.
fn values_of_every_type() -> BTreeMap<String, GgufValue> {
    let scalars = [
        GgufValue::U8(250),
        GgufValue::I8(-5),
        GgufValue::U16(65000),
        GgufValue::I16(-3000),
        GgufValue::U32(4_000_000_000),
        GgufValue::I32(-7),
        GgufValue::U64(1 << 60),
        GgufValue::I64(-1),
        GgufValue::F32(1.5),
        GgufValue::F64(-2.25),
        GgufValue::Bool(true),
        GgufValue::String("語 é".into()),
    ];
    let lists = [
        GgufArray::U8(vec![1, 2]),
        GgufArray::I8(vec![-1, 2]),
        GgufArray::U16(vec![1, 2]),
        GgufArray::I16(vec![1, -2]),
        GgufArray::U32(vec![1, 2]),
        GgufArray::I32(vec![1, 2]),
        GgufArray::U64(vec![1, 2]),
        GgufArray::I64(vec![1, 2]),
        GgufArray::F32(vec![0.5]),
        GgufArray::F64(vec![0.25]),
        GgufArray::Bool(vec![true, false]),
        GgufArray::String(vec!["a".into(), String::new()]),
    ];
    let lists = lists.into_iter().map(GgufValue::Array);
    scalars.into_iter().chain(lists).enumerate().map(|(i, value)| (format!("key.{i}"), value)).collect()
}

#[test]
fn what_is_written_is_read() {
    let written = GgufMetadata { values: values_of_every_type() };
    let bytes = codec::to_f32(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let tensors = [
        GgufTensor { name: "w", shape: &[2, 3], dtype: DType::F32, bytes: &bytes },
        GgufTensor { name: "q", shape: &[1, 32], dtype: DType::Q8_0, bytes: &[7; 34] },
        GgufTensor { name: "scalar", shape: &[], dtype: DType::F32, bytes: &bytes[4..8] },
    ];
    let checkpoint = Checkpoint::from_gguf("m.gguf", encode(&written, &tensors).unwrap()).unwrap();
    assert_eq!(metadata(&checkpoint), &written);
    assert_eq!(names(&checkpoint), ["q", "scalar", "w"]);
    let w = checkpoint.tensor("w").unwrap();
    assert_eq!((w.shape.as_slice(), w.n_elements(), w.n_bytes()), (&[2, 3][..], 6, 24));
    assert_eq!(checkpoint.rows_f32(w, 1..2).unwrap(), [4.0, 5.0, 6.0]);
    assert_eq!(&*checkpoint.bytes(checkpoint.tensor("q").unwrap()).unwrap(), [7; 34]);
    assert_eq!(checkpoint.rows_f32(checkpoint.tensor("scalar").unwrap(), 0..1).unwrap(), [2.0]);
    assert!(checkpoint.tensor("nothing").is_none());
}

#[test]
fn look_ups_convert_only_what_fits() {
    let metadata = GgufMetadata { values: values_of_every_type() };
    let u32s = (0..8).map(|i| metadata.u32(&format!("key.{i}")));
    let expected = [Some(250), None, Some(65000), None, Some(4_000_000_000), None, None, None];
    assert_eq!(u32s.collect::<Vec<_>>(), expected);
    assert_eq!((metadata.f32("key.8"), metadata.f32("key.9"), metadata.f32("key.0")), (Some(1.5), Some(-2.25), None));
    assert_eq!((metadata.bool("key.10"), metadata.bool("key.0")), (Some(true), None));
    assert_eq!(metadata.str("key.11"), Some("語 é"));
    assert_eq!((metadata.u32s("key.12"), metadata.u32s("key.13")), (Some(vec![1, 2]), None));
    assert_eq!(metadata.u32s("key.17"), Some(vec![1, 2]));
    assert_eq!(metadata.f32s("key.20"), Some(&[0.5][..]));
    assert_eq!(metadata.bools("key.22"), Some(&[true, false][..]));
    assert_eq!(metadata.strs("key.23").unwrap(), ["a", ""]);
    assert_eq!((metadata.strs("key.22"), metadata.u32("absent")), (None, None));
}

#[test]
fn version_2_and_other_alignments_are_read() {
    for alignment in [1, 8, 64, 4096] {
        let mut file = RawGguf::sound();
        file.version = 2;
        file.alignment = alignment;
        file.pairs.push(pair("general.alignment", 4, &(alignment as u32).to_le_bytes()));
        if alignment > 32 {
            file.tensors.pop();
        }
        let checkpoint = Checkpoint::from_gguf("m.gguf", file.bytes()).unwrap();
        assert_eq!(checkpoint.tensor("a").unwrap().shape, [2, 4]);
    }
}

#[test]
fn rows_outside_and_tensors_of_others_are_refused() {
    let checkpoint = Checkpoint::from_gguf("m.gguf", RawGguf::sound().bytes()).unwrap();
    let a = checkpoint.tensor("a").unwrap();
    let error = checkpoint.rows_f32(a, 1..3).unwrap_err().to_string();
    assert_eq!(error, "tensor a has 2 rows, asked for 1..3");
    let mut other = RawGguf::sound();
    other.tensors = vec![];
    let other = Checkpoint::from_gguf("other.gguf", other.header()).unwrap();
    let error = other.bytes(a).unwrap_err().to_string();
    assert_eq!(error, "tensor a is not from this checkpoint (other.gguf)");
}

/// Three parts of a model: the first holds only metadata.
fn parts() -> Vec<RawGguf> {
    let part = |number: u16| {
        let mut file = RawGguf::sound();
        file.pairs = vec![
            pair("split.no", 2, &number.to_le_bytes()),
            pair("split.count", 2, &3u16.to_le_bytes()),
            pair("split.tensors.count", 5, &2i32.to_le_bytes()),
        ];
        file.tensors = match number {
            0 => vec![],
            1 => vec![common::tensor("a", &[4, 2], 0, 0)],
            _ => vec![common::tensor("b", &[8], 0, 32)],
        };
        file
    };
    let mut parts: Vec<_> = (0..3).map(part).collect();
    parts[0].pairs.push(pair("general.name", 8, &string("tiny")));
    parts
}

fn write_parts(name: &str, parts: &[RawGguf]) -> std::path::PathBuf {
    let folder = folder(name);
    for (part, number) in parts.iter().zip(1..) {
        std::fs::write(folder.join(format!("m-{number:05}-of-00003.gguf")), part.bytes()).unwrap();
    }
    folder
}

#[test]
fn split_sets_open_from_any_part_and_from_their_folder() {
    let folder = write_parts("split", &parts());
    for path in [folder.clone(), folder.join("m-00001-of-00003.gguf"), folder.join("m-00003-of-00003.gguf")] {
        let checkpoint = Checkpoint::open(&path).unwrap();
        assert_eq!(names(&checkpoint), ["a", "b"]);
        assert_eq!(metadata(&checkpoint).str("general.name"), Some("tiny"));
        assert_eq!(checkpoint.rows_f32(checkpoint.tensor("b").unwrap(), 0..1).unwrap(), [0.0; 8]);
        assert_eq!(checkpoint.source(), path.display().to_string());
    }
}

#[test]
fn split_sets_must_be_whole_and_agree() {
    let dir = write_parts("split_missing", &parts()[..2]);
    common::check_error(
        Checkpoint::open(&dir.join("m-00001-of-00003.gguf")),
        "DIR/split_missing: the part m-00003-of-00003.gguf is missing, the set of 3 parts needs it",
    );
    let mut swapped = parts();
    swapped.swap(1, 2);
    common::check_error(
        Checkpoint::open(&write_parts("split_swapped", &swapped)),
        "DIR/split_swapped/m-00002-of-00003.gguf: its name says part 2 of 3, but split.no is 2 (expected 1) \
         and split.count is 3",
    );
    let mut fewer = parts();
    fewer[2].tensors.clear();
    common::check_error(
        Checkpoint::open(&write_parts("split_fewer", &fewer)),
        "DIR/split_fewer/m-00001-of-00003.gguf: split.tensors.count is 2, but the parts hold 1 tensors",
    );
    let mut twice = parts();
    twice[2].tensors = twice[1].tensors.clone();
    common::check_error(
        Checkpoint::open(&write_parts("split_twice", &twice)),
        "DIR/split_twice/m-00002-of-00003.gguf: the tensor a appears twice, \
         also in DIR/split_twice/m-00003-of-00003.gguf",
    );
}

#[test]
fn a_part_alone_says_what_it_misses() {
    common::check_error(
        Checkpoint::from_gguf("m.gguf", parts()[1].bytes()),
        "m.gguf: it is one of 3 parts, and the others are found by a name that ends in -00001-of-00003.gguf",
    );
    common::check_error(
        Checkpoint::from_gguf("m-00001-of-00003.gguf", parts()[0].bytes()),
        "memory: the part m-00002-of-00003.gguf is missing, the set of 3 parts needs it",
    );
}
