//! Plain additive increase, multiplicative decrease of a shared rate: the textbook law.
//!
//! Start at 1/s, +0.1/s per second with a success, halve once per burst of refusals, and Retry-After
//! closes the gate for all. Remembers no ceiling, so it saws between half and full.

use super::workers::{Paced, told_wait_s};
use super::{Answer, Law, Step};
use gleaner_governor::Time;
use std::time::Duration;

/// Rates per second: AIMD has no standard values, so these are ordinary ones.
const START: f64 = 1.0;
const STEP: f64 = 0.1;
const CUT: f64 = 0.5;
/// The textbook names no floor; without one a closed window halves the rate for ever. One send a minute is the
/// longest sleep of the backoff laws.
const FLOOR: f64 = 1.0 / 60.0;

/// One rate for all workers.
#[derive(Clone, Debug)]
pub(super) struct Aimd {
    rate: f64,
    paced: Paced,
    raised_at: Time,
    cut_at: Option<Time>,
}

impl Aimd {
    pub(super) fn new() -> Self {
        Self { rate: START, paced: Paced::default(), raised_at: Time::ZERO, cut_at: None }
    }

    fn cut(&mut self, sent_at: Time, now: Time) {
        // Requests in flight during a cut belong to the same burst.
        if self.cut_at.is_none_or(|cut_at| sent_at > cut_at) {
            self.rate = (self.rate * CUT).max(FLOOR);
            self.cut_at = Some(now);
        }
    }
}

impl Law for Aimd {
    fn poll(&mut self, _worker: usize, now: Time, _random: u64) -> Step {
        self.paced.poll(now, 1.0 / self.rate)
    }

    fn on_answer(&mut self, _worker: usize, sent_at: Time, answer: &Answer, now: Time, _random: u64) {
        if answer.throttled {
            self.cut(sent_at, now);
            if let Some(wait_s) = told_wait_s(answer, now) {
                self.paced.close_for(now, wait_s);
            }
        } else if answer.is_accepted() && now.since(self.raised_at) >= Duration::from_secs(1) {
            self.rate += STEP;
            self.raised_at = now;
        }
    }

    fn rate_per_s(&self) -> Option<f64> {
        Some(self.rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws::examples;
    use crate::sim::at;

    #[test]
    fn one_cut_per_burst_and_one_step_per_second() {
        let mut law = Aimd::new();
        let mut check = |sent_s: f64, answer: &Answer, now_s: f64, expected: f64| {
            law.on_answer(0, at(sent_s), answer, at(now_s), 0);
            assert!((law.rate - expected).abs() < 1e-12, "{} at {now_s}", law.rate);
        };
        check(0.9, &examples::accepted(), 1.0, 1.1);
        check(1.4, &examples::accepted(), 1.5, 1.1);
        check(1.9, &examples::accepted(), 2.0, 1.2);
        check(2.9, &examples::refused(None), 3.0, 0.6);
        check(2.95, &examples::refused(None), 3.1, 0.6);
        check(3.2, &examples::refused(Some(30)), 3.3, 0.3);
        assert_eq!(law.poll(0, at(4.0), 0), Step::WaitUntil(at(33.3)));
    }
}
