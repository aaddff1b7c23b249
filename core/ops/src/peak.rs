//! How much device memory a piece of work holds at its peak, as the runtime counts its buffers.

use crate::ceilings::ceiling_copy;
use crate::weight::vector;
use burn::tensor::Device;
use cubecl::MemoryScope;
use cubecl::client::Client;
use std::cell::Cell;

thread_local! {
    /// The most bytes seen, while somebody watches.
    static PEAK: Cell<Option<u64>> = const { Cell::new(None) };
    /// What was held when somebody last looked.
    static HELD: Cell<u64> = const { Cell::new(0) };
}

/// What `work` gives, and the most bytes of device memory that were in use at one of its launches: everything of this
/// thread that is on the device counts, weights too. 0 on the CPU, which launches nothing.
///
/// Every launch waits for the runtime, so work that is watched is slow.
pub fn peak_bytes<T>(device: &Device, work: impl FnOnce() -> T) -> (T, u64) {
    PEAK.set(Some(0));
    let output = work();
    // What the runtime's own operations left is seen by one more launch.
    drop(ceiling_copy(&vector(&[0.0; 4], device)));
    (output, PEAK.take().unwrap_or_default())
}

/// Bytes of device memory that this thread's buffers hold, those kept for later among them. 0 on the CPU.
pub fn held_bytes(device: &Device) -> u64 {
    HELD.set(0);
    peak_bytes(device, || ());
    HELD.get()
}

/// Looks at the memory, if somebody watches.
pub(crate) fn look(client: &Client) {
    if let Some(peak) = PEAK.get() {
        let usage = client.memory_report(MemoryScope::CurrentStream).usage();
        PEAK.set(Some(peak.max(usage.bytes_in_use)));
        HELD.set(usage.bytes_reserved);
    }
}
