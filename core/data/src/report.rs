//! What fell out of the data, how often, where and why.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

/// Of each kind of bad row, so many places are kept.
const N_PLACES: usize = 5;

/// Why a row is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BadRow {
    /// A line with nothing or only white space on it. Never refused: it is no row.
    BlankLine,
    /// More bytes on a line than the limit.
    LineTooLong,
    InvalidUtf8,
    InvalidJson,
    /// JSON, but not an object.
    NotAnObject,
    /// None of `text`, `prompt` with `completion`, and `messages`.
    MissingKey,
    /// More than one of them.
    AmbiguousKeys,
    /// A value is of another type than its key wants.
    WrongType,
    /// A value is `null`.
    Null,
    /// A text or a list without anything in it.
    Empty,
    /// A text of nothing but white space.
    WhiteSpace,
    /// Nothing in it is to be predicted, such as a conversation without an answer.
    NothingToTrain,
    /// The chat template refuses the messages, or there is no template.
    Template,
    /// What the template writes for the start of a conversation is not how it starts the whole, so turns cannot be found.
    UnstableTemplate,
    /// The tokenizer refuses the text.
    Tokenizer,
    /// A token id that the model does not have.
    TokenId,
    /// Truncation cut off all that was to be predicted. Never refused: it is a matter of length.
    TruncatedAway,
}

impl BadRow {
    /// What it is, as a sentence may say it.
    pub fn description(self) -> &'static str {
        match self {
            Self::BlankLine => "blank line",
            Self::LineTooLong => "line too long",
            Self::InvalidUtf8 => "invalid UTF-8",
            Self::InvalidJson => "invalid JSON",
            Self::NotAnObject => "not a JSON object",
            Self::MissingKey => "missing key",
            Self::AmbiguousKeys => "ambiguous keys",
            Self::WrongType => "wrong type",
            Self::Null => "null",
            Self::Empty => "empty",
            Self::WhiteSpace => "only white space",
            Self::NothingToTrain => "nothing to train on",
            Self::Template => "chat template",
            Self::UnstableTemplate => "unstable chat template",
            Self::Tokenizer => "tokenizer",
            Self::TokenId => "token id out of range",
            Self::TruncatedAway => "truncated away",
        }
    }

    pub(crate) fn may_be_refused(self) -> bool {
        !matches!(self, Self::BlankLine | Self::TruncatedAway)
    }
}

impl fmt::Display for BadRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.description())
    }
}

/// Where a bad row stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    pub path: String,
    /// Counted from 1.
    pub line: u64,
    pub reason: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.path, self.line)
    }
}

/// The bad rows of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Fallen {
    pub n_rows: u64,
    /// The first few of them.
    pub first: Vec<Place>,
}

/// What became of the lines that were read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Lines of all files, blank ones too.
    pub n_lines: u64,
    /// Rows that are used.
    pub n_documents: u64,
    /// Tokens of these, after truncation.
    pub n_tokens: u64,
    /// Documents that are longer than `max_length` and so lose their end.
    pub n_truncated: u64,
    /// The longest that a document may be, in tokens.
    pub max_length: u64,
    /// What fell out, by reason.
    pub fallen: BTreeMap<BadRow, Fallen>,
}

impl Report {
    /// Rows that fell out for this reason.
    pub fn n_fallen(&self, kind: BadRow) -> u64 {
        self.fallen.get(&kind).map_or(0, |fallen| fallen.n_rows)
    }

    /// Rows that fell out, by reason, as a sentence may say it: `2 null, 1 invalid JSON (first at a.jsonl:3: ...)`.
    pub fn reasons(&self) -> String {
        if self.fallen.is_empty() {
            return "there was no line".to_owned();
        }
        let reason = |(kind, fallen): (&BadRow, &Fallen)| match fallen.first.first() {
            Some(place) => format!("{} {kind} (first at {place}: {})", fallen.n_rows, place.reason),
            None => format!("{} {kind}", fallen.n_rows),
        };
        self.fallen.iter().map(reason).collect::<Vec<_>>().join(", ")
    }

    pub(crate) fn add(&mut self, kind: BadRow, place: Place) {
        let fallen = self.fallen.entry(kind).or_default();
        fallen.n_rows += 1;
        if fallen.first.len() < N_PLACES {
            fallen.first.push(place);
        }
    }
}
