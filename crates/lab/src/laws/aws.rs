//! AWS SDK adaptive retry mode (aws-smithy-runtime 1.16.2 `client_rate_limiter.rs`).
//!
//! With the retry rules of its specification 2.1: one token per attempt, taken after the sleep. Every
//! throttled answer cuts, also echoes of one burst, and everything that is not a throttle, a 403 too,
//! counts as a success of the rate law, as in the original.

use super::workers::{Workers, exponential, later, told_wait_s, unit};
use super::{Answer, Law, Step};
use crate::scenario::Scenario;
use crate::sim::seconds;
use gleaner_governor::Time;

/// `client_rate_limiter.rs`, by its names there: `BETA`, `SCALE_CONSTANT`, `SMOOTH`,
/// `MIN_FILL_RATE`, `MIN_CAPACITY`.
const BETA: f64 = 0.7;
const SCALE: f64 = 0.4;
const SMOOTH: f64 = 0.8;
const MIN_FILL: f64 = 0.5;
const MIN_CAPACITY: f64 = 1.0;
/// Retry layer, specification 2.1.
const ATTEMPTS_MAX: u32 = 3;
const BACKOFF_CAP_S: f64 = 20.0;
const FIRST_THROTTLED_S: f64 = 1.0;
const FIRST_TRANSIENT_S: f64 = 0.05;
const TOLD_EXTRA_MAX_S: f64 = 5.0;
/// Retry quota and what a retry takes from it.
const QUOTA: f64 = 500.0;
const COST_THROTTLED: f64 = 5.0;
const COST_TRANSIENT: f64 = 14.0;

/// The rate limiter that all workers share, and each worker's retries.
#[derive(Clone, Debug)]
pub(super) struct Aws {
    limiter: Limiter,
    workers: Workers,
    /// Quota taken by each worker's last retry, returned when it succeeds.
    held: Vec<f64>,
    quota: f64,
}

impl Aws {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let workers = Workers::new(scenario.workers);
        Self { limiter: Limiter::new(), workers, held: vec![0.0; scenario.workers], quota: QUOTA }
    }

    fn finish(&mut self, worker: usize, returned: f64) {
        self.quota = (self.quota + returned).min(QUOTA);
        self.held[worker] = 0.0;
        self.workers.finish(worker);
    }

    fn retry(&mut self, worker: usize, answer: &Answer, now: Time, random: u64) {
        let (first, cost) =
            if answer.throttled { (FIRST_THROTTLED_S, COST_THROTTLED) } else { (FIRST_TRANSIENT_S, COST_TRANSIENT) };
        let retries = self.workers.failures(worker);
        if retries + 1 >= ATTEMPTS_MAX || self.quota < cost {
            return self.finish(worker, 0.0);
        }
        self.quota -= cost;
        self.held[worker] = cost;
        let drawn = unit(random) * exponential(first, retries, BACKOFF_CAP_S);
        let told = told_wait_s(answer, now).map(|wait| wait.clamp(drawn, drawn + TOLD_EXTRA_MAX_S));
        self.workers.retry_in(worker, now, told.unwrap_or(drawn));
    }
}

impl Law for Aws {
    fn poll(&mut self, worker: usize, now: Time, _random: u64) -> Step {
        if let Some(until) = self.workers.asleep(worker, now) {
            return Step::WaitUntil(until);
        }
        self.limiter.acquire(seconds(now)).map_or(Step::Send, |wait_s| Step::WaitUntil(later(now, wait_s)))
    }

    fn on_answer(&mut self, worker: usize, _sent_at: Time, answer: &Answer, now: Time, random: u64) {
        self.limiter.update(seconds(now), answer.throttled);
        let retryable = answer.throttled || answer.status.is_none_or(|status| status >= 500);
        if retryable {
            self.retry(worker, answer, now, random);
        } else {
            let first_try = self.workers.failures(worker) == 0;
            self.finish(worker, if first_try { 1.0 } else { self.held[worker] });
        }
    }

    fn rate_per_s(&self) -> Option<f64> {
        self.limiter.enabled.then_some(self.limiter.fill)
    }

    fn shares_one_queue(&self) -> bool {
        false
    }
}

/// Token bucket whose fill rate follows CUBIC. Times in seconds.
#[derive(Clone, Debug, Default)]
struct Limiter {
    enabled: bool,
    fill: f64,
    capacity: f64,
    capacity_max: f64,
    filled_at: f64,
    /// Measured sending rate, the half-second in which it was last taken, and answers since.
    measured: f64,
    measured_at: f64,
    answers: f64,
    rate_at_throttle: f64,
    throttled_at: f64,
}

impl Limiter {
    fn new() -> Self {
        Self { measured: 0.5, ..Self::default() }
    }

    /// Takes a token, or returns how long to sleep before asking again. Nothing is deducted while waiting; deducting
    /// was bug smithy-rs#4632.
    fn acquire(&mut self, now: f64) -> Option<f64> {
        if !self.enabled {
            return None;
        }
        self.refill(now);
        if self.capacity >= 1.0 - 1e-9 {
            self.capacity = (self.capacity - 1.0).max(0.0);
            return None;
        }
        Some((1.0 - self.capacity) / self.fill)
    }

    fn refill(&mut self, now: f64) {
        self.capacity = (self.capacity + (now - self.filled_at) * self.fill).min(self.capacity_max);
        self.filled_at = now;
    }

    fn measure(&mut self, now: f64) {
        let bucket = (now * 2.0).floor() / 2.0;
        self.answers += 1.0;
        if bucket > self.measured_at {
            let current = self.answers / (bucket - self.measured_at);
            self.measured = current * SMOOTH + self.measured * (1.0 - SMOOTH);
            self.answers = 0.0;
            self.measured_at = bucket;
        }
    }

    fn update(&mut self, now: f64, throttled: bool) {
        self.measure(now);
        let rate = if throttled {
            let rate = if self.enabled { self.measured.min(self.fill) } else { self.measured };
            self.rate_at_throttle = rate;
            self.throttled_at = now;
            self.enabled = true;
            rate * BETA
        } else {
            let window = (self.rate_at_throttle * (1.0 - BETA) / SCALE).cbrt();
            SCALE * (now - self.throttled_at - window).powi(3) + self.rate_at_throttle
        };
        let rate = rate.min(2.0 * self.measured);
        self.refill(now);
        self.fill = rate.max(MIN_FILL);
        self.capacity_max = rate.max(MIN_CAPACITY);
        self.capacity = self.capacity.min(self.capacity_max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_cut_to_seven_tenths_and_returns_along_a_cubic() {
        let mut limiter = Limiter::new();
        // Ten answers in each half-second are 20/s: 0.8 × 20 + 0.2 × 0.5, and on from there.
        for index in 0..40 {
            limiter.update(f64::from(index) / 20.0, false);
        }
        assert_eq!(limiter.acquire(2.0), None);
        limiter.update(2.0, true);
        let measured = limiter.measured;
        assert!((measured - 20.0).abs() < 1.0, "{measured}");
        assert!((limiter.fill - 0.7 * measured).abs() < 1e-9);
        // After K = cbrt(w · 0.3 / 0.4) it is back where it was throttled.
        limiter.update(2.0 + (measured * 0.75).cbrt(), false);
        assert!((limiter.fill - limiter.rate_at_throttle.min(2.0 * limiter.measured)).abs() < 1e-6);
    }

    #[test]
    fn waiting_takes_nothing_from_the_bucket() {
        let mut limiter = Limiter { enabled: true, fill: 2.0, capacity_max: 2.0, ..Limiter::new() };
        assert_eq!(limiter.acquire(0.0), Some(0.5));
        assert_eq!(limiter.acquire(0.25), Some(0.25));
        assert_eq!(limiter.acquire(0.5), None);
        assert_eq!(limiter.acquire(0.5), Some(0.5));
    }
}
