//! Stop strings, found in the text and not in the ids, so that they may span tokens.
//!
//! Text that may be the start of a stop string is held back, so nothing that belongs to one is ever shown.

use crate::hold_back::held_bytes;

/// Watches a text for stop strings. The result does not depend on how the text is cut into pushes.
#[derive(Debug, Clone)]
pub struct StopStrings {
    stops: Vec<String>,
    held: String,
    hit: bool,
}

impl StopStrings {
    /// A watch for these strings; empty ones are ignored.
    pub fn new<S: Into<String>>(stops: impl IntoIterator<Item = S>) -> Self {
        let stops = stops.into_iter().map(Into::into).filter(|stop| !stop.is_empty()).collect();
        Self { stops, held: String::new(), hit: false }
    }

    /// The text that may be shown now, and whether a stop string has been completed.
    ///
    /// Text ends where the stop string begins. The string that is complete first wins; of several complete at the same place, the longest.
    /// After a hit nothing more is shown.
    pub fn push(&mut self, text: &str) -> (String, bool) {
        if self.hit {
            return (String::new(), true);
        }
        self.held.push_str(text);
        let shown = match self.first_stop() {
            Some(start) => {
                self.hit = true;
                start
            }
            None => self.held.len() - held_bytes(&self.held, self.stops.iter().map(String::as_str)),
        };
        let tail = self.held.split_off(shown);
        let show = std::mem::replace(&mut self.held, tail);
        (show, self.hit)
    }

    /// What was held back when generation ends without a stop string.
    pub fn finish(self) -> String {
        if self.hit { String::new() } else { self.held }
    }

    fn first_stop(&self) -> Option<usize> {
        let found = |stop: &String| self.held.find(stop.as_str()).map(|start| (start + stop.len(), start));
        self.stops.iter().filter_map(found).min().map(|(_, start)| start)
    }
}
