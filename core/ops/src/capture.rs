//! Launches recorded once and replayed: what a decode step costs the host.
//!
//! A recording keeps the buffers and bind groups of everything it launches, so replaying it allocates nothing and builds
//! nothing. Its kernels read what changes from a [`crate::Step`], which is written between replays. Devices that cannot
//! record (the CPU) simply run the work again.

use crate::counts;
use burn::backend::{Backend, BackendTypes, Dispatch};
use burn::tensor::{DType, Device, Int, Tensor};
use std::fmt;

/// Recorded launches and the buffer that the last of them writes.
pub struct Recording {
    device: Device,
    graph: <Dispatch as BackendTypes>::GraphPrimitive,
    output: Tensor<1, Int>,
    launches: u64,
}

/// Buffers that a step may hold at one time; an operation's results are dropped as soon as the next has read them.
const MOST_AT_ONCE: usize = 32;

/// Records what `work` launches. `None` where the device cannot; then nothing has changed.
///
/// `work` runs once before it is recorded, because nothing may be allocated while it is, and runs again with each replay:
/// it must give the same however often it runs, and may not read back or upload.
pub fn record(device: &Device, mut work: impl FnMut() -> Tensor<1, Int>) -> Option<Recording> {
    let dispatch = device.as_dispatch();
    Dispatch::graph_prepare(dispatch).ok()?;
    let room = room(device, counts::of_rehearsal(&mut work).largest);
    // A device that was prepared is closed again even where recording never began.
    let begun = Dispatch::graph_start_capture(dispatch);
    // Beginning waited for the runtime, so by now all of it was there at once.
    drop(room);
    let recorded = counts::of_rehearsal(&mut work);
    let graph = Dispatch::graph_stop_capture(dispatch).ok();
    begun.ok()?;
    Some(Recording { device: device.clone(), graph: graph?, output: recorded.output, launches: recorded.launches })
}

/// Buffers for any order in which those of at most `largest` words are asked for and dropped.
///
/// The pages of the rehearsal alone may be too few: the runtime serves requests on its own thread, so how many buffers
/// were already dropped when the next was asked for is a matter of timing.
fn room(device: &Device, largest: usize) -> Vec<Tensor<1, Int>> {
    let buffer = || Tensor::empty([largest.max(1)], (device, DType::U32));
    std::iter::repeat_with(buffer).take(MOST_AT_ONCE).collect()
}

impl Recording {
    /// Runs the launches again; reading the result fails where that failed.
    #[expect(unsafe_code, reason = "the runtime cannot see which buffers a replay touches")]
    pub fn replay(&self) -> Tensor<1, Int> {
        // SAFETY: the graph guards every page that it touches against reuse for as long as it lives, and one thread owns
        // the device, so uploads and readbacks are ordered with the replay on the one stream that this thread has.
        let replayed = unsafe { Dispatch::graph_replay(self.device.as_dispatch(), &self.graph) };
        if replayed.is_ok() {
            counts::replayed(self.launches);
        }
        self.output.clone()
    }
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording").field("launches", &self.launches).finish_non_exhaustive()
    }
}
