//! Exponential backoff with full jitter, with and without Retry-After: the rule of most clients.
//!
//! No pacing: each worker sends at once and sleeps only after a failure. It keeps no state between requests, so it
//! never finds a rate, and workers share nothing.

use super::workers::{Workers, exponential, told_wait_s, unit};
use super::{Answer, Law, Step};
use crate::scenario::Scenario;
use gleaner_governor::Time;

/// First sleep at most a second, no sleep above a minute.
const FIRST_S: f64 = 1.0;
const CAP_S: f64 = 60.0;

/// Whether a Retry-After replaces the drawn sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RetryAfter {
    Ignored,
    Honoured,
}

/// Workers that back off independently.
#[derive(Clone, Debug)]
pub(super) struct Backoff {
    workers: Workers,
    retry_after: RetryAfter,
}

impl Backoff {
    pub(super) fn new(scenario: &Scenario, retry_after: RetryAfter) -> Self {
        Self { workers: Workers::new(scenario.workers), retry_after }
    }
}

impl Law for Backoff {
    fn poll(&mut self, worker: usize, now: Time, _random: u64) -> Step {
        self.workers.asleep(worker, now).map_or(Step::Send, Step::WaitUntil)
    }

    fn on_answer(&mut self, worker: usize, _sent_at: Time, answer: &Answer, now: Time, random: u64) {
        if answer.is_accepted() {
            return self.workers.finish(worker);
        }
        let drawn = unit(random) * exponential(FIRST_S, self.workers.failures(worker), CAP_S);
        let told = told_wait_s(answer, now).filter(|_| self.retry_after == RetryAfter::Honoured);
        self.workers.retry_in(worker, now, told.unwrap_or(drawn));
    }

    fn shares_one_queue(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws::examples;
    use crate::sim::at;

    /// Half of the range: what 64 random bits in the middle draw.
    const MIDDLE: u64 = 1 << 63;

    #[track_caller]
    fn check(retry_after: RetryAfter, answers: &[Answer], expected_s: f64) {
        let mut law = Backoff::new(&examples::scenario(), retry_after);
        answers.iter().for_each(|answer| law.on_answer(0, Time::ZERO, answer, at(1.0), MIDDLE));
        assert_eq!(law.poll(0, at(1.0), 0), Step::WaitUntil(at(1.0 + expected_s)));
        assert_eq!(law.poll(1, at(1.0), 0), Step::Send, "each worker is alone");
    }

    #[test]
    fn sleeps_double_up_to_a_minute() {
        let bare = examples::refused(None);
        for (times, expected_s) in [(1, 0.5), (2, 1.0), (3, 2.0), (6, 16.0), (7, 30.0), (50, 30.0)] {
            check(RetryAfter::Ignored, &vec![bare.clone(); times], expected_s);
        }
        check(RetryAfter::Ignored, &[bare.clone(), bare.clone(), examples::accepted(), bare], 0.5);
    }

    #[test]
    fn a_told_wait_replaces_the_sleep() {
        check(RetryAfter::Ignored, &[examples::refused(Some(30))], 0.5);
        check(RetryAfter::Honoured, &[examples::refused(Some(30))], 30.0);
        check(RetryAfter::Honoured, &[examples::refused(Some(0))], 0.5);
    }
}
