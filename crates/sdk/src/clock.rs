//! The two clocks of a run, and the one place that waits.
//!
//! Decisions take times as arguments; only this file reads a clock. Tests bring one that they set.

use gleaner_engine::{Time, WallTime};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What time it is, and waiting for a later one.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// For budgets and waits: nobody can set it.
    fn now(&self) -> Time;

    /// For dates.
    fn wall(&self) -> WallTime;

    /// Waits, on this thread.
    fn pause(&self, wait: Duration);
}

/// The clocks of this machine.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    origin: Instant,
}

impl SystemClock {
    /// Clocks whose origin is now.
    #[must_use]
    pub fn new() -> Self {
        Self { origin: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Time {
        Time::default() + self.origin.elapsed()
    }

    fn wall(&self) -> WallTime {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        WallTime::default() + since
    }

    #[expect(clippy::disallowed_methods, reason = "this is the one place")]
    fn pause(&self, wait: Duration) {
        std::thread::sleep(wait);
    }
}

/// A clock on which nobody waits: whoever would, finds himself later. For answers that come from a recording.
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
#[must_use]
pub fn rfc3339(at: WallTime) -> String {
    let millis = at.as_unix_millis();
    let (days, of_day) = (millis / 86_400_000, millis % 86_400_000);
    let (year, month, day) = date_of(days);
    let (hour, minute) = (of_day / 3_600_000, of_day / 60_000 % 60);
    let (second, fraction) = (of_day / 1000 % 60, of_day % 1000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:03}Z")
}

/// Year, month and day of a day since 1970-01-01.
const fn date_of(days: u64) -> (u64, u64, u64) {
    // Years that begin in March put the leap day last, so that a month follows from a line. An era has 400.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let january_or_february = if month <= 2 { 1 } else { 0 };
    (year_of_era + era * 400 + january_or_february, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let at = |millis| rfc3339(WallTime::from_unix_millis(millis));
        assert_eq!(at(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(at(784_111_777_999), "1994-11-06T08:49:37.999Z");
        assert_eq!(at(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(at(951_868_800_000), "2000-03-01T00:00:00.000Z");
        assert_eq!(at(4_102_444_800_000), "2100-01-01T00:00:00.000Z");
        assert_eq!(at(4_107_542_400_000), "2100-03-01T00:00:00.000Z");
    }
}
