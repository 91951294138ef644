//! The wall clock. Decisions take a time as an argument; drivers read it here.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Time since 1970-01-01 UTC. A clock that is set before that reads zero.
#[must_use]
pub fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The same in milliseconds.
#[must_use]
pub fn unix_millis() -> u64 {
    u64::try_from(since_epoch().as_millis()).unwrap_or(u64::MAX)
}
