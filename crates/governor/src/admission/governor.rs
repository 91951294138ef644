//! The governor of one key decides whether a request may be sent, and when.
//!
//! It adds to the state that every key has (`state.rs`) the parts that a registry has no room for: a name, quota
//! headers, the run budget and circuit transitions. It returns absolute times and cannot sleep, so no wait is added
//! to another: the caller sleeps once.

mod remember;
mod show;

use super::permit::{Admission, Advice, Permit};
use super::run_budget::RunBudget;
use super::state::{Attempt, Bounds, KeyState};
use crate::config::{Config, Rules};
use crate::law::pace::Pace;
use crate::reasons::Deferral;
use crate::retry::backoff::Jitter;
use crate::retry::breaker::Breaker;
use crate::retry::circuit::{Change, CircuitTransition};
use crate::signals::outcome::Outcome;
use crate::signals::quota::QuotaBook;
use crate::snapshot::{BackoffReason, LastBackoff};
use crate::time::Time;
use std::time::Duration;

/// Adaptive, fastest-safe pacing for one key: a provider and a credential.
///
/// There are four groups of methods: [`poll_admit`](Self::poll_admit) asks for a permit;
/// [`on_outcome`](Self::on_outcome), [`cancel`](Self::cancel) and [`abandon`](Self::abandon) give a permit back, and
/// each permit needs one of them; [`snapshot`](Self::snapshot) and [`next_transition`](Self::next_transition) show
/// the state; [`learned`](Self::learned) and [`restore`](Self::restore) save and load it.
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
    rules: Rules,
    state: KeyState,
    /// `None` until a quota header arrives: most providers send none.
    quotas: Option<Box<QuotaBook>>,
    run_budget: RunBudget,
    last_backoff: Option<LastBackoff>,
    /// Circuit transitions not yet read; a third one replaces the second.
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
        let rules = Rules::new(&config);
        Self {
            name: name.into(),
            rules,
            state: KeyState::new(&rules),
            quotas: None,
            run_budget: RunBudget::new(config.run_budget),
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
        let bounds = Bounds { quota: self.quota(now), deadline: self.run_budget.deadline() };
        let generation = self.state.breaker.generation;
        let admission = self.state.admit(&self.rules, &bounds, now);
        if self.state.breaker.generation != generation {
            self.note(Breaker::PROBING, now);
        }
        if let Admission::Send(_) = &admission {
            self.run_budget.on_send();
        }
        admission
    }

    /// Reports that an admitted request left later than it was admitted: at `at` at the latest. The ceiling counts
    /// from then. An `at` in the future counts as `now`.
    pub fn on_launch(&mut self, _permit: &Permit, at: Time, now: Time) {
        if let Pace::Law(pace) = &mut self.state.pace {
            pace.pacing.on_launch(at.min(now));
        }
    }

    /// Reports the outcome of an admitted request and returns what to do next. `attempt` counts from 0; `jitter` are
    /// random bits for the backoff before a retry.
    #[expect(clippy::needless_pass_by_value, reason = "a permit is used up by its outcome")]
    pub fn on_outcome(&mut self, permit: Permit, outcome: &Outcome, attempt: u32, jitter: Jitter, now: Time) -> Advice {
        if !outcome.quotas.as_slice().is_empty() {
            self.read_quotas(outcome, permit.seq, now);
        }
        let effect = self.state.on_outcome(&self.rules, &permit, outcome, now);
        if let Some(reason) = effect.backoff {
            self.back_off(reason, now);
        }
        if let Some(change) = effect.change {
            self.note(change, now);
        }
        let attempt = Attempt { number: attempt, jitter, is_retryable: None };
        self.state.advise(&self.rules, self.run_budget.deadline(), outcome, attempt, now)
    }

    fn read_quotas(&mut self, outcome: &Outcome, seq: u32, now: Time) {
        let quotas = self.quotas.get_or_insert_default();
        let was_closed = quotas.is_closed(self.state.sent);
        quotas.on_answer(&outcome.quotas, seq, now, self.rules.tuning);
        if !was_closed && quotas.is_closed(self.state.sent) {
            self.back_off(BackoffReason::Quota, now);
        }
    }

    /// Takes back a request that was admitted and never sent. It counts against no limit.
    #[expect(clippy::needless_pass_by_value, reason = "a permit is used up by cancelling it")]
    pub fn cancel(&mut self, permit: Permit) {
        self.run_budget.on_cancel();
        self.state.cancel(&self.rules, &permit);
    }

    /// Reports that a request was sent and its caller stopped waiting. Its in-flight slot is free again. The provider
    /// has counted the request, so pacing, window and run budget count it too.
    #[expect(clippy::needless_pass_by_value, reason = "a permit is used up by abandoning it")]
    pub fn abandon(&mut self, permit: Permit) {
        self.state.abandon(&permit);
    }

    fn back_off(&mut self, reason: BackoffReason, now: Time) {
        let interval = Duration::from_nanos(self.state.pace.interval(&self.rules));
        self.last_backoff = Some(LastBackoff { interval, reason, at: now });
    }

    #[cold]
    fn note(&mut self, change: Change, now: Time) {
        let retries = self.state.retries.remaining(&self.rules.retry, self.state.pace.interval(&self.rules));
        let transition = change.with_counters(self.run_budget.elapsed(now), self.run_budget.requests(), retries);
        let slot = usize::from(self.transitions[0].is_some());
        self.transitions[slot] = Some(transition);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_governor_fits_into_a_kibibyte() {
        assert!(size_of::<Governor>() <= 1024, "{} bytes", size_of::<Governor>());
    }
}
