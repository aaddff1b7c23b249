//! What can go wrong while the device computes. Shapes are proven before, so what is left is the device, and numbers that
//! have broken down.

/// An error of the device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpsError {
    /// The driver was reset, the GPU went away, or a browser took it back. All that lay on the device is gone; a new one
    /// can be opened.
    #[error("the device was lost: {reason}")]
    Lost {
        /// What the driver says.
        reason: String,
    },
    /// There is no room for a buffer. What was computed since means nothing.
    #[error("the device ran out of memory while {doing}")]
    OutOfMemory {
        /// "loading the weights".
        doing: String,
    },
    /// The device calls its work invalid.
    #[error("the device refused to go on while {doing}: {reason}")]
    Refused {
        /// "loading the weights".
        doing: String,
        /// What it says.
        reason: String,
    },
    /// The results could not be read: a buffer was too large, or a launch failed.
    #[error("the device could not return its results: {0}")]
    Readback(String),
    /// A measurement gave no number.
    #[error("the device could not time its work: {0}")]
    Timing(String),
}

/// Why a row of logits gives no token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SampleError {
    /// NaN or +inf: the computation has broken down, and any token would be a guess.
    #[error("the logit of token id {token} is NaN or +inf")]
    NotFinite {
        /// The first of them.
        token: usize,
    },
    /// Every id has a logit of -inf, from the model or from the logit bias.
    #[error("every token is ruled out (logit -inf)")]
    NothingLeft,
}
