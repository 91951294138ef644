//! Shared by the baselines: workers that sleep before retries, and sends at intervals.
//!
//! These laws sleep on the thread that retries, so each worker has its own wake-up time here. Each law decides how
//! long to sleep.

use super::{Answer, Step};
use crate::sim::seconds;
use gleaner_governor::Time;
use std::time::Duration;

/// The sleeps and failed attempts of a scenario's workers.
#[derive(Clone, Debug)]
pub(super) struct Workers(Vec<Worker>);

#[derive(Clone, Copy, Debug)]
struct Worker {
    failures: u32,
    asleep_until: Time,
}

impl Workers {
    pub(super) fn new(count: usize) -> Self {
        Self(vec![Worker { failures: 0, asleep_until: Time::ZERO }; count])
    }

    /// When the worker wakes up, if that is later than `now`.
    pub(super) fn asleep(&self, worker: usize, now: Time) -> Option<Time> {
        let until = self.0[worker].asleep_until;
        (until > now).then_some(until)
    }

    /// Failed attempts of the worker's request so far.
    pub(super) fn failures(&self, worker: usize) -> u32 {
        self.0[worker].failures
    }

    /// The worker's request ended, successfully or not.
    pub(super) fn finish(&mut self, worker: usize) {
        self.0[worker].failures = 0;
    }

    /// The attempt failed; the next one follows after `wait_s`.
    pub(super) fn retry_in(&mut self, worker: usize, now: Time, wait_s: f64) {
        let state = &mut self.0[worker];
        state.failures = state.failures.saturating_add(1);
        state.asleep_until = later(now, wait_s);
    }
}

/// Sends at intervals, for all workers together.
#[derive(Clone, Debug, Default)]
pub(super) struct Paced {
    last_send: Option<Time>,
    /// Nothing is sent before this.
    gate: Time,
}

impl Paced {
    /// Sends if the last send is `interval_s` ago and the gate is open.
    pub(super) fn poll(&mut self, now: Time, interval_s: f64) -> Step {
        let next = self.last_send.map_or(Time::ZERO, |at| later(at, interval_s)).max(self.gate);
        if next > now {
            return Step::WaitUntil(next);
        }
        self.last_send = Some(now);
        Step::Send
    }

    /// Closes the gate for `wait_s`.
    pub(super) fn close_for(&mut self, now: Time, wait_s: f64) {
        self.gate = self.gate.max(later(now, wait_s));
    }
}

/// The time `wait_s` after `now`, at least a microsecond later.
pub(super) fn later(now: Time, wait_s: f64) -> Time {
    now + Duration::from_secs_f64(wait_s.clamp(1e-6, 1e9))
}

/// Uniform in `[0, 1)` from 64 random bits.
pub(super) fn unit(random: u64) -> f64 {
    (random >> 11) as f64 / (1u64 << 53) as f64
}

/// `base * 2^doublings`, at most `cap`; all in seconds.
pub(super) fn exponential(base_s: f64, doublings: u32, cap_s: f64) -> f64 {
    (base_s * 2.0_f64.powi(doublings.min(60) as i32)).min(cap_s)
}

/// Retry-After in seconds if it asks for a wait. Zero counts as absent, as in urllib3's `Retry` (`if retry_after:`):
/// taken literally it would mean to retry at once.
pub(super) fn told_wait_s(answer: &Answer, now: Time) -> Option<f64> {
    answer.retry_after(seconds(now)).map(|wait| wait.as_secs_f64()).filter(|&wait| wait > 0.0)
}
