//! A subject with its inputs on a device, to be launched, timed and read.

use super::{Subject, launches};
use crate::device::OpenDevice;
use crate::error::OpsError;
use crate::faults::Faults;
use crate::pick::Picking;
use crate::readback::read_f32;
use burn::tensor::{Device, Int, Tensor};

/// A subject whose inputs lie on a device.
pub struct Ready {
    device: Device,
    launch: Launches,
}

/// Launches an operation whenever it is called.
pub(super) type Launches = Box<dyn FnMut() -> Output + Send>;

/// The first output of an operation.
pub(super) enum Output {
    Values(Tensor<1>),
    Picked(Tensor<1, Int>),
}

impl Subject {
    /// Brings its inputs to a device.
    ///
    /// Launches of a product take turns over as many copies of the weight as fill `cold_bytes`: in a model every weight
    /// is read once a token, so it comes from memory and not from a cache. 0 makes one copy.
    pub fn ready(&self, open: &OpenDevice, cold_bytes: u64) -> Ready {
        Ready { device: open.device.clone(), launch: launches::of(self, open, cold_bytes) }
    }
}

impl Ready {
    /// Seconds that `n_launches` in a row took: between the device's own timestamps, else by the host's clock.
    ///
    /// # Errors
    /// The device was lost, or its timestamps gave no number.
    pub async fn seconds(&mut self, n_launches: usize) -> Result<f64, OpsError> {
        let launch = &mut self.launch;
        let timed = self.device.profile(|| (0..n_launches).for_each(|_| drop(launch())));
        let (_, duration) = timed.map_err(|error| OpsError::Timing(error.to_string()))?;
        match duration.resolve().await {
            Some(ticks) => Ok(ticks.duration().as_secs_f64()),
            None => Err(OpsError::Timing("nothing was measured".to_owned())),
        }
    }

    /// Launches once and waits for the first output, row-major; of a choice, for the token.
    ///
    /// # Errors
    /// The device was lost, a launch failed, or memory ran out.
    pub async fn values(&mut self) -> Result<Vec<f32>, OpsError> {
        match (self.launch)() {
            Output::Values(tensor) => read_f32(tensor).await,
            Output::Picked(picked) => {
                let picked = Picking::begin(picked, &Faults::default()).wait().await?;
                Ok(vec![picked.map_or(f32::NAN, |picked| picked.token as f32)])
            }
        }
    }
}

impl Output {
    /// All values in one row; their order in memory stays.
    pub fn of<const R: usize>(tensor: Tensor<R>) -> Self {
        let n_values = tensor.dims().iter().product::<usize>();
        Self::Values(tensor.reshape([n_values]))
    }
}
