//! The request-rate controller of polars' cloud reader: search, recover, track.
//!
//! Made for object stores, so its floor of 10/s is above many limits here; it is not scaled down. We assume a retry
//! layer below the controller that honors Retry-After, which favors it, and otherwise backs off like the
//! `object_store` crate. Its refusal to queue for more than 10 s cannot happen at 10/s and is left out.

use super::workers::{Workers, exponential, later, told_wait_s, unit};
use super::{Answer, Law, Step};
use crate::scenario::Scenario;
use crate::sim::seconds;
use gleaner_governor::Time;

/// Rates per second and seconds, by the original's defaults.
const TICK_S: f64 = 1.0;
const START: f64 = 1000.0;
const FLOOR: f64 = 10.0;
const CEILING: f64 = 50_000.0;
const UTILISED: f64 = 0.8;
const GOODPUT_WEIGHT: f64 = 0.8;
const REFRACTORY_S: f64 = 1.0;
const RECOVER_S: f64 = 2.0;
const CUT: f64 = 0.7;
const CUT_BLIND: f64 = 0.5;
const STEP_SHARE: f64 = 0.1;
const STEP_MIN: f64 = 5.0;
const IDLE_DECAY: f64 = 0.9;
/// `object_store::BackoffConfig` as shipped: 100 ms, doubling, at most 15 s.
const RETRY_FIRST_S: f64 = 0.1;
const RETRY_CAP_S: f64 = 15.0;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Search,
    Recover { until_s: f64 },
    Track,
}

/// One rate for all workers, retries on each.
#[derive(Clone, Debug)]
pub(super) struct Polars {
    workers: Workers,
    rate: f64,
    phase: Phase,
    anchor: f64,
    goodput: Option<f64>,
    cut_at_s: Option<f64>,
    next_send: Time,
    tick: Tick,
}

/// Counts since the last tick.
#[derive(Clone, Copy, Debug, Default)]
struct Tick {
    began_s: f64,
    sent: f64,
    accepted: f64,
    throttled: bool,
}

impl Polars {
    pub(super) fn new(scenario: &Scenario) -> Self {
        Self {
            workers: Workers::new(scenario.workers),
            rate: START,
            phase: Phase::Search,
            anchor: START,
            goodput: None,
            cut_at_s: None,
            next_send: Time::ZERO,
            tick: Tick::default(),
        }
    }

    /// Processes the ticks that have passed. After a long silence only the decay repeats, which has ended long before
    /// the limit.
    fn advance(&mut self, now_s: f64) {
        for _ in 0..100 {
            if now_s - self.tick.began_s < TICK_S {
                return;
            }
            self.end_tick();
        }
        self.tick = Tick { began_s: now_s.floor(), ..Tick::default() };
    }

    fn end_tick(&mut self) {
        let tick = self.tick;
        let ends_s = tick.began_s + TICK_S;
        self.tick = Tick { began_s: ends_s, ..Tick::default() };
        if tick.sent == 0.0 {
            self.rate = if self.rate > START { (self.rate * IDLE_DECAY).max(START) } else { self.rate };
            return;
        }
        let fresh = tick.accepted / TICK_S;
        self.goodput = Some(self.goodput.map_or(fresh, |old| GOODPUT_WEIGHT * fresh + (1.0 - GOODPUT_WEIGHT) * old));
        let utilised = tick.sent >= UTILISED * self.rate * TICK_S && !tick.throttled;
        match self.phase {
            Phase::Recover { until_s } if ends_s >= until_s => self.phase = Phase::Track,
            Phase::Search if utilised => self.rate = (self.rate * 2.0).min(CEILING),
            Phase::Track if utilised => self.rate = self.tracked(),
            _ => {}
        }
    }

    fn tracked(&self) -> f64 {
        let raised = if self.rate < self.anchor {
            (self.rate * 2.0).min(self.anchor)
        } else {
            self.rate + (STEP_SHARE * self.anchor).max(STEP_MIN)
        };
        raised.min(CEILING)
    }

    fn cut(&mut self, now_s: f64) {
        self.tick.throttled = true;
        if self.cut_at_s.is_some_and(|at| now_s - at < REFRACTORY_S) {
            return;
        }
        self.cut_at_s = Some(now_s);
        self.rate = match self.goodput {
            Some(goodput) => {
                self.anchor = self.rate.min(goodput.max(FLOOR));
                CUT * self.anchor
            }
            None => CUT_BLIND * self.rate,
        }
        .max(FLOOR);
        self.phase = Phase::Recover { until_s: now_s + RECOVER_S };
    }
}

impl Law for Polars {
    fn poll(&mut self, worker: usize, now: Time, _random: u64) -> Step {
        self.advance(seconds(now));
        if let Some(until) = self.workers.asleep(worker, now) {
            return Step::WaitUntil(until);
        }
        if self.next_send > now {
            return Step::WaitUntil(self.next_send);
        }
        self.next_send = later(now, 1.0 / self.rate);
        self.tick.sent += 1.0;
        Step::Send
    }

    fn on_answer(&mut self, worker: usize, _sent_at: Time, answer: &Answer, now: Time, random: u64) {
        self.advance(seconds(now));
        if answer.throttled {
            self.cut(seconds(now));
        }
        if answer.is_accepted() {
            self.tick.accepted += 1.0;
            return self.workers.finish(worker);
        }
        let drawn = unit(random) * exponential(RETRY_FIRST_S, self.workers.failures(worker), RETRY_CAP_S);
        self.workers.retry_in(worker, now, told_wait_s(answer, now).unwrap_or(drawn));
    }

    fn rate_per_s(&self) -> Option<f64> {
        Some(self.rate)
    }

    fn shares_one_queue(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws::examples;

    #[test]
    fn a_cut_anchors_at_what_got_through() {
        let mut law = Polars::new(&examples::scenario());
        law.cut(0.5);
        assert_eq!(law.rate, 500.0, "nothing measured yet");
        law.goodput = Some(100.0);
        law.cut(1.0);
        assert_eq!(law.rate, 500.0, "the same burst");
        law.cut(1.5);
        assert_eq!((law.rate, law.anchor, law.phase), (70.0, 100.0, Phase::Recover { until_s: 3.5 }));
        assert_eq!(law.tracked(), 100.0);
        law.rate = 100.0;
        assert_eq!(law.tracked(), 110.0);
        law.goodput = Some(3.0);
        law.cut(9.0);
        assert_eq!((law.rate, law.anchor), (10.0, 10.0), "never below its floor");
        assert_eq!(law.tracked(), 15.0);
    }
}
