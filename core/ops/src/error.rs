//! What can go wrong while the device computes. Shapes are proven before, so only the device is left.

/// An error of the device.
#[derive(Debug, thiserror::Error)]
pub enum OpsError {
    /// The results could not be read: the device was lost, a launch failed or memory ran out.
    #[error("the device could not return its results: {0}")]
    Readback(String),
}
