//! The parts of a `tokenizer.json` that we read ourselves: what kind of model it is, its decoder, and what it puts around a text.

use serde::Deserialize;
use serde_json::Value;

use super::Around;
use crate::error::TextError;
use crate::pieces::Decoding;

#[derive(Deserialize)]
pub(super) struct Outline {
    model: ModelOutline,
    #[serde(default)]
    decoder: Value,
    #[serde(default)]
    post_processor: Value,
}

#[derive(Deserialize)]
struct ModelOutline {
    #[serde(rename = "type")]
    kind: Option<String>,
    continuing_subword_prefix: Option<String>,
}

impl Outline {
    /// Reads the outline and refuses models that are not BPE.
    pub fn parse(json: &[u8]) -> Result<Self, TextError> {
        let outline: Self =
            serde_json::from_slice(json).map_err(|error| TextError::Json { reason: error.to_string() })?;
        let model = &outline.model;
        match (model.kind.as_deref(), model.continuing_subword_prefix.as_deref()) {
            (Some("BPE") | None, Some("") | None) => Ok(outline),
            (Some("BPE") | None, Some(prefix)) => {
                Err(unsupported("model.continuing_subword_prefix", format!("{prefix:?}"), "none"))
            }
            (Some(other), _) => Err(unsupported("model.type", format!("{other:?}"), "\"BPE\"")),
        }
    }

    /// How tokens become bytes.
    pub fn decoding(&self) -> Result<Decoding, TextError> {
        let parts = flatten(&self.decoder, "decoders");
        let has = |kind: &str| parts.iter().any(|part| kind_of(part) == kind);
        let known = ["ByteLevel", "Replace", "ByteFallback", "Fuse", "Strip", "Metaspace"];
        match parts.iter().find(|part| !known.contains(&kind_of(part))) {
            Some(part) => {
                Err(unsupported("decoder", kind_of(part).to_owned(), "ByteLevel or the SentencePiece sequence"))
            }
            None if has("ByteLevel") => Ok(Decoding::ByteLevel),
            None => {
                Ok(Decoding::SentencePiece { strip_first_space: parts.iter().any(|part| strips_first_space(part)) })
            }
        }
    }

    /// What the post-processor puts before and after a single text.
    pub fn around(&self) -> Result<Around, TextError> {
        let mut around = Around::default();
        for part in flatten(&self.post_processor, "processors") {
            match kind_of(part) {
                "" | "ByteLevel" => {}
                "TemplateProcessing" => add_template(part, &mut around)?,
                "BertProcessing" | "RobertaProcessing" => add_pair(part, &mut around)?,
                other => {
                    return Err(unsupported("post_processor", other.to_owned(), "ByteLevel or TemplateProcessing"));
                }
            }
        }
        Ok(around)
    }
}

fn unsupported(part: &'static str, found: String, expected: &'static str) -> TextError {
    TextError::Unsupported { part, found, expected }
}

fn kind_of(part: &Value) -> &str {
    part.get("type").and_then(Value::as_str).unwrap_or_default()
}

/// The parts of a `Sequence`, or the part itself.
fn flatten<'a>(part: &'a Value, list: &str) -> Vec<&'a Value> {
    match (kind_of(part), part.get(list).and_then(Value::as_array)) {
        ("Sequence", Some(parts)) => parts.iter().flat_map(|inner| flatten(inner, list)).collect(),
        _ => vec![part],
    }
}

fn strips_first_space(part: &Value) -> bool {
    match kind_of(part) {
        "Strip" => part.get("start").and_then(Value::as_u64).unwrap_or(0) > 0,
        "Metaspace" => part.get("prepend_scheme").and_then(Value::as_str) != Some("never"),
        _ => false,
    }
}

/// `single` is a list of `{"SpecialToken": {"id": name}}` around one `{"Sequence": ..}`; names are looked up in `special_tokens`.
fn add_template(part: &Value, around: &mut Around) -> Result<(), TextError> {
    let mut seen_text = false;
    for item in part.get("single").and_then(Value::as_array).into_iter().flatten() {
        let Some(name) = item.pointer("/SpecialToken/id").and_then(Value::as_str) else {
            seen_text = true;
            continue;
        };
        let ids = part.get("special_tokens").and_then(|tokens| tokens.get(name)).and_then(|token| token.get("ids"));
        let ids = ids
            .and_then(ids_of)
            .ok_or_else(|| unsupported("post_processor.special_tokens", format!("without {name:?}"), "its ids"))?;
        if seen_text { around.after.extend(ids) } else { around.before.extend(ids) }
    }
    Ok(())
}

/// `cls` before and `sep` after, each a pair of text and id.
fn add_pair(part: &Value, around: &mut Around) -> Result<(), TextError> {
    let id = |key: &str| part.get(key).and_then(|pair| pair.get(1)).and_then(id_of);
    match (id("cls"), id("sep")) {
        (Some(cls), Some(sep)) => {
            around.before.push(cls);
            around.after.push(sep);
            Ok(())
        }
        _ => Err(unsupported("post_processor", "without cls and sep ids".to_owned(), "both")),
    }
}

fn ids_of(value: &Value) -> Option<Vec<u32>> {
    value.as_array()?.iter().map(id_of).collect()
}

fn id_of(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|id| u32::try_from(id).ok())
}
