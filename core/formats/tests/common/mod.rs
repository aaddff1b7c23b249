//! Builds model files byte by byte, so that a test can get any field wrong.
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::path::PathBuf;

use samara_formats::{Checkpoint, FormatError, HuggingFaceFiles};

/// A GGUF file in parts that a test can replace.
#[derive(Clone)]
pub struct RawGguf {
    pub version: u32,
    pub n_tensors: Option<u64>,
    pub n_pairs: Option<u64>,
    pub pairs: Vec<Vec<u8>>,
    pub tensors: Vec<Vec<u8>>,
    pub alignment: usize,
    pub data: Vec<u8>,
}

impl RawGguf {
    /// Two F32 tensors, `a` of `[2, 4]` and `b` of `[8]`, and one string.
    pub fn sound() -> Self {
        Self {
            version: 3,
            n_tensors: None,
            n_pairs: None,
            pairs: vec![pair("general.name", 8, &string("tiny"))],
            tensors: vec![tensor("a", &[4, 2], 0, 0), tensor("b", &[8], 0, 32)],
            alignment: 32,
            data: vec![0; 64],
        }
    }

    pub fn header(&self) -> Vec<u8> {
        let mut out = b"GGUF".to_vec();
        out.extend(self.version.to_le_bytes());
        out.extend(self.n_tensors.unwrap_or(self.tensors.len() as u64).to_le_bytes());
        out.extend(self.n_pairs.unwrap_or(self.pairs.len() as u64).to_le_bytes());
        out.extend(self.pairs.concat());
        out.extend(self.tensors.concat());
        out
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut out = self.header();
        out.resize(out.len().next_multiple_of(self.alignment), 0);
        out.extend(&self.data);
        out
    }
}

pub fn string(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat()
}

pub fn pair(key: &str, of: u32, value: &[u8]) -> Vec<u8> {
    [string(key), of.to_le_bytes().to_vec(), value.to_vec()].concat()
}

/// A table entry; dimensions innermost first, as the file has them.
pub fn tensor(name: &str, dims: &[u64], of: u32, offset: u64) -> Vec<u8> {
    let mut out = string(name);
    out.extend((dims.len() as u32).to_le_bytes());
    dims.iter().for_each(|dim| out.extend(dim.to_le_bytes()));
    out.extend(of.to_le_bytes());
    out.extend(offset.to_le_bytes());
    out
}

/// A safetensors file with this header and `n_data_bytes` bytes of data.
pub fn safetensors(header: &str, n_data_bytes: usize) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &vec![0; n_data_bytes]].concat()
}

/// The header entry of an F32 tensor.
pub fn entry(name: &str, shape: &[u64], start: u64, end: u64) -> String {
    format!(r#""{name}":{{"dtype":"F32","shape":{shape:?},"data_offsets":[{start},{end}]}}"#)
}

/// A file with one F32 tensor of two values for each name.
pub fn shard(names: &[&str]) -> Vec<u8> {
    let entries = names.iter().zip(0..).map(|(name, i)| entry(name, &[2], 8 * i, 8 * i + 8));
    safetensors(&format!("{{{}}}", entries.collect::<Vec<_>>().join(",")), 8 * names.len())
}

/// A model in memory with a plain configuration.
pub fn files() -> HuggingFaceFiles {
    HuggingFaceFiles::new("model").with("config.json", br#"{"model_type":"olmo2"}"#)
}

/// A folder of this test's own, made anew.
pub fn folder(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

pub fn names(checkpoint: &Checkpoint) -> Vec<&str> {
    checkpoint.tensors().map(|tensor| tensor.name.as_str()).collect()
}

/// The error's text, with the folder's path shown as `DIR`.
pub fn check_error(result: Result<Checkpoint, FormatError>, expected: &str) {
    let text = result.expect_err(expected).to_string();
    assert_eq!(text.replace(env!("CARGO_TARGET_TMPDIR"), "DIR"), expected);
}
