//! What goes wrong on a device outside of any call: it is lost, or it refuses memory or work.
//!
//! wgpu tells callbacks, and those of the runtime panic on its own thread. Here the first fault is kept together with
//! what was being done when it came, and whoever waits for results gets it instead of them. No device is opened here and
//! nothing is tried again.

use crate::error::OpsError;
use burn::tensor::Device;
use burn::tensor::wgpu::wgpu;
use std::borrow::Cow;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

/// What is being done while nobody says otherwise.
const COMPUTING: Cow<'static, str> = Cow::Borrowed("computing");

/// The first fault of a device; clones share it. The default belongs to a device that has none.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    device: Option<Device>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    doing: Cow<'static, str>,
    first: Option<OpsError>,
    /// Whoever waits for results.
    waker: Option<Waker>,
}

impl Default for State {
    fn default() -> Self {
        Self { doing: COMPUTING, first: None, waker: None }
    }
}

impl Faults {
    /// Listens to the device that the runtime computes on as `device`, in place of the runtime.
    pub(crate) fn listen(handle: &wgpu::Device, device: &Device) -> Self {
        let faults = Self { device: Some(device.clone()), ..Self::default() };
        let lost = faults.clone();
        handle.set_device_lost_callback(move |_, reason| lost.lost(reason));
        let refused = faults.clone();
        handle.on_uncaptured_error(Arc::new(move |error| refused.refused(error)));
        faults
    }

    /// Does `work`, and says `doing` in the faults that come of it: "loading the weights".
    pub fn during<T>(&self, doing: impl Into<Cow<'static, str>>, work: impl FnOnce() -> T) -> T {
        self.state().doing = doing.into();
        let done = work();
        if let Some(device) = &self.device {
            // The runtime allocates on a thread of its own; after a flush it has. What goes wrong in it is a fault too.
            drop(catch_unwind(AssertUnwindSafe(|| device.flush())));
        }
        self.state().doing = COMPUTING;
        done
    }

    /// Whether nothing has gone wrong so far.
    ///
    /// # Errors
    /// The first fault, each time.
    pub fn check(&self) -> Result<(), OpsError> {
        self.state().first.clone().map_or(Ok(()), Err)
    }

    /// Waits for results or for a fault, whichever comes first: a device that was lost may never answer, and what it
    /// answers after a fault means nothing.
    ///
    /// # Errors
    /// The first fault, else what `results` fails with.
    pub async fn settle<T>(&self, results: impl Future<Output = Result<T, OpsError>>) -> Result<T, OpsError> {
        let mut results = pin!(results);
        poll_fn(|context| {
            self.check()?;
            // wgpu and the runtime panic where they wait for a lost device or write to it.
            let polled = catch_unwind(AssertUnwindSafe(|| results.as_mut().poll(context)));
            match self.first_or_wake(context.waker()) {
                Some(fault) => Poll::Ready(Err(fault)),
                None => polled.unwrap_or_else(|panic| resume_unwind(panic)),
            }
        })
        .await
    }

    fn first_or_wake(&self, waker: &Waker) -> Option<OpsError> {
        let mut state = self.state();
        if state.first.is_none() {
            state.waker = Some(waker.clone());
        }
        state.first.clone()
    }

    /// Drivers that run out of memory in the middle of something lose the device with it.
    fn lost(&self, reason: String) {
        let out_of_memory = reason.to_lowercase().contains("out of memory");
        self.report(|doing| if out_of_memory { OpsError::OutOfMemory { doing } } else { lost(reason) });
    }

    fn refused(&self, error: wgpu::Error) {
        self.report(|doing| match error {
            wgpu::Error::OutOfMemory { .. } => OpsError::OutOfMemory { doing },
            other => OpsError::Refused { doing, reason: other.to_string() },
        });
    }

    /// Keeps the first fault. A loss outranks refusals: those before it may be its consequences.
    fn report(&self, fault: impl FnOnce(String) -> OpsError) {
        let mut state = self.state();
        let fault = fault(state.doing.to_string());
        let outranks = matches!((&state.first, &fault), (Some(OpsError::Refused { .. }), OpsError::Lost { .. }));
        if state.first.is_none() || outranks {
            state.first = Some(fault);
        }
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a panic's message is that of wgpu or the runtime meeting a lost device: no bug, and a fault all the same.
pub fn is_panic_of_loss(message: &str) -> bool {
    ["Error in Device::poll", "Failed to call `write_buffer_with`"].iter().any(|known| message.contains(known))
}

fn lost(reason: String) -> OpsError {
    let reason = if reason.is_empty() { "it was closed".to_owned() } else { reason };
    OpsError::Lost { reason }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{pending, ready};
    use std::task::Context;

    fn settled(faults: &Faults, results: impl Future<Output = Result<u32, OpsError>>) -> Result<u32, OpsError> {
        pollster::block_on(faults.settle(results))
    }

    fn out_of_memory() -> wgpu::Error {
        wgpu::Error::OutOfMemory { source: "".into() }
    }

    fn invalid() -> wgpu::Error {
        wgpu::Error::Validation { source: "".into(), description: "a buffer is gone".to_owned() }
    }

    #[test]
    fn without_a_fault_the_results_come_through() {
        assert_eq!(settled(&Faults::default(), ready(Ok(7))), Ok(7));
    }

    #[test]
    fn a_fault_names_what_was_being_done() {
        let faults = Faults::default();
        faults.during("loading the weights", || faults.refused(out_of_memory()));
        faults.during("something else", || faults.refused(out_of_memory()));
        let error = settled(&faults, ready(Ok(7))).unwrap_err();
        assert_eq!(error.to_string(), "the device ran out of memory while loading the weights");
    }

    #[test]
    fn a_loss_outranks_the_refusals_before_it() {
        let faults = Faults::default();
        faults.refused(invalid());
        faults.lost(String::new());
        faults.refused(invalid());
        assert!(matches!(faults.check(), Err(OpsError::Lost { .. })));
    }

    #[test]
    fn a_device_lost_for_want_of_memory_is_out_of_memory() {
        let faults = Faults::default();
        faults.lost("Out of memory".to_owned());
        assert!(matches!(faults.check(), Err(OpsError::OutOfMemory { .. })));
    }

    #[test]
    fn a_wait_that_would_never_end_ends_with_the_loss() {
        let faults = Faults::default();
        let mut wait = pin!(faults.settle(pending::<Result<u32, OpsError>>()));
        let mut context = Context::from_waker(Waker::noop());
        assert!(wait.as_mut().poll(&mut context).is_pending());
        faults.lost("driver reset".to_owned());
        assert!(matches!(wait.as_mut().poll(&mut context), Poll::Ready(Err(OpsError::Lost { .. }))));
    }

    #[test]
    fn a_panic_under_a_lost_device_is_the_loss() {
        let faults = Faults::default();
        let panics = async {
            faults.lost("driver reset".to_owned());
            panic!("Error in Device::poll: Parent device is lost")
        };
        assert!(matches!(settled(&faults, panics), Err(OpsError::Lost { .. })));
    }
}
