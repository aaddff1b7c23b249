//! When a decode step is recorded: once the same one is about to run for the second time.
//!
//! Recording costs about as much as a step, so the first token of a kind is computed as usual.

use samara_ops::{Choice, Recording};

/// What a cache knows of the steps that extend it by one token.
#[derive(Debug, Default)]
#[expect(clippy::large_enum_variant, reason = "a cache has one, so a box would save nothing")]
pub(crate) enum Replay {
    /// No step yet.
    #[default]
    Nothing,
    /// The last step chose like this.
    Seen(Choice),
    /// A step that chooses like this, ready to run again.
    Recorded(Choice, Recording),
    /// This device cannot record.
    Never,
}

impl Replay {
    /// Whether a step that chooses like `choice` should be recorded now.
    pub fn is_due(&self, choice: &Choice) -> bool {
        matches!(self, Self::Seen(seen) if seen.is_like(choice))
    }

    /// Keeps what recording a step gave.
    pub fn keep(&mut self, choice: &Choice, recording: Option<Recording>) {
        *self = recording.map_or(Self::Never, |recording| Self::Recorded(choice.clone(), recording));
    }

    /// Notes that a step chooses like `choice`.
    pub fn note(&mut self, choice: &Choice) {
        let is_other = match self {
            Self::Nothing => true,
            Self::Seen(seen) | Self::Recorded(seen, _) => !seen.is_like(choice),
            Self::Never => false,
        };
        if is_other {
            *self = Self::Seen(choice.clone());
        }
    }

    /// The recorded step that chooses like `choice`.
    pub fn find(&self, choice: &Choice) -> Option<&Recording> {
        match self {
            Self::Recorded(seen, recording) if seen.is_like(choice) => Some(recording),
            _ => None,
        }
    }
}
