//! The two clocks of a run, and the only place that waits.
//!
//! Decisions take times as arguments; only this file reads a clock. Tests use their own.

use gleaner_engine::{Time, WallTime};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Reads the time, and waits.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// Monotonic time for budgets and waits.
    fn now(&self) -> Time;

    /// Wall-clock time for dates.
    fn wall(&self) -> WallTime;

    /// Waits, on this thread.
    fn pause(&self, wait: Duration);
}

/// The clocks of this machine.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    origin: Instant,
}

/// Clocks with the current time as origin.
impl Default for SystemClock {
    fn default() -> Self {
        Self { origin: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Time {
        Time::default() + self.origin.elapsed()
    }

    fn wall(&self) -> WallTime {
        WallTime::from_unix_millis(gleaner_base::clock::unix_millis())
    }

    #[expect(clippy::disallowed_methods, reason = "this is the one place")]
    fn pause(&self, wait: Duration) {
        std::thread::sleep(wait);
    }
}

/// A clock that jumps instead of waiting. For answers from a recording.
#[derive(Debug)]
pub(crate) struct JumpClock<'c> {
    clock: &'c dyn Clock,
    jumped_ms: AtomicU64,
}

impl<'c> JumpClock<'c> {
    pub(crate) const fn new(clock: &'c dyn Clock) -> Self {
        Self { clock, jumped_ms: AtomicU64::new(0) }
    }

    fn jumped(&self) -> Duration {
        Duration::from_millis(self.jumped_ms.load(Ordering::Relaxed))
    }
}

impl Clock for JumpClock<'_> {
    fn now(&self) -> Time {
        self.clock.now() + self.jumped()
    }

    fn wall(&self) -> WallTime {
        self.clock.wall() + self.jumped()
    }

    fn pause(&self, wait: Duration) {
        self.jumped_ms.fetch_add(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

/// A date as RFC 3339 with milliseconds, in UTC.
pub fn rfc3339(at: WallTime) -> String {
    gleaner_base::date::rfc3339_millis(at.as_unix_millis())
}
