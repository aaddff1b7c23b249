//! Exact counts of what a device was asked to do: the same on every machine, so tests assert them.
//!
//! They are kept per thread because one thread owns the device; subtract two readings to count what lies between.

use samara_shaders::Kernel;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ops::{Add, Sub};

/// Work handed to the device since the thread began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Kernel launches, replayed ones included.
    pub launches: u64,
    /// Bind groups built: one a launch, and none a replay.
    pub bind_groups: u64,
    /// Buffers asked for, to hold results.
    pub allocations: u64,
    /// Command buffers: full ones, those that an upload closes, and those that a readback waits for.
    pub submits: u64,
    /// Writes from host to device memory.
    pub uploads: u64,
    /// Waits for the device.
    pub readbacks: u64,
    /// Bytes brought back by those waits.
    pub readback_bytes: u64,
    /// Readbacks asked for while an earlier one was still on its way: the device had work before its results were seen.
    pub ahead: u64,
}

/// How many launches the runtime gathers before it submits them by itself: more than a decode step of 50 layers has.
///
/// No more than 512, because CubeCL keeps that many `Params`: one submission with more different ones would overwrite
/// some that it has yet to read.
pub(crate) const LAUNCHES_PER_SUBMIT: usize = 512;

/// How much a submission may hold by [`crate::Operation::flops`], but for a single launch that has more. Windows resets a device
/// that is busy with one submission for two seconds; this is about one on an adapter that manages 50 GFLOP/s.
const FLOPS_PER_SUBMIT: u64 = 50_000_000_000;

thread_local! {
    static FLOPS: Cell<u64> = const { Cell::new(0) };
    static IS_REHEARSAL: Cell<bool> = const { Cell::new(false) };
    static COUNTS: Cell<Counts> = const { Cell::new(Counts::NONE) };
    static GATHERED: Cell<usize> = const { Cell::new(0) };
    static ON_THEIR_WAY: Cell<usize> = const { Cell::new(0) };
    static LARGEST: Cell<usize> = const { Cell::new(0) };
    static PIPELINES: RefCell<BTreeSet<(&'static str, &'static str)>> = const { RefCell::new(BTreeSet::new()) };
}

/// The counts of this thread so far.
pub fn read() -> Counts {
    COUNTS.get()
}

/// How many different kernel variants this thread has launched; each is one pipeline, compiled at its first launch.
pub fn pipelines() -> usize {
    PIPELINES.with_borrow(BTreeSet::len)
}

/// Whether what was gathered is to be submitted before a launch of so many `flops`; never while launches are recorded.
pub(crate) fn is_full_for(flops: u64) -> bool {
    let is_full = GATHERED.get() > 0 && FLOPS.get().saturating_add(flops) > FLOPS_PER_SUBMIT;
    is_full && !IS_REHEARSAL.get()
}

/// What was gathered is submitted by hand.
pub(crate) fn flushed() {
    submitted();
}

pub(crate) fn launched(kernel: &Kernel, flops: u64) {
    FLOPS.set(FLOPS.get().saturating_add(flops));
    PIPELINES.with_borrow_mut(|pipelines| pipelines.insert((kernel.name, kernel.variant)));
    add(Counts { launches: 1, bind_groups: 1, ..Counts::NONE });
    gathered(1);
}

pub(crate) fn replayed(launches: u64) {
    add(Counts { launches, ..Counts::NONE });
    gathered(launches as usize);
}

pub(crate) fn allocated(n_words: usize) {
    add(Counts { allocations: 1, ..Counts::NONE });
    LARGEST.set(LARGEST.get().max(n_words));
}

/// What work was found to do while none of it counted.
pub(crate) struct Rehearsed<T> {
    pub output: T,
    pub launches: u64,
    /// Words of the largest buffer it asked for.
    pub largest: usize,
}

/// Runs `work` and counts none of it: it is recorded, or runs once so that it can be.
pub(crate) fn of_rehearsal<T>(work: &mut impl FnMut() -> T) -> Rehearsed<T> {
    let (before, gathered, flops) = (COUNTS.get(), GATHERED.get(), FLOPS.get());
    LARGEST.set(0);
    IS_REHEARSAL.set(true);
    let output = work();
    IS_REHEARSAL.set(false);
    let launches = COUNTS.get().launches - before.launches;
    COUNTS.set(before);
    GATHERED.set(gathered);
    FLOPS.set(flops);
    Rehearsed { output, launches, largest: LARGEST.get() }
}

fn gathered(launches: usize) {
    let all = GATHERED.get() + launches;
    add(Counts { submits: (all / LAUNCHES_PER_SUBMIT) as u64, ..Counts::NONE });
    GATHERED.set(all % LAUNCHES_PER_SUBMIT);
    if all >= LAUNCHES_PER_SUBMIT {
        FLOPS.set(0);
    }
}

/// The runtime closes what it has gathered before it writes to a buffer.
pub(crate) fn uploaded() {
    add(Counts { uploads: 1, ..Counts::NONE });
    if GATHERED.get() > 0 {
        submitted();
    }
}

/// A readback that is asked for and waited for at once.
pub(crate) fn read_back(n_bytes: u64) {
    reading().arrived(n_bytes);
}

/// A readback that is asked for: its copy closes what was gathered.
pub(crate) fn reading() -> OnItsWay {
    submitted();
    let n_earlier = ON_THEIR_WAY.replace(ON_THEIR_WAY.get() + 1);
    add(Counts { ahead: u64::from(n_earlier > 0), ..Counts::NONE });
    OnItsWay
}

/// A readback that is on its way until this is dropped.
pub(crate) struct OnItsWay;

impl OnItsWay {
    /// Counts what was waited for.
    pub fn arrived(&self, n_bytes: u64) {
        add(Counts { readbacks: 1, readback_bytes: n_bytes, ..Counts::NONE });
    }
}

impl Drop for OnItsWay {
    fn drop(&mut self) {
        ON_THEIR_WAY.set(ON_THEIR_WAY.get().saturating_sub(1));
    }
}

fn submitted() {
    add(Counts { submits: 1, ..Counts::NONE });
    GATHERED.set(0);
    FLOPS.set(0);
}

fn add(more: Counts) {
    COUNTS.set(COUNTS.get() + more);
}

impl Counts {
    const NONE: Self = Self {
        launches: 0,
        bind_groups: 0,
        allocations: 0,
        submits: 0,
        uploads: 0,
        readbacks: 0,
        readback_bytes: 0,
        ahead: 0,
    };
}

impl Add for Counts {
    type Output = Self;

    fn add(self, more: Self) -> Self {
        Self {
            launches: self.launches + more.launches,
            bind_groups: self.bind_groups + more.bind_groups,
            allocations: self.allocations + more.allocations,
            submits: self.submits + more.submits,
            uploads: self.uploads + more.uploads,
            readbacks: self.readbacks + more.readbacks,
            readback_bytes: self.readback_bytes + more.readback_bytes,
            ahead: self.ahead + more.ahead,
        }
    }
}

/// Never below 0: a caller may have moved to another thread, whose counts are others.
impl Sub for Counts {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            launches: self.launches.saturating_sub(earlier.launches),
            bind_groups: self.bind_groups.saturating_sub(earlier.bind_groups),
            allocations: self.allocations.saturating_sub(earlier.allocations),
            submits: self.submits.saturating_sub(earlier.submits),
            uploads: self.uploads.saturating_sub(earlier.uploads),
            readbacks: self.readbacks.saturating_sub(earlier.readbacks),
            readback_bytes: self.readback_bytes.saturating_sub(earlier.readback_bytes),
            ahead: self.ahead.saturating_sub(earlier.ahead),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_readback_submits_what_was_gathered() {
        let before = read();
        launched(&samara_shaders::GLU_SILU, 0);
        launched(&samara_shaders::GLU_SILU, 0);
        read_back(8);
        let counts = read() - before;
        let expected =
            Counts { launches: 2, bind_groups: 2, submits: 1, readbacks: 1, readback_bytes: 8, ..Counts::NONE };
        assert_eq!(counts, expected);
    }

    #[test]
    fn a_submission_is_closed_before_it_holds_too_much() {
        read_back(0);
        let launch = |flops| launched(&samara_shaders::GLU_SILU, flops);
        assert!(!is_full_for(u64::MAX), "nothing to submit");
        launch(FLOPS_PER_SUBMIT - 2);
        assert!(!is_full_for(2) && is_full_for(3) && is_full_for(u64::MAX));
        assert!(!of_rehearsal(&mut || is_full_for(3)).output && is_full_for(3));
        flushed();
        assert!(!is_full_for(u64::MAX));
        launch(u64::MAX);
        launch(1);
        assert!(is_full_for(0));
        read_back(0);
        assert!(!is_full_for(u64::MAX));
    }

    #[test]
    fn an_upload_with_nothing_gathered_submits_nothing() {
        read_back(0);
        let before = read();
        uploaded();
        assert_eq!((read() - before).submits, 0);
    }
}
