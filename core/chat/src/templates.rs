//! The chat templates of a checkpoint, uncompiled: a broken one must not keep anyone from plain text.

use samara_formats::{GgufMetadata, HuggingFaceMetadata};
use samara_text::{ChatTemplate, TemplateSources, TemplateTokens, TextError, Tokenizer, choose_template};
use serde_json::Value;

/// Where the templates stand, and the special tokens that they may name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Templates {
    /// `chat_template.jinja`, or the template of a GGUF file.
    file: Option<String>,
    /// `chat_template` of `tokenizer_config.json`.
    field: Option<Value>,
    tokens: TemplateTokens,
}

impl Templates {
    pub fn of_huggingface(metadata: &HuggingFaceMetadata) -> Self {
        let field = metadata.tokenizer_config.as_ref().and_then(|config| config.get("chat_template")).cloned();
        let token = |name: &str| special_token(metadata, name);
        let tokens = TemplateTokens {
            bos: token("bos_token"),
            eos: token("eos_token"),
            pad: token("pad_token"),
            unk: token("unk_token"),
        };
        Self { file: metadata.chat_template.clone(), field, tokens }
    }

    pub fn of_gguf(values: &GgufMetadata, tokenizer: &Tokenizer) -> Self {
        let token = |name: &str| tokenizer.token(values.u32(&format!("tokenizer.ggml.{name}_token_id"))?);
        let tokens =
            TemplateTokens { bos: token("bos"), eos: token("eos"), pad: token("padding"), unk: token("unknown") };
        Self { file: values.str("tokenizer.chat_template").map(str::to_owned), field: None, tokens }
    }

    /// The template for conversations with or without functions, if there is one.
    pub fn choose(&self, has_tools: bool) -> Result<Option<ChatTemplate>, TextError> {
        let sources = TemplateSources { file: self.file.as_deref(), field: self.field.as_ref(), has_tools };
        let chosen = choose_template(sources)?;
        chosen.map(|source| ChatTemplate::new(source, self.tokens.clone())).transpose()
    }
}

/// The text of a special token: a string, or an object with `content`, in either of the files that may name it.
pub(crate) fn special_token(metadata: &HuggingFaceMetadata, name: &str) -> Option<String> {
    let files = [&metadata.tokenizer_config, &metadata.special_tokens_map];
    let values = files.into_iter().flatten().filter_map(|file| file.get(name));
    let text = |value: &Value| value.get("content").unwrap_or(value).as_str().map(str::to_owned);
    values.filter_map(text).next()
}
