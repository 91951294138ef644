//! The TypeScript runtime's law, with its known faults, for comparison.
//!
//! A Retry-After leaves the rate unchanged, and every answer that is not retryable, a 403 too, raises it. Do not fix
//! it: it is the reference.

use super::workers::{Paced, told_wait_s};
use super::{Answer, Law, Step};
use crate::scenario::Scenario;
use gleaner_governor::Time;

/// Start, and least interval after a throttle.
const START_MS: f64 = 1000.0;
/// Growth per answer, requests per minute.
const GROWTH_PER_MIN: f64 = 6.667;
/// Share of the distance to the start that is recovered per answer, and the factor after a long silence.
const RECOVER: f64 = 0.1;
const RECOVER_TIMES_MAX: f64 = 8.0;
const SLOWER: f64 = 1.5;

/// One interval for all workers. Unlike the other baselines it knows the owner's ceiling, which is a setting of that
/// runtime.
#[derive(Clone, Debug)]
pub(super) struct TypeScript {
    interval_ms: f64,
    ceiling_ms: f64,
    paced: Paced,
    answered_at: Time,
}

impl TypeScript {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let ceiling_ms = scenario.ceiling_interval_ms;
        let interval_ms = START_MS.max(ceiling_ms);
        Self { interval_ms, ceiling_ms, paced: Paced::default(), answered_at: Time::ZERO }
    }

    fn speed_up(&mut self, elapsed_ms: f64) {
        let grown = 60_000.0 / (60_000.0 / self.interval_ms + GROWTH_PER_MIN);
        let times = (elapsed_ms / START_MS).clamp(1.0, RECOVER_TIMES_MAX);
        let recovered = RECOVER * (self.interval_ms - START_MS).max(0.0) * times;
        self.interval_ms = (grown - recovered).max(self.ceiling_ms);
    }
}

impl Law for TypeScript {
    fn poll(&mut self, _worker: usize, now: Time, _random: u64) -> Step {
        self.paced.poll(now, self.interval_ms / 1000.0)
    }

    fn on_answer(&mut self, _worker: usize, _sent_at: Time, answer: &Answer, now: Time, _random: u64) {
        let elapsed_ms = now.since(self.answered_at).as_secs_f64() * 1000.0;
        self.answered_at = now;
        let retryable = answer.status.is_none_or(|status| status == 408 || status >= 500);
        match told_wait_s(answer, now) {
            Some(wait_s) if answer.throttled => self.paced.close_for(now, wait_s),
            None if answer.throttled => self.interval_ms = (self.interval_ms * SLOWER).max(START_MS),
            _ if retryable => {}
            _ => self.speed_up(elapsed_ms),
        }
    }

    fn rate_per_s(&self) -> Option<f64> {
        Some(1000.0 / self.interval_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws::examples;
    use crate::sim::at;

    #[test]
    fn intervals_follow_the_document() {
        let mut law = TypeScript::new(&examples::scenario());
        let mut check = |answer: &Answer, at_s: f64, expected_ms: f64| {
            law.on_answer(0, Time::ZERO, answer, at(at_s), 0);
            assert!((law.interval_ms - expected_ms).abs() < 0.01, "{} at {at_s}", law.interval_ms);
        };
        check(&examples::accepted(), 1.0, 899.996); // 60 + 6.667 per minute
        check(&examples::refused(None), 2.0, 1349.993); // × 1.5
        check(&examples::refused(Some(30)), 2.5, 1349.993); // told: unchanged
        // 44.445 + 6.667 per minute are 1173.91 ms, less a tenth of the 349.99 ms above the start, four times.
        check(&examples::accepted(), 6.5, 1033.91);
    }
}
