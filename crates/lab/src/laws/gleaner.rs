//! The shipped law: drives the same `Governor` that users link.

use super::{Answer, Law, Step, wall};
use crate::scenario::Scenario;
use gleaner_governor::{
    Admission, Config, Governor, Jitter, Outcome, Permit, ResponseView, Time, Tuning, Verdict, WallTime,
};
use std::time::Duration;

/// The governor with one permit per worker.
#[derive(Debug)]
pub struct Gleaner {
    governor: Governor,
    permits: Vec<Option<Permit>>,
    now: Time,
}

impl Gleaner {
    /// A cold governor with the owner's ceiling and no other knowledge of the provider.
    pub fn new(scenario: &Scenario, tuning: &'static Tuning) -> Self {
        let config = Config {
            ceiling_interval: Duration::from_secs_f64(scenario.ceiling_interval_ms / 1000.0),
            max_concurrency: u16::try_from(scenario.workers).unwrap_or(u16::MAX),
            // Only `interval_max` of the tuning limits it.
            slowest_interval: Duration::MAX,
            tuning,
            ..Config::default()
        };
        Self {
            governor: Governor::with_config(&scenario.name, config),
            permits: (0..scenario.workers).map(|_| None).collect(),
            now: Time::ZERO,
        }
    }
}

impl Law for Gleaner {
    fn poll(&mut self, worker: usize, now: Time, _random: u64) -> Step {
        match self.governor.poll_admit(now) {
            Admission::Send(permit) => {
                self.permits[worker] = Some(permit);
                Step::Send
            }
            Admission::WaitUntil(at) => Step::WaitUntil(at),
            Admission::WaitForOutcome => Step::WaitForAnswer,
            // A real run would end and be rescheduled; here the worker sleeps until then.
            Admission::Defer(deferral) => Step::WaitUntil(deferral.not_before.unwrap_or(Time::NEVER)),
        }
    }

    fn on_answer(&mut self, worker: usize, _sent_at: Time, answer: &Answer, now: Time, random: u64) {
        let Some(permit) = self.permits[worker].take() else { return };
        let outcome = outcome(answer, wall(now));
        self.governor.on_outcome(permit, &outcome, 0, Jitter::from_bits(random), now);
        self.now = now;
    }

    fn rate_per_s(&self) -> Option<f64> {
        self.governor.snapshot(self.now).map(|snapshot| snapshot.rate_per_min() / 60.0)
    }
}

/// The lab's classifier: knows only the scenario's throttle status.
fn outcome(answer: &Answer, wall_now: WallTime) -> Outcome {
    let verdict = match answer.status {
        _ if answer.throttled => Verdict::Throttled,
        None => Verdict::Network,
        Some(200) => Verdict::Success,
        Some(status) if status >= 500 => Verdict::ServerError,
        Some(_) => Verdict::Forbidden,
    };
    ResponseView::new(answer.status.unwrap_or(0), &answer.headers).outcome(verdict, wall_now)
}
