//! The two clocks of the driver: a monotonic one for pacing, the calendar for headers and memory.
//!
//! Tokio's clock and not the system's: under a paused runtime the tests see hours pass in
//! milliseconds, on the very code that ships.

use crate::send_governor::pause;
use gleaner_governor::{Time, WallTime};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The governor's time at the origin: what is restored from a former run lies before the start of this
/// one, and needs a place on the clock. A day is longer than anything old is held against a provider.
const HEAD_START: Duration = Duration::from_secs(24 * 3600);

/// The governor's time, read from tokio's clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self { origin: Instant::now() }
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Time {
        Time::ZERO + HEAD_START + self.origin.elapsed()
    }

    /// The time of `instant`; what was before the origin is as old as that.
    pub(crate) fn time(&self, instant: Instant) -> Time {
        Time::ZERO + HEAD_START + instant.saturating_duration_since(self.origin)
    }

    /// The instant of `time`; a time that is never is as far away as an instant can be.
    #[must_use]
    pub fn instant(&self, time: Time) -> Instant {
        let since = time.since(Time::ZERO + HEAD_START);
        self.origin.checked_add(since).unwrap_or_else(|| self.origin + FAR)
    }

    /// Waits until `at`: the one sleep before a send, for a scheduler that serves many hosts.
    pub async fn pause_until(&self, at: Time) {
        pause(self.instant(at), &Notify::new()).await;
    }
}

/// Thirty years, as far as tokio itself looks.
const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// The calendar.
pub(crate) fn wall_now() -> WallTime {
    WallTime::from_unix_millis(gleaner_base::clock::unix_millis())
}
