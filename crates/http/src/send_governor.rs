//! The one place that waits before a send.
//!
//! A [`SendGovernor`] drives the pure governor of one key: it queues callers in order of arrival, lets the head ask
//! for admission, and sleeps until the time that the governor returns. That sleep is the only one before a send in
//! the whole workspace ([`pause`]); retries use it too. Every permit is given back: dropped before the send it is
//! refunded, dropped after the send only its in-flight slot is freed, since the provider has counted the request.
//!
//! The governor makes all decisions: pace, gate, circuit and budgets.

use crate::call_limits::CallLimits;
use crate::clock::{Clock, wall_now};
use crate::figures::Figures;
use crate::governors::Settings;
use crate::key::Key;
use crate::memory::{Others, Slot};
use crate::queue::{Number, Queue};
use crate::refusal::{Refusal, Refused};
use crate::retry::{End, Next};
use gleaner_governor::{
    Admission, Advice, CircuitState, Deferral, Governor, Jitter, Learned, Outcome, Permit, Time, WaitReason,
};
#[cfg(feature = "client")]
use gleaner_governor::{BackoffConfig, BreakerConfig, Config, RunBudgetConfig};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The send governor of one key. Cheap to clone: all clones share the governor.
#[derive(Clone)]
pub struct SendGovernor {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) key: Arc<Key>,
    pub(crate) clock: Clock,
    pub(crate) settings: Settings,
    state: Mutex<State>,
    slot: Option<Slot>,
    /// Answers come from a recording, so waiting protects nobody.
    is_replay: bool,
    /// Whether the saved state was loaded, and why not although there is a file.
    is_remembered: bool,
    memory_trouble: Option<String>,
}

/// Mutable state behind one lock, which is never held across an `await`.
pub(crate) struct State {
    pub(crate) governor: Governor,
    pub(crate) queue: Queue,
    pub(crate) figures: Figures,
}

impl SendGovernor {
    pub(crate) fn new(key: Key, settings: Settings, slot: Option<Slot>) -> Self {
        Self::build(key, settings, slot, false)
    }

    fn build(key: Key, settings: Settings, slot: Option<Slot>, is_replay: bool) -> Self {
        let clock = Clock::new();
        let mut governor = Governor::with_config(key.provider(), settings.config);
        let loaded = slot.as_ref().map(Slot::load).unwrap_or_default();
        if let Some(learned) = &loaded.learned {
            governor.restore(learned, clock.now(), wall_now());
        }
        let state = Mutex::new(State { governor, queue: Queue::default(), figures: Figures::default() });
        let (is_remembered, memory_trouble) = (loaded.learned.is_some(), loaded.trouble);
        let key = Arc::new(key);
        Self {
            shared: Arc::new(Shared { key, clock, settings, state, slot, is_replay, is_remembered, memory_trouble }),
        }
    }

    /// For answers from a recording: never waits, retries as often as the call allows, and counts requests against
    /// the run budget.
    #[cfg(feature = "client")]
    pub(crate) fn for_replay(key: Key, request_cap: Option<u64>) -> Self {
        let config = Config {
            discovery_interval: Duration::ZERO,
            backoff: BackoffConfig { base: Duration::ZERO, cap: Duration::ZERO, attempts: u32::MAX },
            retry_budget: None,
            breaker: BreakerConfig { throughput_min: u16::MAX, consecutive_failures: 0, ..BreakerConfig::default() },
            run_budget: RunBudgetConfig { request_cap, ..RunBudgetConfig::default() },
            ..Config::default()
        };
        Self::build(key, Settings { config, ..Settings::default() }, None, true)
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> &Key {
        &self.shared.key
    }

    /// Waits until a request may be sent.
    ///
    /// ```
    /// # async fn example(governor: gleaner_http::SendGovernor) -> Result<(), gleaner_http::Refused> {
    /// use gleaner_http::governor::Outcome;
    ///
    /// let mut permit = governor.until_ready().await?;
    /// permit.sent();
    /// // ... send the request, classify the answer ...
    /// permit.answer(&Outcome::success(), 0).await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The request may not be sent at all.
    pub async fn until_ready(&self) -> Result<SendPermit, Refused> {
        self.until_ready_within(&CallLimits::default()).await
    }

    /// The same with limits on the wait.
    ///
    /// # Errors
    /// The request may not be sent at all, or not within the caller's limits.
    pub async fn until_ready_within(&self, call_limits: &CallLimits) -> Result<SendPermit, Refused> {
        let mut call = Call::new(call_limits);
        call.draw_launch(self.shared.settings.launch_jitter);
        let permit = match self.shared.admit_at_once(&mut call)? {
            Some(permit) => permit,
            None => self.shared.queue_up(&mut call).await?,
        };
        Ok(SendPermit { shared: Arc::clone(&self.shared), permit: Some(permit), is_sent: false, waited: call.waited })
    }

    /// Admits a request of `call` if it may be sent now; the caller sends it at once.
    pub(crate) fn send_at_once(&self, call: &mut Call) -> Result<Option<InFlight<'_>>, Refused> {
        Ok(self.shared.admit_at_once(call)?.map(|permit| self.in_flight(permit)))
    }

    /// The same for a request that has to wait first.
    pub(crate) async fn turn_to_send(&self, call: &mut Call) -> Result<InFlight<'_>, Refused> {
        Ok(self.in_flight(self.shared.queue_up(call).await?))
    }

    fn in_flight(&self, permit: Permit) -> InFlight<'_> {
        InFlight { shared: &self.shared, permit: Some(permit) }
    }

    /// Loads learned state from elsewhere, for example from a connector's cursor. If the registry has saved state
    /// too, the more conservative of both counts.
    pub fn restore(&self, learned: &Learned) {
        let now = self.shared.clock.now();
        let governor = &mut self.shared.lock().governor;
        if self.shared.is_remembered {
            governor.restore_also(learned, now, wall_now());
        } else {
            governor.restore(learned, now, wall_now());
        }
    }

    /// Why an existing file of saved state was not used, for people.
    #[must_use]
    pub fn memory_trouble(&self) -> Option<&str> {
        self.shared.memory_trouble.as_deref()
    }

    /// The learned state to save; `None` without pacing.
    #[must_use]
    pub fn learned(&self) -> Option<Learned> {
        self.shared.learned()
    }

    pub(crate) fn is_idle(&self) -> bool {
        let state = self.shared.lock();
        let now = self.shared.clock.now();
        let snapshot = state.governor.snapshot(now);
        Arc::strong_count(&self.shared) == 1
            && state.queue.len() == 0
            && state.governor.circuit(now) == CircuitState::Closed
            && snapshot.is_none_or(|snapshot| snapshot.in_flight == 0 && snapshot.next_allowed <= now)
    }

    /// Saves the learned state, now and on this thread.
    pub(crate) fn save(&self) {
        self.shared.save();
    }
}

/// Dates are whole milliseconds, and one is lost at each end: a remembered gate must not open early.
const WALL_CLOCK_ERROR: Duration = Duration::from_millis(2);

/// The only sleep before a send: until `until`, or until the bell rings.
#[expect(clippy::disallowed_methods, reason = "this is the one place")]
pub(crate) async fn pause(until: Instant, bell: &Notify) {
    tokio::select! {
        () = tokio::time::sleep_until(until) => {}
        () = bell.notified() => {}
    }
}

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing below panics during a change; a poisoned lock still guards a consistent state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fast path: nobody waits and the governor admits. The receiver of the permit gives it back.
    fn admit_at_once(&self, call: &mut Call) -> Result<Option<Permit>, Refused> {
        let now = self.clock.now();
        let mut state = self.lock();
        if state.queue.len() > 0 || call.launch().is_some() {
            return Ok(None);
        }
        match self.ask(&mut state, call, now) {
            Step::Send(permit) => {
                state.figures.on_wait(Duration::ZERO, None);
                call.number.get_or_insert_with(|| state.queue.draw());
                Ok(Some(permit))
            }
            Step::Pause { .. } => Ok(None),
            Step::Refuse(refused) => Err(refused),
        }
    }

    /// Slow path: queue until first, then wait for the governor's time.
    async fn queue_up(&self, call: &mut Call) -> Result<Permit, Refused> {
        let start = Instant::now();
        let mut reason = None;
        let place = QueueSlot::take(self, call)?;
        let permit = loop {
            match self.step(&place, call) {
                Step::Send(permit) => break permit,
                Step::Refuse(refused) => return Err(refused),
                Step::Pause { until, why } => {
                    reason = why.or(reason);
                    pause(until, &place.bell).await;
                }
            }
        };
        drop(place);
        let waited = start.elapsed();
        call.waited += waited;
        self.lock().figures.on_wait(waited, reason);
        let why = reason.map_or("queue", WaitReason::as_str);
        tracing::debug!(key = %self.key, waited_ms = millis(waited), why, "waited");
        Ok(permit)
    }

    fn step(&self, place: &QueueSlot<'_>, call: &mut Call) -> Step {
        let now = self.clock.now();
        let mut state = self.lock();
        if call.is_over() {
            let retry_in = state.time_to_drain(now);
            return Step::Refuse(self.refused(Refusal::MaxWait, Some(retry_in)));
        }
        if !state.queue.is_head(place.number) {
            return Step::Pause { until: self.far(call), why: state.governor.wait_reason(now) };
        }
        // A moment and not a length, like the governor's: the later of the two counts, never their sum.
        if let Some(launch) = call.launch() {
            return Step::Pause { until: launch, why: state.governor.wait_reason(now) };
        }
        self.ask(&mut state, call, now)
    }

    /// Asks the governor for the head of the queue.
    fn ask(&self, state: &mut State, call: &mut Call, now: Time) -> Step {
        match state.governor.poll_admit(now) {
            Admission::Send(permit) => {
                state.figures.sent += 1;
                call.admitted_at = now;
                Step::Send(permit)
            }
            Admission::WaitUntil(at) if call.is_too_late(self.clock.instant(at)) => {
                Step::Refuse(self.refused(Refusal::MaxWait, Some(at.since(now))))
            }
            Admission::WaitUntil(at) => {
                Step::Pause { until: self.clock.instant(at), why: state.governor.wait_reason(now) }
            }
            Admission::WaitForOutcome => Step::Pause { until: self.far(call), why: Some(WaitReason::InFlight) },
            Admission::Defer(Deferral { reason, not_before }) => {
                Step::Refuse(self.refused(Refusal::Deferred(reason), not_before.map(|at| at.since(now))))
            }
        }
    }

    /// The end of the longest wait.
    fn far(&self, call: &Call) -> Instant {
        call.last_send.unwrap_or_else(|| self.clock.instant(Time::NEVER))
    }

    pub(crate) fn refused(&self, reason: Refusal, retry_in: Option<Duration>) -> Refused {
        tracing::debug!(key = %self.key, reason = reason.as_str(), "not sent");
        Refused { key: (*self.key).clone(), reason, retry_in, attempts: 0 }
    }

    pub(crate) fn learned(&self) -> Option<Learned> {
        self.learned_beside(None)
    }

    /// Merges the state that another process saved for this key: its gate and its refusals count here too.
    fn learned_beside(&self, others: Option<&Others>) -> Option<Learned> {
        let (now, wall_now) = (self.clock.now(), wall_now());
        let governor = &mut self.lock().governor;
        if let Some(others) = others {
            governor.hear_of(&others.learned, others.before.as_ref(), now, wall_now);
        }
        let mut learned = governor.learned(now, wall_now)?;
        learned.gate_until = learned.gate_until.map(|until| until + WALL_CLOCK_ERROR);
        Some(match others {
            Some(others) => learned.at_slower_pace(&others.learned, wall_now),
            None => learned,
        })
    }

    /// Saves the learned state. The text is created under the slot's lock: of two writers the later one writes the
    /// newer text.
    fn save(&self) {
        let Some(slot) = &self.slot else { return };
        if let Err(error) = slot.save(|others| self.learned_beside(others)) {
            self.lock().figures.memory_errors += 1;
            tracing::warn!(key = %self.key, %error, "the learned rates could not be saved");
        }
    }

    /// An admitted request is not sent.
    fn give_back(&self, permit: Permit) {
        let mut state = self.lock();
        state.governor.cancel(permit);
        state.figures.sent -= 1;
        state.queue.ring();
    }

    /// A request was sent, and its caller stopped waiting.
    fn abandon(&self, permit: Permit) {
        let mut state = self.lock();
        state.governor.abandon(permit);
        state.queue.ring();
    }

    /// Reports the answer to the governor. [`remember`](Self::remember) must follow.
    fn answer(&self, permit: Permit, outcome: &Outcome, attempt: u32) -> Advice {
        let now = self.clock.now();
        let mut state = self.lock();
        let jitter = Jitter::from_bits(fastrand::u64(..));
        // A recording contains its waits: they are not repeated.
        let bare = self.is_replay.then(|| Outcome::bare(outcome.verdict));
        let advice = state.governor.on_outcome(permit, bare.as_ref().unwrap_or(outcome), attempt, jitter, now);
        state.figures.on_outcome(outcome.verdict);
        state.collect_transitions(&self.key);
        state.queue.ring();
        advice
    }

    /// Saves the learned state: a refusal before the caller sees it, everything else periodically in the background.
    pub(crate) async fn remember(self: &Arc<Self>, is_refusal: bool) {
        let Some(slot) = &self.slot else { return };
        if !is_refusal && !slot.is_due() {
            return;
        }
        let (shared, (done, saved)) = (Arc::clone(self), tokio::sync::oneshot::channel());
        let saving = std::thread::Builder::new().name("gleaner-save".to_owned()).spawn(move || {
            shared.save();
            // Only a refusal is awaited.
            let _nobody = done.send(());
        });
        match saving {
            // If no thread can be started, this one saves.
            Err(_) => self.save(),
            Ok(_) if is_refusal && saved.await.is_err() => {
                tracing::warn!(key = %self.key, "the thread that saves learned rates is gone");
            }
            Ok(_) => {}
        }
    }
}

impl State {
    /// Callers that wait for their turn or before a retry.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.len() + self.figures.pausing
    }

    /// Time until all waiting callers would be sent, at the current rate.
    fn time_to_drain(&self, now: Time) -> Duration {
        let Some(snapshot) = self.governor.snapshot(now) else { return Duration::ZERO };
        let waiting = u32::try_from(self.queue.len()).unwrap_or(u32::MAX);
        snapshot.next_allowed.since(now).saturating_add(snapshot.interval.saturating_mul(waiting))
    }
}

/// Whether an answer must be saved before the caller sees it.
pub(crate) fn is_refusal(outcome: &Outcome) -> bool {
    Figures::is_rejection(outcome.verdict) || outcome.retry_after.is_some()
}

/// Next step of the caller at the head.
enum Step {
    Send(Permit),
    Pause { until: Instant, why: Option<WaitReason> },
    Refuse(Refused),
}

/// One call and its attempts.
#[derive(Debug)]
pub(crate) struct Call {
    /// Drawn when it first queues, and kept by its retries.
    number: Option<Number>,
    last_send: Option<Instant>,
    /// Random delay: the next attempt is not sent before this time.
    not_before: Option<Instant>,
    /// When its last attempt was admitted.
    pub(crate) admitted_at: Time,
    pub(crate) waited: Duration,
}

impl Call {
    pub(crate) fn new(call_limits: &CallLimits) -> Self {
        let (last_send, waited) = (call_limits.last_send(), Duration::ZERO);
        Self { number: None, last_send, not_before: None, admitted_at: Time::ZERO, waited }
    }

    /// Draws the random delay of the next attempt, unless no time is left for it. Drawn when the attempt is
    /// requested, before any pause: Retry-After, pacing and delay run at the same time, and the latest counts.
    pub(crate) fn draw_launch(&mut self, window: Duration) {
        self.not_before = None;
        if !window.is_zero() {
            let launch = Instant::now() + window.mul_f64(fastrand::f64());
            self.not_before = Some(launch).filter(|launch| !self.is_too_late(*launch));
        }
    }

    /// The drawn time, if it is in the future.
    fn launch(&self) -> Option<Instant> {
        self.not_before.filter(|launch| *launch > Instant::now())
    }

    pub(crate) fn is_too_late(&self, at: Instant) -> bool {
        self.last_send.is_some_and(|last| last < at)
    }

    /// Whether the latest time for a send has come. `>=`: a timer may not wake again for equality.
    fn is_over(&self) -> bool {
        self.last_send.is_some_and(|last| last <= Instant::now())
    }
}

/// A place in the queue, given up on drop.
struct QueueSlot<'a> {
    shared: &'a Shared,
    number: Number,
    bell: Arc<Notify>,
}

impl<'a> QueueSlot<'a> {
    fn take(shared: &'a Shared, call: &mut Call) -> Result<Self, Refused> {
        let now = shared.clock.now();
        let mut state = shared.lock();
        let waiting = state.queue.len();
        if waiting >= shared.settings.max_waiting {
            let retry_in = state.time_to_drain(now);
            return Err(shared.refused(Refusal::QueueFull(waiting), Some(retry_in)));
        }
        // Even at the fastest pace its turn would come too late. A retry is before others.
        if call.number.is_none() && call.last_send.is_some() {
            let ahead = u32::try_from(waiting).unwrap_or(u32::MAX);
            let snapshot = state.governor.snapshot(now);
            let earliest = snapshot.map_or(now, |snapshot| {
                snapshot.next_allowed.max(now) + snapshot.ceiling_interval.saturating_mul(ahead)
            });
            if call.is_too_late(shared.clock.instant(earliest)) {
                let retry_in = state.time_to_drain(now);
                return Err(shared.refused(Refusal::MaxWait, Some(retry_in)));
            }
        }
        let number = *call.number.get_or_insert_with(|| state.queue.draw());
        let bell = state.queue.enter(number);
        Ok(Self { shared, number, bell })
    }
}

impl Drop for QueueSlot<'_> {
    fn drop(&mut self) {
        self.shared.lock().queue.leave(self.number);
    }
}

/// Permission to send one request now.
#[must_use = "a permit is answered, or given back by dropping it"]
pub struct SendPermit {
    shared: Arc<Shared>,
    permit: Option<Permit>,
    is_sent: bool,
    waited: Duration,
}

impl SendPermit {
    /// Time that it waited for its turn.
    #[must_use]
    pub const fn waited(&self) -> Duration {
        self.waited
    }

    /// Marks the request as sent: dropped after this, the permit is not refunded.
    pub const fn sent(&mut self) {
        self.is_sent = true;
    }

    /// Reports the answer to the governor; `attempt` counts from 0, and `u32::MAX` means that the request is not
    /// retried in any case. A retry needs a new permit, not before the returned time.
    pub async fn answer(mut self, outcome: &Outcome, attempt: u32) -> Next {
        let Some(permit) = self.permit.take() else { return Next::End(End::Done) };
        let advice = self.shared.answer(permit, outcome, attempt);
        self.shared.remember(is_refusal(outcome)).await;
        Next::after(advice, outcome.told_wait(), self.shared.clock.now())
    }
}

impl Drop for SendPermit {
    fn drop(&mut self) {
        match self.permit.take() {
            Some(permit) if self.is_sent => self.shared.abandon(permit),
            Some(permit) => self.shared.give_back(permit),
            None => {}
        }
    }
}

gleaner_base::debug_only!(SendPermit, |it| waited = it.waited);

/// [`SendPermit`] of a sent request for a caller that holds the send governor: it borrows, because updating the
/// reference count would be the most expensive part of a turn with many threads.
#[must_use = "a request that was sent is answered with its outcome"]
pub(crate) struct InFlight<'a> {
    shared: &'a Arc<Shared>,
    permit: Option<Permit>,
}

impl InFlight<'_> {
    /// Sets the latest time at which the provider had the request.
    pub(crate) fn arrived(&self, at: Instant) {
        let Some(permit) = &self.permit else { return };
        let clock = &self.shared.clock;
        self.shared.lock().governor.on_launch(permit, clock.time(at), clock.now());
    }

    /// Like [`SendPermit::answer`], but the caller must still save a refusal.
    pub(crate) fn answer(mut self, outcome: &Outcome, attempt: u32) -> Advice {
        self.permit.take().map_or(Advice::Done, |permit| self.shared.answer(permit, outcome, attempt))
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if let Some(permit) = self.permit.take() {
            self.shared.abandon(permit);
        }
    }
}

impl State {
    /// Moves circuit transitions out of the governor, which keeps only two.
    fn collect_transitions(&mut self, key: &Key) {
        while let Some(transition) = self.governor.next_transition() {
            let (from, to) = (transition.previous.as_str(), transition.state.as_str());
            tracing::info!(key = %key, from, to, reason = transition.reason.as_str(), "circuit");
            self.figures.push_transition(transition);
        }
    }
}

gleaner_base::debug_only!(SendGovernor, |it| key = it.shared.key);

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
