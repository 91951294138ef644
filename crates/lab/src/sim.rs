//! The event loop: one law, one provider, virtual time.
//!
//! Nothing sleeps: the loop takes the next event and sets the clock, so an hour costs only its requests. The loop
//! asks the law through [`Law`], which the shipped `Governor` and every baseline implement.

use crate::laws::{Answer, Law, Step};
use crate::provider::{Decided, Decision, Provider};
use crate::rng::Rng;
use crate::scenario::Scenario;
use crate::trace::Trace;
use gleaner_governor::Time;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

/// Random streams: the law's actions must not change the noise that it meets. The oracle uses the same two, so it
/// meets the same noise.
pub(crate) const SALT_LATENCY: u64 = 2;
pub(crate) const SALT_NOISE: u64 = 3;
const SALT_LAW: u64 = 4;
/// No answer is faster than a round trip in a data center. With `reject_ms = 0` a law that never waits would
/// otherwise send for ever at one time.
const ANSWER_MIN_S: f64 = 0.001;

/// Counts of one run.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Requests sent.
    pub sent: u64,
    /// Accepted requests.
    pub accepted: u64,
    /// Requests refused, by a limit or by a suspension.
    pub rejected: u64,
    /// Suspensions.
    pub bans: u64,
    /// Sends before the end of a Retry-After that the client had received.
    pub sends_inside_retry_after: u64,
    /// Retries.
    pub retries: u64,
    /// When the last answer of the backlog arrived; the horizon otherwise.
    pub completion_s: f64,
    /// Steps of the event loop: the cost of a run, independent of clocks.
    pub events: u64,
    /// p95 latency of accepted requests over the base latency.
    pub latency_ratio: f64,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// An answer reaches the worker.
    Answer { worker: usize, slot: usize },
    /// A waiting worker asks again.
    Wake { worker: usize },
}

/// A request in flight.
struct Flight {
    sent_at: Time,
    answer: Answer,
    closes_until: Time,
}

/// One run in progress.
struct Run<'a> {
    scenario: &'a Scenario,
    law: &'a mut dyn Law,
    provider: Provider,
    latency: Rng,
    noise: Rng,
    jitter: Rng,
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    sequence: u64,
    flights: Vec<Option<Flight>>,
    free_slots: Vec<usize>,
    /// Workers with nothing in flight, in order of becoming free.
    idle: VecDeque<usize>,
    /// When the shared queue asks again.
    next_wake: Time,
    closed_until: Time,
    redo: u64,
    in_flight: u64,
    /// Accepted requests whose answer has arrived.
    done: u64,
    counts: Counts,
    latencies_ms: Vec<f32>,
    trace: &'a mut Trace,
}

/// Runs one law against one provider and fills `trace`.
pub fn run(scenario: &Scenario, law: &mut dyn Law, seed: u64, trace: &mut Trace) -> Counts {
    let mut run = Run {
        scenario,
        law,
        provider: Provider::new(scenario),
        latency: Rng::new(seed, SALT_LATENCY),
        noise: Rng::new(seed, SALT_NOISE),
        jitter: Rng::new(seed, SALT_LAW),
        events: BinaryHeap::new(),
        sequence: 0,
        flights: Vec::new(),
        free_slots: Vec::new(),
        idle: (0..scenario.workers).collect(),
        next_wake: Time::NEVER,
        closed_until: Time::ZERO,
        redo: 0,
        in_flight: 0,
        done: 0,
        counts: Counts::default(),
        latencies_ms: Vec::new(),
        trace,
    };
    run.go();
    run.finish()
}

/// Seconds since the start.
pub fn seconds(time: Time) -> f64 {
    time.as_nanos() as f64 / 1e9
}

/// The point `seconds` after the start.
pub fn at(seconds: f64) -> Time {
    Time::ZERO + Duration::from_secs_f64(seconds.max(0.0))
}

impl Run<'_> {
    fn go(&mut self) {
        let horizon = at(self.scenario.horizon_s);
        self.dispatch(Time::ZERO);
        while let Some(Reverse((now, _, event))) = self.events.pop() {
            if now >= horizon || self.backlog_done() {
                break;
            }
            self.counts.events += 1;
            match event {
                Event::Answer { worker, slot } => self.receive(worker, slot, now),
                Event::Wake { worker } => {
                    if self.law.shares_one_queue() {
                        if now != self.next_wake {
                            continue; // An answer has moved the wake-up in the meantime.
                        }
                        self.next_wake = Time::NEVER;
                    } else {
                        self.idle.push_back(worker);
                    }
                }
            }
            self.dispatch(now);
        }
    }

    fn backlog_done(&self) -> bool {
        self.scenario.backlog > 0 && self.done >= self.scenario.backlog
    }

    /// Whether every task of the backlog is done or in flight: a client sends nothing extra.
    fn backlog_taken(&self) -> bool {
        self.scenario.backlog > 0 && self.done + self.in_flight >= self.scenario.backlog
    }

    /// Asks the law for each free worker, the longest free first.
    fn dispatch(&mut self, now: Time) {
        // A worker that waits for an answer goes to the end, so that each is asked once.
        for _ in 0..self.idle.len() {
            let Some(worker) = self.idle.pop_front() else { return };
            if self.backlog_taken() {
                return self.idle.push_front(worker);
            }
            let step = self.law.poll(worker, now, self.jitter.next_u64());
            match step {
                Step::Send => self.send(worker, now),
                // One waiter represents a shared queue: the longest free worker sends first.
                _ if self.law.shares_one_queue() => {
                    self.idle.push_front(worker);
                    return self.wake_queue(step, now);
                }
                Step::WaitUntil(at) => self.push_wake(at, worker, now),
                Step::WaitForAnswer => self.idle.push_back(worker),
            }
        }
    }

    fn wake_queue(&mut self, step: Step, now: Time) {
        match step {
            Step::WaitUntil(at) if at != self.next_wake => {
                self.next_wake = at;
                self.push_wake(at, 0, now);
            }
            Step::WaitUntil(_) | Step::WaitForAnswer | Step::Send => {}
        }
    }

    fn push_wake(&mut self, at: Time, worker: usize, now: Time) {
        assert!(at > now, "a law that waits until now would spin for ever");
        self.push(at, Event::Wake { worker });
    }

    fn send(&mut self, worker: usize, now: Time) {
        self.counts.sent += 1;
        self.in_flight += 1;
        self.counts.sends_inside_retry_after += u64::from(now < self.closed_until);
        if self.redo > 0 {
            self.redo -= 1;
            self.counts.retries += 1;
        }
        let sent_s = seconds(now);
        let decided = self.provider.decide(sent_s);
        let latency_s = self.answer_latency_s(&decided);
        let arrival = at(sent_s + latency_s);
        if decided.decision == Decision::Accepted {
            self.provider.occupy(sent_s, seconds(arrival));
        }
        let lost = self.draw_noise(&decided);
        let headers = self.provider.headers(&decided, sent_s, seconds(arrival));
        let answer = Answer::new(decided.decision, lost, headers, self.scenario);
        self.account(&answer, sent_s, latency_s);
        let closes_until = answer.closed_until(arrival);
        let slot = self.store(Flight { sent_at: now, answer, closes_until });
        self.push(arrival, Event::Answer { worker, slot });
    }

    fn answer_latency_s(&mut self, decided: &Decided) -> f64 {
        if decided.decision != Decision::Accepted {
            return (self.scenario.latency.reject_ms / 1000.0).max(ANSWER_MIN_S);
        }
        let factor = self.latency.log_normal(self.scenario.latency.sigma) * decided.factor;
        self.scenario.latency.base_ms / 1000.0 * factor + decided.delay_s
    }

    fn draw_noise(&mut self, decided: &Decided) -> Option<Lost> {
        let draw = self.noise.unit();
        let noise = &self.scenario.noise;
        match decided.decision {
            Decision::Accepted if draw < noise.server_error => Some(Lost::ServerError),
            Decision::Accepted if draw < noise.server_error + noise.reset => Some(Lost::Reset),
            _ => None,
        }
    }

    fn account(&mut self, answer: &Answer, sent_s: f64, latency_s: f64) {
        if answer.is_accepted() {
            self.counts.accepted += 1;
            self.latencies_ms.push((latency_s * 1000.0) as f32);
            self.trace.accepted(sent_s);
        } else if answer.is_refused() {
            self.counts.rejected += 1;
            self.trace.rejected(sent_s);
        }
    }

    fn receive(&mut self, worker: usize, slot: usize, now: Time) {
        let Some(flight) = self.flights[slot].take() else { return };
        self.free_slots.push(slot);
        self.in_flight -= 1;
        self.done += u64::from(flight.answer.is_accepted());
        if self.backlog_done() {
            self.counts.completion_s = seconds(now);
        }
        self.closed_until = self.closed_until.max(flight.closes_until);
        self.redo += u64::from(!flight.answer.is_accepted());
        self.law.on_answer(worker, flight.sent_at, &flight.answer, now, self.jitter.next_u64());
        self.trace.rate(seconds(now), self.law.rate_per_s());
        self.idle.push_back(worker);
    }

    fn store(&mut self, flight: Flight) -> usize {
        let slot = self.free_slots.pop().unwrap_or_else(|| {
            self.flights.push(None);
            self.flights.len() - 1
        });
        self.flights[slot] = Some(flight);
        slot
    }

    fn push(&mut self, at: Time, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((at, self.sequence, event)));
    }

    fn finish(mut self) -> Counts {
        self.counts.bans = self.provider.bans;
        if !self.backlog_done() {
            self.counts.completion_s = self.scenario.horizon_s;
        }
        self.counts.latency_ratio = percentile_95(&mut self.latencies_ms) / self.scenario.latency.base_ms;
        self.counts
    }
}

/// An admitted request that failed for a reason other than a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// Answered 500.
    ServerError,
    /// The connection was reset.
    Reset,
}

fn percentile_95(samples: &mut [f32]) -> f64 {
    if samples.is_empty() {
        return 0.0;
    }
    let rank = (samples.len() * 95).div_ceil(100).max(1) - 1;
    let (_, value, _) = samples.select_nth_unstable_by(rank, f32::total_cmp);
    f64::from(*value)
}
