//! The token ids that end a turn: the union of every place where a checkpoint may say so.
//!
//! No single place can be trusted. OLMo-1B's generation config says 0 while its tokenizer ends texts with 50279;
//! Olmo 3's is a list; a GGUF file may carry an end-of-turn id beside the end-of-text id.

use serde_json::Value;

use crate::tokenizer::Tokenizer;

/// Where stop ids may stand. Everything is optional.
#[derive(Debug, Clone, Copy, Default)]
pub struct StopIdSources<'a> {
    /// `generation_config.json`; its `eos_token_id` may be a number or a list.
    pub generation_config: Option<&'a Value>,
    /// `config.json`, likewise.
    pub config: Option<&'a Value>,
    /// The id of the tokenizer's `eos_token`.
    pub tokenizer_eos: Option<u32>,
    /// `tokenizer.ggml.{eos,eot,eom}_token_id` and `eos_token_ids` of a GGUF file.
    pub gguf: &'a [u32],
}

/// The union of all sources, ascending, each id once. Values that are no token id (null, negative, text) say nothing.
pub fn stop_ids(sources: StopIdSources<'_>) -> Vec<u32> {
    let configs = [sources.generation_config, sources.config].into_iter().flatten().flat_map(eos_of);
    let mut ids: Vec<u32> = configs.chain(sources.tokenizer_eos).chain(sources.gguf.iter().copied()).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// The control tokens by which published chat formats end a turn, as far as this vocabulary has them.
///
/// For a GGUF file that names only its end-of-text token; use it when a chat template is applied, never for raw text.
pub fn turn_end_ids(tokenizer: &Tokenizer) -> Vec<u32> {
    let names = ["<|im_end|>", "<|eot_id|>", "<end_of_turn>", "<|end_of_turn|>", "<|end|>"];
    names.iter().filter_map(|name| tokenizer.id(name)).filter(|id| tokenizer.is_special(*id)).collect()
}

fn eos_of(config: &Value) -> Vec<u32> {
    let id = |value: &Value| value.as_u64().and_then(|id| u32::try_from(id).ok());
    match config.get("eos_token_id") {
        Some(Value::Array(list)) => list.iter().filter_map(id).collect(),
        Some(one) => id(one).into_iter().collect(),
        None => Vec::new(),
    }
}
