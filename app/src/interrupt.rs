//! Ctrl-C as a flag.
//!
//! While a command watches for it, the first Ctrl-C only raises the flag, and the command stops at its next safe point. A second one, or one that
//! nobody watches for, ends the process at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The exit code that shells give to a program ended by Ctrl-C.
pub(crate) const EXIT_CODE: u8 = 130;

/// Whether the user has asked to stop.
#[derive(Clone, Default)]
pub(crate) struct Interrupt {
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    raised: AtomicBool,
    n_watchers: AtomicUsize,
}

/// The error of what stopped because of it.
#[derive(Debug, thiserror::Error)]
#[error("cancelled")]
pub(crate) struct Cancelled;

/// While this lives, Ctrl-C raises the flag instead of ending the process.
pub(crate) struct Watching {
    state: Arc<State>,
}

impl Interrupt {
    /// Catches Ctrl-C (and a polite request to terminate) from now on.
    ///
    /// # Errors
    /// When this process has such a handler already.
    pub(crate) fn install() -> anyhow::Result<Self> {
        let interrupt = Self::default();
        let state = Arc::clone(&interrupt.state);
        ctrlc::set_handler(move || {
            let is_watched = state.n_watchers.load(Ordering::SeqCst) > 0;
            if !is_watched || state.raised.swap(true, Ordering::SeqCst) {
                eprintln!();
                std::process::exit(i32::from(EXIT_CODE));
            }
        })?;
        Ok(interrupt)
    }

    /// Starts to watch, with the flag down.
    pub(crate) fn watch(&self) -> Watching {
        self.state.raised.store(false, Ordering::SeqCst);
        self.state.n_watchers.fetch_add(1, Ordering::SeqCst);
        Watching { state: Arc::clone(&self.state) }
    }
}

impl Watching {
    /// Whether Ctrl-C came since the watch began.
    pub(crate) fn is_raised(&self) -> bool {
        self.state.raised.load(Ordering::SeqCst)
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.state.n_watchers.fetch_sub(1, Ordering::SeqCst);
    }
}
