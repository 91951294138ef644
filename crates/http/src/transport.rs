//! One call with its attempts: admit, send, classify, tell the governor, and again if it says so. The one retry loop.
//!
//! Every attempt, retries included, is admitted by the same core and takes a permit; there is no second
//! path to the provider. [`Transport`] is the seam: the client, the middleware, the tower layer and the
//! reverse proxy differ only in how they send once.

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

/// Sends one request, as often as it is asked to.
pub trait Transport: Send {
    /// What a provider answers.
    type Answer: Send;
    /// Why there is no answer.
    type Failure: Send;

    /// Whether no request comes out of sending this one that another governor would see. One that is sent by
    /// other people's code, such as a middleware, may be the reason for any number of others.
    const IS_LAST_HOP: bool = false;

    /// Told before each attempt when it is given up.
    fn on_attempt(&mut self, _ends: Instant) {}

    /// Sends the request once. Must not wait for anything but the provider.
    fn send(&mut self) -> impl Future<Output = Result<Self::Answer, Self::Failure>> + Send;

    /// By when the provider had what was sent, at the latest, if that may be later than its admission: two sends
    /// are apart as the provider sees them. Asked after each attempt.
    fn arrived(&self, _result: Result<&Self::Answer, &Self::Failure>) -> Option<Instant> {
        None
    }

    /// The failure of an attempt that took longer than `limit`.
    fn timed_out(&self, limit: Duration) -> Self::Failure;

    /// What the answer, or its absence, means.
    fn classify(&self, result: Result<&Self::Answer, &Self::Failure>, wall_now: WallTime) -> Outcome;

    /// Whether sending it again would do nothing twice. Asked only when there is an attempt left.
    fn may_repeat(&self, result: Result<&Self::Answer, &Self::Failure>, outcome: &Outcome) -> bool;
}

/// What became of a call that was sent at least once.
pub struct Finished<T: Transport> {
    /// The last answer, or why there was none.
    pub result: Result<T::Answer, T::Failure>,
    /// What it means.
    pub verdict: Verdict,
    /// Why it was not sent again.
    pub end: End,
    /// How often it was sent.
    pub attempts: u32,
    /// How long it waited before its sends, all together.
    pub waited: Duration,
}

/// Shows no answer: it may hold anything.
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
    /// By which key the request is governed that this task is sending.
    static GOVERNED_BY: Arc<Key>;
}

impl SendGovernor {
    /// Sends a request through `transport` until its answer is final, and says what became of it.
    ///
    /// # Errors
    /// When it was not sent, or a retry was not.
    pub async fn run<T: Transport>(&self, call_limits: &CallLimits, transport: &mut T) -> Result<Finished<T>, Refused> {
        self.refuse_second_governor()?;
        let mut call = Call::new(call_limits);
        call.draw_launch(self.shared.settings.launch_jitter);
        let mut attempt = 0;
        loop {
            let of_this_call = |refused| Refused { attempts: attempt, ..refused };
            let sent = match self.send_at_once(&mut call).map_err(of_this_call)? {
                Some(sent) => sent,
                // Who waits can afford a box, and who does not has a smaller future for it.
                None => Box::pin(self.turn_to_send(&mut call)).await.map_err(of_this_call)?,
            };
            let (result, is_cut) = self.send_once(call_limits, call.admitted_at, transport).await;
            if let Some(at) = transport.arrived(result.as_ref()) {
                sent.arrived(at);
            }
            if is_cut {
                // The caller's hurry says nothing about the provider: nobody waits for the answer any more.
                drop(sent);
                let end = End::TooLate(Duration::ZERO);
                let (verdict, waited) = (Verdict::Network, call.waited);
                return Ok(Finished { result, verdict, end, attempts: attempt + 1, waited });
            }
            let (meaning, advice) = {
                // It is large, and is not kept while anything is waited for.
                let outcome = transport.classify(result.as_ref(), wall_now());
                let is_last = attempt + 1 >= call_limits.attempts || !transport.may_repeat(result.as_ref(), &outcome);
                (Meaning::of(&outcome), sent.answer(&outcome, if is_last { LAST } else { attempt }))
            };
            self.shared.remember(meaning.is_refusal).await;
            let now = self.shared.clock.now();
            let end = match Next::after(advice, meaning.told_wait, now) {
                Next::RetryAt(at) if !call.is_too_late(self.shared.clock.instant(at)) => {
                    drop(result);
                    // Now and not after the pause: on top of a Retry-After comes nothing.
                    call.draw_launch(self.shared.settings.launch_jitter);
                    let reason = if meaning.told_wait.is_some() { WaitReason::Gate } else { WaitReason::Pacing };
                    // As before a turn: who waits can afford a box.
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

    /// A request that comes from inside another one to the same provider passes two governors, and would
    /// wait at both.
    fn refuse_second_governor(&self) -> Result<(), Refused> {
        let is_same_provider = |key: &Key| key.provider() == self.key().provider();
        let by = GOVERNED_BY.try_with(|key| is_same_provider(key).then(|| Key::clone(key)));
        match by {
            Ok(Some(by)) => Err(self.shared.refused(Refusal::GovernedTwice(by), None)),
            _ => Ok(()),
        }
    }

    /// Sends once; also whether it was the caller's deadline that ended it, and not the attempt's own.
    async fn send_once<T: Transport>(
        &self,
        call_limits: &CallLimits,
        admitted_at: Time,
        transport: &mut T,
    ) -> (SendResult<T>, bool) {
        // It is sent as soon as it is admitted; asking the clock again would cost more than it tells.
        let start = self.shared.clock.instant(admitted_at);
        let ends = call_limits.attempt_ends(start);
        transport.on_attempt(ends);
        let in_time = {
            // Sending is a large future: it stays where it is, and what goes around it is small.
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

    /// The pause after a refusal: what the provider asked for, or our own backoff, and never both.
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

/// What is needed of an outcome after the governor has heard of it.
#[derive(Clone, Copy)]
struct Meaning {
    verdict: Verdict,
    told_wait: Option<Duration>,
    is_refusal: bool,
}

impl Meaning {
    fn of(outcome: &Outcome) -> Self {
        Self { verdict: outcome.verdict, told_wait: outcome.told_wait(), is_refusal: is_refusal(outcome) }
    }
}

/// Counts a caller that pauses before a retry among those who wait, for as long as it does.
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
