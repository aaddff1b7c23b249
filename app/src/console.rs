//! What every command knows about the person it talks to.

use crate::interrupt::Interrupt;

/// How much to say, and how to hear that it is enough.
pub(crate) struct Console {
    pub(crate) is_verbose: bool,
    pub(crate) interrupt: Interrupt,
}

impl Console {
    /// A line on stderr for those who asked for details.
    pub(crate) fn detail(&self, text: &str) {
        if self.is_verbose {
            eprintln!("{text}");
        }
    }
}
