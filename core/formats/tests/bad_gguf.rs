//! GGUF files that are wrong: each gives one error that names the file and the place, and nothing panics.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use common::{RawGguf, check_error, pair, string, tensor};
use samara_formats::Checkpoint;

fn check(bytes: impl Into<Vec<u8>>, expected: &str) {
    check_error(Checkpoint::from_gguf("m.gguf", bytes.into()), expected);
}

/// Breaks the sound file and checks the complaint.
fn check_broken(expected: &str, break_it: impl FnOnce(&mut RawGguf)) {
    let mut file = RawGguf::sound();
    break_it(&mut file);
    check(file.bytes(), expected);
}

#[test]
fn things_that_are_no_model() {
    check("", "m.gguf: the file is empty");
    check(
        "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n",
        "m.gguf: this is a Git LFS pointer, not the model; run `git lfs pull` in its folder, \
         or download the file itself",
    );
    for page in ["<!DOCTYPE html><html>", "\n<html lang=en>", "\u{feff}<HTML>", "<?xml version=\"1.0\"?><Error>"] {
        check(
            page,
            "m.gguf: this is a web page, not a model; the download was refused or redirected, so download it again",
        );
    }
    check(
        r#"{"error":"Repository not found"}"#,
        "m.gguf: this is a text, not a model; look inside: it may be the error message of a failed download",
    );
    for pickle in [&b"PK\x03\x04archive/data.pkl"[..], b"\x80\x02}q\x00"] {
        check(
            pickle,
            "m.gguf: this is a PyTorch pickle, which runs code when it is read, so it is not opened; \
             use the model's safetensors or GGUF files, or convert it to safetensors",
        );
    }
    check(
        b"tjgg\x03\0\0\0\0\0\0\0",
        "m.gguf: this is a GGML file from before GGUF; convert it to GGUF, or download a newer file",
    );
    check(
        b"GGUF\0\0\0\x03\0\0\0\0\0\0\0\0",
        "m.gguf: this GGUF is written for a big-endian machine; only little-endian files are read",
    );
    check([0xff; 40], "m.gguf: this is neither GGUF nor safetensors");
    check(common::shard(&["a"]), "m.gguf: this is neither GGUF nor safetensors");
}

#[test]
fn unknown_versions() {
    for version in [0, 1, 4, 200] {
        check_broken(&format!("m.gguf: GGUF version {version}, at byte 4, is not read (2 and 3 are)"), |file| {
            file.version = version;
        });
    }
}

#[test]
fn a_file_cut_anywhere_is_an_error() {
    let whole = RawGguf::sound().bytes();
    assert!(Checkpoint::from_gguf("m.gguf", whole.clone()).is_ok());
    for n in 0..whole.len() {
        assert!(Checkpoint::from_gguf("m.gguf", whole[..n].to_vec()).is_err(), "cut to {n} bytes");
    }
}

#[test]
fn a_cut_file_says_where() {
    let mut vocabulary_only = RawGguf::sound();
    vocabulary_only.tensors.clear();
    for (n, expected) in [
        (2, "the magic needs 4 bytes at byte 0, but only 2 are left"),
        (6, "the version needs 4 bytes at byte 4, but only 2 are left"),
        (20, "the metadata count needs 8 bytes at byte 16, but only 4 are left"),
        (40, "a metadata key needs 12 bytes at byte 32, but only 8 are left"),
        (46, "general.name needs 4 bytes at byte 44, but only 2 are left"),
        (58, "general.name needs 4 bytes at byte 56, but only 2 are left"),
    ] {
        check(&vocabulary_only.bytes()[..n], &format!("m.gguf: {expected}; the file is cut short"));
    }
    let whole = RawGguf::sound().bytes();
    for (n, expected) in [
        (72, "the shape of tensor a needs 4 bytes at byte 69, but only 3 are left"),
        (80, "the shape of tensor a needs 8 bytes at byte 73, but only 7 are left"),
        (92, "the type of tensor a needs 4 bytes at byte 89, but only 3 are left"),
        (100, "the offset of tensor a needs 8 bytes at byte 93, but only 7 are left"),
        (105, "a tensor name needs 8 bytes at byte 101, but only 4 are left"),
    ] {
        check(&whole[..n], &format!("m.gguf: {expected}; the file is cut short"));
    }
    let data_start = whole.len() - 64;
    check(
        &whole[..whole.len() - 1],
        &format!(
            "m.gguf: tensor b is said (byte 126) to take 32 bytes from byte {}, but the file ends at byte {}; \
             it is cut short or damaged",
            data_start + 32,
            data_start + 63
        ),
    );
}

#[test]
fn counts_that_the_file_cannot_hold() {
    let n_left = RawGguf::sound().bytes().len() - 16;
    for count in [n_left as u64, 1 << 32, 1 << 60, u64::MAX] {
        let expected = format!(
            "m.gguf: the tensor count is {count} (byte 8), but the rest of the file has room for {}; it is cut short or damaged",
            n_left / 24
        );
        check_broken(&expected, |file| file.n_tensors = Some(count));
    }
    let expected = format!(
        "m.gguf: the metadata count is 18446744073709551615 (byte 16), but the rest of the file has room for {}; it is cut short or damaged",
        (n_left - 8) / 13
    );
    check_broken(&expected, |file| file.n_pairs = Some(u64::MAX));
}

#[test]
fn strings_and_lists_longer_than_the_file() {
    check_broken(
        "m.gguf: k needs 18446744073709551615 bytes at byte 45, but only 211 are left; the file is cut short",
        |file| {
            file.pairs = vec![pair("k", 8, &[u64::MAX.to_le_bytes(), [0; 8], [0; 8]].concat()), vec![0; 40]];
            file.n_pairs = Some(1);
        },
    );
    for (of, min_bytes) in [(0u32, 1), (3, 2), (6, 4), (7, 1), (8, 8), (12, 8)] {
        let mut file = RawGguf::sound();
        file.pairs = vec![pair("k", 9, &[&of.to_le_bytes()[..], &(u64::MAX / 2).to_le_bytes()].concat())];
        let n_left = file.bytes().len() - 24 - 9 - 4 - 12;
        check(
            file.bytes(),
            &format!(
                "m.gguf: the length of k is 9223372036854775807 (byte 41), but the rest of the file has room for {}; it is cut short or damaged",
                n_left / min_bytes
            ),
        );
    }
}

#[test]
fn bad_metadata() {
    check_broken("m.gguf: k at byte 33 has the value type 13, expected a scalar, a string or a list of them", |file| {
        file.pairs = vec![pair("k", 13, &[])];
    });
    check_broken("m.gguf: k at byte 37 has the value type 9, expected a scalar, a string or a list of them", |file| {
        file.pairs = vec![pair("k", 9, &[9, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0])];
    });
    check_broken("m.gguf: k at byte 37 is a bool of value 2, expected 0 or 1", |file| {
        file.pairs = vec![pair("k", 7, &[2])];
    });
    check_broken("m.gguf: the key k at byte 38 appears twice", |file| {
        file.pairs = vec![pair("k", 0, &[1]), pair("k", 0, &[2])];
    });
    let bad_text = [&3u64.to_le_bytes()[..], b"a\xff\xfe"].concat();
    check_broken("m.gguf: k is not UTF-8 at byte 46", |file| file.pairs = vec![pair("k", 8, &bad_text)]);
    check_broken("m.gguf: a metadata key is not UTF-8 at byte 33", |file| {
        file.pairs = vec![[&bad_text[..], &[0; 5]].concat()];
    });
    check_broken("m.gguf: a tensor name is not UTF-8 at byte 69", |file| {
        file.tensors = vec![[&bad_text[..], &tensor("", &[8], 0, 0)[8..]].concat()];
    });
}

#[test]
fn hostile_names_are_tamed_in_messages() {
    check_broken("m.gguf: the key \\u{1b}[2J at byte 41 appears twice", |file| {
        file.pairs = vec![pair("\x1b[2J", 0, &[1]), pair("\x1b[2J", 0, &[2])];
    });
}

#[test]
fn bad_alignment() {
    for alignment in [0u32, 3, 48, u32::MAX] {
        let expected = format!("m.gguf: general.alignment is U32({alignment}), expected a power of two as u32");
        check_broken(&expected, |file| {
            file.pairs = vec![pair("general.alignment", 4, &alignment.to_le_bytes())];
        });
    }
    check_broken("m.gguf: general.alignment is U64(32), expected a power of two as u32", |file| {
        file.pairs = vec![pair("general.alignment", 10, &32u64.to_le_bytes())];
    });
    check_broken("m.gguf: general.alignment is the string \"32\", expected a power of two as u32", |file| {
        file.pairs = vec![pair("general.alignment", 8, &string("32"))];
    });
    check_broken("m.gguf: tensor b starts at 36 (said at byte 126), which is no multiple of 32", |file| {
        file.tensors[1] = tensor("b", &[7], 0, 36);
    });
}

/// A file with one tensor of this entry.
fn check_tensor(entry: Vec<u8>, expected: &str) {
    check_broken(expected, |file| file.tensors = vec![entry]);
}

#[test]
fn bad_shapes() {
    check_tensor(tensor("a", &[1; 5], 0, 0), "m.gguf: tensor a has 5 dimensions, at most 4 are possible (byte 69)");
    let mut many = tensor("a", &[1; 4], 0, 0);
    many[9..13].copy_from_slice(&u32::MAX.to_le_bytes());
    check_tensor(many, "m.gguf: tensor a has 4294967295 dimensions, at most 4 are possible (byte 69)");
    check_tensor(tensor("a", &[4, 0], 0, 0), "m.gguf: tensor a has a dimension of 0 (byte 69)");
    check_tensor(
        tensor("a", &[1 << 32, 1 << 32], 0, 0),
        "m.gguf: tensor a has a size beyond counting: [4294967296, 4294967296] (byte 93)",
    );
    check_tensor(
        tensor("a", &[u64::MAX, 1], 0, 0),
        "m.gguf: tensor a has a size beyond counting: [1, 18446744073709551615] (byte 93)",
    );
    check_tensor(
        tensor("a", &[1 << 31, 1 << 31], 0, 0),
        "m.gguf: tensor a has a size beyond counting: [2147483648, 2147483648] (byte 93)",
    );
    check_tensor(
        tensor("a", &[40, 8], 2, 0),
        "m.gguf: tensor a has rows of 40 values, Q4_0 comes in blocks of 32 (byte 93)",
    );
    check_tensor(
        tensor("a", &[128, 8], 12, 0),
        "m.gguf: tensor a has rows of 128 values, Q4_K comes in blocks of 256 (byte 93)",
    );
}

#[test]
fn types_that_cannot_be_read_are_named() {
    for (of, name) in [
        (9, "Q8_1 (type 9)"),
        (16, "IQ2_XXS (type 16)"),
        (18, "IQ3_XXS (type 18)"),
        (29, "IQ1_M (type 29)"),
        (34, "TQ1_0 (type 34)"),
        (40, "NVFP4 (type 40)"),
        (26, "I32 (type 26)"),
        (31, "unknown type 31"),
        (u32::MAX, "unknown type 4294967295"),
    ] {
        check_tensor(
            tensor("blk.0.ffn_up.weight", &[256], of, 0),
            &format!("m.gguf: tensor blk.0.ffn_up.weight is stored as {name} (byte 99), which cannot be read"),
        );
    }
}

#[test]
fn tensors_outside_the_file() {
    for (offset, start) in [(64, 160), (1 << 40, (1u64 << 40) + 96), (u64::MAX - 31, u64::MAX)] {
        check_tensor(
            tensor("a", &[8], 0, offset),
            &format!(
                "m.gguf: tensor a is said (byte 85) to take 32 bytes from byte {start}, \
                 but the file ends at byte 160; it is cut short or damaged"
            ),
        );
    }
    check_tensor(
        tensor("a", &[1 << 40], 0, 0),
        "m.gguf: tensor a is said (byte 85) to take 4398046511104 bytes from byte 96, \
         but the file ends at byte 160; it is cut short or damaged",
    );
}

#[test]
fn tensors_that_share_bytes_or_names() {
    check_broken("m.gguf: tensors a and b overlap at byte 160", |file| file.tensors[1] = tensor("b", &[8], 0, 0));
    check_broken("m.gguf: tensors c and b overlap at byte 192", |file| {
        file.tensors[0] = tensor("c", &[4, 4], 0, 0);
    });
    check_broken("m.gguf: the tensor a appears twice", |file| file.tensors[1] = tensor("a", &[8], 0, 32));
}
