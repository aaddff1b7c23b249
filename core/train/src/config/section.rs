//! A mapping of YAML that is asked for its keys one by one.
//!
//! Each question names a key, its default and what is allowed. What is wrong goes to the log, and the default is the answer,
//! so that reading goes on. A key that nobody asked for is unknown.

use std::cell::RefCell;
use std::fmt::Display;
use std::ops::{Bound, RangeBounds};
use std::path::PathBuf;

use saphyr::{MarkedYaml, Scalar, YamlData};

use super::problems::Log;

type Node<'y> = MarkedYaml<'y>;

/// A key that turns something off, on, or on with a section of its own.
pub(super) enum Switch<'a, 'y> {
    NotGiven,
    Off,
    On(Section<'a, 'y>),
}

/// A mapping. Call [`Self::done`] when all keys have been asked for.
pub(super) struct Section<'a, 'y> {
    log: &'a RefCell<Log>,
    path: String,
    line: usize,
    entries: Vec<Entry<'a, 'y>>,
    asked: RefCell<Vec<&'static str>>,
}

struct Entry<'a, 'y> {
    key: &'a str,
    line: usize,
    value: &'a Node<'y>,
}

impl<'a, 'y> Section<'a, 'y> {
    /// The mapping of a document.
    pub fn root(node: &'a Node<'y>, log: &'a RefCell<Log>) -> Self {
        Self::new(node, "", 1, log)
    }

    fn new(node: &'a Node<'y>, path: &str, line: usize, log: &'a RefCell<Log>) -> Self {
        let mut section = Self::empty(path, line, log);
        let YamlData::Mapping(mapping) = &node.data else {
            let reason = format!("expected keys and values, found {}", shown(node));
            log.borrow_mut().add(line, path, reason);
            return section;
        };
        for (key, value) in mapping {
            let line = key.span.start.line();
            match &key.data {
                YamlData::Value(Scalar::String(key)) => section.entries.push(Entry { key, line, value }),
                _ => log.borrow_mut().add(line, path, format!("expected a key, found {}", shown(key))),
            }
        }
        for entry in &section.entries {
            log.borrow_mut().lines.insert(section.full(entry.key), entry.line);
        }
        section
    }

    fn empty(path: &str, line: usize, log: &'a RefCell<Log>) -> Self {
        Self { log, path: path.to_owned(), line, entries: Vec::new(), asked: RefCell::default() }
    }

    /// A key of this section with all sections around it.
    fn full(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    fn get(&self, key: &'static str) -> Option<&Entry<'a, 'y>> {
        self.asked.borrow_mut().push(key);
        self.entries.iter().find(|entry| entry.key == key)
    }

    fn wrong(&self, line: usize, key: &str, reason: String) {
        self.log.borrow_mut().add(line, &self.full(key), reason);
    }

    fn expected(&self, entry: &Entry<'a, 'y>, expected: &str) {
        self.wrong(entry.line, entry.key, format!("expected {expected}, found {}", shown(entry.value)));
    }

    /// A section in this one; an empty one where it is not given.
    pub fn section(&self, key: &'static str) -> Section<'a, 'y> {
        match self.get(key) {
            Some(entry) if !is_null(entry.value) => Section::new(entry.value, &self.full(key), entry.line, self.log),
            _ => Section::empty(&self.full(key), self.line, self.log),
        }
    }

    /// `off`, `on`, or a section.
    pub fn switch(&self, key: &'static str) -> Switch<'a, 'y> {
        let Some(entry) = self.get(key) else { return Switch::NotGiven };
        match word(entry.value) {
            Some("off") => Switch::Off,
            Some("on") => Switch::On(Section::empty(&self.full(key), entry.line, self.log)),
            _ if matches!(entry.value.data, YamlData::Mapping(_)) => {
                Switch::On(Section::new(entry.value, &self.full(key), entry.line, self.log))
            }
            _ => {
                self.expected(entry, "off, on, or keys and values");
                Switch::NotGiven
            }
        }
    }

    /// A value of some form, or the default.
    fn value<T>(&self, key: &'static str, default: T, expected: &str, read: impl Fn(&Node<'y>) -> Option<T>) -> T {
        let Some(entry) = self.get(key) else { return default };
        read(entry.value).unwrap_or_else(|| {
            self.expected(entry, expected);
            default
        })
    }

    /// A number.
    pub fn number(&self, key: &'static str, default: f64, range: impl RangeBounds<f64>) -> f64 {
        let expected = format!("a number {}", described(&range));
        self.value(key, default, &expected, |node| number(node).filter(|it| it.is_finite() && range.contains(it)))
    }

    /// A whole number.
    pub fn count(&self, key: &'static str, default: u64, range: impl RangeBounds<u64>) -> u64 {
        let expected = format!("a whole number {}", described(&range));
        self.value(key, default, &expected, |node| count(node).filter(|it| range.contains(it)))
    }

    /// A whole number that memory is measured in.
    pub fn size(&self, key: &'static str, default: usize, range: impl RangeBounds<u64>) -> usize {
        usize::try_from(self.count(key, default as u64, range)).unwrap_or(usize::MAX)
    }

    /// A whole number, or a word for there being none.
    pub fn count_or(&self, key: &'static str, none: &str, range: impl RangeBounds<u64>) -> Option<u64> {
        let expected = format!("{none}, or a whole number {}", described(&range));
        self.value(key, None, &expected, |node| match word(node) {
            Some(word) => (word == none).then_some(None),
            None => count(node).filter(|it| range.contains(it)).map(Some),
        })
    }

    /// `true` or `false`.
    pub fn flag(&self, key: &'static str, default: bool) -> bool {
        self.value(key, default, "true or false", |node| match node.data {
            YamlData::Value(Scalar::Boolean(flag)) => Some(flag),
            _ => None,
        })
    }

    /// One of these words.
    pub fn choice<T: Copy>(&self, key: &'static str, default: T, words: &[(&str, T)]) -> T {
        let names: Vec<&str> = words.iter().map(|(name, _)| *name).collect();
        let expected = format!("one of {}", names.join(", "));
        self.value(key, default, &expected, |node| {
            let found = word(node)?;
            words.iter().find(|(name, _)| *name == found).map(|(_, value)| *value)
        })
    }

    /// A text of some form.
    pub fn text<T>(&self, key: &'static str, default: T, expected: &str, read: impl Fn(&str) -> Option<T>) -> T {
        self.value(key, default, expected, |node| read(word(node)?))
    }

    /// A path that must be there.
    pub fn required_path(&self, key: &'static str) -> PathBuf {
        self.require(key);
        self.value(key, PathBuf::new(), "a path", |node| path(node))
    }

    /// One path or several, at least one.
    pub fn required_paths(&self, key: &'static str) -> Vec<PathBuf> {
        self.require(key);
        self.value(key, Vec::new(), "a path, or a list of paths", |node| paths(node))
    }

    fn require(&self, key: &'static str) {
        if self.get(key).is_none() {
            self.wrong(self.line, key, "must be given".to_owned());
        }
    }

    /// A number, a text, or a list of either.
    pub fn value_of<T>(
        &self,
        key: &'static str,
        default: T,
        expected: &str,
        read: impl Fn(Value<'_>) -> Option<T>,
    ) -> T {
        self.value(key, default, expected, |node| match &node.data {
            YamlData::Value(Scalar::Integer(whole)) => read(Value::Whole(*whole)),
            YamlData::Value(Scalar::FloatingPoint(number)) => read(Value::Number(number.into_inner())),
            YamlData::Value(Scalar::String(text)) => read(Value::Word(text)),
            YamlData::Sequence(list) => {
                let words: Option<Vec<&str>> = list.iter().map(word).collect();
                let numbers: Option<Vec<f64>> = list.iter().map(number).collect();
                words
                    .and_then(|it| read(Value::Words(&it)))
                    .or_else(|| numbers.and_then(|it| read(Value::Numbers(&it))))
            }
            _ => None,
        })
    }

    /// As [`Log::contradiction`].
    pub fn contradiction(&self, keys: &[&str], reason: &str) {
        self.log.borrow_mut().contradiction(keys, reason);
    }

    /// Lists the keys that nobody has asked for.
    pub fn done(self) {
        let asked = self.asked.borrow();
        let mut log = self.log.borrow_mut();
        log.known.extend(asked.iter().map(|key| self.full(key)));
        let unknown = self.entries.iter().filter(|entry| !asked.contains(&entry.key));
        log.unknown.extend(unknown.map(|entry| (self.full(entry.key), entry.line)));
    }
}

/// A value of one of several forms.
pub(super) enum Value<'v> {
    Whole(i64),
    Number(f64),
    Word(&'v str),
    Words(&'v [&'v str]),
    Numbers(&'v [f64]),
}

fn is_null(node: &Node<'_>) -> bool {
    matches!(node.data, YamlData::Value(Scalar::Null))
}

fn word<'v>(node: &'v Node<'_>) -> Option<&'v str> {
    match &node.data {
        YamlData::Value(Scalar::String(text)) => Some(text),
        _ => None,
    }
}

fn number(node: &Node<'_>) -> Option<f64> {
    match &node.data {
        YamlData::Value(Scalar::Integer(whole)) => Some(*whole as f64),
        YamlData::Value(Scalar::FloatingPoint(number)) => Some(number.into_inner()),
        _ => None,
    }
}

/// A whole number; one written as `1e6` is whole too.
fn count(node: &Node<'_>) -> Option<u64> {
    match &node.data {
        YamlData::Value(Scalar::Integer(whole)) => u64::try_from(*whole).ok(),
        YamlData::Value(Scalar::FloatingPoint(number)) => {
            let number = number.into_inner();
            // Every whole number below 2^53 is one that an f64 can hold.
            let is_whole = number.fract() == 0.0 && (0.0..9.0e15).contains(&number);
            is_whole.then_some(number as u64)
        }
        _ => None,
    }
}

fn path(node: &Node<'_>) -> Option<PathBuf> {
    word(node).filter(|text| !text.is_empty()).map(PathBuf::from)
}

fn paths(node: &Node<'_>) -> Option<Vec<PathBuf>> {
    match &node.data {
        YamlData::Sequence(list) if !list.is_empty() => list.iter().map(path).collect(),
        _ => path(node).map(|path| vec![path]),
    }
}

/// What a value is, as a sentence may say it.
fn shown(node: &Node<'_>) -> String {
    match &node.data {
        YamlData::Value(Scalar::Null) => "nothing".to_owned(),
        YamlData::Value(Scalar::Boolean(flag)) => flag.to_string(),
        YamlData::Value(Scalar::Integer(whole)) => whole.to_string(),
        YamlData::Value(Scalar::FloatingPoint(number)) => number.to_string(),
        YamlData::Value(Scalar::String(text)) => format!("{:?}", text.chars().take(60).collect::<String>()),
        YamlData::Sequence(list) => match list.iter().find(|item| !matches!(item.data, YamlData::Value(_))) {
            None if !list.is_empty() => format!("[{}]", list.iter().take(8).map(shown).collect::<Vec<_>>().join(", ")),
            _ => "a list".to_owned(),
        },
        YamlData::Mapping(_) => "keys and values".to_owned(),
        _ => "a tag or an alias that stands for nothing".to_owned(),
    }
}

fn described<T: Display>(range: &impl RangeBounds<T>) -> String {
    let least = match range.start_bound() {
        Bound::Included(least) => Some(format!("from {least}")),
        Bound::Excluded(least) => Some(format!("above {least}")),
        Bound::Unbounded => None,
    };
    let most = match range.end_bound() {
        Bound::Included(most) => Some(format!("to {most}")),
        Bound::Excluded(most) => Some(format!("below {most}")),
        Bound::Unbounded => None,
    };
    match (least, most) {
        (Some(least), None) => least.replace("from", "of at least"),
        (least, most) => [least, most].into_iter().flatten().collect::<Vec<_>>().join(" "),
    }
}
