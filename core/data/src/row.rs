//! One line of JSON as one of the three kinds of row. Its keys tell which; a key that is `null` counts as absent beside others.

use samara_text::Message;
use serde_json::{Map, Value};

use crate::report::BadRow;

/// What a line holds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Row {
    /// `{"text"}`
    Text(String),
    /// `{"prompt", "completion"}`
    Completion { prompt: String, completion: String },
    /// `{"messages"}`, with `"tools"` or without
    Chat { messages: Vec<Message>, tools: Vec<Value> },
}

/// Why a row cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub kind: BadRow,
    pub reason: String,
}

impl Fault {
    pub fn new(kind: BadRow, reason: impl Into<String>) -> Self {
        Self { kind, reason: reason.into() }
    }
}

impl Row {
    /// The row on a line.
    pub fn parse(line: &[u8]) -> Result<Self, Fault> {
        let text = std::str::from_utf8(line)
            .map_err(|error| Fault::new(BadRow::InvalidUtf8, format!("at byte {}", error.valid_up_to())))?;
        if text.trim().is_empty() {
            return Err(Fault::new(BadRow::BlankLine, "nothing but white space"));
        }
        match serde_json::from_str(text) {
            Ok(Value::Object(object)) => Self::from_object(object),
            Ok(other) => Err(Fault::new(BadRow::NotAnObject, format!("found {}", type_of(&other)))),
            // A line is the whole text to the JSON reader, so only its column says something.
            Err(error) => Err(Fault::new(BadRow::InvalidJson, format!("at column {}", error.column()))),
        }
    }

    fn from_object(mut object: Map<String, Value>) -> Result<Self, Fault> {
        let has = |keys: &[&str]| keys.iter().any(|key| object.get(*key).is_some_and(|value| !value.is_null()));
        match (has(&["text"]), has(&["prompt", "completion"]), has(&["messages"])) {
            (true, false, false) => Ok(Self::Text(visible(&mut object, "text")?)),
            (false, true, false) => {
                let prompt = string(&mut object, "prompt")?;
                Ok(Self::Completion { prompt, completion: visible(&mut object, "completion")? })
            }
            (false, false, true) => chat(&mut object),
            (false, false, false) => Err(nothing(&object)),
            _ => Err(Fault::new(BadRow::AmbiguousKeys, "expected one of text, prompt with completion, messages")),
        }
    }
}

fn nothing(object: &Map<String, Value>) -> Fault {
    match ["text", "prompt", "completion", "messages"].into_iter().find(|key| object.contains_key(*key)) {
        Some(key) => Fault::new(BadRow::Null, key),
        None => Fault::new(BadRow::MissingKey, "expected text, prompt with completion, or messages"),
    }
}

fn chat(object: &mut Map<String, Value>) -> Result<Row, Fault> {
    let messages = match object.remove("messages") {
        Some(Value::Array(list)) if list.is_empty() => return Err(Fault::new(BadRow::Empty, "messages")),
        Some(Value::Array(list)) => list,
        other => return Err(wrong_type("messages", "a list", &other.unwrap_or_default())),
    };
    let tools = match object.remove("tools") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(list)) => list,
        Some(other) => return Err(wrong_type("tools", "a list", &other)),
    };
    let messages = messages.into_iter().enumerate().map(|(idx, message)| self::message(idx, message));
    Ok(Row::Chat { messages: messages.collect::<Result<_, _>>()?, tools })
}

fn message(message_idx: usize, value: Value) -> Result<Message, Fault> {
    if value.is_object() && value.get("role").is_none() {
        return Err(Fault::new(BadRow::MissingKey, format!("messages[{message_idx}].role")));
    }
    serde_json::from_value(value)
        .map_err(|error| Fault::new(BadRow::WrongType, format!("messages[{message_idx}]: {error}")))
}

/// A text in which there is something to see.
fn visible(object: &mut Map<String, Value>, key: &'static str) -> Result<String, Fault> {
    let text = string(object, key)?;
    match text.trim() {
        "" if text.is_empty() => Err(Fault::new(BadRow::Empty, key)),
        "" => Err(Fault::new(BadRow::WhiteSpace, key)),
        _ => Ok(text),
    }
}

fn string(object: &mut Map<String, Value>, key: &'static str) -> Result<String, Fault> {
    match object.remove(key) {
        Some(Value::String(text)) => Ok(text),
        Some(Value::Null) => Err(Fault::new(BadRow::Null, key)),
        Some(other) => Err(wrong_type(key, "a text", &other)),
        None => Err(Fault::new(BadRow::MissingKey, key)),
    }
}

fn wrong_type(key: &str, expected: &str, found: &Value) -> Fault {
    Fault::new(BadRow::WrongType, format!("{key} is {}, expected {expected}", type_of(found)))
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
