//! Exact counts of what a device was asked to do: the same on every machine, so tests assert them.
//!
//! They are kept per thread because one thread owns the device; subtract two readings to count what lies between.

use std::cell::Cell;
use std::ops::Sub;

/// Work handed to the device since the thread began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Kernel launches.
    pub launches: u64,
    /// Command buffers: full ones, those that an upload closes, and those that a readback waits for.
    pub submits: u64,
    /// Writes from host to device memory.
    pub uploads: u64,
    /// Waits for the device.
    pub readbacks: u64,
    /// Bytes brought back by those waits.
    pub readback_bytes: u64,
}

/// How many launches the runtime gathers before it submits them by itself: more than a decode step of 50 layers has.
///
/// No more than 512, because CubeCL keeps that many `Params`: one submission with more different ones would overwrite
/// some that it has yet to read.
pub(crate) const LAUNCHES_PER_SUBMIT: usize = 512;

thread_local! {
    static COUNTS: Cell<Counts> = const { Cell::new(Counts { launches: 0, submits: 0, uploads: 0, readbacks: 0, readback_bytes: 0 }) };
    static GATHERED: Cell<usize> = const { Cell::new(0) };
}

/// The counts of this thread so far.
pub fn read() -> Counts {
    COUNTS.get()
}

pub(crate) fn launched() {
    add(Counts { launches: 1, ..Counts::default() });
    GATHERED.set(GATHERED.get() + 1);
    if GATHERED.get() == LAUNCHES_PER_SUBMIT {
        submitted();
    }
}

/// The runtime closes what it has gathered before it writes to a buffer.
pub(crate) fn uploaded() {
    add(Counts { uploads: 1, ..Counts::default() });
    if GATHERED.get() > 0 {
        submitted();
    }
}

pub(crate) fn read_back(n_bytes: u64) {
    add(Counts { readbacks: 1, readback_bytes: n_bytes, ..Counts::default() });
    submitted();
}

fn submitted() {
    add(Counts { submits: 1, ..Counts::default() });
    GATHERED.set(0);
}

fn add(more: Counts) {
    let so_far = COUNTS.get();
    COUNTS.set(Counts {
        launches: so_far.launches + more.launches,
        submits: so_far.submits + more.submits,
        uploads: so_far.uploads + more.uploads,
        readbacks: so_far.readbacks + more.readbacks,
        readback_bytes: so_far.readback_bytes + more.readback_bytes,
    });
}

impl Sub for Counts {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            launches: self.launches - earlier.launches,
            submits: self.submits - earlier.submits,
            uploads: self.uploads - earlier.uploads,
            readbacks: self.readbacks - earlier.readbacks,
            readback_bytes: self.readback_bytes - earlier.readback_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_readback_submits_what_was_gathered() {
        let before = read();
        launched();
        launched();
        read_back(8);
        let counts = read() - before;
        assert_eq!(counts, Counts { launches: 2, submits: 1, uploads: 0, readbacks: 1, readback_bytes: 8 });
    }

    #[test]
    fn an_upload_with_nothing_gathered_submits_nothing() {
        read_back(0);
        let before = read();
        uploaded();
        assert_eq!((read() - before).submits, 0);
    }
}
