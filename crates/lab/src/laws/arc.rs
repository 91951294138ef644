//! Vector's adaptive request concurrency: limits requests in flight, never a rate.
//!
//! Round-trip time and back pressure are taken per attempt, inside the retry layer. It reads no
//! Retry-After, and a limit of one in flight is as slow as it can get.

use super::workers::{Workers, unit};
use super::{Answer, Law, Step};
use crate::scenario::Scenario;
use gleaner_governor::Time;
use std::time::Duration;

/// `AdaptiveConcurrencySettings` as shipped.
const LIMIT_MAX: usize = 200;
const DECREASE: f64 = 0.9;
const EWMA_ALPHA: f64 = 0.4;
const DEVIATION_SCALE: f64 = 2.5;
/// Longest step of the Fibonacci retries.
const RETRY_CAP_S: f64 = 30.0;

/// The limit that all workers share, and each worker's retries.
#[derive(Clone, Debug)]
pub(super) struct Arc {
    workers: Workers,
    limit: usize,
    /// Requests that hold a permit, including those that sleep before a retry: the limit is outside the retry layer.
    in_flight: usize,
    past: Option<Past>,
    now: Interval,
    ends_at: Time,
}

/// Moving mean and variance of the round-trip time, in seconds.
#[derive(Clone, Copy, Debug)]
struct Past {
    mean: f64,
    variance: f64,
}

/// Measurements since the last adjustment.
#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    sum: f64,
    count: u32,
    back_pressure: bool,
    reached: bool,
}

impl Interval {
    fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / f64::from(self.count))
    }
}

impl Arc {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let workers = Workers::new(scenario.workers);
        Self { workers, limit: 1, in_flight: 0, past: None, now: Interval::default(), ends_at: Time::ZERO }
    }

    fn end_interval(&mut self, now: Time) {
        let current = self.now.mean();
        match &mut self.past {
            // The first measurement only sets the scale.
            None => {
                let Some(mean) = current else { return };
                self.past = Some(Past { mean, variance: 0.0 });
                self.ends_at = now + Duration::from_secs_f64(mean);
            }
            Some(past) if now >= self.ends_at => {
                self.limit = adjusted(self.limit, *past, self.now);
                if let Some(sample) = current {
                    past.fold(sample);
                }
                self.ends_at = now + Duration::from_secs_f64(past.mean);
            }
            Some(_) => return,
        }
        self.now = Interval::default();
    }
}

fn adjusted(limit: usize, past: Past, interval: Interval) -> usize {
    let current = interval.mean();
    let faster = current.is_some_and(|rtt| rtt <= past.mean);
    let slower = current.is_some_and(|rtt| rtt >= past.mean + DEVIATION_SCALE * past.variance.sqrt());
    if interval.reached && !interval.back_pressure && faster {
        (limit + 1).min(LIMIT_MAX)
    } else if limit > 1 && (interval.back_pressure || slower) {
        ((limit as f64 * DECREASE).floor() as usize).max(1)
    } else {
        limit
    }
}

impl Past {
    fn fold(&mut self, sample: f64) {
        let difference = sample - self.mean;
        let increment = EWMA_ALPHA * difference;
        self.mean += increment;
        self.variance = (1.0 - EWMA_ALPHA) * (self.variance + difference * increment);
    }
}

impl Law for Arc {
    fn poll(&mut self, worker: usize, now: Time, _random: u64) -> Step {
        if let Some(until) = self.workers.asleep(worker, now) {
            return Step::WaitUntil(until);
        }
        let repeats = self.workers.failures(worker) > 0;
        if !repeats {
            if self.in_flight >= self.limit {
                return Step::WaitForAnswer;
            }
            self.in_flight += 1;
        }
        self.now.reached |= self.in_flight >= self.limit;
        Step::Send
    }

    fn on_answer(&mut self, worker: usize, sent_at: Time, answer: &Answer, now: Time, random: u64) {
        let retryable = answer.throttled || answer.status.is_none_or(|status| status >= 500);
        if retryable {
            self.now.back_pressure = true;
            let wait_s = unit(random) * fibonacci_s(self.workers.failures(worker));
            self.workers.retry_in(worker, now, wait_s);
        } else {
            self.in_flight -= 1;
            self.workers.finish(worker);
        }
        if answer.is_accepted() {
            self.now.sum += now.since(sent_at).as_secs_f64();
            self.now.count += 1;
        }
        self.end_interval(now);
    }

    fn shares_one_queue(&self) -> bool {
        false
    }
}

/// 1, 1, 2, 3, 5, … seconds, capped.
fn fibonacci_s(failures: u32) -> f64 {
    let (mut one, mut next) = (1.0, 1.0);
    for _ in 0..failures.min(10) {
        (one, next) = (next, one + next);
    }
    f64::min(one, RETRY_CAP_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAST: Past = Past { mean: 0.1, variance: 0.0004 };

    #[test]
    fn the_limit_moves_by_one_up_and_a_tenth_down() {
        let interval = |rtt: f64, back_pressure, reached| Interval { sum: rtt, count: 1, back_pressure, reached };
        let cases = [
            (10, interval(0.1, false, true), 11),
            (200, interval(0.1, false, true), 200),
            (10, interval(0.1, false, false), 10), // the limit was not what held it back
            (10, interval(0.14, false, true), 10), // within 2.5 deviations of 0.02
            (10, interval(0.151, false, true), 9),
            (10, interval(0.1, true, true), 9),
            (1, interval(0.1, true, true), 1),
            (5, Interval { back_pressure: true, ..Interval::default() }, 4),
        ];
        for (limit, interval, expected) in cases {
            assert_eq!(adjusted(limit, PAST, interval), expected, "{limit} with {interval:?}");
        }
    }

    #[test]
    fn mean_and_variance_move_together() {
        let mut past = Past { mean: 0.1, variance: 0.0 };
        past.fold(0.2);
        assert!((past.mean - 0.14).abs() < 1e-12 && (past.variance - 0.0024).abs() < 1e-12, "{past:?}");
    }

    #[test]
    fn retries_wait_by_fibonacci() {
        let waits: Vec<f64> = (0..10).map(fibonacci_s).collect();
        assert_eq!(waits, [1.0, 1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0, 30.0, 30.0]);
    }
}
