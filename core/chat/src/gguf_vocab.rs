//! The vocabulary of a GGUF file as plain data for the tokenizer.

use samara_formats::GgufMetadata;
use samara_text::Vocab;

/// The keys that may name an id which ends a text or a turn.
const STOP_KEYS: [&str; 3] =
    ["tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"];

/// The `tokenizer.ggml.*` values, where the file has a vocabulary.
pub(crate) fn vocab(values: &GgufMetadata) -> Option<Vocab> {
    let key = |name: &str| format!("tokenizer.ggml.{name}");
    let id = |name: &str| values.u32(&key(name));
    let texts = |name: &str| values.strs(&key(name)).map(<[String]>::to_vec);
    Some(Vocab {
        model: values.str(&key("model"))?.to_owned(),
        pre: values.str(&key("pre")).map(str::to_owned),
        tokens: texts("tokens")?,
        scores: values.f32s(&key("scores")).unwrap_or_default().to_vec(),
        token_types: values.u32s(&key("token_type")).unwrap_or_default(),
        merges: texts("merges").unwrap_or_default(),
        bos: id("bos_token_id"),
        eos: id("eos_token_id"),
        unk: id("unknown_token_id"),
        pad: id("padding_token_id"),
        add_bos: values.bool(&key("add_bos_token")),
        add_eos: values.bool(&key("add_eos_token")),
        add_space_prefix: values.bool(&key("add_space_prefix")),
    })
}

/// Every id that the file says ends a text or a turn.
pub(crate) fn stop_ids(values: &GgufMetadata) -> Vec<u32> {
    let lists = values.u32s("tokenizer.ggml.eos_token_ids").unwrap_or_default();
    STOP_KEYS.iter().filter_map(|key| values.u32(key)).chain(lists).collect()
}
