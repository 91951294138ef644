//! The law that ships: drives the very same `Governor` that users link.

use super::{Answer, Law, Step, wall};
use crate::scenario::Scenario;
use gleaner_governor::{Admission, Config, Governor, Outcome, Permit, ResponseView, Time, Verdict, WallTime};
use std::time::Duration;

/// The governor with one permit per worker.
#[derive(Debug)]
pub struct Gleaner {
    governor: Governor,
    permits: Vec<Option<Permit>>,
}

impl Gleaner {
    /// A cold governor, given the owner's ceiling and nothing else about the provider.
    #[must_use]
    pub fn new(scenario: &Scenario) -> Self {
        let config = Config {
            ceiling_interval: Duration::from_secs_f64(scenario.ceiling_interval_ms / 1000.0),
            max_concurrency: u16::try_from(scenario.workers).unwrap_or(u16::MAX),
            ..Config::default()
        };
        Self { governor: Governor::with(config), permits: (0..scenario.workers).map(|_| None).collect() }
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
        }
    }

    fn on_answer(&mut self, worker: usize, _sent_at: Time, answer: &Answer, now: Time, _random: u64) {
        let Some(permit) = self.permits[worker].take() else { return };
        let outcome = outcome(answer, wall(now));
        self.governor.on_outcome(permit, &outcome, now);
        if std::env::var_os("LAB_DEBUG").is_some() && (answer.throttled || std::env::var_os("LAB_ALL").is_some()) {
            eprintln!(
                "{:.3} {:?} {} {:?}",
                crate::sim::seconds(now),
                answer.status,
                self.governor.debug(),
                answer.headers
            );
        }
    }

    fn rate_per_s(&self) -> Option<f64> {
        Some(self.governor.rate())
    }
}

/// The lab's classifier: knows the scenario's throttle status and nothing more.
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
