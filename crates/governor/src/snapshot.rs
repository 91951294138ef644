//! What an operator may see of a governor: rates, reasons and times, and nothing about the account.
//!
//! A governor that opted out of pacing has no snapshot: an honest absence instead of a false zero.

use crate::reasons::WaitReason;
use crate::time::Time;
use std::time::Duration;

/// Why the rate was last lowered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackoffReason {
    /// The provider refused without a word.
    Throttle,
    /// The provider said how long to stay away.
    RetryAfter,
    /// Answers came late.
    Latency,
    /// A quota that the provider told is used up.
    Quota,
    /// The account seems to be shut out.
    Ban,
}

impl BackoffReason {
    /// The stable name of the reason.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Throttle => "throttle",
            Self::RetryAfter => "retry_after",
            Self::Latency => "latency",
            Self::Quota => "quota",
            Self::Ban => "ban",
        }
    }
}

/// The last time the rate was lowered, or the key closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastBackoff {
    /// The interval it was lowered to.
    pub interval: Duration,
    /// Why.
    pub reason: BackoffReason,
    /// When.
    pub at: Time,
}

/// The state of a governor, for people.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Snapshot {
    /// Present interval between two sends.
    pub interval: Duration,
    /// The owner's ceiling.
    pub ceiling_interval: Duration,
    /// What the law is doing: `search`, `climb`, `hold`, `probe` or `drain`.
    pub mode: &'static str,
    /// The limit that was measured, per second.
    pub limit_per_s: Option<f64>,
    /// The window that was learned: requests, and its length.
    pub window: Option<(u32, Duration)>,
    /// The last back-off.
    pub last_backoff: Option<LastBackoff>,
    /// When the next request may go out: the latest of all that have a say, and never their sum.
    pub next_allowed: Time,
    /// The key is closed until then, if it is: a Retry-After ends exactly then.
    pub gate_until: Option<Time>,
    /// When the pace alone allows the next send, counted from the previous one.
    pub pace_slot: Time,
    /// What a request would wait for now: the one reason that holds longest.
    pub waits_for: Option<WaitReason>,
    /// A Retry-After was kept and refused again, so the pace of tries is lowered.
    pub retry_after_too_short: bool,
    /// Refusals that may still be risked by probing.
    pub refusals_left: u32,
    /// Requests in flight, and how many may be.
    pub in_flight: u16,
    /// The present in-flight limit.
    pub in_flight_limit: u16,
}

impl Snapshot {
    /// Present rate per minute.
    #[must_use]
    pub fn rate_per_min(&self) -> f64 {
        60.0 / self.interval.as_secs_f64()
    }

    /// The ceiling as a rate per minute.
    #[must_use]
    pub fn ceiling_rate_per_min(&self) -> f64 {
        60.0 / self.ceiling_interval.as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_told_per_minute() {
        let snapshot = Snapshot {
            interval: Duration::from_millis(500),
            ceiling_interval: Duration::from_millis(20),
            mode: "hold",
            limit_per_s: Some(2.0),
            window: None,
            last_backoff: None,
            next_allowed: Time::ZERO,
            gate_until: None,
            pace_slot: Time::ZERO,
            waits_for: None,
            retry_after_too_short: false,
            refusals_left: 6,
            in_flight: 0,
            in_flight_limit: 1,
        };
        assert!((snapshot.rate_per_min() - 120.0).abs() < 1e-9);
        assert!((snapshot.ceiling_rate_per_min() - 3000.0).abs() < 1e-9);
    }
}
