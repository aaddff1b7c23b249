//! Typed reading of untrusted key-value data, the same for `config.json` and GGUF metadata.
//!
//! A JSON `null` counts as a missing key, as published files mean it.

use serde_json::{Map, Value};

use crate::ModelError;

/// A map of values and the words that name it in errors.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a> {
    pub source: &'a str,
    /// Put before each key in errors, such as `rope_scaling.`.
    pub prefix: &'a str,
    pub values: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    pub fn value(&self, key: &str) -> Option<&'a Value> {
        self.values.get(key).filter(|value| !value.is_null())
    }

    /// A count of at least 1 and at most `u32::MAX`.
    pub fn size(&self, key: &str) -> Result<Option<usize>, ModelError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let size = value.as_u64().filter(|&n| n > 0).and_then(|n| u32::try_from(n).ok());
        match size.and_then(|n| usize::try_from(n).ok()) {
            Some(size) => Ok(Some(size)),
            None => Err(self.bad(key, value, "a whole number from 1 to 4294967295")),
        }
    }

    pub fn need_size(&self, key: &str) -> Result<usize, ModelError> {
        self.size(key)?.ok_or_else(|| self.missing(key))
    }

    /// A number above 0 that an f32 can hold.
    pub fn positive(&self, key: &str) -> Result<Option<f64>, ModelError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let range = f64::from(f32::MIN_POSITIVE)..=f64::from(f32::MAX);
        match value.as_f64().filter(|x| range.contains(x)) {
            Some(number) => Ok(Some(number)),
            None => Err(self.bad(key, value, "a number above 0 that an f32 can hold")),
        }
    }

    pub fn need_positive(&self, key: &str) -> Result<f64, ModelError> {
        self.positive(key)?.ok_or_else(|| self.missing(key))
    }

    pub fn flag(&self, key: &str) -> Result<Option<bool>, ModelError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        value.as_bool().map(Some).ok_or_else(|| self.bad(key, value, "true or false"))
    }

    pub fn text(&self, key: &str) -> Result<Option<&'a str>, ModelError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        value.as_str().map(Some).ok_or_else(|| self.bad(key, value, "a text"))
    }

    pub fn list(&self, key: &str) -> Result<Option<&'a [Value]>, ModelError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        value.as_array().map(|x| Some(x.as_slice())).ok_or_else(|| self.bad(key, value, "a list"))
    }

    /// The object at `key`; `prefix` names its keys in errors.
    pub fn child(&self, key: &str, prefix: &'a str) -> Result<Option<Fields<'a>>, ModelError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let values = value.as_object().ok_or_else(|| self.bad(key, value, "an object"))?;
        Ok(Some(Fields { source: self.source, prefix, values }))
    }

    /// Refuses a key that is there with any other value than `false`.
    pub fn refuse(&self, key: &str, supported: &str) -> Result<(), ModelError> {
        match self.value(key) {
            None | Some(Value::Bool(false)) => Ok(()),
            Some(value) => Err(self.unsupported(key, value, supported)),
        }
    }

    pub fn missing(&self, key: &str) -> ModelError {
        ModelError::MissingKey { source_name: self.source.to_owned(), key: self.name(key) }
    }

    pub fn bad(&self, key: &str, found: &Value, expected: &str) -> ModelError {
        ModelError::BadKey {
            source_name: self.source.to_owned(),
            key: self.name(key),
            expected: expected.to_owned(),
            found: shortened(found),
        }
    }

    pub fn unsupported(&self, key: &str, found: &Value, supported: &str) -> ModelError {
        ModelError::Unsupported {
            source_name: self.source.to_owned(),
            key: self.name(key),
            found: shortened(found),
            supported: supported.to_owned(),
        }
    }

    fn name(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }
}

/// A value as text, cut to a length that fits a message.
fn shortened(value: &Value) -> String {
    const LONGEST: usize = 80;
    let text = value.to_string();
    match text.char_indices().nth(LONGEST) {
        None => text,
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}
