//! The one place that waits before a send.
//!
//! A [`SendGovernor`] drives the pure governor of one key: it queues callers in the order in which they
//! came, lets the head ask for admission, and sleeps until the time that the governor names. That sleep
//! is the only one before a send in the whole workspace ([`pause`]); retries use it too. Whatever a
//! caller does with its admission, it is answered: dropped before the send it is refunded, dropped after
//! it only its place in flight is freed, since the provider has counted it.
//!
//! Never decides: pace, gate, circuit and budgets are the governor's.

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

/// The send governor of one key. Cheap to clone: all clones are the same governor.
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
    /// Answers come from a recording, so that nobody is spared by waiting.
    is_replay: bool,
    /// Whether the slot had something to begin with, and why not although there is a file.
    is_remembered: bool,
    memory_trouble: Option<String>,
}

/// What changes, behind one lock that is never held across an `await`.
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

    /// For answers that come from a recording: never waits, retries as often as the call allows, and counts requests
    /// against the run's budget.
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

    /// Whose limit it keeps.
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
    /// When the request may not be sent at all.
    pub async fn until_ready(&self) -> Result<SendPermit, Refused> {
        self.until_ready_within(&CallLimits::default()).await
    }

    /// The same for a caller that does not wait for ever.
    ///
    /// # Errors
    /// When the request may not be sent at all, or not within the caller's limits.
    pub async fn until_ready_within(&self, call_limits: &CallLimits) -> Result<SendPermit, Refused> {
        let mut call = Call::new(call_limits);
        call.draw_launch(self.shared.settings.launch_jitter);
        let permit = match self.shared.admit_at_once(&mut call)? {
            Some(permit) => permit,
            None => self.shared.queue_up(&mut call).await?,
        };
        Ok(SendPermit { shared: Arc::clone(&self.shared), permit: Some(permit), is_sent: false, waited: call.waited })
    }

    /// Takes a request of `call` for sent if that may be now: the caller does so at once.
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

    /// Takes what was learned elsewhere, for example from a connector's cursor. Where the registry remembers this key,
    /// too, the more careful of both counts.
    pub fn restore(&self, learned: &Learned) {
        let now = self.shared.clock.now();
        let governor = &mut self.shared.lock().governor;
        if self.shared.is_remembered {
            governor.restore_also(learned, now, wall_now());
        } else {
            governor.restore(learned, now, wall_now());
        }
    }

    /// Why nothing is remembered of this key although there is a file, for people.
    #[must_use]
    pub fn memory_trouble(&self) -> Option<&str> {
        self.shared.memory_trouble.as_deref()
    }

    /// What is worth remembering; `None` after an opt-out of pacing.
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

    /// Writes down what was learned, now and on this thread.
    pub(crate) fn save(&self) {
        self.shared.save();
    }
}

/// Dates are whole milliseconds, of which one is lost at each end: a remembered gate must not open early.
const WALL_CLOCK_ERROR: Duration = Duration::from_millis(2);

/// The only sleep before a send: until the time that was named, or until the bell says that something
/// has changed.
#[expect(clippy::disallowed_methods, reason = "this is the one place")]
pub(crate) async fn pause(until: Instant, bell: &Notify) {
    tokio::select! {
        () = tokio::time::sleep_until(until) => {}
        () = bell.notified() => {}
    }
}

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing below panics half-way through a change; a poisoned lock is still a consistent state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The short way: nobody waits and the governor agrees. Whoever gets the permit answers it.
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

    /// The long way: a place in the queue until it is the first, and then the governor's time.
    async fn queue_up(&self, call: &mut Call) -> Result<Permit, Refused> {
        let start = Instant::now();
        let mut reason = None;
        let place = Place::take(self, call)?;
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

    fn step(&self, place: &Place<'_>, call: &mut Call) -> Step {
        let now = self.clock.now();
        let mut state = self.lock();
        if call.is_over() {
            let retry_in = state.time_to_drain(now);
            return Step::Refuse(self.refused(Refusal::MaxWait, Some(retry_in)));
        }
        if !state.queue.is_head(place.number) {
            return Step::Pause { until: self.far(call), why: state.governor.wait_reason(now) };
        }
        // A moment and not a length, like the governor's: the later of the two counts, and never their sum.
        if let Some(launch) = call.launch() {
            return Step::Pause { until: launch, why: state.governor.wait_reason(now) };
        }
        self.ask(&mut state, call, now)
    }

    /// What the governor says to the caller whose turn it is.
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

    /// As long as a caller may wait.
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

    /// The same with what another process has written down about this key: its gate and its refusals are kept here, too.
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

    /// Writes down what was learned. The text is made under the slot's lock: of two writers the later
    /// one writes the newer text.
    fn save(&self) {
        let Some(slot) = &self.slot else { return };
        if let Err(error) = slot.save(|others| self.learned_beside(others)) {
            self.lock().figures.memory_errors += 1;
            tracing::warn!(key = %self.key, %error, "what was learned could not be written down");
        }
    }

    /// A request that was admitted is not sent after all.
    fn give_back(&self, permit: Permit) {
        let mut state = self.lock();
        state.governor.cancel(permit);
        state.figures.sent -= 1;
        state.queue.ring();
    }

    /// A request was sent, and nobody waits for its answer any more.
    fn abandon(&self, permit: Permit) {
        let mut state = self.lock();
        state.governor.abandon(permit);
        state.queue.ring();
    }

    /// Tells the governor what came back. What it learned is to be [remembered](Self::remember) then.
    fn answer(&self, permit: Permit, outcome: &Outcome, attempt: u32) -> Advice {
        let now = self.clock.now();
        let mut state = self.lock();
        let jitter = Jitter::from_bits(fastrand::u64(..));
        // What a recorded provider asked for was waited for when it was recorded.
        let bare = self.is_replay.then(|| Outcome::bare(outcome.verdict));
        let advice = state.governor.on_outcome(permit, bare.as_ref().unwrap_or(outcome), attempt, jitter, now);
        state.figures.on_outcome(outcome.verdict);
        state.collect_transitions(&self.key);
        state.queue.ring();
        advice
    }

    /// Sees to it that what was learned is on disk: a refusal before anybody hears of it, everything
    /// else once in a while and behind the caller's back.
    pub(crate) async fn remember(self: &Arc<Self>, is_refusal: bool) {
        let Some(slot) = &self.slot else { return };
        if !is_refusal && !slot.is_due() {
            return;
        }
        let (shared, (done, saved)) = (Arc::clone(self), tokio::sync::oneshot::channel());
        let saving = std::thread::Builder::new().name("gleaner-save".to_owned()).spawn(move || {
            shared.save();
            // Nobody waits for it unless it is a refusal.
            let _nobody = done.send(());
        });
        match saving {
            // A system that gives no more threads still has this one.
            Err(_) => self.save(),
            Ok(_) if is_refusal && saved.await.is_err() => {
                tracing::warn!(key = %self.key, "the thread that writes down what was learned is gone");
            }
            Ok(_) => {}
        }
    }
}

impl State {
    /// Callers that wait: for their turn, or before a retry.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.len() + self.figures.pausing
    }

    /// When everyone who waits now would have been sent, at the present rate.
    fn time_to_drain(&self, now: Time) -> Duration {
        let Some(snapshot) = self.governor.snapshot(now) else { return Duration::ZERO };
        let waiting = u32::try_from(self.queue.len()).unwrap_or(u32::MAX);
        snapshot.next_allowed.since(now).saturating_add(snapshot.interval.saturating_mul(waiting))
    }
}

/// Whether an answer must not be forgotten, come what may.
pub(crate) fn is_refusal(outcome: &Outcome) -> bool {
    Figures::is_rejection(outcome.verdict) || outcome.retry_after.is_some()
}

/// What the caller of a turn does next.
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
    /// The attempt that is next is not sent before this, by chance.
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

    /// Draws when the next attempt may go out, unless there would be no time for it. Drawn when the attempt is asked
    /// for, before any pause: what is told, paced or drawn runs at the same time, and the latest counts.
    pub(crate) fn draw_launch(&mut self, window: Duration) {
        self.not_before = None;
        if !window.is_zero() {
            let launch = Instant::now() + window.mul_f64(fastrand::f64());
            self.not_before = Some(launch).filter(|launch| !self.is_too_late(*launch));
        }
    }

    /// The drawn moment, if it is still to come.
    fn launch(&self) -> Option<Instant> {
        self.not_before.filter(|launch| *launch > Instant::now())
    }

    pub(crate) fn is_too_late(&self, at: Instant) -> bool {
        self.last_send.is_some_and(|last| last < at)
    }

    /// Whether the last moment for a send has come. `>=`: a timer may not wake again for equality.
    fn is_over(&self) -> bool {
        self.last_send.is_some_and(|last| last <= Instant::now())
    }
}

/// A place in the queue, given up on drop.
struct Place<'a> {
    shared: &'a Shared,
    number: Number,
    bell: Arc<Notify>,
}

impl<'a> Place<'a> {
    fn take(shared: &'a Shared, call: &mut Call) -> Result<Self, Refused> {
        let now = shared.clock.now();
        let mut state = shared.lock();
        let waiting = state.queue.len();
        if waiting >= shared.settings.max_waiting {
            let retry_in = state.time_to_drain(now);
            return Err(shared.refused(Refusal::QueueFull(waiting), Some(retry_in)));
        }
        // Not even at the fastest pace that is allowed would its turn come in time. A retry is before others.
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

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.shared.lock().queue.leave(self.number);
    }
}

/// Leave to send one request now.
#[must_use = "a permit is answered, or given back by dropping it"]
pub struct SendPermit {
    shared: Arc<Shared>,
    permit: Option<Permit>,
    is_sent: bool,
    waited: Duration,
}

impl SendPermit {
    /// How long it waited for its turn.
    #[must_use]
    pub const fn waited(&self) -> Duration {
        self.waited
    }

    /// Says that the request goes out now: dropped from here on, it is not given back.
    pub const fn sent(&mut self) {
        self.is_sent = true;
    }

    /// Tells the governor what came back; `attempt` is counted from 0, and `u32::MAX` says that the request is not sent
    /// again in any case. A retry asks for a permit like everything else, not before the time that is answered.
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

/// [`SendPermit`] of a request that was sent, for a caller that keeps the send governor: it borrows. Counting one more owner, and one less
/// again, would be the dearest part of a turn when many threads do so.
#[must_use = "a request that was sent is answered with its outcome"]
pub(crate) struct InFlight<'a> {
    shared: &'a Arc<Shared>,
    permit: Option<Permit>,
}

impl InFlight<'_> {
    /// Says by when the provider had it, at the latest.
    pub(crate) fn arrived(&self, at: Instant) {
        let Some(permit) = &self.permit else { return };
        let clock = &self.shared.clock;
        self.shared.lock().governor.on_launch(permit, clock.time(at), clock.now());
    }

    /// As [`SendPermit::answer`], but for what has to be remembered before the caller hears of it.
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
    /// Takes the evidence of circuit changes out of the governor, which keeps only two.
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
