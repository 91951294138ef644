//! A status line on stderr that is redrawn, only on a terminal.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Moves to the start of the line and clears it.
const CLEAR: &str = "\r\x1b[K";
/// Shortest time between two redraws; a terminal over a network is slow.
const DRAW_EVERY: Duration = Duration::from_millis(100);
/// The width if the terminal does not report one.
const WIDTH_DEFAULT: usize = 80;

/// The line. Dropping it clears it.
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

    /// Draws the result of `text`, cut to the terminal's width, unless the line was drawn less than 0.1 s ago.
    pub fn show(&self, text: impl FnOnce() -> String) {
        let mut drawn = self.drawn();
        if !self.is_shown || drawn.is_some_and(|drawn| drawn.elapsed() < DRAW_EVERY) {
            return;
        }
        *drawn = Some(Instant::now());
        write(&format!("{CLEAR}{}", cut(&text(), width())));
    }

    /// Clears the line before other output. The next `show` draws at once.
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

/// A failing stderr is no reason to stop.
fn write(text: &str) {
    let mut stderr = io::stderr().lock();
    let _shown = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// Cuts the line: a wrapped line cannot be cleared.
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
