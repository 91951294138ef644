//! State of a key for an operator: rates, reasons, counts and times, nothing about the account.
//!
//! There are two forms. [`CollectionRate`] is for programs, in the governor's own types; the connector SDK turns it
//! into protocol messages. [`Status`] is the sidecar's answer as JSON. Without pacing there is no rate: absent, never
//! a false zero.

use crate::clock::wall_now;
use crate::send_governor::SendGovernor;
use gleaner_governor::{BackoffReason, CircuitState, CircuitTransition, Time, WallTime};
use serde::Serialize;
use std::time::Duration;

/// The rate of a key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CollectionRate {
    /// Current interval between two sends.
    pub current_interval_ms: f64,
    /// The same as a rate.
    pub effective_rate_per_min: f64,
    /// The ceiling.
    pub ceiling_interval_ms: f64,
    /// The same as a rate.
    pub ceiling_rate_per_min: f64,
    /// The last time the rate was lowered.
    pub last_backoff: Option<LastBackoff>,
}

/// The last time the rate was lowered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LastBackoff {
    /// The interval after it.
    pub at_interval_ms: f64,
    /// Why.
    pub reason: BackoffReason,
}

/// State of one key, as the sidecar shows it. Fields of pacing are `null` when pacing is off.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Status {
    /// The key; a credential is a keyed hash.
    pub key: String,
    /// `search`, `climb`, `hold`, `probe` or `drain`.
    pub mode: Option<&'static str>,
    /// Current interval between two sends.
    pub interval_ms: Option<f64>,
    /// The same as a rate.
    pub rate_per_s: Option<f64>,
    /// The ceiling.
    pub ceiling_interval_ms: Option<f64>,
    /// The last time the rate was lowered.
    pub last_backoff: Option<StatusBackoff>,
    /// Nothing is sent before this time.
    pub gate_until: Option<String>,
    /// `closed`, `half_open` or `open`.
    pub breaker: &'static str,
    /// Attempts sent.
    pub sent: u64,
    /// Accepted requests.
    pub accepted: u64,
    /// Answers that said "too fast" or banned us.
    pub rejected: u64,
    /// Retries.
    pub retried: u64,
    /// Waiting callers.
    pub waiting: usize,
    /// Reason of their wait.
    pub waiting_for: Option<&'static str>,
    /// Requests in flight.
    pub in_flight: Option<u16>,
    /// 95th percentile of recent waits.
    pub wait_p95_ms: Option<u32>,
    /// Failures to save the learned state.
    pub memory_errors: u64,
}

/// The last backoff, as the sidecar shows it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StatusBackoff {
    /// Why.
    pub reason: &'static str,
    /// When, as a date.
    pub at: String,
    /// The interval after it.
    pub interval_ms: f64,
}

/// Why a request would wait now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The reason that lasts longest.
    pub reason: gleaner_governor::WaitReason,
    /// Time left; `None` when an answer must come first.
    pub remaining: Option<Duration>,
    /// Waiting callers.
    pub callers: usize,
}

impl SendGovernor {
    /// The current rate; `None` without pacing.
    #[must_use]
    pub fn collection_rate(&self) -> Option<CollectionRate> {
        let now = self.shared.clock.now();
        let snapshot = self.shared.lock().governor.snapshot(now)?;
        Some(CollectionRate {
            current_interval_ms: ms(snapshot.interval),
            effective_rate_per_min: snapshot.rate_per_min(),
            ceiling_interval_ms: ms(snapshot.ceiling_interval),
            ceiling_rate_per_min: snapshot.ceiling_rate_per_min(),
            last_backoff: snapshot
                .last_backoff
                .map(|last| LastBackoff { at_interval_ms: ms(last.interval), reason: last.reason }),
        })
    }

    /// Circuit transitions that were not reported yet, oldest first. Each is returned once.
    #[must_use]
    pub fn take_circuit_transitions(&self) -> Vec<CircuitTransition> {
        self.shared.lock().figures.transitions.drain(..).collect()
    }

    /// Why a request would wait now; `None` when it would not.
    #[must_use]
    pub fn waiting(&self) -> Option<Waiting> {
        let now = self.shared.clock.now();
        let state = self.shared.lock();
        let reason = state.governor.wait_reason(now)?;
        let until = state.governor.snapshot(now).map(|snapshot| snapshot.next_allowed).filter(|&at| at > now);
        let remaining = match reason {
            gleaner_governor::WaitReason::InFlight => None,
            _ => until.map(|at| at.since(now)),
        };
        Some(Waiting { reason, remaining, callers: state.waiting() })
    }

    /// Time left of the pauses before retries, and whether a refusal caused them; `None` when there are none. Such a
    /// pause is between two attempts of one request: others may be sent meanwhile.
    #[must_use]
    pub fn retry_pause(&self) -> Option<(Duration, bool)> {
        let now = self.shared.clock.now();
        let state = self.shared.lock();
        let is_pausing = state.figures.pausing > 0 && state.figures.pause_ends > now;
        is_pausing.then(|| (state.figures.pause_ends.since(now), state.figures.pause_is_refusal))
    }

    /// The whole state of this key.
    #[must_use]
    pub fn status(&self) -> Status {
        let (now, wall_now) = (self.shared.clock.now(), wall_now());
        let state = self.shared.lock();
        let snapshot = state.governor.snapshot(now);
        let paced = snapshot.as_ref();
        let circuit = state.governor.circuit(now);
        let gate_until = paced.and_then(|snapshot| match circuit {
            CircuitState::Open => Some(snapshot.next_allowed),
            CircuitState::Closed | CircuitState::HalfOpen => snapshot.gate_until,
        });
        Status {
            key: self.key().to_string(),
            mode: paced.map(|snapshot| snapshot.mode),
            interval_ms: paced.map(|snapshot| ms(snapshot.interval)),
            rate_per_s: paced.map(|snapshot| snapshot.rate_per_min() / 60.0),
            ceiling_interval_ms: paced.map(|snapshot| ms(snapshot.ceiling_interval)),
            last_backoff: paced.and_then(|snapshot| snapshot.last_backoff).map(|last| StatusBackoff {
                reason: last.reason.as_str(),
                at: date(date_of(last.at, now, wall_now)),
                interval_ms: ms(last.interval),
            }),
            gate_until: gate_until.map(|at| date(wall_now + at.since(now))),
            breaker: circuit.as_str(),
            sent: state.figures.sent,
            accepted: state.figures.answers[0],
            rejected: state.figures.rejected,
            retried: state.figures.retried,
            waiting: state.waiting(),
            waiting_for: state.governor.wait_reason(now).map(gleaner_governor::WaitReason::as_str),
            in_flight: paced.map(|snapshot| snapshot.in_flight),
            wait_p95_ms: state.figures.wait_p95_ms(),
            memory_errors: state.figures.memory_errors,
        }
    }
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

fn date_of(at: Time, now: Time, wall_now: WallTime) -> WallTime {
    wall_now.before(now.since(at))
}

/// A date as RFC 3339 with seconds, in UTC.
fn date(at: WallTime) -> String {
    gleaner_base::date::rfc3339_seconds(at.as_unix_millis())
}
