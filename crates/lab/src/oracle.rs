//! The oracle: the best possible result of a client that knows all limits, their phase and all changes, and is never
//! refused.
//!
//! It sends each request at the earliest moment at which every limit lets it pass unhindered, with the scenario's
//! workers, latency and ceiling. Earliest is best for every kind of limit here: an earlier request never takes a slot
//! from more than one later request.

use crate::provider::{EPSILON_S, LimitState};
use crate::rng::Rng;
use crate::scenario::{LimitKind, Scenario};
use crate::sim::{SALT_LATENCY, SALT_NOISE};

/// Result of the oracle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Best {
    /// Requests accepted within the horizon, minus noise; at most the backlog.
    pub accepted: u64,
    /// When the backlog was done; the horizon if there is none or it was not.
    pub completion_s: f64,
}

/// Runs the oracle.
pub fn best(scenario: &Scenario, seed: u64) -> Best {
    let (mut latency, mut noise) = (Rng::new(seed, SALT_LATENCY), Rng::new(seed, SALT_NOISE));
    let mut limits: Vec<LimitState> =
        scenario.limits.iter().filter(|l| l.kind != LimitKind::Concurrency).map(LimitState::new).collect();
    let mut workers = Workers::new(scenario);
    let (mut now, mut accepted, mut done_s) = (0.0_f64, 0_u64, 0.0_f64);
    let ceiling_s = scenario.ceiling_interval_ms / 1000.0;
    loop {
        now = settle(&mut limits, &mut workers, now);
        if now >= scenario.horizon_s {
            return Best { accepted, completion_s: scenario.horizon_s };
        }
        limits.iter_mut().filter(|l| l.is_active(now)).for_each(|l| l.consume(now));
        let lost = noise.chance(scenario.noise.server_error + scenario.noise.reset);
        let answered = now + scenario.latency.base_ms / 1000.0 * latency.log_normal(scenario.latency.sigma);
        workers.occupy(answered);
        if !lost {
            accepted += 1;
            done_s = done_s.max(answered);
        }
        if scenario.backlog > 0 && accepted == scenario.backlog {
            return Best { accepted, completion_s: done_s.min(scenario.horizon_s) };
        }
        now += ceiling_s;
    }
}

/// The first moment from `from` on at which a worker is free and every limit passes a request. Waiting for a worker
/// may outlast the limits' answer (a concurrency limit that begins meanwhile).
fn settle(limits: &mut [LimitState], workers: &mut Workers, from: f64) -> f64 {
    let mut now = from;
    loop {
        let next = earliest(limits, workers.free_at(now));
        if next <= now || !next.is_finite() {
            return next;
        }
        now = next;
    }
}

/// The first moment from `from` on at which every active limit passes a request unhindered.
fn earliest(limits: &mut [LimitState], from: f64) -> f64 {
    let mut now = from;
    // Each round ends at the end of some wait; limits are few, and a round without a wait ends the loop.
    loop {
        let wait = limits
            .iter_mut()
            .filter(|l| l.is_active(now))
            .map(|l| l.wait_unhindered(now).min(l.period().1 - now))
            .fold(0.0, f64::max);
        // A wait shorter than a nanosecond is rounding, and would not move the clock.
        if wait <= EPSILON_S {
            return now;
        }
        now += wait;
        if !now.is_finite() {
            return f64::INFINITY;
        }
    }
}

/// The client's workers, fewer of them while a concurrency limit is active.
struct Workers {
    ends: Vec<f64>,
    caps: Vec<(f64, f64, usize)>,
    count: usize,
}

impl Workers {
    fn new(scenario: &Scenario) -> Self {
        let caps = scenario
            .limits
            .iter()
            .filter(|l| l.kind == LimitKind::Concurrency)
            .map(|l| {
                (l.from_s, if l.until_s == 0.0 { f64::INFINITY } else { l.until_s }, l.limit.unwrap_or(1.0) as usize)
            })
            .collect();
        Self { ends: Vec::new(), caps, count: scenario.workers }
    }

    /// When a worker is free, from `now` on.
    fn free_at(&mut self, now: f64) -> f64 {
        self.ends.retain(|&end| end > now);
        let allowed = self
            .caps
            .iter()
            .filter(|(from, until, _)| *from <= now && now < *until)
            .map(|&(_, _, limit)| limit)
            .fold(self.count, usize::min);
        if self.ends.len() < allowed {
            return now;
        }
        self.ends.sort_by(f64::total_cmp);
        self.ends[self.ends.len() - allowed]
    }

    fn occupy(&mut self, until: f64) {
        self.ends.push(until);
    }
}
