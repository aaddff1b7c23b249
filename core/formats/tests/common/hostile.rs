//! What is done with bytes of unknown origin, by the fuzz targets and by the test that runs their corpus.

use samara_formats::gguf::encode;
use samara_formats::peft::LoraAdapter;
use samara_formats::{Checkpoint, HuggingFaceFiles, Metadata};

/// Stands between the files of one input of [`check_index`] and [`check_adapter`].
pub const SEPARATOR: &[u8] = b"\n---\n";

/// Opens the bytes as GGUF and reads what it says it has.
pub fn check_gguf(bytes: &[u8]) {
    let Ok(checkpoint) = Checkpoint::from_gguf("input.gguf", bytes.to_vec()) else { return };
    check_tensors(&checkpoint, bytes.len());
    check_metadata(&checkpoint);
}

/// Opens the bytes as `model.safetensors.index.json`, `1.safetensors`, `2.safetensors` and `sub/3.safetensors`, or as
/// `model.safetensors` where the first is empty.
pub fn check_index(bytes: &[u8]) {
    let mut pieces = split(bytes).into_iter();
    let index = pieces.next().unwrap_or_default();
    let mut files = HuggingFaceFiles::new("input").with("config.json", b"{}");
    let names = if index.is_empty() {
        &["model.safetensors"][..]
    } else {
        files = files.with("model.safetensors.index.json", index.to_vec());
        &["1.safetensors", "2.safetensors", "sub/3.safetensors"]
    };
    for (name, piece) in names.iter().zip(pieces) {
        files = files.with(*name, piece.to_vec());
    }
    if let Ok(checkpoint) = Checkpoint::from_huggingface(files) {
        check_tensors(&checkpoint, bytes.len());
    }
}

/// Opens the bytes as `adapter_config.json` and `adapter_model.safetensors`; what opens is written and read again.
pub fn check_adapter(bytes: &[u8]) {
    let mut pieces = split(bytes).into_iter();
    let mut next = || pieces.next().unwrap_or_default().to_vec();
    let Ok(adapter) = LoraAdapter::from_files(adapter_files(next(), next())) else { return };
    for module in &adapter.modules {
        assert!(4 * (module.a.len() + module.b.len()) <= 2 * bytes.len());
    }
    let (config, weights) = adapter.to_bytes().unwrap();
    let again = LoraAdapter::from_files(adapter_files(config, weights));
    match again {
        Ok(again) => assert_eq!(again, adapter),
        Err(error) => panic!("{error}"),
    }
}

fn adapter_files(config: Vec<u8>, weights: Vec<u8>) -> HuggingFaceFiles {
    HuggingFaceFiles::new("input").with("adapter_config.json", config).with("adapter_model.safetensors", weights)
}

fn split(bytes: &[u8]) -> Vec<&[u8]> {
    let mut pieces = Vec::new();
    let mut rest = bytes;
    while let Some(at) = rest.windows(SEPARATOR.len()).position(|window| window == SEPARATOR) {
        pieces.push(&rest[..at]);
        rest = &rest[at + SEPARATOR.len()..];
    }
    pieces.push(rest);
    pieces
}

/// Every tensor is found by its name, has the bytes it claims, all inside the input, and unpacks.
fn check_tensors(checkpoint: &Checkpoint, n_input_bytes: usize) {
    let mut n_bytes = 0;
    for tensor in checkpoint.tensors() {
        assert_eq!(checkpoint.tensor(&tensor.name), Some(tensor));
        let bytes = checkpoint.bytes(tensor).unwrap();
        assert_eq!(bytes.len(), tensor.n_bytes());
        n_bytes += bytes.len();
        let values = checkpoint.rows_f32(tensor, 0..tensor.n_rows()).unwrap();
        assert_eq!(values.len(), tensor.n_elements());
        assert!(checkpoint.rows_f32(tensor, 0..tensor.n_rows() + 1).is_err());
    }
    assert!(n_bytes <= n_input_bytes);
}

/// Metadata that was read is written and read again unchanged.
fn check_metadata(checkpoint: &Checkpoint) {
    let Metadata::Gguf(metadata) = checkpoint.metadata() else { return };
    let written = encode(metadata, &[]).unwrap();
    match Checkpoint::from_gguf("again.gguf", written.clone()) {
        Ok(again) => match again.metadata() {
            Metadata::Gguf(metadata) => assert_eq!(encode(metadata, &[]).unwrap(), written),
            Metadata::HuggingFace(_) => unreachable!(),
        },
        Err(error) => panic!("{error}"),
    }
}
