//! One request to one of many hosts: waits for its turn, and reports the answer.
//!
//! Only the first caller waiting for a host asks the registry and sleeps; all others are parked without a timer.
//! Every permit is given back: dropped before the send it is refunded, dropped after the send only its in-flight slot
//! is freed, since the provider has counted the request.

use super::waiters::Waiters;
use super::{AcquireError, Inner};
use crate::call_limits::CallLimits;
use crate::key::Key;
use crate::refusal::{Refusal, Refused};
use crate::retry::{End, Next};
use crate::send_governor::{is_refusal, pause};
use gleaner_governor::keyed::{Feedback, Handle};
use gleaner_governor::{Admission, Deferral, Jitter, Outcome, Permit, Time};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A looked-up host. Cheap to clone.
#[derive(Clone)]
pub struct DomainHandle {
    inner: Arc<Inner>,
    handle: Handle<Waiters>,
}

/// Why a request may not be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotYet {
    /// Not before this time, as far as known.
    Before(Time),
    /// Not before a request in flight ends.
    InFlight,
    /// The circuit is open, or the wait is longer than the settings allow.
    Deferred(Deferral),
}

impl DomainHandle {
    pub(super) const fn new(inner: Arc<Inner>, handle: Handle<Waiters>) -> Self {
        Self { inner, handle }
    }

    /// The normalized host, or its group.
    #[must_use]
    pub fn domain(&self) -> &str {
        self.handle.domain()
    }

    /// Waits until a request may be sent.
    ///
    /// # Errors
    /// It may not be sent at all, or not within the caller's limits.
    pub async fn acquire(&self, call_limits: &CallLimits) -> Result<DomainPermit, AcquireError> {
        let since = self.inner.clock.now();
        let last_send = call_limits.last_send();
        if self.handle.attached().is_empty() {
            match self.try_acquire(since) {
                Ok(permit) => return Ok(permit),
                Err(not_yet) => drop(self.wake(not_yet, last_send)?),
            }
        }
        Ok(self.wait(since, last_send).await?)
    }

    /// Takes a permit if one is available now, ahead of all callers waiting in [`acquire`](Self::acquire): for a
    /// scheduler of many hosts that must not wait for one. `since` is when the request could first have been sent.
    ///
    /// # Errors
    /// It may be sent later.
    pub fn try_acquire(&self, since: Time) -> Result<DomainPermit, NotYet> {
        let now = self.inner.clock.now();
        match self.inner.registry.acquire(&self.handle, since, now) {
            Admission::Send(permit) => {
                let (host, waited) = (self.clone(), now.since(since));
                Ok(DomainPermit { host, permit: Some(permit), is_sent: false, waited })
            }
            Admission::WaitUntil(at) => Err(NotYet::Before(at)),
            Admission::WaitForOutcome => Err(NotYet::InFlight),
            Admission::Defer(deferral) => Err(NotYet::Deferred(deferral)),
        }
    }

    /// Slow path: queue until first, then wait for the registry's time.
    async fn wait(&self, since: Time, last_send: Option<Instant>) -> Result<DomainPermit, Refused> {
        let place = self
            .handle
            .attached()
            .enter(self.inner.max_waiting)
            .map_err(|waiting| self.refused(Refusal::QueueFull(waiting), None))?;
        let far = last_send.unwrap_or_else(|| self.inner.clock.instant(Time::NEVER));
        loop {
            // `>=`: a timer may not wake again for equality.
            if last_send.is_some_and(|last| Instant::now() >= last) {
                return Err(self.refused(Refusal::MaxWait, None));
            }
            let not_yet = match place.is_first() {
                true => match self.try_acquire(since) {
                    Ok(permit) => return Ok(permit),
                    Err(not_yet) => not_yet,
                },
                false => NotYet::InFlight,
            };
            pause(self.wake(not_yet, last_send)?.unwrap_or(far), &place.bell).await;
        }
    }

    /// When to ask again; `None` when only an answer or another caller can change the result.
    fn wake(&self, not_yet: NotYet, last_send: Option<Instant>) -> Result<Option<Instant>, Refused> {
        let clock = &self.inner.clock;
        match not_yet {
            NotYet::Before(at) if last_send.is_some_and(|last| last < clock.instant(at)) => {
                Err(self.refused(Refusal::MaxWait, Some(at.since(clock.now()))))
            }
            NotYet::Before(at) => Ok(Some(clock.instant(at))),
            NotYet::InFlight => Ok(None),
            NotYet::Deferred(Deferral { reason, not_before }) => {
                let retry_in = not_before.map(|at| at.since(clock.now()));
                Err(self.refused(Refusal::Deferred(reason), retry_in))
            }
        }
    }

    fn refused(&self, reason: Refusal, retry_in: Option<Duration>) -> Refused {
        tracing::debug!(domain = self.domain(), reason = reason.as_str(), "not sent");
        Refused { key: Key::new(self.domain()), reason, retry_in, attempts: 0 }
    }
}

gleaner_base::debug_only!(DomainHandle, |it| domain = it.domain());

/// Permission to send one request to a host now.
#[must_use = "a permit is answered, or given back by dropping it"]
pub struct DomainPermit {
    host: DomainHandle,
    permit: Option<Permit>,
    is_sent: bool,
    waited: Duration,
}

impl DomainPermit {
    /// The normalized host, or its group.
    #[must_use]
    pub fn domain(&self) -> &str {
        self.host.domain()
    }

    /// Time that it waited for its turn.
    #[must_use]
    pub const fn waited(&self) -> Duration {
        self.waited
    }

    /// Marks the request as sent: dropped after this, the permit is not refunded.
    pub const fn sent(&mut self) {
        self.is_sent = true;
    }

    /// Reports the answer; `attempt` counts from 0. A refusal is saved before this returns. A retry needs a new
    /// permit, not before the returned time.
    pub async fn answer(mut self, outcome: &Outcome, status: Option<u16>, attempt: u32) -> Next {
        let Some(permit) = self.permit.take() else { return Next::End(End::Done) };
        let jitter = Jitter::from_bits(fastrand::u64(..));
        let feedback = Feedback::classified(*outcome, status).of_attempt(attempt, jitter);
        let DomainHandle { inner, handle } = &self.host;
        let advice = inner.registry.feedback(handle, permit, &feedback, inner.clock.now());
        handle.attached().ring();
        if is_refusal(outcome) {
            inner.remember(handle).await;
        }
        Next::after(advice, outcome.told_wait(), inner.clock.now())
    }
}

impl Drop for DomainPermit {
    fn drop(&mut self) {
        let Some(permit) = self.permit.take() else { return };
        let DomainHandle { inner, handle } = &self.host;
        let now = inner.clock.now();
        if self.is_sent {
            inner.registry.abandon(handle, permit, now);
        } else {
            inner.registry.cancel(handle, permit, now);
        }
        handle.attached().ring();
    }
}

gleaner_base::debug_only!(DomainPermit, |it| domain = it.domain());
