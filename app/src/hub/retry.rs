//! When to try again, and how long to wait before.
//!
//! Waiting is a function the caller gives, so that tests count the waits and never sleep.

use std::time::Duration;

use super::HubError;

/// Waits for a while; `false` means that the user has cancelled meanwhile.
pub type Pause<'a> = dyn FnMut(Duration) -> bool + 'a;

/// Exponential waiting: 1, 2, 4, 8 ... seconds, or what the server asks for, at most a minute.
#[derive(Debug, Clone)]
pub struct Backoff {
    n_failures: u32,
    max_failures: u32,
}

impl Backoff {
    /// Gives up at the failure number `max_failures`.
    pub fn new(max_failures: u32) -> Self {
        Self { n_failures: 0, max_failures }
    }

    /// Forgets earlier failures, because there was progress.
    pub fn reset(&mut self) {
        self.n_failures = 0;
    }

    /// Waits, when `error` may pass.
    ///
    /// # Errors
    /// `error` itself when it will not pass or came too often, `Cancelled` when the wait was cut short.
    pub fn wait_after(&mut self, error: HubError, pause: &mut Pause) -> Result<(), HubError> {
        self.n_failures += 1;
        if !error.is_transient() || self.n_failures >= self.max_failures {
            return Err(error);
        }
        let delay_s = error.retry_after_s().unwrap_or(1 << (self.n_failures - 1)).min(60);
        if pause(Duration::from_secs(delay_s)) { Ok(()) } else { Err(HubError::Cancelled) }
    }
}

/// Calls `attempt` until it succeeds or `backoff` gives up.
pub(super) fn with_retry<T>(
    mut backoff: Backoff,
    pause: &mut Pause,
    mut attempt: impl FnMut() -> Result<T, HubError>,
) -> Result<T, HubError> {
    loop {
        match attempt() {
            Ok(value) => return Ok(value),
            Err(error) => backoff.wait_after(error, pause)?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unavailable(retry_after_s: Option<u64>) -> HubError {
        HubError::Status { url: "u".to_owned(), status: 503, retry_after_s }
    }

    #[test]
    fn waits_double_and_then_give_up() {
        let mut waits_s = Vec::new();
        let mut backoff = Backoff::new(4);
        let mut pause = |delay: Duration| {
            waits_s.push(delay.as_secs());
            true
        };
        while backoff.wait_after(unavailable(None), &mut pause).is_ok() {}
        assert_eq!(waits_s, [1, 2, 4]);
    }

    #[test]
    fn the_server_may_say_how_long() {
        let mut waits_s = Vec::new();
        let mut pause = |delay: Duration| {
            waits_s.push(delay.as_secs());
            true
        };
        let mut backoff = Backoff::new(3);
        backoff.wait_after(unavailable(Some(7)), &mut pause).unwrap();
        backoff.wait_after(unavailable(Some(9999)), &mut pause).unwrap();
        assert_eq!(waits_s, [7, 60]);
    }

    #[test]
    fn a_missing_file_is_not_asked_for_twice() {
        let error = HubError::NotFound { url: "u".to_owned() };
        assert!(Backoff::new(9).wait_after(error, &mut |_| panic!("waited")).is_err());
    }
}
