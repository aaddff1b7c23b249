//! Values as Python prints them: `str`, `repr` and `json.dumps`.
//!
//! Templates were written and tested with Python's Jinja, and a model has learned `True`, `None` and `{"a": 1}` with its spaces.

use std::fmt::{self, Write};

use minijinja::Value;
use minijinja::value::ValueKind;

/// How `json.dumps` is asked to write.
#[derive(Debug, Default, Clone)]
pub(crate) struct JsonStyle {
    pub indent: Option<usize>,
    pub ensure_ascii: bool,
    pub sort_keys: bool,
    /// Between items, and between key and value.
    pub separators: Option<[String; 2]>,
}

/// `str(value)`; undefined is nothing.
pub(crate) fn write_str(out: &mut impl Write, value: &Value) -> fmt::Result {
    match value.as_str() {
        Some(text) => out.write_str(text),
        None if value.is_undefined() => Ok(()),
        None => write_repr(out, value),
    }
}

/// `repr(value)`.
fn write_repr(out: &mut impl Write, value: &Value) -> fmt::Result {
    match value.kind() {
        ValueKind::Undefined => out.write_str("Undefined"),
        ValueKind::None => out.write_str("None"),
        ValueKind::Bool => out.write_str(if value.is_true() { "True" } else { "False" }),
        ValueKind::Number => write_number(out, value, ["inf", "-inf", "nan"]),
        ValueKind::String => write_quoted(out, value.as_str().unwrap_or_default()),
        ValueKind::Map => write_items(out, ["{", "}"], pairs(value), |out, (key, item)| {
            write_repr(out, &key)?;
            out.write_str(": ")?;
            write_repr(out, &item)
        }),
        ValueKind::Seq | ValueKind::Iterable => {
            write_items(out, ["[", "]"], value.try_iter().into_iter().flatten(), |out, item| write_repr(out, &item))
        }
        _ => write!(out, "{value}"),
    }
}

fn write_items<W: Write, T>(
    out: &mut W,
    [open, close]: [&str; 2],
    items: impl Iterator<Item = T>,
    mut write: impl FnMut(&mut W, T) -> fmt::Result,
) -> fmt::Result {
    out.write_str(open)?;
    for (index, item) in items.enumerate() {
        out.write_str(if index == 0 { "" } else { ", " })?;
        write(out, item)?;
    }
    out.write_str(close)
}

fn pairs(map: &Value) -> impl Iterator<Item = (Value, Value)> {
    let keys = map.try_iter().into_iter().flatten();
    keys.map(|key| {
        let item = map.get_item(&key).unwrap_or_default();
        (key, item)
    })
}

/// Integers as they are; floats with a point or an exponent of at least two digits, as `repr(float)`.
fn write_number(out: &mut impl Write, value: &Value, [inf, neg_inf, nan]: [&str; 3]) -> fmt::Result {
    if value.is_integer() {
        return write!(out, "{value}");
    }
    let number = f64::try_from(value.clone()).unwrap_or(f64::NAN);
    match number {
        n if n.is_nan() => out.write_str(nan),
        f64::INFINITY => out.write_str(inf),
        f64::NEG_INFINITY => out.write_str(neg_inf),
        n if n != 0.0 && !(1e-4..1e16).contains(&n.abs()) => write_exponent(out, n),
        n => write!(out, "{n:?}"),
    }
}

fn write_exponent(out: &mut impl Write, number: f64) -> fmt::Result {
    let text = format!("{number:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, digits) = exponent.strip_prefix('-').map_or(("+", exponent), |digits| ("-", digits));
    write!(out, "{mantissa}e{sign}{digits:0>2}")
}

/// Single quotes, unless the text has single quotes and no double ones.
fn write_quoted(out: &mut impl Write, text: &str) -> fmt::Result {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.write_char(quote)?;
    for c in text.chars() {
        match c {
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            '\\' => out.write_str("\\\\")?,
            c if c == quote => write!(out, "\\{c}")?,
            c if c.is_ascii_control() => write!(out, "\\x{:02x}", u32::from(c))?,
            c => out.write_char(c)?,
        }
    }
    out.write_char(quote)
}

/// `json.dumps(value)`.
pub(crate) fn write_json(out: &mut impl Write, value: &Value, style: &JsonStyle) -> fmt::Result {
    write_json_at(out, value, style, 1)
}

fn write_json_at(out: &mut impl Write, value: &Value, style: &JsonStyle, depth: usize) -> fmt::Result {
    match value.kind() {
        ValueKind::Undefined | ValueKind::None => out.write_str("null"),
        ValueKind::Bool => out.write_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number => write_number(out, value, ["Infinity", "-Infinity", "NaN"]),
        ValueKind::Map => {
            write_json_items(out, ["{", "}"], style, depth, sorted(pairs(value), style), |out, (key, item)| {
                write_json_text(out, &key.to_string(), style)?;
                out.write_str(style.separators.as_ref().map_or(": ", |[_, colon]| colon))?;
                write_json_at(out, &item, style, depth + 1)
            })
        }
        ValueKind::Seq | ValueKind::Iterable => {
            let items = value.try_iter().into_iter().flatten();
            write_json_items(out, ["[", "]"], style, depth, items, |out, item| {
                write_json_at(out, &item, style, depth + 1)
            })
        }
        _ => write_json_text(out, value.as_str().map_or_else(|| value.to_string(), str::to_owned).as_str(), style),
    }
}

fn sorted(pairs: impl Iterator<Item = (Value, Value)>, style: &JsonStyle) -> std::vec::IntoIter<(Value, Value)> {
    let mut pairs: Vec<_> = pairs.collect();
    if style.sort_keys {
        pairs.sort_by(|a, b| a.0.cmp(&b.0));
    }
    pairs.into_iter()
}

fn write_json_items<W: Write, T>(
    out: &mut W,
    [open, close]: [&str; 2],
    style: &JsonStyle,
    depth: usize,
    items: impl Iterator<Item = T>,
    mut write: impl FnMut(&mut W, T) -> fmt::Result,
) -> fmt::Result {
    let comma = style.separators.as_ref().map_or(if style.indent.is_some() { "," } else { ", " }, |[comma, _]| comma);
    let mut is_empty = true;
    out.write_str(open)?;
    for item in items {
        out.write_str(if is_empty { "" } else { comma })?;
        write_line(out, style, depth)?;
        write(out, item)?;
        is_empty = false;
    }
    if !is_empty {
        write_line(out, style, depth - 1)?;
    }
    out.write_str(close)
}

fn write_line(out: &mut impl Write, style: &JsonStyle, depth: usize) -> fmt::Result {
    match style.indent {
        Some(indent) => write!(out, "\n{:width$}", "", width = indent.saturating_mul(depth).min(1 << 10)),
        None => Ok(()),
    }
}

fn write_json_text(out: &mut impl Write, text: &str, style: &JsonStyle) -> fmt::Result {
    out.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' => out.write_str("\\\"")?,
            '\\' => out.write_str("\\\\")?,
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            '\u{8}' => out.write_str("\\b")?,
            '\u{c}' => out.write_str("\\f")?,
            c if c < ' ' || (style.ensure_ascii && !c.is_ascii()) => write_utf16_escapes(out, c)?,
            c => out.write_char(c)?,
        }
    }
    out.write_char('"')
}

fn write_utf16_escapes(out: &mut impl Write, c: char) -> fmt::Result {
    let mut units = [0; 2];
    c.encode_utf16(&mut units).iter().try_for_each(|unit| write!(out, "\\u{unit:04x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(json: &str) -> Value {
        Value::from_serialize(serde_json::from_str::<serde_json::Value>(json).unwrap())
    }

    #[test]
    fn values_print_as_in_python() {
        let cases = [
            ("\"a\\nb\"", "a\nb"),
            ("null", "None"),
            ("[true, false, null]", "[True, False, None]"),
            ("{\"b\": [1, 2.0], \"a\": \"it's\"}", "{'b': [1, 2.0], 'a': \"it's\"}"),
            ("1e16", "1e+16"),
            ("123456789.5", "123456789.5"),
            ("0.00001", "1e-05"),
            ("[\"\\u0000\\\\\"]", "['\\x00\\\\']"),
        ];
        for (json, expected) in cases {
            let mut out = String::new();
            write_str(&mut out, &value(json)).unwrap();
            assert_eq!(out, expected, "{json}");
        }
    }

    #[test]
    fn json_is_written_as_by_json_dumps() {
        let tool = "{\"name\": \"f\", \"args\": [1, 1.5, {}, []], \"é\": \"<\\\"\\n\\u0001😀\"}";
        let plain = "{\"name\": \"f\", \"args\": [1, 1.5, {}, []], \"é\": \"<\\\"\\n\\u0001😀\"}";
        let indented = "{\n  \"name\": \"f\",\n  \"args\": [\n    1,\n    1.5,\n    {},\n    []\n  ],\n  \"é\": \"<\\\"\\n\\u0001😀\"\n}";
        let compact = "{\"args\":[1,1.5,{},[]],\"name\":\"f\",\"\\u00e9\":\"<\\\"\\n\\u0001\\ud83d\\ude00\"}";
        let separators = Some([",".to_owned(), ":".to_owned()]);
        let styles = [
            (JsonStyle::default(), plain),
            (JsonStyle { indent: Some(2), ..JsonStyle::default() }, indented),
            (JsonStyle { ensure_ascii: true, sort_keys: true, separators, indent: None }, compact),
        ];
        for (style, expected) in styles {
            let mut out = String::new();
            write_json(&mut out, &value(tool), &style).unwrap();
            assert_eq!(out, expected);
        }
    }
}
