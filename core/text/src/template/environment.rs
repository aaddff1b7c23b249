//! The Jinja environment of chat templates: what the reference offers them.

use std::fmt;

use chrono::format::{Item, StrftimeItems};
use chrono::{NaiveDate, NaiveDateTime};
use minijinja::value::ValueKind;
use minijinja::{Environment, Error, ErrorKind, Output, State, Value};

use super::limits::Limits;
use super::{filters, guard, limits};
use crate::chat::CivilTime;

/// What a template says by `raise_exception`.
#[derive(Debug)]
pub(super) struct Refused(pub String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

/// An environment whose functions and filters stay within the limits.
pub(super) fn new(limits: &Limits, now: Option<CivilTime>) -> Environment<'static> {
    let mut env = Environment::new();
    env.set_trim_blocks(true);
    env.set_lstrip_blocks(true);
    env.set_fuel(Some(limits.fuel));
    env.add_function("raise_exception", raise_exception);
    env.add_function("range", limits::range);
    env.add_test("iterable", is_iterable);
    env.add_test("sequence", is_iterable);
    let budget = limits.clone();
    env.set_formatter(move |out: &mut Output, _: &State, value: &Value| budget.write_into(out, value));
    let budget = limits.clone();
    env.set_unknown_method_callback(move |state, value, name, args| filters::method(&budget, state, value, name, args));
    guard::add_operators(&mut env, limits);
    filters::add_filters(&mut env, limits);
    if let Some(time) = now.and_then(date_time) {
        env.add_function("strftime_now", move |format: &str| strftime(time, format));
    }
    env
}

/// What Python can iterate: unlike the engine, not `None`, but text.
fn is_iterable(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::String | ValueKind::Seq | ValueKind::Iterable | ValueKind::Map)
}

fn raise_exception(message: &Value) -> Result<Value, Error> {
    let refused = Refused(message.as_str().map_or_else(|| message.to_string(), str::to_owned));
    Err(Error::new(ErrorKind::InvalidOperation, refused.0.clone()).with_source(refused))
}

fn date_time(time: CivilTime) -> Option<NaiveDateTime> {
    NaiveDate::from_ymd_opt(time.year, time.month, time.day)?.and_hms_opt(time.hour, time.minute, time.second)
}

fn strftime(time: NaiveDateTime, format: &str) -> Result<String, Error> {
    let items: Vec<Item<'_>> = StrftimeItems::new(format).collect();
    let invalid = || Error::new(ErrorKind::InvalidOperation, format!("strftime_now: invalid format {format:?}"));
    if items.contains(&Item::Error) {
        return Err(invalid());
    }
    let mut text = String::new();
    fmt::Write::write_fmt(&mut text, format_args!("{}", time.format_with_items(items.iter())))
        .map_err(|_| invalid())?;
    Ok(text)
}
