//! How far a copy of the store is, on a terminal.

use gleaner_store::CopyStep;
use std::cell::Cell;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// How often the line is drawn.
const DRAW_EVERY: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(crate) struct CopyProgress {
    live: bool,
    drawn: Cell<Option<Instant>>,
}

impl CopyProgress {
    pub(crate) fn new(quiet: bool) -> Self {
        Self { live: !quiet && io::stderr().is_terminal(), drawn: Cell::new(None) }
    }

    pub(crate) fn show(&self, step: CopyStep, done: u64, total: u64) {
        if !self.live || self.drawn.get().is_some_and(|drawn| drawn.elapsed() < DRAW_EVERY) {
            return;
        }
        self.drawn.set(Some(Instant::now()));
        let (verb, things) = match step {
            CopyStep::Copying => ("copying", "pages"),
            CopyStep::Checking => ("checking", "versions"),
        };
        self.write(&format!("\r\x1b[K{verb}: {done} of {total} {things}"));
    }

    pub(crate) fn clear(&self) {
        self.write("\r\x1b[K");
    }

    fn write(&self, text: &str) {
        if self.live {
            // That nobody reads stderr is no reason to stop.
            let mut stderr = io::stderr().lock();
            let _shown = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
        }
    }
}
