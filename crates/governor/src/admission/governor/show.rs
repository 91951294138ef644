//! What can be asked of a governor: its state for people, why a request would wait, what the circuit did.
//!
//! Looking changes nothing, except that a circuit transition is handed out once.

use super::{Governor, latest};
use crate::reasons::WaitReason;
use crate::retry::breaker::Decision;
use crate::retry::circuit::{CircuitState, CircuitTransition};
use crate::snapshot::Snapshot;
use crate::time::Time;
use std::time::Duration;

impl Governor {
    /// What a request would have to wait for at `now`; `None` when it may be sent.
    #[must_use]
    pub fn wait_reason(&self, now: Time) -> Option<WaitReason> {
        match self.breaker.decide(now) {
            Decision::Admit | Decision::AdmitProbe => {}
            Decision::Refuse { .. } => return Some(WaitReason::Circuit),
            Decision::ProbesOut => return Some(WaitReason::InFlight),
        }
        let law = self.law.as_ref()?;
        let quota = self.quotas.advice(self.sent, now, law.tuning());
        if self.needs_answer(law) || (quota.needs_answer && self.lane.in_flight() > 0) {
            return Some(WaitReason::InFlight);
        }
        let due = latest(&self.pacing, law, self.ceiling, quota.closed_until, now).max(now);
        if law.window.is_testing() && law.window.is_early(due) {
            return Some(WaitReason::InFlight);
        }
        let candidates = [
            (WaitReason::Pacing, self.pacing.due(law.interval(), self.ceiling, law.tuning())),
            (WaitReason::Gate, law.gate()),
            (WaitReason::Quota, quota.closed_until),
            (WaitReason::Window, law.window.due(due, law.tuning())),
        ];
        // Of two that end together the later in the list says more.
        let (reason, until) = candidates.into_iter().max_by_key(|&(_, until)| until)?;
        (until > now).then_some(reason)
    }

    /// The state for people; `None` after an opt-out.
    #[must_use]
    pub fn snapshot(&self, now: Time) -> Option<Snapshot> {
        let law = self.law.as_ref()?;
        let quota = self.quotas.advice(self.sent, now, law.tuning()).closed_until;
        let circuit = match self.breaker.decide(now) {
            Decision::Refuse { until } => until,
            _ => Time::ZERO,
        };
        let next_allowed = latest(&self.pacing, law, self.ceiling, quota, now).max(circuit);
        Some(Snapshot {
            interval: Duration::from_nanos(law.interval()),
            ceiling_interval: Duration::from_nanos(self.ceiling),
            mode: law.mode().as_str(),
            limit_per_s: law.limit(),
            window: law.window.learned(),
            last_backoff: self.last_backoff,
            next_allowed,
            gate_until: Some(law.gate()).filter(|&gate| gate > now),
            pace_slot: self.pacing.due(law.interval(), self.ceiling, law.tuning()),
            waits_for: self.wait_reason(now),
            retry_after_too_short: law.is_told_too_short(),
            refusals_left: law.refusals.left(),
            in_flight: self.lane.in_flight(),
            in_flight_limit: self.lane.limit(),
        })
    }

    /// The state of the circuit.
    #[must_use]
    pub fn circuit(&self, now: Time) -> CircuitState {
        self.breaker.state(now)
    }

    /// The oldest circuit transition that has not been taken yet.
    pub fn next_transition(&mut self) -> Option<CircuitTransition> {
        let first = self.transitions[0].take();
        self.transitions.swap(0, 1);
        first
    }
}
