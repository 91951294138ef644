//! Snapshot of a registry for an operator: totals, and the most used keys.

use crate::reasons::WaitReason;
use crate::retry::circuit::CircuitState;
use std::time::Duration;

/// Totals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Admitted requests.
    pub granted: u64,
    /// Admitted requests that waited longer than `throttled_after`.
    pub throttled: u64,
    /// Requests denied because the circuit was open.
    pub denied: u64,
    /// Retries that were advised.
    pub retries: u64,
}

/// Totals of one key since it was last idle, in half the memory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) granted: u32,
    pub(crate) throttled: u32,
    pub(crate) denied: u32,
    pub(crate) retries: u32,
}

impl Totals {
    pub(crate) fn add(&mut self, tally: Tally) {
        self.granted += u64::from(tally.granted);
        self.throttled += u64::from(tally.throttled);
        self.denied += u64::from(tally.denied);
        self.retries += u64::from(tally.retries);
    }

    pub(crate) fn join(&mut self, other: Self) {
        self.granted += other.granted;
        self.throttled += other.throttled;
        self.denied += other.denied;
        self.retries += other.retries;
    }
}

impl From<Tally> for Totals {
    fn from(tally: Tally) -> Self {
        let mut totals = Self::default();
        totals.add(tally);
        totals
    }
}

/// One key.
#[derive(Clone, Debug, PartialEq)]
pub struct KeySnapshot {
    /// Domain or group of the key.
    pub domain: Box<str>,
    /// The current rate.
    pub rate_per_s: f64,
    /// Tokens in the bucket. The strategy `gleaner` has none: 1 when a request may be sent, else 0.
    pub tokens: f64,
    /// The smoothed mean of latencies; `None` before the first answer.
    pub latency_mean: Option<Duration>,
    /// The 95th percentile of the last 32 latencies.
    pub latency_p95: Option<Duration>,
    /// Answers in the breaker's window that say something about the provider's health.
    pub answers: u32,
    /// Share of these answers that failed.
    pub error_rate: f64,
    /// The circuit.
    pub circuit: CircuitState,
    /// Failures in a row.
    pub failures_in_row: u16,
    /// Time until a Retry-After, a ban or an open circuit ends; zero when requests may be sent.
    pub opens_in: Duration,
    /// Time until the gate opens: exactly the end of a Retry-After. Zero when it is open.
    pub gate_in: Duration,
    /// Time until the pace alone allows the next send, counted from the previous one.
    pub pace_in: Duration,
    /// The reason why a request would wait now.
    pub waits_for: Option<WaitReason>,
    /// The provider refused again after its Retry-After was kept, so trials are slower.
    pub retry_after_too_short: bool,
    /// Requests in flight.
    pub in_flight: u16,
    /// Totals since the key was last idle.
    pub totals: Totals,
}

/// A registry.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Totals since the registry was created.
    pub totals: Totals,
    /// Number of keys.
    pub keys_known: usize,
    /// Keys in use, or whose circuit is not closed.
    pub keys_active: usize,
    /// Open circuits.
    pub circuits_open: usize,
    /// Half-open circuits, which let a probe through.
    pub circuits_half_open: usize,
    /// Keys dropped so far.
    pub keys_forgotten: u64,
    /// The keys with the most answers in the breaker's window, as many as requested and allowed.
    pub keys: Vec<KeySnapshot>,
}
