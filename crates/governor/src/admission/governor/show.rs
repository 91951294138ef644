//! Read access to a governor: its state for people, the reason for a wait, circuit transitions.
//!
//! Reading changes nothing, except that each circuit transition is returned once.

use super::Governor;
use crate::law::pace::Pace;
use crate::reasons::WaitReason;
use crate::retry::circuit::{CircuitState, CircuitTransition};
use crate::signals::quota::QuotaAdvice;
use crate::snapshot::Snapshot;
use crate::time::Time;
use std::time::Duration;

impl Governor {
    /// The quota that remains by the provider's headers.
    #[inline]
    pub(super) fn quota(&self, now: Time) -> QuotaAdvice {
        let quotas = self.quotas.as_ref();
        quotas.map_or_else(QuotaAdvice::default, |quotas| quotas.advice(self.state.sent, now, self.rules.tuning))
    }

    /// The reason why a request would wait at `now`; `None` when it may be sent.
    #[must_use]
    pub fn wait_reason(&self, now: Time) -> Option<WaitReason> {
        self.state.wait_reason(&self.rules, &self.quota(now), now)
    }

    /// The state for people; `None` without pacing.
    #[must_use]
    pub fn snapshot(&self, now: Time) -> Option<Snapshot> {
        let (state, rules) = (&self.state, &self.rules);
        if matches!(state.pace, Pace::Off) {
            return None;
        }
        let law = state.pace.law();
        let circuit = state.breaker.open_until(now).unwrap_or(Time::ZERO);
        Some(Snapshot {
            interval: Duration::from_nanos(state.pace.interval(rules)),
            ceiling_interval: Duration::from_nanos(rules.fastest),
            mode: law.map_or(rules.strategy.as_str(), |law| law.mode().as_str()),
            limit_per_s: law.and_then(|law| law.limit()),
            window: law.and_then(|law| law.window.learned()),
            last_backoff: self.last_backoff,
            next_allowed: state.pace.next(rules, self.quota(now).closed_until, now).max(circuit),
            gate_until: Some(state.pace.gate()).filter(|&gate| gate > now),
            pace_slot: state.pace.slot(rules, now),
            waits_for: self.wait_reason(now),
            retry_after_too_short: state.pace.is_told_too_short(),
            refusals_left: law.map_or(0, |law| law.refusals.left()),
            in_flight: state.lane.in_flight(),
            in_flight_limit: state.lane.limit(),
        })
    }

    /// The state of the circuit.
    #[must_use]
    pub fn circuit(&self, now: Time) -> CircuitState {
        self.state.breaker.state(now)
    }

    /// Returns the oldest circuit transition that was not returned before.
    pub fn next_transition(&mut self) -> Option<CircuitTransition> {
        let first = self.transitions[0].take();
        self.transitions.swap(0, 1);
        first
    }
}
