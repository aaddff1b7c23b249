//! Filters and string methods whose result can be much larger than what they are given, bounded, and those that print like Python.

use std::fmt::Write;

use minijinja::value::{Kwargs, Rest};
use minijinja::{Environment, Error, ErrorKind, State, Value, filters};

use super::limits::{Limits, check_bytes, too_large, weigh};
use crate::python::{self, JsonStyle};

/// The widest field of a format and the widest indent.
const MAX_WIDTH: usize = 1_000;

pub(super) fn add_filters(env: &mut Environment<'_>, limits: &Limits) {
    let budget = limits.clone();
    env.add_filter("tojson", move |value: &Value, kwargs: Kwargs| to_json(&budget, value, &kwargs));
    let budget = limits.clone();
    env.add_filter("string", move |value: &Value| budget.text(|out| python::write_str(out, value)));
    let budget = limits.clone();
    env.add_filter("join", move |value: &Value, separator: Option<&Value>, kwargs: Kwargs| {
        let attribute = kwargs.get::<Option<String>>("attribute")?;
        kwargs.assert_all_used()?;
        join(&budget, value, separator, attribute.as_deref())
    });
    for (name, builtin) in [
        ("replace", Value::from_function(filters::replace)),
        ("indent", Value::from_function(filters::indent)),
        ("format", Value::from_function(filters::format)),
        ("batch", Value::from_function(filters::batch)),
        ("slice", Value::from_function(filters::slice)),
    ] {
        env.add_filter(name, move |state: &State, args: Rest<Value>| {
            check_growth(name, &args)?;
            builtin.call(state, &args)
        });
    }
}

/// A Python method on a value; `args` without the value itself.
pub(super) fn method(
    limits: &Limits,
    state: &State,
    value: &Value,
    name: &str,
    args: &[Value],
) -> Result<Value, Error> {
    match (name, args) {
        ("join", [items]) if value.as_str().is_some() => join(limits, items, Some(value), None),
        _ => {
            check_growth(name, &[std::slice::from_ref(value), args].concat())?;
            minijinja_contrib::pycompat::unknown_method_callback(state, value, name, args)
        }
    }
}

fn to_json(limits: &Limits, value: &Value, kwargs: &Kwargs) -> Result<Value, Error> {
    let style = JsonStyle {
        indent: kwargs.get::<Option<usize>>("indent")?,
        ensure_ascii: kwargs.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false),
        sort_keys: kwargs.get::<Option<bool>>("sort_keys")?.unwrap_or(false),
        separators: kwargs
            .get::<Option<Vec<String>>>("separators")?
            .and_then(|pair| <[String; 2]>::try_from(pair).ok()),
    };
    kwargs.assert_all_used()?;
    check_width(style.indent.unwrap_or(0))?;
    limits.text(|out| python::write_json(out, value, &style))
}

fn join(limits: &Limits, items: &Value, separator: Option<&Value>, attribute: Option<&str>) -> Result<Value, Error> {
    let items: Vec<Value> = match attribute {
        Some(name) => items.try_iter()?.map(|item| item.get_attr(name)).collect::<Result<_, _>>()?,
        None => items.try_iter()?.collect(),
    };
    limits.text(|out| {
        items.iter().enumerate().try_for_each(|(index, item)| {
            match (index, separator) {
                (0, _) | (_, None) => {}
                (_, Some(separator)) => python::write_str(out, separator)?,
            }
            python::write_str(out, item)
        })?;
        out.write_str("")
    })
}

/// Refuses a filter or method whose result could be over the limit.
fn check_growth(name: &str, args: &[Value]) -> Result<(), Error> {
    let n_bytes = |index: usize| args.get(index).and_then(Value::as_str).map_or(0, str::len);
    match name {
        "replace" => check_bytes((n_bytes(0) + 1).saturating_mul(n_bytes(2) + 1)),
        "indent" => args.iter().filter_map(Value::as_usize).try_for_each(check_width),
        "batch" | "slice" => args.iter().filter_map(Value::as_usize).try_for_each(check_bytes),
        "format" => check_format(args.first().and_then(Value::as_str).unwrap_or_default(), args),
        _ => Ok(()),
    }
}

/// Fields have widths below a thousand, given as numbers; each can hold every argument.
fn check_format(format: &str, args: &[Value]) -> Result<(), Error> {
    let widths = format.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
    for digits in widths {
        check_width(digits.parse().unwrap_or(usize::MAX))?;
    }
    if format.contains('*') {
        return Err(Error::new(ErrorKind::InvalidOperation, "a format with '*' is not supported"));
    }
    check_bytes(weigh(args)?.saturating_mul(format.matches(['%', '{']).count()))
}

fn check_width(width: usize) -> Result<(), Error> {
    if width > MAX_WIDTH { Err(too_large()) } else { Ok(()) }
}
