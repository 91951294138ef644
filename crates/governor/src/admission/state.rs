//! State of one key and the path of a request through it: admission, send, outcome, advice.
//!
//! A [`Governor`](crate::Governor) has one, a [`Registry`](crate::keyed::Registry) one per key in use. Settings are
//! an argument, because all keys of a registry share them. The steps decide at once and never wait: circuit breaker,
//! requests in flight, then the time at which the send is due, which is the *latest* of pacing, gate, window and
//! quota, never their sum.

mod memory;

use super::lane::Lane;
use super::permit::{Admission, Advice, Permit, PermitAges};
use crate::config::Rules;
use crate::law::pace::{IdlePace, LawPace, Pace};
use crate::law::{Accepted, Refusal};
use crate::reasons::{DeferReason, Deferral, PressureReason, WaitReason};
use crate::retry::answer_window::AnswerWindow;
use crate::retry::backoff::{Backoff, Jitter};
use crate::retry::breaker::{Breaker, Decision, Event};
use crate::retry::budget::RetryBudget;
use crate::retry::circuit::Change;
use crate::signals::outcome::{Outcome, Verdict};
use crate::signals::quota::QuotaAdvice;
use crate::snapshot::BackoffReason;
use crate::time::{Time, nanos};

/// Bounds on the next send that only a single governor has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// The quota that remains by the provider's headers.
    pub(crate) quota: QuotaAdvice,
    /// When the run is over.
    pub(crate) deadline: Time,
}

impl Bounds {
    /// No quota and no deadline.
    pub(crate) const NONE: Self = Self {
        quota: QuotaAdvice { closed_until: Time::ZERO, needs_answer: false, exhausted: None },
        deadline: Time::NEVER,
    };

    /// A wait until `at`, or a deferral when that is too late.
    fn wait_until(&self, at: Time, rules: &Rules, now: Time) -> Result<Time, Deferral> {
        let reason = if self.deadline <= at && self.deadline != Time::NEVER {
            DeferReason::WallClock
        } else if at.nanos_since(now) > rules.horizon {
            DeferReason::BeyondHorizon
        } else {
            return Ok(at);
        };
        Err(Deferral { reason, not_before: Some(at) })
    }
}

/// When the next send is due, and what kind of send it is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Due {
    at: Time,
    /// A trial: it tests whether the provider accepts requests again.
    trial: bool,
    /// It tests a shorter window.
    early: bool,
}

/// A failed request that may be retried.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt {
    /// Counted from 0.
    pub(crate) number: u32,
    /// Random bits for the pause before a retry.
    pub(crate) jitter: Jitter,
    /// The owner's override of whether to retry; `None`: by the verdict.
    pub(crate) is_retryable: Option<bool>,
}

/// Changes that an outcome caused beside the pace, to show to people.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effect {
    pub(crate) change: Option<Change>,
    /// Why the rate was lowered or the gate closed.
    pub(crate) backoff: Option<BackoffReason>,
}

/// The state of one key.
#[derive(Debug)]
pub(crate) struct KeyState {
    pub(crate) breaker: Breaker,
    /// Recent answers that count towards the circuit breaker.
    pub(crate) answers: AnswerWindow,
    pub(crate) lane: Lane,
    pub(crate) permits: PermitAges,
    pub(crate) pace: Pace,
    pub(crate) retries: RetryBudget,
    /// Sends so far, wrapping.
    pub(crate) sent: u32,
    /// A trial is in flight: it tests whether the provider accepts requests again.
    is_trial_out: bool,
}

impl KeyState {
    /// A new key.
    pub(crate) fn new(rules: &Rules) -> Self {
        Self::with(Pace::new(rules), Breaker::new(), rules)
    }

    /// Activates an idle key.
    pub(crate) fn wake(pace: Option<&IdlePace>, breaker: Breaker, rules: &Rules, now: Time) -> Self {
        let pace = pace.map_or_else(|| Pace::new(rules), |pace| pace.wake(rules, now));
        Self::with(pace, breaker, rules)
    }

    fn with(pace: Pace, breaker: Breaker, rules: &Rules) -> Self {
        Self {
            breaker,
            answers: AnswerWindow::new(),
            lane: Lane::new(rules.max_concurrency, rules.tuning),
            permits: PermitAges::default(),
            retries: RetryBudget::full(&rules.retry, pace.interval(rules)),
            pace,
            sent: 0,
            is_trial_out: false,
        }
    }

    /// Asks whether a request may be sent at `now`. [`Admission::Send`] counts as sent. If it opens a new circuit
    /// generation, that one is [`Breaker::PROBING`].
    #[inline]
    pub(crate) fn admit(&mut self, rules: &Rules, bounds: &Bounds, now: Time) -> Admission {
        if self.permits.is_due(now) {
            self.give_up_lost(now);
        }
        match self.breaker.decide(&rules.breaker, now) {
            Decision::Admit => {}
            Decision::Refuse { until } => {
                let deferral = Deferral { reason: DeferReason::CircuitOpen, not_before: Some(until) };
                return Admission::Defer(deferral);
            }
            Decision::ProbesOut => return Admission::WaitForOutcome,
        }
        match self.due(rules, &bounds.quota, now) {
            None => Admission::WaitForOutcome,
            Some(due) if due.at <= now => Admission::Send(self.send(rules, due, now)),
            Some(due) => match bounds.wait_until(due.at, rules, now) {
                Ok(at) => Admission::WaitUntil(at),
                Err(deferral) => Admission::Defer(deferral),
            },
        }
    }

    /// The time of the next send: the latest of all that apply. `None`: wait for an answer.
    #[inline]
    fn due(&mut self, rules: &Rules, quota: &QuotaAdvice, now: Time) -> Option<Due> {
        if self.needs_answer(quota) {
            return None;
        }
        let Pace::Law(pace) = &mut self.pace else {
            return Some(Due { at: self.pace.next(rules, quota.closed_until, now), ..Due::default() });
        };
        let mut trial = pace.law.is_trying();
        if let Some(limit) = quota.exhausted {
            pace.law.on_exhausted(limit, now);
            trial = true;
        }
        let at = pace.next(rules, quota.closed_until, now);
        let early = pace.law.window.is_early(at.max(now));
        if early && pace.law.window.is_testing() {
            return None;
        }
        Some(Due { at, trial, early })
    }

    /// Whether the next request must wait for the answer to one in flight.
    #[inline]
    fn needs_answer(&self, quota: &QuotaAdvice) -> bool {
        let in_flight = self.lane.in_flight();
        let is_stalled = match &self.pace {
            Pace::Off => return false,
            Pace::Law(LawPace { law, .. }) => {
                in_flight > 0 && (law.is_shut() || u32::from(in_flight) >= law.in_flight_max())
                    || (law.is_trying() && self.is_trial_out)
            }
            Pace::Bucket(_) => false,
        };
        !self.lane.admits() || is_stalled || (quota.needs_answer && in_flight > 0)
    }

    /// Counts a send that is due.
    #[inline]
    pub(crate) fn send(&mut self, rules: &Rules, due: Due, now: Time) -> Permit {
        self.breaker.on_send();
        let others = self.lane.on_send();
        self.sent = self.sent.wrapping_add(1);
        self.is_trial_out |= due.trial;
        match &mut self.pace {
            Pace::Off => {}
            Pace::Law(pace) => {
                pace.pacing.on_send(now, pace.interval(rules));
                pace.law.on_send(now, due.early);
            }
            Pace::Bucket(bucket) => bucket.on_send(rules, now),
        }
        let Due { trial, early, .. } = due;
        let generation = self.breaker.generation;
        Permit { sent_at: now, seq: self.sent, generation, others, trial, early }
    }

    /// A permit came back. An expired one is no longer in flight.
    #[inline]
    fn on_done(&mut self, permit: &Permit) {
        if self.permits.on_done(permit.seq) {
            self.lane.on_done();
            self.is_trial_out &= !permit.trial;
        }
    }

    /// Gives up permits that expired.
    #[cold]
    pub(crate) fn give_up_lost(&mut self, now: Time) {
        let lost = self.permits.move_mark(self.sent, self.lane.in_flight(), now);
        self.lane.on_lost(lost);
        // Lost permits do not tell whether they were trials or probes. While one is in flight hardly anything else is
        // sent, so they are the last to expire.
        if lost > 0 && self.lane.in_flight() == 0 {
            self.is_trial_out = false;
            self.breaker.forget_probes();
            if let Some(law) = self.pace.law_mut() {
                law.on_lost(true);
            }
        }
    }

    /// Applies the outcome of an admitted request.
    #[inline]
    pub(crate) fn on_outcome(&mut self, rules: &Rules, permit: &Permit, outcome: &Outcome, now: Time) -> Effect {
        self.on_done(permit);
        if outcome.verdict != Verdict::Success {
            return self.on_failure(rules, permit, outcome, now);
        }
        let backoff = match &mut self.pace {
            Pace::Off => None,
            Pace::Law(LawPace { law, .. }) => {
                self.lane.on_accepted(permit.others, rules.tuning, || law.may_risk(now));
                let accepted = Accepted { seq: permit.seq, sent_at: permit.sent_at, early: permit.early };
                // The first success after a refusal may lower the pace too; then the refusal stays the reason.
                law.on_success(accepted, now).then_some(BackoffReason::Latency)
            }
            Pace::Bucket(bucket) => {
                let latency = now.nanos_since(permit.sent_at);
                let is_late = bucket.on_answer(rules, Verdict::Success, latency, (permit.seq, self.sent), now);
                is_late.then_some(BackoffReason::Latency)
            }
        };
        let change = self.breaker.on_event(&rules.breaker, &mut self.answers, permit.generation, Event::Success, now);
        Effect { change, backoff }
    }

    #[cold]
    fn on_failure(&mut self, rules: &Rules, permit: &Permit, outcome: &Outcome, now: Time) -> Effect {
        let verdict = outcome.verdict;
        let retry_after = outcome.told_wait().map(nanos);
        if let Some(wait) = retry_after {
            self.pace.close_until(now.plus(wait));
        }
        let is_first = self.teach_failure(rules, permit, verdict, retry_after, now);
        let event = match verdict {
            Verdict::ServerError | Verdict::Network => Event::Failure,
            // A throttle with a Retry-After is a healthy provider; without one, a throttle counts once per burst.
            Verdict::Throttled if retry_after.is_none() && is_first => Event::Throttle,
            _ => Event::Neutral,
        };
        let backoff = match verdict {
            Verdict::Throttled if is_first && retry_after.is_some() => Some(BackoffReason::RetryAfter),
            Verdict::Throttled if is_first => Some(BackoffReason::Throttle),
            Verdict::Forbidden | Verdict::Banned if is_first => Some(BackoffReason::Ban),
            _ => None,
        };
        let change = self.breaker.on_event(&rules.breaker, &mut self.answers, permit.generation, event, now);
        Effect { change, backoff }
    }

    /// Reports a failure to pace and lane; true for the first throttle of a burst, or when the key looks banned.
    fn teach_failure(
        &mut self,
        rules: &Rules,
        permit: &Permit,
        verdict: Verdict,
        retry_after: Option<u64>,
        now: Time,
    ) -> bool {
        let &Permit { sent_at, seq, early, .. } = permit;
        let law = match &mut self.pace {
            Pace::Off => return true,
            Pace::Bucket(bucket) => {
                return bucket.on_answer(rules, verdict, now.nanos_since(sent_at), (seq, self.sent), now);
            }
            Pace::Law(LawPace { law, .. }) => law,
        };
        if verdict == Verdict::Throttled {
            let company = self.lane.on_refused(permit.others, rules.tuning);
            return law.on_throttle(Refusal { seq, sent_at, retry_after, early, company }, now);
        }
        law.on_lost(early);
        if !matches!(verdict, Verdict::Forbidden | Verdict::Banned) {
            return false;
        }
        law.on_forbidden(verdict == Verdict::Banned, retry_after.is_some(), now);
        law.is_shut()
    }

    /// Returns what to do next with a request that had this outcome.
    #[inline]
    pub(crate) fn advise(
        &mut self,
        rules: &Rules,
        deadline: Time,
        outcome: &Outcome,
        attempt: Attempt,
        now: Time,
    ) -> Advice {
        if outcome.verdict == Verdict::Success && attempt.is_retryable != Some(true) {
            self.retries.earn(1);
            return Advice::Done;
        }
        self.advise_after_failure(rules, deadline, outcome, attempt, now)
    }

    /// Decides on a retry: attempts, then circuit, then retry budget, then time.
    #[cold]
    fn advise_after_failure(
        &mut self,
        rules: &Rules,
        deadline: Time,
        outcome: &Outcome,
        attempt: Attempt,
        now: Time,
    ) -> Advice {
        let verdict = outcome.verdict;
        let closed_until = Some(self.pace.gate()).filter(|&gate| gate > now);
        let pressure = |reason| Advice::Pressure { reason, not_before: closed_until };
        let defer = |reason, not_before| Advice::Defer(Deferral { reason, not_before });
        if !attempt.is_retryable.unwrap_or_else(|| verdict.is_retryable()) {
            let is_ban = verdict == Verdict::Banned;
            return if is_ban { pressure(PressureReason::UpstreamPressure) } else { Advice::Done };
        }
        if !rules.backoff.allows_retry_after(attempt.number) {
            let is_throttle = verdict == Verdict::Throttled;
            return if is_throttle {
                pressure(PressureReason::RateLimited)
            } else {
                defer(DeferReason::Attempts, None)
            };
        }
        if let Some(until) = self.breaker.open_until(now) {
            return defer(DeferReason::CircuitOpen, Some(until));
        }
        if !self.retries.try_spend(&rules.retry, self.pace.interval(rules)) {
            return defer(DeferReason::RetryBudget, None);
        }
        // The provider's Retry-After replaces our backoff; the two are never added.
        let own = || self.backoff_after(rules, verdict).delay(attempt.number, attempt.jitter);
        let at = now.plus(outcome.told_wait().map_or_else(own, nanos));
        match (Bounds { deadline, ..Bounds::NONE }).wait_until(at, rules, now) {
            Ok(at) => Advice::RetryAt(at),
            Err(deferral) => Advice::Defer(deferral),
        }
    }

    /// After a throttle the law already closes the gate and slows all requests down. A long backoff of the one
    /// request on top would leave its key idle and make the limit look lower than it is. So this backoff is a
    /// multiple of the pace.
    fn backoff_after(&self, rules: &Rules, verdict: Verdict) -> Backoff {
        match &self.pace {
            Pace::Law(pace) if verdict == Verdict::Throttled => rules.backoff.with_base_at_most(pace.interval(rules)),
            _ => rules.backoff,
        }
    }

    /// Takes back a request that was admitted and never sent. It counts against no limit.
    pub(crate) fn cancel(&mut self, rules: &Rules, permit: &Permit) {
        self.on_done(permit);
        self.breaker.on_cancel(permit.generation);
        match &mut self.pace {
            Pace::Off => {}
            Pace::Law(pace) => {
                pace.law.on_cancel(permit.early);
                if permit.seq == self.sent {
                    pace.pacing.refund(pace.interval(rules));
                }
            }
            Pace::Bucket(bucket) => bucket.refund(rules),
        }
    }

    /// A request was sent and its caller stopped waiting. The provider has counted it, so the pace counts it too.
    pub(crate) fn abandon(&mut self, permit: &Permit) {
        self.on_done(permit);
        self.breaker.on_cancel(permit.generation);
        if let Some(law) = self.pace.law_mut() {
            law.on_lost(permit.early);
        }
    }

    /// The reason why a request would wait at `now`: the one that lasts longest. `None` when it may be sent.
    pub(crate) fn wait_reason(&self, rules: &Rules, quota: &QuotaAdvice, now: Time) -> Option<WaitReason> {
        match self.breaker.decide(&rules.breaker, now) {
            Decision::Admit => {}
            Decision::Refuse { .. } => return Some(WaitReason::Circuit),
            Decision::ProbesOut => return Some(WaitReason::InFlight),
        }
        if matches!(self.pace, Pace::Off) {
            return None;
        }
        if self.needs_answer(quota) {
            return Some(WaitReason::InFlight);
        }
        let due = self.pace.next(rules, quota.closed_until, now).max(now);
        let window = match self.pace.law() {
            Some(law) if law.window.is_testing() && law.window.is_early(due) => return Some(WaitReason::InFlight),
            law => law.map_or(Time::ZERO, |law| law.window.due(due, rules.tuning)),
        };
        let candidates = [
            (WaitReason::Pacing, self.pace.slot(rules, now)),
            (WaitReason::Gate, self.pace.gate()),
            (WaitReason::Quota, quota.closed_until),
            (WaitReason::Window, window),
        ];
        // If two end at the same time, the later one in the list says more.
        let (reason, until) = candidates.into_iter().max_by_key(|&(_, until)| until)?;
        (until > now).then_some(reason)
    }
}
