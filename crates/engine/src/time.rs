//! The two clocks of a run, as plain numbers that the caller passes in.
//!
//! Why two types: a wait (for an answer, for a process to end) is counted on a clock that nobody can
//! set, and what outlives the process (a grant's end, a cooldown) is a date. A jump of the calendar
//! must not end a wait, and a pause of the machine must not prolong a grant. They do not convert
//! into each other. This file never reads a clock.

use crate::instant::Instant;
use std::time::Duration;

/// A point on a monotonic clock: milliseconds since an origin that the caller chose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

/// A point on the calendar: milliseconds since 1970-01-01 UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WallTime(u64);

/// Both clocks at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// For waits.
    pub time: Time,
    /// For dates.
    pub wall: WallTime,
}

impl Time {
    /// The point `millis` milliseconds after the origin.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the origin.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0
    }
}

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

    /// Reads RFC 3339, or a date alone: its midnight in UTC. What lies before 1970 is 1970.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Instant::parse(text).map(Instant::to_wall_time)
    }

    /// Time that has passed since `earlier`; zero when `earlier` is in fact later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

macro_rules! add_durations {
    ($($clock:ident)+) => {$(
        impl std::ops::Add<Duration> for $clock {
            type Output = Self;

            /// Saturates.
            fn add(self, wait: Duration) -> Self {
                Self(self.0.saturating_add(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)))
            }
        }
    )+};
}

add_durations!(Time WallTime);
