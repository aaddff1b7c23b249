//! Limits for templates from strangers: steps of the engine, and the weight of every value that a template makes.
//!
//! Steps are in proportion to the messages. They do not see sizes: forty times `x ~ x` are few steps and a terabyte.
//! So whatever makes a larger value out of smaller ones is weighed here first ([`super::guard`], [`super::filters`]).

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Output, Value};

use crate::chat::Message;
use crate::python;

/// The longest text that a template may make; a prompt of a million tokens is a quarter of it.
pub(super) const MAX_TEXT_BYTES: usize = 16 << 20;
/// The sum of all texts that one rendering may make on the way.
const MAX_TOTAL_BYTES: u64 = 1 << 30;
/// What an entry of a list or map weighs, in bytes, besides its text.
const ENTRY_BYTES: usize = 256;
/// Nesting that no honest template has; deeper values would overflow the stack when they are dropped.
const MAX_DEPTH: usize = 100;
/// `range` goes no further.
const MAX_RANGE: usize = 10_000;

/// A value became larger than any honest prompt.
#[derive(Debug)]
pub(super) struct TooLarge;

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("value too large")
    }
}

impl std::error::Error for TooLarge {}

pub(super) fn too_large() -> Error {
    Error::new(ErrorKind::InvalidOperation, "value too large").with_source(TooLarge)
}

/// What one rendering may use.
#[derive(Debug, Clone)]
pub(super) struct Limits {
    /// Steps of the template engine.
    pub fuel: u64,
    made_bytes: Arc<AtomicU64>,
}

impl Limits {
    /// Published templates take some 50 steps for a message; this allows forty times that, and a step for each byte.
    pub fn for_messages(messages: &[Message]) -> Self {
        let bytes: usize = messages.iter().filter_map(|message| message.content.as_ref()).map(String::len).sum();
        Self { fuel: 20_000 + 2_000 * messages.len() as u64 + bytes as u64, made_bytes: Arc::default() }
    }

    /// The same for a template with texts of this length between its tags, which cost one step each and can be captured.
    pub fn with_longest_text(self, n_bytes: usize) -> Self {
        Self { fuel: self.fuel.min(MAX_TOTAL_BYTES / n_bytes.max(1) as u64), ..self }
    }

    /// The text that `write` makes, if it stays within the limits.
    pub fn text(&self, write: impl FnOnce(&mut Bounded) -> fmt::Result) -> Result<Value, Error> {
        let mut out = Bounded { text: String::new() };
        write(&mut out).map_err(|_| too_large())?;
        self.count(out.text.len())?;
        Ok(Value::from(out.text))
    }

    /// Prints a value as Python does.
    pub fn write_into(&self, out: &mut Output, value: &Value) -> Result<(), Error> {
        let text = self.text(|text| python::write_str(text, value))?;
        out.write_str(text.as_str().unwrap_or_default()).map_err(|_| too_large())
    }

    fn count(&self, n_bytes: usize) -> Result<(), Error> {
        let before = self.made_bytes.fetch_add(n_bytes as u64, Ordering::Relaxed);
        if before + n_bytes as u64 > MAX_TOTAL_BYTES { Err(too_large()) } else { Ok(()) }
    }
}

/// A text that refuses to grow over the limit.
pub(super) struct Bounded {
    text: String,
}

impl fmt::Write for Bounded {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        if self.text.len() + s.len() > MAX_TEXT_BYTES {
            return Err(fmt::Error);
        }
        self.text.push_str(s);
        Ok(())
    }
}

/// Refuses a size over the limit.
pub(super) fn check_bytes(n_bytes: usize) -> Result<(), Error> {
    if n_bytes > MAX_TEXT_BYTES { Err(too_large()) } else { Ok(()) }
}

/// The weight of values together, in bytes as if nothing were shared, or an error when it is over the limit.
pub(super) fn weigh<'a>(values: impl IntoIterator<Item = &'a Value>) -> Result<usize, Error> {
    let mut total = 0;
    values.into_iter().try_for_each(|value| add_weight(value, &mut total, 0))?;
    Ok(total)
}

fn add_weight(value: &Value, total: &mut usize, depth: usize) -> Result<(), Error> {
    *total = total.saturating_add(ENTRY_BYTES + value.as_str().map_or(0, str::len));
    check_bytes(*total)?;
    if !matches!(value.kind(), ValueKind::Seq | ValueKind::Map | ValueKind::Iterable) {
        return Ok(());
    }
    if depth == MAX_DEPTH {
        return Err(too_large());
    }
    for item in value.try_iter()? {
        if value.kind() == ValueKind::Map {
            add_weight(&value.get_item(&item)?, total, depth + 1)?;
        }
        add_weight(&item, total, depth + 1)?;
    }
    Ok(())
}

/// Python's `range`, with at most ten thousand numbers.
pub(super) fn range(lower: i64, upper: Option<i64>, step: Option<i64>) -> Result<Value, Error> {
    let (lower, upper) = upper.map_or((0, lower), |upper| (lower, upper));
    let step = step.unwrap_or(1);
    if step == 0 {
        return Err(Error::new(ErrorKind::InvalidOperation, "range step cannot be zero"));
    }
    let goes_on = move |at: &i64| if step > 0 { *at < upper } else { *at > upper };
    let numbers = std::iter::successors(Some(lower), move |at| at.checked_add(step)).take_while(goes_on);
    let numbers: Vec<i64> = numbers.take(MAX_RANGE + 1).collect();
    if numbers.len() > MAX_RANGE { Err(too_large()) } else { Ok(numbers.into()) }
}
