//! Which of several templates of a checkpoint is meant.

use serde_json::Value;

use crate::error::TextError;

/// The places where a checkpoint may keep its template.
#[derive(Debug, Clone, Copy, Default)]
pub struct TemplateSources<'a> {
    /// The text of `chat_template.jinja`, or `tokenizer.chat_template` of a GGUF file.
    pub file: Option<&'a str>,
    /// `chat_template` of `tokenizer_config.json`: a text, or a list of `{"name", "template"}`.
    pub field: Option<&'a Value>,
    /// Whether the conversation offers functions: then the one named `tool_use` is preferred.
    pub has_tools: bool,
}

/// The template to use, if there is one: the file over the field; in a list `tool_use` with functions, otherwise `default`.
///
/// # Errors
/// The field is neither text nor such a list, or the list has several templates and none is named `default`.
pub fn choose_template(sources: TemplateSources<'_>) -> Result<Option<&str>, TextError> {
    match (sources.file, sources.field) {
        (Some(file), _) => Ok(Some(file)),
        (None, None | Some(Value::Null)) => Ok(None),
        (None, Some(Value::String(text))) => Ok(Some(text)),
        (None, Some(Value::Array(list))) => from_list(list, sources.has_tools),
        (None, Some(_)) => Err(field_error("expected text or a list of {name, template}")),
    }
}

fn from_list(list: &[Value], has_tools: bool) -> Result<Option<&str>, TextError> {
    let named: Option<Vec<(&str, &str)>> = list.iter().map(name_and_template).collect();
    let named = named.ok_or_else(|| field_error("an entry of the list lacks name or template"))?;
    let find = |wanted: &str| named.iter().find(|(name, _)| *name == wanted).map(|(_, template)| *template);
    let wanted = has_tools.then(|| find("tool_use")).flatten().or_else(|| find("default"));
    match (wanted, named.as_slice()) {
        (Some(template), _) => Ok(Some(template)),
        (None, []) => Ok(None),
        (None, [(_, only)]) => Ok(Some(only)),
        (None, _) => Err(field_error("no template of the list is named \"default\"")),
    }
}

fn name_and_template(entry: &Value) -> Option<(&str, &str)> {
    Some((entry.get("name")?.as_str()?, entry.get("template")?.as_str()?))
}

fn field_error(reason: &str) -> TextError {
    TextError::TemplateField { reason: reason.to_owned() }
}
