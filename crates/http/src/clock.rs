//! The two clocks of the driver: a monotonic one for pacing, the calendar for headers and saved state.
//!
//! Tokio's clock and not the system's: with a paused runtime tests simulate hours in milliseconds, with the shipped
//! code.

use crate::send_governor::pause;
use gleaner_governor::{Time, WallTime};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The governor's time at the origin: restored times lie before the start of this run and need a place on the clock.
/// A day is longer than any old event counts.
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

    /// The time of `instant`; instants before the origin count as the origin.
    pub(crate) fn time(&self, instant: Instant) -> Time {
        Time::ZERO + HEAD_START + instant.saturating_duration_since(self.origin)
    }

    /// The instant of `time`; [`Time::NEVER`] becomes the latest possible instant.
    #[must_use]
    pub fn instant(&self, time: Time) -> Instant {
        let since = time.since(Time::ZERO + HEAD_START);
        self.origin.checked_add(since).unwrap_or_else(|| self.origin + FAR)
    }

    /// Waits until `at`: the sleep before a send, for a scheduler of many hosts.
    pub async fn pause_until(&self, at: Time) {
        pause(self.instant(at), &Notify::new()).await;
    }
}

/// Thirty years, tokio's own maximum.
const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// The calendar.
pub(crate) fn wall_now() -> WallTime {
    WallTime::from_unix_millis(gleaner_base::clock::unix_millis())
}
