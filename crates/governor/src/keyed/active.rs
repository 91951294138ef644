//! A key in use: its state, and its figures for people.
//!
//! All decisions are in [`KeyState`], which a single governor has too. The fast path reports its requests to the
//! state in batches. Never waits.

use super::config::RegistryRules;
use super::fast_path::{Batch, FastPath, Passed, Terms};
use super::feedback::{Feedback, Statuses};
use super::key::Idle;
use super::snapshot::{KeySnapshot, Tally};
use super::stats::Latencies;
use crate::admission::permit::{Admission, Advice, Permit};
use crate::admission::state::{Attempt, Bounds, Due, KeyState};
use crate::law::Ordinary;
use crate::law::gcra::Pacing;
use crate::law::pace::Pace;
use crate::reasons::{DeferReason, Deferral};
use crate::retry::circuit::CircuitState;
use crate::signals::outcome::Verdict;
use crate::time::{SECOND, Time};
use std::time::Duration;

impl Permit {
    /// The permit of a request on the fast path.
    #[inline]
    pub(crate) const fn of_passed(passed: Passed, now: Time) -> Self {
        let Passed { seq, others, generation } = passed;
        Self { sent_at: now, seq, generation, others, trial: false, early: false }
    }

    /// Reports a success on the fast path; false when it must be reported to the key. An expired permit is never
    /// fast.
    #[inline]
    pub(crate) fn tell(&self, express: &FastPath, now: Time) -> bool {
        !self.trial && !self.early && express.tell(self.sent_at, self.others, self.generation, now)
    }
}

/// A key in use.
#[derive(Debug)]
pub(crate) struct Active {
    pub(super) state: KeyState,
    latencies: Latencies,
    /// Counts since the key was activated; added to the shard's when it becomes idle.
    pub(super) tally: Tally,
    /// The last send or answer.
    pub(super) last: Time,
}

impl Active {
    pub(super) fn wake(idle: &Idle, rules: &RegistryRules, now: Time) -> Self {
        Self { state: idle.state(rules, now), latencies: Latencies::new(), tally: Tally::default(), last: now }
    }

    pub(super) fn rest(&mut self, rules: &RegistryRules, now: Time) -> Option<(Idle, Tally)> {
        let idle = now.nanos_since(self.last);
        if idle < rules.key.breaker.window {
            return None;
        }
        if self.state.permits.is_due(now) {
            self.state.give_up_lost(now);
        }
        if self.state.lane.in_flight() > 0 {
            return None;
        }
        let idle = Idle { pace: Some(self.state.pace.rest(idle)?), breaker: self.state.breaker, last: self.last };
        Some((idle, self.tally))
    }

    /// Asks whether a request may be sent at `now`; `since` is when the caller first asked.
    #[inline]
    pub(crate) fn admit(&mut self, rules: &RegistryRules, since: Time, now: Time) -> Admission {
        let admission = if rules.config.enabled {
            self.state.admit(&rules.key, &Bounds::NONE, now)
        } else {
            Admission::Send(self.state.send(&rules.key, Due::default(), now))
        };
        match admission {
            Admission::Send(_) => {
                self.tally.granted = self.tally.granted.saturating_add(1);
                self.tally.throttled += u32::from(now.nanos_since(since) > rules.throttled);
                self.last = now;
            }
            Admission::Defer(Deferral { reason: DeferReason::CircuitOpen, .. }) => {
                self.tally.denied = self.tally.denied.saturating_add(1);
            }
            Admission::Defer(_) | Admission::WaitUntil(_) | Admission::WaitForOutcome => {}
        }
        admission
    }

    /// Reports the answer, and returns what to do next.
    #[inline]
    pub(crate) fn feedback(
        &mut self,
        rules: &RegistryRules,
        statuses: Option<&Statuses>,
        permit: &Permit,
        feedback: &Feedback,
        now: Time,
    ) -> Advice {
        let Feedback { outcome, status, attempt, jitter } = feedback;
        self.last = self.last.max(now);
        self.state.on_outcome(&rules.key, permit, outcome, now);
        if outcome.verdict != Verdict::Network {
            self.latencies.add(now.nanos_since(permit.sent_at));
        }
        let is_retryable = statuses.and_then(|statuses| statuses.is_retryable(*status));
        let attempt = Attempt { number: *attempt, jitter: *jitter, is_retryable };
        let advice = self.state.advise(&rules.key, Time::NEVER, outcome, attempt, now);
        self.tally.retries += u32::from(matches!(advice, Advice::RetryAt(_)));
        advice
    }

    /// Takes back a request that was never sent.
    pub(crate) fn cancel(&mut self, rules: &RegistryRules, permit: &Permit) {
        self.tally.granted = self.tally.granted.saturating_sub(1);
        self.state.cancel(&rules.key, permit);
    }

    /// A request was sent and its caller stopped waiting.
    pub(crate) fn abandon(&mut self, permit: &Permit, now: Time) {
        self.last = self.last.max(now);
        self.state.abandon(permit);
    }

    /// The terms of the fast path; `None` while the law must see every request.
    pub(crate) fn terms(&self, rules: &RegistryRules, now: Time) -> Option<Terms> {
        let KeyState { pace, lane, breaker, permits, sent, .. } = &self.state;
        let Pace::Law(pace) = pace else { return None };
        let answers_max = pace.law.batch_max()?;
        let is_closed = breaker.state(now) != CircuitState::Closed || pace.law.gate() > now;
        if !rules.config.enabled || is_closed || !lane.is_wide() || !permits.are_young() {
            return None;
        }
        let (rules, interval) = (&rules.key, pace.interval(&rules.key));
        let stalls_at = u16::try_from(pace.law.in_flight_max()).unwrap_or(u16::MAX);
        Some(Terms {
            due: pace.slot(rules),
            interval,
            gap: Pacing::gap(interval, rules.fastest, rules.tuning),
            until: now.plus(rules.breaker.bucket.min(rules.tuning.batch_max)),
            since: pace.law.since(),
            late: pace.law.late_after(),
            generation: breaker.generation,
            seq: *sent,
            in_flight: lane.in_flight(),
            in_flight_max: stalls_at.min(lane.limit()),
            answers_max,
        })
    }

    /// Applies the requests of the fast path.
    pub(crate) fn on_batch(&mut self, rules: &RegistryRules, batch: &Batch, now: Time) {
        let (rules, state) = (&rules.key, &mut self.state);
        let Pace::Law(pace) = &mut state.pace else { return };
        let &Batch { sends, answers, due, .. } = batch;
        let (interval, micros) = (pace.interval(rules), batch.mean_micros());
        if sends > 0 {
            pace.pacing.resume(due, interval, rules.fastest, rules.tuning);
            state.sent = state.sent.wrapping_add(u32::from(sends));
            self.last = self.last.max(due.min(now));
        }
        let last_send = due.minus(Pacing::gap(interval, rules.fastest, rules.tuning)).min(now);
        pace.law.on_ordinary(&Ordinary { sends, last_send, interval, answers, latency: micros * 1000 }, now);
        state.lane.resume(batch.in_flight, answers, batch.others);
        self.tally.granted = self.tally.granted.saturating_add(u32::from(sends));
        if answers > 0 {
            self.latencies.add_many(batch.latencies(), micros);
            state.answers.add_good(&rules.breaker, answers, now);
            state.breaker.failures_in_row = 0;
            state.retries.earn(u32::from(answers));
        }
    }

    /// Answers in the breaker's window: how much a key is used.
    pub(crate) fn answers(&mut self, rules: &RegistryRules, now: Time) -> u32 {
        self.state.answers.sums(&rules.key.breaker, now).0
    }

    /// The state for people.
    pub(crate) fn snapshot(&mut self, domain: &str, rules: &RegistryRules, now: Time) -> KeySnapshot {
        let (answers, failed) = self.state.answers.sums(&rules.key.breaker, now);
        let (state, is_enabled, rules) = (&self.state, rules.config.enabled, &rules.key);
        let gate = state.pace.gate();
        let (rate_per_s, tokens) = match &state.pace {
            Pace::Bucket(bucket) => (bucket.per_s(), bucket.tokens(rules, now)),
            pace => {
                let rate = SECOND as f64 / pace.interval(rules) as f64;
                (rate, f64::from(u8::from(pace.next(rules, Time::ZERO, now) <= now)))
            }
        };
        KeySnapshot {
            domain: domain.into(),
            rate_per_s,
            tokens,
            latency_mean: self.latencies.mean().map(Duration::from_nanos),
            latency_p95: self.latencies.p95().map(Duration::from_nanos),
            answers,
            error_rate: if answers == 0 { 0.0 } else { f64::from(failed) / f64::from(answers) },
            circuit: state.breaker.state(now),
            failures_in_row: state.breaker.failures_in_row,
            opens_in: state.breaker.open_until(now).unwrap_or(Time::ZERO).max(gate).since(now),
            gate_in: gate.since(now),
            pace_in: state.pace.slot(rules, now).since(now),
            waits_for: state.wait_reason(rules, &Bounds::NONE.quota, now).filter(|_| is_enabled),
            retry_after_too_short: state.pace.is_told_too_short(),
            in_flight: state.lane.in_flight(),
            totals: self.tally.into(),
        }
    }
}
