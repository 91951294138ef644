//! Points in time as plain nanoseconds, so that a decision can be replayed and a trace printed.
//!
//! Why not `std::time::Instant`: only a clock can create one, and this crate reads none. [`Time`] is monotonic and
//! used for pacing; [`WallTime`] is the calendar and used for headers and saved state. They do not convert into each
//! other: a function that needs both takes both.

use std::time::Duration;

/// Nanoseconds per second; this crate counts in nanoseconds.
pub(crate) const SECOND: u64 = 1_000_000_000;
/// Nanoseconds per millisecond.
pub(crate) const MILLISECOND: u64 = 1_000_000;

/// A point on a monotonic clock: nanoseconds since an origin chosen by the caller.
///
/// ```
/// use gleaner_governor::Time;
/// use std::time::Duration;
/// let start = Time::from_nanos(5);
/// assert_eq!((start + Duration::from_nanos(10)).as_nanos(), 15);
/// assert_eq!(start.since(Time::from_nanos(20)), Duration::ZERO);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The origin of the clock.
    pub const ZERO: Self = Self(0);
    /// Later than every other time; an event that is not planned.
    pub const NEVER: Self = Self(u64::MAX);

    /// The point `nanos` nanoseconds after the origin.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the origin.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Time that has passed since `earlier`; zero when `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.nanos_since(earlier))
    }

    pub(crate) const fn nanos_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    pub(crate) const fn plus(self, nanos: u64) -> Self {
        Self(self.0.saturating_add(nanos))
    }

    pub(crate) const fn minus(self, nanos: u64) -> Self {
        Self(self.0.saturating_sub(nanos))
    }
}

impl std::ops::Add<Duration> for Time {
    type Output = Self;

    /// Saturates: a wait of ten thousand years ends at [`Time::NEVER`].
    fn add(self, wait: Duration) -> Self {
        self.plus(nanos(wait))
    }
}

/// A point on the calendar: milliseconds since 1970-01-01 UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WallTime(u64);

impl WallTime {
    /// The point `millis` milliseconds after 1970-01-01 UTC.
    #[must_use]
    pub const fn from_unix_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Milliseconds since 1970-01-01 UTC.
    #[must_use]
    pub const fn as_unix_millis(self) -> u64 {
        self.0
    }

    /// Time that has passed since `earlier`; zero when `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl WallTime {
    /// The point `span` earlier; 1970 at the earliest.
    #[must_use]
    pub fn before(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(u64::try_from(span.as_millis()).unwrap_or(u64::MAX)))
    }
}

impl std::ops::Add<Duration> for WallTime {
    type Output = Self;

    fn add(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)))
    }
}

/// A duration as nanoseconds, saturating after 584 years.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Seconds from `from` to `to`; never zero, because rates divide by it.
pub(crate) fn seconds_between(from: Time, to: Time) -> f64 {
    (to.nanos_since(from) as f64 / SECOND as f64).max(1e-9)
}

/// Nanoseconds in `seconds`; saturates, and NaN is zero.
pub(crate) const fn nanos_in(seconds: f64) -> u64 {
    (seconds * SECOND as f64) as u64
}
