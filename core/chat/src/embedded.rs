//! The model inside the program, so that the first command needs no download.

use samara_formats::HuggingFaceFiles;

/// What messages call it.
pub(crate) const NAME: &str = "the embedded model";

macro_rules! asset {
    ($name:literal) => {
        ($name, include_bytes!(concat!("../../../assets/tiny/", $name)).as_slice())
    };
}

pub(crate) const FILES: [(&str, &[u8]); 6] = [
    asset!("config.json"),
    asset!("generation_config.json"),
    asset!("model.safetensors"),
    asset!("tokenizer.json"),
    asset!("tokenizer_config.json"),
    asset!("chat_template.jinja"),
];

pub(crate) fn files() -> HuggingFaceFiles {
    FILES.iter().fold(HuggingFaceFiles::new(NAME), |files, &(name, bytes)| files.with(name, bytes))
}
