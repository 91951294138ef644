//! What can be set, with the reason for every default. The owner sets one number: the ceiling.

use std::time::Duration;

/// Settings of one governor.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Interval of the first sends, before anything is known (D4). Zero opts out of pacing: no
    /// wait, and no snapshot.
    pub discovery_interval: Duration,
    /// The owner's number: the shortest interval ever allowed, also after idle time.
    pub ceiling_interval: Duration,
    /// Most requests in flight.
    pub max_concurrency: u16,
    /// Longest wait that is slept; beyond it the request is deferred with `not_before`.
    pub horizon: Duration,
}

/// The one discovery interval. One request a second is what services without a documented limit
/// tolerate from everyone, and doubling from there finds a limit of 100 per second in 20 s.
pub const DISCOVERY_INTERVAL: Duration = Duration::from_millis(1000);

/// Default ceiling: 50 requests per second, beyond which hardly any API without a contract goes.
pub const CEILING_INTERVAL: Duration = Duration::from_millis(20);

/// Default horizon: a person waits five minutes for a program, not longer (design 4.7).
pub const HORIZON: Duration = Duration::from_secs(300);

impl Default for Config {
    fn default() -> Self {
        Self {
            discovery_interval: DISCOVERY_INTERVAL,
            ceiling_interval: CEILING_INTERVAL,
            max_concurrency: 1,
            horizon: HORIZON,
        }
    }
}
