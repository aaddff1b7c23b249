//! The grammar of a call: `name(key=value, ...)`, where a value is a Python or JSON literal.

use serde_json::{Map, Number, Value};

use super::FunctionCall;
use crate::error::TextError;

/// Nesting that no honest call has; it keeps the recursion off the end of the stack.
const MAX_DEPTH: usize = 64;

pub(super) fn parse(text: &str) -> Result<Vec<FunctionCall>, TextError> {
    let mut cursor = Cursor { text, at: 0 };
    let mut calls = Vec::new();
    while !cursor.rest().trim_start().is_empty() {
        calls.push(cursor.call()?);
        cursor.skip(',');
    }
    Ok(calls)
}

struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn call(&mut self) -> Result<FunctionCall, TextError> {
        let name = self.name("the name of a function")?.to_owned();
        self.expect('(', "'('")?;
        let mut arguments = Map::new();
        while !self.skip(')') {
            let key = self.name("the name of an argument")?.to_owned();
            self.expect('=', "'='")?;
            let value = self.value(0)?;
            arguments.insert(key, value);
            if !self.skip(',') {
                self.expect(')', "',' or ')'")?;
                break;
            }
        }
        Ok(FunctionCall { name, arguments })
    }

    fn value(&mut self, depth: usize) -> Result<Value, TextError> {
        self.space();
        match self.peek() {
            _ if depth > MAX_DEPTH => Err(self.error("at most 64 levels of nesting")),
            Some('"' | '\'') => self.string().map(Value::String),
            Some('[') => self.list(('[', ']'), depth),
            Some('(') => self.list(('(', ')'), depth),
            Some('{') => self.map(depth),
            Some(c) if c.is_ascii_digit() || matches!(c, '-' | '+' | '.') => self.number(),
            _ => self.word(),
        }
    }

    fn list(&mut self, (open, close): (char, char), depth: usize) -> Result<Value, TextError> {
        self.skip(open);
        let mut items = Vec::new();
        while !self.skip(close) {
            items.push(self.value(depth + 1)?);
            if !self.skip(',') {
                self.expect(close, "',' or the end of the list")?;
                break;
            }
        }
        Ok(Value::Array(items))
    }

    fn map(&mut self, depth: usize) -> Result<Value, TextError> {
        self.skip('{');
        let mut items = Map::new();
        while !self.skip('}') {
            self.space();
            let key = self.string()?;
            self.expect(':', "':'")?;
            items.insert(key, self.value(depth + 1)?);
            if !self.skip(',') {
                self.expect('}', "',' or '}'")?;
                break;
            }
        }
        Ok(Value::Object(items))
    }

    fn number(&mut self) -> Result<Value, TextError> {
        let start = self.at;
        let text =
            self.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.' | '_')).replace('_', "");
        let integer = text.parse().ok().map(|n: i64| Value::Number(n.into()));
        let float = || text.parse().ok().and_then(Number::from_f64).map(Value::Number);
        integer.or_else(float).ok_or_else(|| error_at(self.text, start, "a number"))
    }

    fn word(&mut self) -> Result<Value, TextError> {
        let start = self.at;
        match self.take_while(|c| c.is_alphanumeric()) {
            "True" | "true" => Ok(Value::Bool(true)),
            "False" | "false" => Ok(Value::Bool(false)),
            "None" | "null" => Ok(Value::Null),
            _ => Err(error_at(self.text, start, "a literal value")),
        }
    }

    fn string(&mut self) -> Result<String, TextError> {
        let Some(quote) = self.next().filter(|c| matches!(c, '"' | '\'')) else {
            return Err(error_at(self.text, self.at.saturating_sub(1), "a quoted text"));
        };
        let mut out = String::new();
        loop {
            match self.next() {
                None => return Err(self.error("the closing quote")),
                Some(c) if c == quote => return Ok(out),
                Some('\\') => self.escape(&mut out)?,
                Some(c) => out.push(c),
            }
        }
    }

    fn escape(&mut self, out: &mut String) -> Result<(), TextError> {
        match self.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('\n') => {}
            Some('x') => out.push(self.code_point(2)?),
            Some('u') => out.push(self.utf16()?),
            Some(c @ ('\\' | '\'' | '"' | '/')) => out.push(c),
            Some(c) => out.extend(['\\', c]),
            None => return Err(self.error("the rest of an escape")),
        }
        Ok(())
    }

    /// `\uXXXX`, or two of them for a character beyond U+FFFF.
    fn utf16(&mut self) -> Result<char, TextError> {
        let first = self.hex(4)?;
        if !(0xD800..0xDC00).contains(&first) {
            return Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        if !self.rest().starts_with("\\u") {
            return Ok(char::REPLACEMENT_CHARACTER);
        }
        self.at += 2;
        let second = self.hex(4)?;
        let code = 0x1_0000 + ((first - 0xD800) << 10) + second.wrapping_sub(0xDC00);
        Ok(char::from_u32(code).filter(|_| (0xDC00..0xE000).contains(&second)).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn code_point(&mut self, n_digits: usize) -> Result<char, TextError> {
        self.hex(n_digits).map(|code| char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn hex(&mut self, n_digits: usize) -> Result<u32, TextError> {
        let digits = self.rest().get(..n_digits).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
        let code = digits
            .and_then(|digits| u32::from_str_radix(digits, 16).ok())
            .ok_or_else(|| self.error("hexadecimal digits"))?;
        self.at += n_digits;
        Ok(code)
    }

    fn name(&mut self, expected: &'static str) -> Result<&'a str, TextError> {
        self.space();
        let start = self.at;
        match self.take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '-')) {
            "" => Err(error_at(self.text, start, expected)),
            name => Ok(name),
        }
    }

    fn take_while(&mut self, accept: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !accept(c)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    fn expect(&mut self, c: char, expected: &'static str) -> Result<(), TextError> {
        if self.skip(c) { Ok(()) } else { Err(self.error(expected)) }
    }

    /// Skips white space and then `c`, if it is there.
    fn skip(&mut self, c: char) -> bool {
        self.space();
        let found = self.peek() == Some(c);
        self.at += if found { c.len_utf8() } else { 0 };
        found
    }

    fn space(&mut self) {
        self.take_while(char::is_whitespace);
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn error(&self, expected: &'static str) -> TextError {
        error_at(self.text, self.at, expected)
    }
}

fn error_at(text: &str, at_byte: usize, expected: &'static str) -> TextError {
    let found = match text.get(at_byte..).unwrap_or_default() {
        "" => "the end".to_owned(),
        rest => format!("{:?}", rest.chars().take(12).collect::<String>()),
    };
    TextError::Call { at_byte, expected, found }
}
