//! A key at work: its pace, circuit, retry credit and figures.
//!
//! Order of the layers as in [`Governor`](crate::Governor): circuit, lane, then one time at which the send is
//! due. Settings are shared by all keys and are an argument. Never waits.

use super::breaker::{Breaker, Decision, Health};
use super::bucket::Sign;
use super::config::Rules;
use super::credit::Credit;
use super::express::{Batch, Express, Passed, Terms};
use super::feedback::{Feedback, Statuses};
use super::found::{Due, Sending};
use super::key::Idle;
use super::pace::Pace;
use super::snapshot::{KeySnapshot, Tally};
use super::stats::{ErrorWindow, Latencies};
use crate::admission::governor::Advice;
use crate::admission::lane::Lane;
use crate::reasons::{DeferReason, Deferral, PressureReason, WaitReason};
use crate::retry::backoff::Backoff;
use crate::retry::circuit::CircuitState;
use crate::signals::outcome::Verdict;
use crate::time::{SECOND, Time};
use std::time::Duration;

/// Leave to send one request now. It must be answered: with [`feedback`](super::Registry::feedback), or with
/// [`cancel`](super::Registry::cancel) when it was never sent, or [`abandon`](super::Registry::abandon) when
/// nobody waits for the answer.
#[must_use = "a permit must be answered"]
#[derive(Debug)]
pub struct Permit {
    sending: Sending,
    generation: u16,
}

impl Permit {
    /// Leave for a request that went past the lock.
    #[inline]
    pub(crate) const fn of_passed(passed: Passed, now: Time) -> Self {
        let Passed { seq, others, generation } = passed;
        Self { sending: Sending { sent_at: now, seq, others, trial: false, early: false }, generation }
    }

    /// Whether its success may be told without a word to the key.
    #[inline]
    pub(crate) fn tell(&self, express: &Express, now: Time) -> bool {
        let Sending { sent_at, others, trial, early, .. } = self.sending;
        !trial && !early && express.tell(sent_at, others, self.generation, now)
    }
}

/// The answer to "may I send?".
#[derive(Debug)]
pub enum Admission {
    /// Now.
    Send(Permit),
    /// Not before this time, which is later than now. Ask again then.
    WaitUntil(Time),
    /// Not before one of the requests in flight is answered. Ask again then.
    WaitForAnswer,
    /// The circuit is open until then: the provider is not healthy.
    Denied {
        /// When a probe may be sent.
        until: Time,
    },
}

/// A key at work.
#[derive(Debug)]
pub(crate) struct Active {
    pub(super) breaker: Breaker,
    pub(super) lane: Lane,
    pub(super) pace: Pace,
    credit: Credit,
    errors: ErrorWindow,
    latencies: Latencies,
    /// Since the key went to work; added to the shard's when it rests.
    pub(super) tally: Tally,
    /// The last send or answer.
    pub(super) last: Time,
}

impl Active {
    pub(super) fn wake(idle: &Idle, rules: &Rules, now: Time) -> Self {
        let pace = idle.woken_pace(rules, now).unwrap_or_else(|| Pace::new(rules));
        let interval = pace.interval(rules);
        Self {
            breaker: idle.breaker,
            lane: Lane::new(rules.config.max_in_flight, rules.config.tuning),
            pace,
            credit: Credit::full(rules, interval),
            errors: ErrorWindow::new(),
            latencies: Latencies::new(),
            tally: Tally::default(),
            last: now,
        }
    }

    pub(super) fn rest(&self, rules: &Rules, now: Time) -> Option<(Idle, Tally)> {
        let idle = now.nanos_since(self.last);
        if idle < rules.window || self.lane.in_flight() > 0 {
            return None;
        }
        let pace = self.pace.rest(idle)?;
        let idle = Idle { pace: Some(pace), breaker: self.breaker, last: self.last };
        Some((idle, self.tally))
    }

    pub(crate) const fn pace(&self) -> &Pace {
        &self.pace
    }

    /// Asks whether a request may be sent at `now`; `since` is when its caller began to ask.
    #[inline]
    pub(crate) fn admit(&mut self, rules: &Rules, since: Time, now: Time) -> Admission {
        if !rules.config.enabled {
            return Admission::Send(self.send(rules, None, since, now));
        }
        match self.breaker.decide(now) {
            Decision::Admit => {}
            Decision::Refuse { until } => {
                self.tally.denied = self.tally.denied.saturating_add(1);
                return Admission::Denied { until };
            }
            Decision::ProbeOut => return Admission::WaitForAnswer,
        }
        if !self.lane.admits() {
            return Admission::WaitForAnswer;
        }
        let (at, due) = match &mut self.pace {
            Pace::Found(found) => match found.due(rules, self.lane.in_flight(), now) {
                None => return Admission::WaitForAnswer,
                Some(due) => (due.at, Some(due)),
            },
            Pace::Bucket(bucket) => (bucket.due(rules, now), None),
        };
        if at > now { Admission::WaitUntil(at) } else { Admission::Send(self.send(rules, due, since, now)) }
    }

    #[inline]
    fn send(&mut self, rules: &Rules, due: Option<Due>, since: Time, now: Time) -> Permit {
        let generation = self.breaker.on_send();
        let others = self.lane.on_send();
        let sending = match &mut self.pace {
            Pace::Found(found) => found.on_send(rules, due, others, now),
            Pace::Bucket(bucket) => Sending { sent_at: now, seq: bucket.on_send(), others, trial: false, early: false },
        };
        self.tally.granted = self.tally.granted.saturating_add(1);
        self.tally.throttled += u32::from(now.nanos_since(since) > rules.throttled);
        self.last = now;
        Permit { sending, generation }
    }

    /// Tells what came back, and says what to do next.
    #[inline]
    pub(crate) fn feedback(
        &mut self,
        rules: &Rules,
        statuses: Option<&Statuses>,
        permit: &Permit,
        feedback: &Feedback,
        now: Time,
    ) -> Advice {
        let verdict = feedback.outcome.verdict;
        self.lane.on_done();
        self.last = self.last.max(now);
        let latency = now.nanos_since(permit.sending.sent_at);
        let retry_after = feedback.told_wait();
        let is_first = self.teach(rules, permit, verdict, retry_after, latency, now);
        if verdict != Verdict::Network {
            self.latencies.add(latency);
        }
        let health = health(verdict, retry_after.is_some(), is_first);
        if health != Health::Unsaid {
            self.errors.add(rules, health == Health::Bad, now);
        }
        self.breaker.on_answer(rules, &mut self.errors, health, permit.generation, now);
        if verdict == Verdict::Success && statuses.is_none() {
            self.credit.earn(1);
            return Advice::Done;
        }
        self.settle(rules, statuses, feedback, retry_after, now)
    }

    /// What is not an ordinary success.
    #[cold]
    fn settle(
        &mut self,
        rules: &Rules,
        statuses: Option<&Statuses>,
        feedback: &Feedback,
        retry_after: Option<u64>,
        now: Time,
    ) -> Advice {
        if let Some(wait) = retry_after {
            self.pace.close_until(now.plus(wait));
        }
        let verdict = feedback.outcome.verdict;
        let is_retryable = statuses
            .and_then(|statuses| statuses.is_retryable(feedback.status))
            .unwrap_or_else(|| verdict.is_retryable());
        if !is_retryable {
            if verdict == Verdict::Success {
                self.credit.earn(1);
            }
            if verdict == Verdict::Banned {
                return self.pressure(PressureReason::UpstreamPressure, now);
            }
            return Advice::Done;
        }
        self.advise(rules, feedback, retry_after, now)
    }

    fn teach(
        &mut self,
        rules: &Rules,
        permit: &Permit,
        verdict: Verdict,
        retry_after: Option<u64>,
        latency: u64,
        now: Time,
    ) -> bool {
        match &mut self.pace {
            Pace::Found(found) => found.on_answer(&permit.sending, verdict, retry_after, &mut self.lane, now),
            Pace::Bucket(bucket) => {
                let sign = match verdict {
                    Verdict::Success => Sign::Success(latency),
                    Verdict::Throttled | Verdict::ServerError | Verdict::Banned => Sign::Overload,
                    Verdict::Network | Verdict::Forbidden | Verdict::Permanent => Sign::None,
                };
                bucket.on_answer(rules, sign, permit.sending.seq, self.latencies.mean(), now)
            }
        }
    }

    /// Whether to try again: attempts, then circuit, then retry budget.
    fn advise(&mut self, rules: &Rules, feedback: &Feedback, retry_after: Option<u64>, now: Time) -> Advice {
        let config = &rules.config;
        if !rules.backoff.allows_retry_after(feedback.attempt) {
            if feedback.outcome.verdict == Verdict::Throttled {
                return self.pressure(PressureReason::RateLimited, now);
            }
            return Advice::Defer(Deferral { reason: DeferReason::Attempts, not_before: None });
        }
        if let Some(until) = self.breaker.open_until(now).filter(|_| config.enabled) {
            return Advice::Defer(Deferral { reason: DeferReason::CircuitOpen, not_before: Some(until) });
        }
        let interval = self.pace.interval(rules);
        if !self.credit.spend(rules, interval) {
            return Advice::Defer(Deferral { reason: DeferReason::RetryBudget, not_before: None });
        }
        self.tally.retries += 1;
        let backoff = self.backoff_after(rules, feedback.outcome.verdict);
        let pause = retry_after.unwrap_or_else(|| backoff.delay(feedback.attempt, feedback.jitter));
        Advice::RetryAt(now.plus(pause))
    }

    /// After a throttle the law itself has slowed down; a long pause of the one request on top would leave
    /// the key idle.
    fn backoff_after(&self, rules: &Rules, verdict: Verdict) -> Backoff {
        match &self.pace {
            Pace::Found(found) if verdict == Verdict::Throttled => {
                rules.backoff.with_base_at_most(found.interval(rules))
            }
            Pace::Found(_) | Pace::Bucket(_) => rules.backoff,
        }
    }

    fn pressure(&self, reason: PressureReason, now: Time) -> Advice {
        Advice::Pressure { reason, not_before: Some(self.pace.gate()).filter(|&gate| gate > now) }
    }

    /// Takes back a request that was never sent.
    pub(crate) fn cancel(&mut self, rules: &Rules, permit: &Permit) {
        self.lane.on_done();
        self.breaker.on_cancel(permit.generation);
        self.tally.granted = self.tally.granted.saturating_sub(1);
        match &mut self.pace {
            Pace::Found(found) => found.on_cancel(rules, &permit.sending),
            Pace::Bucket(bucket) => bucket.refund(rules),
        }
    }

    /// A request was sent, and nobody waits for its answer.
    pub(crate) fn abandon(&mut self, permit: &Permit, now: Time) {
        self.lane.on_done();
        self.breaker.on_cancel(permit.generation);
        self.last = self.last.max(now);
        if let Pace::Found(found) = &mut self.pace {
            found.on_abandon(&permit.sending);
        }
    }

    /// The terms under which ordinary requests may go past the lock; `None` while each matters.
    pub(crate) fn terms(&self, rules: &Rules, now: Time) -> Option<Terms> {
        let Pace::Found(found) = &self.pace else { return None };
        if !rules.config.enabled || self.breaker.state(now) != CircuitState::Closed {
            return None;
        }
        found.terms(rules, &self.lane, self.breaker.generation, now)
    }

    /// Takes in what went past the lock.
    pub(crate) fn on_batch(&mut self, rules: &Rules, batch: &Batch, now: Time) {
        let Pace::Found(found) = &mut self.pace else { return };
        let micros = batch.mean_micros();
        found.on_batch(rules, batch, micros * 1000, now);
        self.lane.resume(batch.in_flight, batch.answers, batch.others);
        self.tally.granted = self.tally.granted.saturating_add(u32::from(batch.sends));
        if batch.sends > 0 {
            self.last = self.last.max(batch.due.min(now));
        }
        if batch.answers > 0 {
            self.latencies.add_many(batch.latencies(), micros);
            self.errors.add_good(rules, batch.answers, now);
            self.breaker.failures_in_row = 0;
            self.credit.earn(u32::from(batch.answers));
        }
    }

    /// Answers in the stats window: by how much a key is used.
    pub(crate) fn answers(&mut self, rules: &Rules, now: Time) -> u32 {
        self.errors.sums(rules, now).0
    }

    /// What a request would wait for now: the one reason that holds longest.
    fn wait_reason(&self, rules: &Rules, now: Time) -> Option<WaitReason> {
        if !rules.config.enabled {
            return None;
        }
        match self.breaker.decide(now) {
            Decision::Admit => {}
            Decision::Refuse { .. } => return Some(WaitReason::Circuit),
            Decision::ProbeOut => return Some(WaitReason::InFlight),
        }
        let mut candidates = [
            (WaitReason::Pacing, self.pace.pace_slot(rules, now)),
            (WaitReason::Gate, self.pace.gate()),
            (WaitReason::Window, Time::ZERO),
        ];
        if let Pace::Found(found) = &self.pace {
            match found.due(rules, self.lane.in_flight(), now) {
                None => return Some(WaitReason::InFlight),
                Some(due) => candidates[2].1 = found.law().window.due(due.at.max(now), rules.config.tuning),
            }
        }
        if !self.lane.admits() {
            return Some(WaitReason::InFlight);
        }
        // Of two that end together the later in the list says more.
        let (reason, until) = candidates.into_iter().max_by_key(|&(_, until)| until)?;
        (until > now).then_some(reason)
    }

    /// The state for people.
    pub(crate) fn snapshot(&mut self, domain: &str, rules: &Rules, now: Time) -> KeySnapshot {
        let (answers, failed) = self.errors.sums(rules, now);
        let tokens = match &self.pace {
            Pace::Found(found) => f64::from(u8::from(found.next(rules, now) <= now)),
            Pace::Bucket(bucket) => bucket.tokens(rules, now),
        };
        KeySnapshot {
            domain: domain.into(),
            rate_per_s: SECOND as f64 / self.pace.interval(rules) as f64,
            tokens,
            latency_mean: self.latencies.mean().map(Duration::from_nanos),
            latency_p95: self.latencies.p95().map(Duration::from_nanos),
            answers,
            error_rate: if answers == 0 { 0.0 } else { f64::from(failed) / f64::from(answers) },
            circuit: self.breaker.state(now),
            failures_in_row: self.breaker.failures_in_row,
            opens_in: self.breaker.open_until(now).unwrap_or(Time::ZERO).max(self.pace.gate()).since(now),
            gate_in: self.pace.gate().since(now),
            pace_in: self.pace.pace_slot(rules, now).since(now),
            waits_for: self.wait_reason(rules, now),
            retry_after_too_short: self.pace.is_told_too_short(),
            in_flight: self.lane.in_flight(),
            totals: self.tally.into(),
        }
    }
}

/// A throttle that says until when is a healthy provider; without it, it counts once per burst.
fn health(verdict: Verdict, told: bool, is_first: bool) -> Health {
    match verdict {
        Verdict::Success => Health::Good,
        Verdict::ServerError | Verdict::Network => Health::Bad,
        Verdict::Throttled if !told && is_first => Health::Bad,
        Verdict::Throttled | Verdict::Forbidden | Verdict::Banned | Verdict::Permanent => Health::Unsaid,
    }
}
