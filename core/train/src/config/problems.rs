//! What is wrong with a run's YAML, collected while it is read.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::Problem;

/// What is wrong so far, where each key stands, and which keys there could be.
#[derive(Debug, Default)]
pub(super) struct Log {
    problems: Vec<Problem>,
    pub lines: BTreeMap<String, usize>,
    pub known: BTreeSet<String>,
    /// Keys that there cannot be, with their lines.
    pub unknown: BTreeMap<String, usize>,
}

impl Log {
    pub fn add(&mut self, line: usize, key: &str, reason: impl Into<String>) {
        self.problems.push(Problem { line, key: key.to_owned(), reason: reason.into() });
    }

    /// Whether this key, with its sections, is in the file.
    pub fn is_given(&self, key: &str) -> bool {
        self.lines.contains_key(key)
    }

    /// Adds what is wrong with the first of these keys by comparison with the others, unless one of them is wrong alone.
    /// A key that is not in the file is blamed on the section that it would be in.
    pub fn contradiction(&mut self, keys: &[&str], reason: impl Into<String>) {
        let Some(key) = keys.first() else { return };
        if self.problems.iter().any(|problem| keys.contains(&problem.key.as_str())) {
            return;
        }
        let places = std::iter::successors(Some(*key), |place| place.rsplit_once('.').map(|(section, _)| section));
        let line = places.filter_map(|place| self.lines.get(place)).next().copied().unwrap_or(1);
        self.add(line, key, reason);
    }

    /// What is wrong, in the order of lines.
    pub fn into_problems(mut self) -> Vec<Problem> {
        for (key, line) in std::mem::take(&mut self.unknown) {
            let reason = match self.meant(&key) {
                Some(meant) => format!("unknown key; did you mean {meant}?"),
                None => format!("unknown key; expected one of {}", self.siblings(&key).collect::<Vec<_>>().join(", ")),
            };
            self.add(line, &key, reason);
        }
        self.problems.sort();
        self.problems
    }

    /// The key that was probably meant: one alike in the same section, or else the same one in another.
    fn meant(&self, key: &str) -> Option<String> {
        let alike = self.siblings(key).map(|sibling| (strsim::jaro_winkler(last(key), sibling), sibling));
        let alike = alike.filter(|(likeness, _)| *likeness > 0.8).max_by(|one, other| one.0.total_cmp(&other.0));
        let elsewhere = || self.known.iter().find(|known| last(known) == last(key)).cloned();
        alike.map(|(_, sibling)| sibling.to_owned()).or_else(elsewhere)
    }

    /// The keys that there could be in the section of this one.
    fn siblings<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.known.iter().filter(move |known| section(known) == section(key)).map(|known| last(known))
    }
}

fn section(key: &str) -> &str {
    key.rsplit_once('.').map_or("", |(section, _)| section)
}

fn last(key: &str) -> &str {
    key.rsplit_once('.').map_or(key, |(_, last)| last)
}
