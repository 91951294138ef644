//! One live line on stderr while a run lasts, and only where someone watches.

use crate::output::visible;
use std::io::{self, IsTerminal, Write};

/// The live line.
#[derive(Debug)]
pub(crate) struct Progress {
    total: usize,
    live: bool,
}

impl Progress {
    pub(crate) fn new(total: usize) -> Self {
        Self { total, live: io::stderr().is_terminal() }
    }

    /// Shows that `done` are done and what is next to each other.
    pub(crate) fn show(&self, done: usize, name: &str) {
        self.write(&format!("\r\x1b[K{done} of {} runs  {}", self.total, visible(name)));
    }

    /// Takes the line away, before anything else is written.
    pub(crate) fn clear(&self) {
        self.write("\r\x1b[K");
    }

    /// Progress that cannot be shown is not worth an error.
    fn write(&self, text: &str) {
        if self.live {
            let mut stderr = io::stderr().lock();
            let _shown = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}
