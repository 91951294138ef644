//! State of a governor for an operator: rates, reasons and times, nothing about the account.
//!
//! Without pacing there is no snapshot: no value instead of a false zero.

use crate::reasons::WaitReason;
use crate::time::Time;
use std::time::Duration;

/// Why the rate was last lowered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackoffReason {
    /// The provider refused without a Retry-After.
    Throttle,
    /// The provider sent a Retry-After.
    RetryAfter,
    /// Answers were late.
    Latency,
    /// A quota shown by the provider is used up.
    Quota,
    /// The account looks banned.
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

/// The last time the rate was lowered or the gate closed.
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
    /// Current interval between two sends.
    pub interval: Duration,
    /// The owner's ceiling.
    pub ceiling_interval: Duration,
    /// Mode of the law: `search`, `climb`, `hold`, `probe` or `drain`.
    pub mode: &'static str,
    /// The measured limit per second.
    pub limit_per_s: Option<f64>,
    /// The learned window: requests and length.
    pub window: Option<(u32, Duration)>,
    /// The last backoff.
    pub last_backoff: Option<LastBackoff>,
    /// Earliest time of the next request: the latest of all times that apply, never their sum.
    pub next_allowed: Time,
    /// End of a closed gate: exactly the end of a Retry-After.
    pub gate_until: Option<Time>,
    /// When the pace alone allows the next send, counted from the previous one.
    pub pace_slot: Time,
    /// The reason why a request would wait now: the one that lasts longest.
    pub waits_for: Option<WaitReason>,
    /// The provider refused again after its Retry-After was kept, so trials are slower.
    pub retry_after_too_short: bool,
    /// Refusals left in the refusal budget.
    pub refusals_left: u32,
    /// Requests in flight.
    pub in_flight: u16,
    /// The current in-flight limit.
    pub in_flight_limit: u16,
}

impl Snapshot {
    /// Current rate per minute.
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
