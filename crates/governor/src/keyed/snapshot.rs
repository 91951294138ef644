//! What an operator may see of a registry: sums over everything, and the keys that are used most.

use crate::reasons::WaitReason;
use crate::retry::circuit::CircuitState;
use std::time::Duration;

/// Sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Requests that were let through.
    pub granted: u64,
    /// Of those, the ones that waited longer than `throttled_after`.
    pub throttled: u64,
    /// Questions that were answered with no because the circuit was open.
    pub denied: u64,
    /// Retries that were advised.
    pub retries: u64,
}

/// The sums of one key since it was last at rest, in half of the memory.
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
    /// Whose it is.
    pub domain: Box<str>,
    /// The present rate.
    pub rate_per_s: f64,
    /// What is in the token bucket. The strategy `gleaner` has none: 1 when a request may go out, else 0.
    pub tokens: f64,
    /// The smoothed mean of latencies; `None` before the first answer.
    pub latency_mean: Option<Duration>,
    /// The 95th percentile of the last 32 latencies.
    pub latency_p95: Option<Duration>,
    /// Answers in the breaker's window that say something about the provider's health.
    pub answers: u32,
    /// The share of them that failed.
    pub error_rate: f64,
    /// The circuit.
    pub circuit: CircuitState,
    /// Failures in a row.
    pub failures_in_row: u16,
    /// Time until a Retry-After, a ban or an open circuit is over; zero when the key is open.
    pub opens_in: Duration,
    /// Time until the gate opens: a Retry-After ends exactly then. Zero when it is open.
    pub gate_in: Duration,
    /// Time until the pace alone allows the next send, counted from the previous one.
    pub pace_in: Duration,
    /// What a request would wait for now.
    pub waits_for: Option<WaitReason>,
    /// A Retry-After was kept and refused again, so the pace of tries is lowered.
    pub retry_after_too_short: bool,
    /// Requests on their way.
    pub in_flight: u16,
    /// What happened since the key was last at rest.
    pub totals: Totals,
}

/// A registry.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Sums since the registry was made.
    pub totals: Totals,
    /// Keys that are known.
    pub keys_known: usize,
    /// Of those, the ones that are used now or whose circuit is not closed.
    pub keys_active: usize,
    /// Circuits that let nothing through.
    pub circuits_open: usize,
    /// Circuits that let a probe through.
    pub circuits_half_open: usize,
    /// Keys that were pushed out or forgotten so far.
    pub keys_forgotten: u64,
    /// The keys with the most answers in the breaker's window, that many as were asked for and are allowed.
    pub keys: Vec<KeySnapshot>,
}
