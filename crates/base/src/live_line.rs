//! One line on stderr that is drawn again and again, and only where somebody watches.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Back to the start of the line, and nothing on it.
const CLEAR: &str = "\r\x1b[K";
/// How often a line is drawn at most; a terminal over a network is slow.
const DRAW_EVERY: Duration = Duration::from_millis(100);
/// The width of a terminal that does not say how wide it is.
const WIDTH_DEFAULT: usize = 80;

/// The line. Taken away when it is dropped.
#[derive(Debug)]
pub struct LiveLine {
    is_shown: bool,
    drawn: Mutex<Option<Instant>>,
}

impl LiveLine {
    /// A line that is shown if `wanted` and stderr is a terminal.
    #[must_use]
    pub fn new(wanted: bool) -> Self {
        Self { is_shown: wanted && io::stderr().is_terminal(), drawn: Mutex::new(None) }
    }

    /// Whether anything is drawn.
    #[must_use]
    pub const fn is_shown(&self) -> bool {
        self.is_shown
    }

    /// Draws what `text` gives, cut to the width of the terminal, unless the line was drawn less than 0.1 s ago.
    pub fn show(&self, text: impl FnOnce() -> String) {
        let mut drawn = self.drawn();
        if !self.is_shown || drawn.is_some_and(|drawn| drawn.elapsed() < DRAW_EVERY) {
            return;
        }
        *drawn = Some(Instant::now());
        write(&format!("{CLEAR}{}", cut(&text(), width())));
    }

    /// Takes the line away, before anything else is written. The next one is drawn at once.
    pub fn clear(&self) {
        if self.drawn().take().is_some() {
            write(CLEAR);
        }
    }

    fn drawn(&self) -> MutexGuard<'_, Option<Instant>> {
        self.drawn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for LiveLine {
    fn drop(&mut self) {
        self.clear();
    }
}

/// That nobody reads stderr is no reason to stop.
fn write(text: &str) {
    let mut stderr = io::stderr().lock();
    let _shown = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// A line that wraps cannot be taken away.
fn cut(text: &str, width: usize) -> String {
    text.chars().take(width.saturating_sub(1)).collect()
}

#[cfg(unix)]
fn width() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stderr());
    size.map_or(WIDTH_DEFAULT, |size| usize::from(size.ws_col)).max(WIDTH_DEFAULT / 4)
}

#[cfg(not(unix))]
fn width() -> usize {
    WIDTH_DEFAULT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_never_reaches_the_edge_of_the_terminal() {
        assert_eq!(cut("äöüß", 4), "äöü");
        assert_eq!(cut("ab", 4), "ab");
        assert_eq!(cut("ab", 0), "");
    }

    #[test]
    fn nothing_is_drawn_that_nobody_wants() {
        let line = LiveLine::new(false);
        line.show(|| unreachable!("nobody looks"));
        line.clear();
        assert!(!line.is_shown());
    }
}
