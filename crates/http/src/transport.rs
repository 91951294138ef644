//! One call with its attempts: admit, send, classify, report to the governor, retry. The one retry loop.
//!
//! Every attempt, retries included, needs a permit of the same governor; there is no second path to the provider.
//! Client, middleware, tower layer and reverse proxy implement [`Transport`] and differ only in how they send once.

use crate::call_limits::CallLimits;
use crate::clock::wall_now;
use crate::key::Key;
use crate::refusal::{Refusal, Refused};
use crate::retry::{End, Next};
use crate::send_governor::{Call, SendGovernor, Shared, is_refusal, pause};
use gleaner_governor::{Outcome, Time, Verdict, WaitReason, WallTime};
use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// Sends one request, once per call of `send`.
pub trait Transport: Send {
    /// Type of an answer.
    type Answer: Send;
    /// Why there is no answer.
    type Failure: Send;

    /// Whether sending this request cannot cause another governed request. Code of other people, such as a
    /// middleware, may cause any number of others.
    const IS_LAST_HOP: bool = false;

    /// Called before each attempt with its timeout.
    fn on_attempt(&mut self, _ends: Instant) {}

    /// Sends the request once. Must not wait for anything but the provider.
    fn send(&mut self) -> impl Future<Output = Result<Self::Answer, Self::Failure>> + Send;

    /// The latest time at which the provider had the request, if that may be later than its admission, because the
    /// provider measures the distance of two sends. Called after each attempt.
    fn arrived(&self, _result: Result<&Self::Answer, &Self::Failure>) -> Option<Instant> {
        None
    }

    /// The failure of an attempt that took longer than `limit`.
    fn timed_out(&self, limit: Duration) -> Self::Failure;

    /// Classifies the answer, or its absence.
    fn classify(&self, result: Result<&Self::Answer, &Self::Failure>, wall_now: WallTime) -> Outcome;

    /// Whether a retry cannot execute anything twice. Called only when an attempt is left.
    fn may_repeat(&self, result: Result<&Self::Answer, &Self::Failure>, outcome: &Outcome) -> bool;
}

/// Result of a call that was sent at least once.
pub struct Finished<T: Transport> {
    /// The last answer, or why there was none.
    pub result: Result<T::Answer, T::Failure>,
    /// Meaning of the answer.
    pub verdict: Verdict,
    /// Why it was not retried.
    pub end: End,
    /// Number of sends.
    pub attempts: u32,
    /// Total wait before the sends.
    pub waited: Duration,
}

/// Omits the answer: it may hold private data.
impl<T: Transport> fmt::Debug for Finished<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { result, verdict, end, attempts, waited } = self;
        let mut shown = f.debug_struct("Finished");
        shown.field("answered", &result.is_ok()).field("verdict", verdict).field("end", end);
        shown.field("attempts", attempts).field("waited", waited).finish()
    }
}

type SendResult<T> = Result<<T as Transport>::Answer, <T as Transport>::Failure>;

/// An attempt number that no backoff allows a retry after.
const LAST: u32 = u32::MAX;

tokio::task_local! {
    /// The key that governs the request of this task.
    static GOVERNED_BY: Arc<Key>;
}

impl SendGovernor {
    /// Sends a request through `transport` until its answer is final.
    ///
    /// # Errors
    /// It was not sent, or a retry was refused.
    pub async fn run<T: Transport>(&self, call_limits: &CallLimits, transport: &mut T) -> Result<Finished<T>, Refused> {
        self.refuse_second_governor()?;
        let mut call = Call::new(call_limits);
        call.draw_launch(self.shared.settings.launch_jitter);
        let mut attempt = 0;
        loop {
            let of_this_call = |refused| Refused { attempts: attempt, ..refused };
            let sent = match self.send_at_once(&mut call).map_err(of_this_call)? {
                Some(sent) => sent,
                // Box the slow path; keep the hot future small.
                None => Box::pin(self.turn_to_send(&mut call)).await.map_err(of_this_call)?,
            };
            let (result, is_cut) = self.send_once(call_limits, call.admitted_at, transport).await;
            if let Some(at) = transport.arrived(result.as_ref()) {
                sent.arrived(at);
            }
            if is_cut {
                // The caller's deadline says nothing about the provider: nobody waits for the answer.
                drop(sent);
                let end = End::TooLate(Duration::ZERO);
                let (verdict, waited) = (Verdict::Network, call.waited);
                return Ok(Finished { result, verdict, end, attempts: attempt + 1, waited });
            }
            let (meaning, advice) = {
                // Large, so it is dropped before the next await.
                let outcome = transport.classify(result.as_ref(), wall_now());
                let is_last = attempt + 1 >= call_limits.attempts || !transport.may_repeat(result.as_ref(), &outcome);
                (Meaning::from_outcome(&outcome), sent.answer(&outcome, if is_last { LAST } else { attempt }))
            };
            self.shared.remember(meaning.is_refusal).await;
            let now = self.shared.clock.now();
            let end = match Next::after(advice, meaning.told_wait, now) {
                Next::RetryAt(at) if !call.is_too_late(self.shared.clock.instant(at)) => {
                    drop(result);
                    // Drawn now and not after the pause: nothing is added to a Retry-After.
                    call.draw_launch(self.shared.settings.launch_jitter);
                    let reason = if meaning.told_wait.is_some() { WaitReason::Gate } else { WaitReason::Pacing };
                    // Box the slow path, as before a turn.
                    Box::pin(self.pause_until(at, (reason, meaning.is_refusal), &mut call)).await;
                    self.shared.lock().figures.retried += 1;
                    attempt += 1;
                    continue;
                }
                Next::RetryAt(at) => End::TooLate(at.since(now)),
                Next::End(end) => end,
            };
            let (verdict, waited) = (meaning.verdict, call.waited);
            return Ok(Finished { result, verdict, end, attempts: attempt + 1, waited });
        }
    }

    /// A request caused by another request to the same provider passes two governors and would wait at both.
    fn refuse_second_governor(&self) -> Result<(), Refused> {
        let is_same_provider = |key: &Key| key.provider() == self.key().provider();
        let by = GOVERNED_BY.try_with(|key| is_same_provider(key).then(|| Key::clone(key)));
        match by {
            Ok(Some(by)) => Err(self.shared.refused(Refusal::GovernedTwice(by), None)),
            _ => Ok(()),
        }
    }

    /// Sends once; also returns whether the caller's deadline ended it, not the attempt's timeout.
    async fn send_once<T: Transport>(
        &self,
        call_limits: &CallLimits,
        admitted_at: Time,
        transport: &mut T,
    ) -> (SendResult<T>, bool) {
        // It is sent when it is admitted; reading the clock again would cost more than it tells.
        let start = self.shared.clock.instant(admitted_at);
        let ends = call_limits.attempt_ends(start);
        transport.on_attempt(ends);
        let in_time = {
            // Pinned here: sending is a large future, and its wrappers stay small.
            let sending = pin!(transport.send());
            if T::IS_LAST_HOP {
                timeout_at(ends, sending).await
            } else {
                timeout_at(ends, GOVERNED_BY.scope(Arc::clone(&self.shared.key), sending)).await
            }
        };
        match in_time {
            Ok(result) => (result, false),
            Err(_elapsed) => {
                let is_cut = call_limits.deadline.is_some_and(|deadline| deadline <= ends);
                (Err(transport.timed_out(start.elapsed())), is_cut)
            }
        }
    }

    /// The pause after a refusal: the provider's Retry-After or our own backoff, never both.
    async fn pause_until(&self, at: Time, (reason, is_refusal): (WaitReason, bool), call: &mut Call) {
        let start = Instant::now();
        let pausing = Pausing::new(&self.shared, at, is_refusal);
        pause(self.shared.clock.instant(at), &Notify::new()).await;
        drop(pausing);
        let waited = start.elapsed();
        call.waited += waited;
        self.shared.lock().figures.on_wait(waited, Some(reason));
    }
}

/// Parts of an outcome that are needed after it was reported.
#[derive(Clone, Copy)]
struct Meaning {
    verdict: Verdict,
    told_wait: Option<Duration>,
    is_refusal: bool,
}

impl Meaning {
    fn from_outcome(outcome: &Outcome) -> Self {
        Self { verdict: outcome.verdict, told_wait: outcome.told_wait(), is_refusal: is_refusal(outcome) }
    }
}

/// Counts a caller as waiting while it pauses before a retry.
struct Pausing<'a>(&'a Shared);

impl<'a> Pausing<'a> {
    fn new(shared: &'a Shared, until: Time, is_refusal: bool) -> Self {
        let mut state = shared.lock();
        state.figures.pausing += 1;
        if until >= state.figures.pause_ends {
            (state.figures.pause_ends, state.figures.pause_is_refusal) = (until, is_refusal);
        }
        drop(state);
        Self(shared)
    }
}

impl Drop for Pausing<'_> {
    fn drop(&mut self) {
        self.0.lock().figures.pausing -= 1;
    }
}
