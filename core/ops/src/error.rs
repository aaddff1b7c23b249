//! What can go wrong while the device computes. Shapes are proven before, so what is left is the device, and numbers that
//! have broken down.

/// An error of the device.
#[derive(Debug, thiserror::Error)]
pub enum OpsError {
    /// The results could not be read: the device was lost, a launch failed or memory ran out.
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
