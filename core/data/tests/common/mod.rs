//! A tokenizer, templates and files for the tests of this crate.
#![allow(dead_code, reason = "each test binary uses a part")]

use std::path::PathBuf;
use std::sync::OnceLock;

use samara_data::{DataError, DataOptions, Dataset, Document};
use samara_text::{ChatTemplate, ShowSpecial, TemplateTokens, Tokenizer};
use tempfile::TempDir;

pub const CHATML: &str = include_str!("../../../../assets/tiny/chat_template.jinja");
pub const TULU: &str = include_str!("../../../text/tests/templates/tulu.jinja");
pub const OLMO: &str = include_str!("../../../text/tests/templates/olmo.jinja");
pub const OLMO3_INSTRUCT: &str = include_str!("../../../text/tests/templates/olmo3_instruct.jinja");
pub const OLMO_THINKER: &str = include_str!("../../../text/tests/templates/olmo_thinker.jinja");

/// Byte-level BPE with the control tokens of ChatML.
pub fn tokenizer() -> Tokenizer {
    static TINY: OnceLock<Tokenizer> = OnceLock::new();
    let json = include_bytes!("../../../../assets/tiny/tokenizer.json");
    TINY.get_or_init(|| Tokenizer::from_json(json).unwrap()).clone()
}

pub fn template(source: &str) -> ChatTemplate {
    let end = Some("<|endoftext|>".to_owned());
    ChatTemplate::new(source, TemplateTokens { bos: None, eos: end, pad: None, unk: None }).unwrap()
}

/// Options with the end-of-text token, and no truncation by the mean.
pub fn options() -> DataOptions {
    let end_ids = vec![tokenizer().id("<|endoftext|>").unwrap()];
    DataOptions { end_ids, max_length: Some(1 << 20), ..DataOptions::new(tokenizer().n_tokens()) }
}

/// Files with these bytes, in a folder that vanishes with the first value.
pub fn files(contents: &[&[u8]]) -> (TempDir, Vec<PathBuf>) {
    let folder = tempfile::tempdir().unwrap();
    let write = |(idx, bytes): (usize, &&[u8])| {
        let path = folder.path().join(format!("{idx}.jsonl"));
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let paths = contents.iter().enumerate().map(write).collect();
    (folder, paths)
}

/// The dataset of one file with these bytes.
pub fn open(bytes: &[u8], template_source: &str, options: &DataOptions) -> Result<Dataset, DataError> {
    let (_folder, paths) = files(&[bytes]);
    Dataset::open(&paths, &tokenizer(), Some(&template(template_source)), options)
}

/// The document of a single row.
pub fn document(row: &serde_json::Value, template_source: &str, options: &DataOptions) -> Result<Document, DataError> {
    open(row.to_string().as_bytes(), template_source, options)?.document(0)
}

/// The text of a document, with `[` and `]` around what is to be predicted.
pub fn marked(document: &Document) -> String {
    let tokenizer = tokenizer();
    let mut text = String::new();
    let runs = document.ids.iter().zip(&document.trained).collect::<Vec<_>>();
    for run in runs.chunk_by(|one, other| one.1 == other.1) {
        let ids: Vec<u32> = run.iter().map(|(id, _)| **id).collect();
        let piece = tokenizer.decode(&ids, ShowSpecial::Yes);
        text += &if *run[0].1 { format!("[{piece}]") } else { piece };
    }
    text
}
