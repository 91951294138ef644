//! The governor of one key: the one place that says whether a request may be sent, and when.
//!
//! Every attempt, retries included, asks [`Governor::poll_admit`] and reports to
//! [`Governor::on_outcome`]. The layers in between decide at once and never wait: run budget,
//! circuit breaker, in-flight lane, then one time at which the send is due, which is the *latest*
//! of pacing, gate, window and quota and never their sum. The governor returns absolute times and
//! cannot sleep, so a wait cannot be paid twice; whoever drives it sleeps once.

use crate::backoff::{Backoff, Jitter};
use crate::breaker::{Breaker, BreakerTicket, Decision, Event};
use crate::circuit::{Change, CircuitTransition};
use crate::config::Config;
use crate::lane::Lane;
use crate::law::tuning::Tuning;
use crate::law::{Accepted, Law, Refusal};
use crate::outcome::{Outcome, Verdict};
use crate::pacing::Pacing;
use crate::quota::QuotaBook;
use crate::reasons::{DeferReason, Deferral, PressureReason};
use crate::retry_budget::RetryBudget;
use crate::run_budget::RunBudget;
use crate::snapshot::{BackoffReason, LastBackoff};
use crate::time::{Time, nanos};
use std::time::Duration;

mod remember;
mod show;

/// A request that may be sent now. It must be answered: hand it to [`Governor::on_outcome`], to
/// [`Governor::cancel`] when the request was never sent, or to [`Governor::abandon`] when it was sent
/// and nobody waited for the answer.
#[must_use = "an admitted request must be answered, with its outcome or by cancelling it"]
#[derive(Debug)]
pub struct Permit {
    sent_at: Time,
    seq: u32,
    ticket: BreakerTicket,
    /// Others in flight when this was sent.
    others: u16,
    trial: bool,
    early: bool,
}

/// The answer to "may I send?".
#[derive(Debug)]
pub enum Admission {
    /// Now.
    Send(Permit),
    /// Not before this time, which is later than now. Ask again then.
    WaitUntil(Time),
    /// Not before one of the requests in flight is answered. Ask again then.
    WaitForOutcome,
    /// Not in this run, or not soon enough to wait.
    Defer(Deferral),
}

/// What to do with a request after its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// The answer is final, good or bad.
    Done,
    /// Try again, not before this time. The retry asks for admission like everything else.
    RetryAt(Time),
    /// Stop by our own budget; nothing here blames the provider.
    Defer(Deferral),
    /// The provider pushes back and the attempts are used up: what may arm a cooldown.
    Pressure {
        /// Why.
        reason: PressureReason,
        /// Before when it is pointless to try again.
        not_before: Option<Time>,
    },
}

/// Adaptive, fastest-safe pacing for one key: a provider and a credential.
///
/// Methods come in four kinds: [`poll_admit`](Self::poll_admit) asks,
/// [`on_outcome`](Self::on_outcome) and [`cancel`](Self::cancel) tell what became of it,
/// [`snapshot`](Self::snapshot) and [`next_transition`](Self::next_transition) show,
/// [`learned`](Self::learned) and [`restore`](Self::restore) remember.
///
/// ```
/// use gleaner_governor::{Admission, Governor, Jitter, Outcome, Time};
/// let mut governor = Governor::new("github");
/// let now = Time::ZERO;
/// if let Admission::Send(permit) = governor.poll_admit(now) {
///     // ... send the request, classify the answer ...
///     governor.on_outcome(permit, &Outcome::success(), 0, Jitter::from_bits(0), now);
/// }
/// // The second request waits: nothing is known about the provider yet.
/// assert!(matches!(governor.poll_admit(now), Admission::WaitUntil(at) if at > now));
/// ```
#[derive(Debug)]
pub struct Governor {
    name: Box<str>,
    /// `None` after an opt-out: no pacing, no wait.
    law: Option<Law>,
    pacing: Pacing,
    ceiling: u64,
    horizon: u64,
    lane: Lane,
    quotas: QuotaBook,
    breaker: Breaker,
    retry_budget: Option<RetryBudget>,
    backoff: Backoff,
    run_budget: RunBudget,
    /// Sends so far, wrapping.
    sent: u32,
    /// A request that tries whether the provider is open again is on its way.
    is_trial_out: bool,
    last_backoff: Option<LastBackoff>,
    /// Circuit transitions that nobody has asked for yet; a third before that replaces the second.
    transitions: [Option<CircuitTransition>; 2],
}

impl Governor {
    /// A governor with the defaults: adaptive, one request in flight, 50 per second at most.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self::with_config(name, Config::default())
    }

    /// A governor with other settings.
    #[must_use]
    pub fn with_config(name: &str, config: Config) -> Self {
        let tuning = config.tuning;
        let ceiling = nanos(config.ceiling_interval).max(1);
        let discovery = nanos(config.discovery_interval);
        let run_budget = RunBudget::new(config.run_budget);
        let retry_budget =
            config.retry_budget.map(|budget| RetryBudget::new(budget, run_budget.request_cap(), discovery));
        Self {
            name: name.into(),
            law: (discovery > 0).then(|| {
                let law = Law::new(discovery, ceiling, tuning);
                if config.is_careful { law.careful() } else { law }
            }),
            pacing: Pacing::new(),
            ceiling,
            horizon: nanos(config.horizon),
            lane: Lane::new(config.max_concurrency, tuning),
            quotas: QuotaBook::default(),
            breaker: Breaker::new(config.breaker),
            retry_budget,
            backoff: Backoff::new(config.backoff),
            run_budget,
            sent: 0,
            is_trial_out: false,
            last_backoff: None,
            transitions: [None; 2],
        }
    }

    /// The name it was made with.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Asks whether a request may be sent at `now`. A [`Admission::Send`] counts as sent.
    pub fn poll_admit(&mut self, now: Time) -> Admission {
        if let Some(reason) = self.run_budget.check(now) {
            return Admission::Defer(Deferral { reason, not_before: None });
        }
        match self.breaker.decide(now) {
            Decision::Admit | Decision::AdmitProbe => {}
            Decision::Refuse { until } => return defer(DeferReason::CircuitOpen, until),
            Decision::ProbesOut => return Admission::WaitForOutcome,
        }
        if self.law.is_none() {
            return Admission::Send(self.send(now, Due::default()));
        }
        match self.due(now) {
            None => Admission::WaitForOutcome,
            Some(due) if due.at <= now => Admission::Send(self.send(now, due)),
            Some(due) => self.wait_until(due.at, now),
        }
    }

    fn wait_until(&self, at: Time, now: Time) -> Admission {
        if self.run_budget.deadline() <= at && self.run_budget.deadline() != Time::NEVER {
            return defer(DeferReason::WallClock, at);
        }
        if at.nanos_since(now) > self.horizon {
            return defer(DeferReason::BeyondHorizon, at);
        }
        Admission::WaitUntil(at)
    }

    /// When the next send is due: the latest of all that have a say. `None`: after an answer.
    fn due(&mut self, now: Time) -> Option<Due> {
        let law = self.law.as_ref()?;
        if self.needs_answer(law) {
            return None;
        }
        let quota = self.quotas.advice(self.sent, now, law.tuning());
        if quota.needs_answer && self.lane.in_flight() > 0 {
            return None;
        }
        let law = self.law.as_mut()?;
        let mut trial = law.is_trying();
        if let Some(limit) = quota.exhausted {
            law.on_exhausted(limit, now);
            trial = true;
        }
        let at = latest(&self.pacing, law, self.ceiling, quota.closed_until, now);
        let early = law.window.is_early(at.max(now));
        if early && law.window.is_testing() {
            return None;
        }
        Some(Due { at, trial, early })
    }

    /// Whether a request in flight has to be answered before the next one may go out.
    #[inline]
    fn needs_answer(&self, law: &Law) -> bool {
        let in_flight = self.lane.in_flight();
        let is_stalled = in_flight > 0 && (law.is_shut() || u32::from(in_flight) >= law.in_flight_max());
        !self.lane.admits() || is_stalled || (law.is_trying() && self.is_trial_out)
    }

    fn send(&mut self, now: Time, due: Due) -> Permit {
        let interval = self.law.as_ref().map_or(self.ceiling, Law::interval);
        let (ticket, change) = self.breaker.on_send(now);
        if let Some(change) = change {
            self.note(change, now);
        }
        self.pacing.on_send(now, interval);
        self.run_budget.on_send();
        self.sent = self.sent.wrapping_add(1);
        self.is_trial_out |= due.trial;
        if let Some(law) = &mut self.law {
            law.on_send(now, due.early);
        }
        let others = self.lane.on_send();
        Permit { sent_at: now, seq: self.sent, ticket, others, trial: due.trial, early: due.early }
    }

    /// Tells that an admitted request left later than it was admitted: at `at` at the latest. The owner's
    /// ceiling counts from then. What is said of the future counts as now.
    pub fn on_launch(&mut self, _permit: &Permit, at: Time, now: Time) {
        self.pacing.on_launch(at.min(now));
    }

    /// Tells what became of an admitted request, `attempt` counted from 0, and what to do next.
    /// `jitter` are random bits for the pause before a retry.
    #[expect(clippy::needless_pass_by_value, reason = "a permit is used up by its outcome")]
    pub fn on_outcome(&mut self, permit: Permit, outcome: &Outcome, attempt: u32, jitter: Jitter, now: Time) -> Advice {
        self.lane.on_done();
        self.is_trial_out &= !permit.trial;
        self.read_quotas(outcome, permit.seq, now);
        if outcome.retry_after.is_some() {
            self.obey(outcome, now);
        }
        let event = self.teach(&permit, outcome, now);
        let change = self.breaker.on_event(permit.ticket, event, now);
        if let Some(change) = change {
            self.note(change, now);
        }
        if outcome.verdict != Verdict::Success {
            return self.advise(outcome, attempt, jitter, now);
        }
        let interval = self.interval();
        if let Some(budget) = &mut self.retry_budget {
            budget.on_success(now, interval);
        }
        Advice::Done
    }

    fn obey(&mut self, outcome: &Outcome, now: Time) {
        if let (Some(wait), Some(law)) = (outcome.told_wait(), &mut self.law) {
            law.close_until(now + wait);
        }
    }

    fn read_quotas(&mut self, outcome: &Outcome, seq: u32, now: Time) {
        if outcome.quotas.as_slice().is_empty() {
            return;
        }
        let was_closed = self.quotas.is_closed(self.sent);
        self.quotas.on_answer(&outcome.quotas, seq, now, self.tuning());
        if !was_closed && self.quotas.is_closed(self.sent) {
            self.back_off(BackoffReason::Quota, now);
        }
    }

    /// Feeds the law and the lane; returns the event that the breaker counts.
    fn teach(&mut self, permit: &Permit, outcome: &Outcome, now: Time) -> Event {
        match outcome.verdict {
            Verdict::Success => {
                let (law, tuning) = (self.law.as_ref(), self.tuning());
                self.lane.on_accepted(permit.others, tuning, || law.is_none_or(|law| law.may_risk(now)));
                self.teach_success(permit, now);
                Event::Success
            }
            Verdict::Throttled => self.teach_throttle(permit, outcome, now),
            Verdict::Forbidden | Verdict::Banned => {
                self.teach_forbidden(permit, outcome, now);
                Event::Neutral
            }
            Verdict::ServerError | Verdict::Network | Verdict::Permanent => {
                if let Some(law) = &mut self.law {
                    law.on_lost(permit.early);
                }
                if outcome.verdict == Verdict::Permanent { Event::Neutral } else { Event::Failure }
            }
        }
    }

    fn teach_success(&mut self, permit: &Permit, now: Time) {
        let Some(law) = &mut self.law else { return };
        let before = law.interval();
        let is_late = law.on_success(Accepted { seq: permit.seq, sent_at: permit.sent_at, early: permit.early }, now);
        if law.interval() > before {
            // The first success after a refusal shows how far the pace must fall: the refusal is why.
            let refused = self.last_backoff.filter(|_| !is_late).map(|last| last.reason);
            self.back_off(refused.unwrap_or(BackoffReason::Latency), now);
        }
    }

    fn teach_throttle(&mut self, permit: &Permit, outcome: &Outcome, now: Time) -> Event {
        // Zero is no directive: the provider only says that it does not know.
        let retry_after = outcome.told_wait().map(nanos);
        let company = self.lane.on_refused(permit.others, self.tuning());
        let refusal = Refusal { seq: permit.seq, sent_at: permit.sent_at, retry_after, early: permit.early, company };
        let first_of_burst = self.law.as_mut().is_none_or(|law| law.on_throttle(refusal, now));
        if first_of_burst {
            let reason = if retry_after.is_some() { BackoffReason::RetryAfter } else { BackoffReason::Throttle };
            self.back_off(reason, now);
        }
        if retry_after.is_some() { Event::DirectedThrottle } else { Event::BareThrottle { first_of_burst } }
    }

    fn teach_forbidden(&mut self, permit: &Permit, outcome: &Outcome, now: Time) {
        let Some(law) = &mut self.law else { return };
        law.on_lost(permit.early);
        law.on_forbidden(outcome.verdict == Verdict::Banned, outcome.told_wait().is_some(), now);
        if law.is_shut() {
            self.back_off(BackoffReason::Ban, now);
        }
    }

    /// Whether to try again: attempts, then circuit, then retry budget, then time.
    fn advise(&mut self, outcome: &Outcome, attempt: u32, jitter: Jitter, now: Time) -> Advice {
        if outcome.verdict == Verdict::Banned {
            return Advice::Pressure { reason: PressureReason::UpstreamPressure, not_before: self.closed_until(now) };
        }
        if !outcome.verdict.is_retryable() {
            return Advice::Done;
        }
        if !self.backoff.allows_retry_after(attempt) {
            return self.give_up(outcome.verdict, now);
        }
        if let Decision::Refuse { until } = self.breaker.decide(now) {
            return Advice::Defer(Deferral { reason: DeferReason::CircuitOpen, not_before: Some(until) });
        }
        let asked = outcome.told_wait();
        let interval = self.interval();
        if self.retry_budget.as_mut().is_some_and(|budget| !budget.try_spend(now, interval)) {
            return Advice::Defer(Deferral { reason: DeferReason::RetryBudget, not_before: None });
        }
        // What the provider asks for replaces our own pause, and is never added to it.
        let pause = asked.map_or_else(|| self.backoff_after(outcome.verdict).delay(attempt, jitter), nanos);
        let at = now.plus(pause);
        match self.wait_until(at, now) {
            Admission::Defer(deferral) => Advice::Defer(deferral),
            _ => Advice::RetryAt(at),
        }
    }

    /// After a throttle the law itself closes the key and slows down for everyone. A long pause of the
    /// one request on top would leave a key idle whose only caller it is, and make its limit look lower
    /// than it is. So the request's own pause is measured by the pace, not by the clock.
    fn backoff_after(&self, verdict: Verdict) -> Backoff {
        match &self.law {
            Some(law) if verdict == Verdict::Throttled => self.backoff.with_base_at_most(law.interval()),
            _ => self.backoff,
        }
    }

    fn give_up(&self, verdict: Verdict, now: Time) -> Advice {
        if verdict == Verdict::Throttled {
            return Advice::Pressure { reason: PressureReason::RateLimited, not_before: self.closed_until(now) };
        }
        Advice::Defer(Deferral { reason: DeferReason::Attempts, not_before: None })
    }

    /// When the key opens again, if it is closed.
    fn closed_until(&self, now: Time) -> Option<Time> {
        self.law.as_ref().map(Law::gate).filter(|&gate| gate > now)
    }

    /// Takes back a request that was admitted and never sent: it owes nothing.
    #[expect(clippy::needless_pass_by_value, reason = "a permit is used up by cancelling it")]
    pub fn cancel(&mut self, permit: Permit) {
        self.lane.on_done();
        self.is_trial_out &= !permit.trial;
        self.breaker.on_cancel(permit.ticket);
        self.run_budget.on_cancel();
        if let Some(law) = &mut self.law {
            law.on_cancel(permit.early);
            if permit.seq == self.sent {
                self.pacing.refund(law.interval());
            }
        }
    }

    /// Tells that a request was sent and that nobody waited for its answer. Its place in the lane is
    /// free again. The provider has counted it, so pacing, window and run budget keep it.
    #[expect(clippy::needless_pass_by_value, reason = "a permit is used up by abandoning it")]
    pub fn abandon(&mut self, permit: Permit) {
        self.lane.on_done();
        self.is_trial_out &= !permit.trial;
        self.breaker.on_cancel(permit.ticket);
        if let Some(law) = &mut self.law {
            law.on_lost(permit.early);
        }
    }

    fn interval(&self) -> u64 {
        self.law.as_ref().map_or(0, Law::interval)
    }

    /// The numbers that the law goes by; after an opt-out nothing that they decide is asked.
    fn tuning(&self) -> &'static Tuning {
        self.law.as_ref().map_or(Tuning::SHIPPED, Law::tuning)
    }

    fn back_off(&mut self, reason: BackoffReason, now: Time) {
        let interval = Duration::from_nanos(self.interval());
        self.last_backoff = Some(LastBackoff { interval, reason, at: now });
    }

    #[cold]
    fn note(&mut self, change: Change, now: Time) {
        let interval = self.interval();
        let retries = self.retry_budget.as_ref().map(|budget| budget.remaining(now, interval));
        let transition = change.with_counters(self.run_budget.elapsed(now), self.run_budget.requests(), retries);
        let slot = usize::from(self.transitions[0].is_some());
        self.transitions[slot] = Some(transition);
    }
}

/// When the next send is due, and what kind of send it is.
#[derive(Clone, Copy, Debug, Default)]
struct Due {
    at: Time,
    /// It tries whether the provider is open again.
    trial: bool,
    /// It tests a shorter window.
    early: bool,
}

/// The one wait before a send: the latest of pacing, gate, quota and window, never their sum.
#[inline]
fn latest(pacing: &Pacing, law: &Law, ceiling: u64, quota: Time, now: Time) -> Time {
    let open = pacing.due(law.interval(), ceiling, law.tuning()).max(law.gate()).max(quota);
    open.max(law.window.due(open.max(now), law.tuning()))
}

fn defer(reason: DeferReason, not_before: Time) -> Admission {
    Admission::Defer(Deferral { reason, not_before: Some(not_before) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_governor_fits_into_a_kibibyte() {
        assert!(size_of::<Governor>() <= 1024, "{} bytes", size_of::<Governor>());
    }
}
