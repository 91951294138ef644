//! What an operator may see of a key: rates, reasons, counts and times, and nothing about the account.
//!
//! Two shapes, because two kinds of readers exist. [`CollectionRate`] is for programs, in the governor's own types; the
//! connector SDK makes the protocol's messages of it. [`Status`] is what the sidecar answers, as JSON. A key that opted
//! out of pacing has no rate: absent, and never a false zero.

use crate::clock::wall_now;
use crate::send_governor::SendGovernor;
use gleaner_governor::{BackoffReason, CircuitState, CircuitTransition, Time, WallTime};
use serde::Serialize;
use std::time::Duration;

/// The rate of a key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CollectionRate {
    /// Present time between two sends.
    pub current_interval_ms: f64,
    /// The same as a rate.
    pub effective_rate_per_min: f64,
    /// The owner's shortest time between two sends.
    pub ceiling_interval_ms: f64,
    /// The same as a rate.
    pub ceiling_rate_per_min: f64,
    /// The last time the rate was lowered.
    pub last_backoff: Option<LastBackoff>,
}

/// The last time the rate was lowered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LastBackoff {
    /// To which interval.
    pub at_interval_ms: f64,
    /// Why.
    pub reason: BackoffReason,
}

/// One key, as the sidecar shows it. What pacing would tell is `null` after an opt-out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Status {
    /// Whose limit; a credential is a keyed hash.
    pub key: String,
    /// `search`, `climb`, `hold`, `probe` or `drain`.
    pub mode: Option<&'static str>,
    /// Present time between two sends.
    pub interval_ms: Option<f64>,
    /// The same as a rate.
    pub rate_per_s: Option<f64>,
    /// The owner's shortest time between two sends.
    pub ceiling_interval_ms: Option<f64>,
    /// The last time the rate was lowered.
    pub last_backoff: Option<StatusBackoff>,
    /// Nothing is sent before.
    pub gate_until: Option<String>,
    /// `closed`, `half_open` or `open`.
    pub breaker: &'static str,
    /// Attempts that went out.
    pub sent: u64,
    /// Answers that were good.
    pub accepted: u64,
    /// Answers that said "too fast", or shut us out.
    pub rejected: u64,
    /// Attempts that repeated one before.
    pub retried: u64,
    /// Callers that wait now.
    pub waiting: usize,
    /// What they wait for.
    pub waiting_for: Option<&'static str>,
    /// Requests in flight.
    pub in_flight: Option<u16>,
    /// 95 of 100 recent requests waited no longer.
    pub wait_p95_ms: Option<u32>,
    /// Times that what was learned could not be written down.
    pub memory_errors: u64,
}

/// The last back-off, as the sidecar shows it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StatusBackoff {
    /// Why.
    pub reason: &'static str,
    /// When, as a date.
    pub at: String,
    /// To which interval.
    pub interval_ms: f64,
}

/// Why a request would wait now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The reason that holds longest.
    pub reason: gleaner_governor::WaitReason,
    /// For how long; `None` when an answer has to come first.
    pub remaining: Option<Duration>,
    /// Callers that wait already.
    pub callers: usize,
}

impl SendGovernor {
    /// The rate now; `None` after an opt-out of pacing.
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

    /// Changes of the circuit that have not been reported yet, oldest first. Each is handed out once.
    #[must_use]
    pub fn take_circuit_transitions(&self) -> Vec<CircuitTransition> {
        self.shared.lock().figures.transitions.drain(..).collect()
    }

    /// Why a request would have to wait now; `None` when it would not.
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

    /// How long the callers that pause before a retry still do, and whether because of a refusal; `None` when there are
    /// none. A pause of this kind is between two attempts of one request: others may be sent meanwhile.
    #[must_use]
    pub fn retry_pause(&self) -> Option<(Duration, bool)> {
        let now = self.shared.clock.now();
        let state = self.shared.lock();
        let is_pausing = state.figures.pausing > 0 && state.figures.pause_ends > now;
        is_pausing.then(|| (state.figures.pause_ends.since(now), state.figures.pause_is_refusal))
    }

    /// Everything about this key.
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
