//! The law: how fast is safe. Finds an unknown limit from below, sits just under it, remembers it.
//!
//! One control variable, the interval between two sends. Successes may shorten it, refusals and
//! late answers lengthen it, and nothing else touches it (D2, D3). The way of a key:
//!
//! - **Search**: double the rate after a row of successes, from a conservative start (D4).
//! - **First contact**: cut deep, then *climb* a few percent at a time. The bucket was empty when
//!   it refused, so what is accepted until it refuses again, over the time that took, *is* the
//!   limit. Why not halve and add as textbooks do: that costs a seventh of the goodput for ever.
//! - **Hold** just under the measured limit, and *probe* above it now and then, more and more
//!   rarely while it stays where it is. A probe that gets more through than the limit allows has
//!   proved that it rose: climb again.
//! - A refusal that lasts is a window, not a pace, and is mirrored (`window.rs`).
//! - Late answers are a limit too (`slowdown.rs`).
//!
//! Curves over time are evaluated only on a success, so an error can never speed us up.

mod batch;
mod episode;
mod rest;
mod slowdown;

use crate::latency::Latency;
use crate::refusals::Refusals;
use crate::time::{SECOND, Time, nanos_in, seconds_between};
use crate::window::Window;
pub(crate) use batch::Ordinary;
use episode::Episode;
pub(crate) use rest::Rest;
use slowdown::Drain;

/// Longest interval: an hour. Slower providers exist only as windows.
const INTERVAL_MAX: u64 = 3600 * SECOND;
/// Successes before the search doubles: enough to notice a bucket of one ...
const SEARCH_SUCCESSES: f64 = 6.0;
/// ... and seconds at the present rate: enough for the first refusal to come back.
const SEARCH_S: f64 = 1.5;
/// Step of a climb, per `step_s`.
const CLIMB: f64 = 0.05;
/// Step of a climb after late answers: a tarpit counts over seconds and is noticed late.
const CLIMB_GENTLY: f64 = 0.015;
/// Step of a probe: small, so that a refused one tells the limit well.
const PROBE: f64 = 0.02;
/// Quiet time before the first probe, doubled by each that confirms the limit ...
const HOLD_S: f32 = 120.0;
/// ... up to a quarter of an hour: a refusal then costs less than a tenth of a percent.
const HOLD_MAX_S: f32 = 960.0;
/// Quiet time after the limit was seen to move: it may move again.
const HOLD_MOVED_S: f32 = 60.0;
/// Successes between two looks at whether to go on holding.
const HOLD_LOOK: u32 = 4;
/// Successes before a probe, however slow the provider is.
const HOLD_SUCCESSES: u32 = 20;
/// Share of the permitted sends that must be made for the rate to count as used.
const USED: f64 = 0.75;
/// Two measurements that differ by less are the same limit.
const SAME: f64 = 0.05;

/// Where a key stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Doubling, nothing known.
    Search,
    /// Rising towards the limit.
    Climb,
    /// Just under the limit.
    Hold,
    /// Trying whether the limit rose.
    Probe,
    /// Waiting for late answers to come down.
    Drain,
}

impl Mode {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Search => "search",
            Self::Climb => "climb",
            Self::Hold => "hold",
            Self::Probe => "probe",
            Self::Drain => "drain",
        }
    }
}

/// What is counted since the bucket was last known to be empty.
#[derive(Clone, Debug)]
struct Count {
    /// Sends that were not refused. A request that failed for another reason was let in, too.
    accepted: u32,
    /// The first send that was accepted after the last refusal, or the first of all.
    from: Option<Time>,
    /// The last refusal.
    refused: Option<Time>,
    /// The rate at that time: if it has hardly changed since, the count is the limit.
    rate: f64,
}

/// The law of one key.
#[derive(Clone, Debug)]
pub(crate) struct Law {
    /// The owner's ceiling: no interval is shorter.
    fastest: u64,
    interval: u64,
    mode: Mode,
    /// The measured limit per second; 0 while unknown.
    limit: f64,
    /// Since when the present step lasts, and its successes.
    since: Time,
    successes: u32,
    count: Count,
    /// Accepted at the start of the probe, and when that was.
    probe: (u32, Time),
    hold_s: f32,
    /// Length of a step of a climb: longer where a refusal takes longer to pass.
    step_s: f32,
    /// How long the last refusal lasted.
    lasted_s: f32,
    episode: Option<Episode>,
    /// Sends so far, wrapping, and how many there were at the last cut: those are echoes of what
    /// caused it. Counted, because two sends may carry the same time.
    sent: u32,
    sent_at_cut: u32,
    /// Nothing is sent before: Retry-After, trials, bans.
    gate: Time,
    /// Refusals in a row that look like a ban.
    shut: u8,
    /// The in-flight limit explains the refusals, so they do not slow the climb.
    is_free: bool,
    is_gentle: bool,
    drain: Drain,
    pub(crate) window: Window,
    pub(crate) refusals: Refusals,
    latency: Latency,
}

/// A throttle as the law sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refusal {
    /// Which send it answers.
    pub(crate) seq: u32,
    pub(crate) sent_at: Time,
    /// How long the provider asks us to stay away.
    pub(crate) retry_after: Option<u64>,
    /// The request tested a shorter window.
    pub(crate) early: bool,
    /// Too many in flight explain it.
    pub(crate) company: bool,
}

/// A success as the law sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Accepted {
    /// Which send it answers.
    pub(crate) seq: u32,
    pub(crate) sent_at: Time,
    /// The request tested a shorter window.
    pub(crate) early: bool,
}

/// Refusals in a row, without a word and without a success, that look like a ban.
const SHUT_AFTER: u8 = 3;
/// First wait then; doubled each time, up to an hour. What GitHub asks for without a header.
const SHUT_S: f64 = 60.0;

impl Law {
    pub(crate) fn new(discovery: u64, fastest: u64) -> Self {
        let interval = discovery.clamp(fastest, INTERVAL_MAX.max(fastest));
        Self {
            fastest,
            interval,
            mode: Mode::Search,
            limit: 0.0,
            since: Time::ZERO,
            successes: 0,
            count: Count { accepted: 0, from: None, refused: None, rate: SECOND as f64 / interval as f64 },
            probe: (0, Time::ZERO),
            hold_s: HOLD_S,
            step_s: 1.0,
            lasted_s: 0.0,
            episode: None,
            sent: 0,
            sent_at_cut: 0,
            gate: Time::ZERO,
            shut: 0,
            is_free: false,
            is_gentle: false,
            drain: Drain::default(),
            window: Window::new(),
            refusals: Refusals::new(),
            latency: Latency::default(),
        }
    }

    /// The same for an account against which refusals are held.
    pub(crate) fn careful(mut self) -> Self {
        self.refusals = Refusals::careful();
        self
    }

    pub(crate) const fn interval(&self) -> u64 {
        self.interval
    }

    pub(crate) const fn mode(&self) -> Mode {
        self.mode
    }

    /// The measured limit per second, if there is one.
    pub(crate) fn limit(&self) -> Option<f64> {
        (self.limit > 0.0).then_some(self.limit)
    }

    pub(crate) const fn gate(&self) -> Time {
        self.gate
    }

    pub(crate) fn close_until(&mut self, until: Time) {
        self.gate = self.gate.max(until);
    }

    /// Whether requests go out one at a time: it is being tried whether the provider is open again.
    pub(crate) const fn is_trying(&self) -> bool {
        self.episode.is_some()
    }

    /// Whether the account seems to be shut out.
    pub(crate) const fn is_shut(&self) -> bool {
        self.shut >= SHUT_AFTER
    }

    pub(crate) const fn shut(&self) -> u8 {
        self.shut
    }

    /// Most requests in flight that answers in time would explain.
    pub(crate) fn in_flight_max(&self) -> u32 {
        self.latency.in_flight_max(self.rate())
    }

    pub(crate) fn rate(&self) -> f64 {
        SECOND as f64 / self.interval as f64
    }

    fn set_rate(&mut self, rate: f64) {
        let interval = (SECOND as f64 / rate.max(1e-9)) as u64;
        self.interval = interval.clamp(self.fastest, self.slowest());
    }

    /// Goes to `rate` if that is faster.
    fn raise_to(&mut self, rate: f64) {
        if rate > self.rate() {
            self.set_rate(rate);
        }
    }

    /// Lengthens the interval, by at least a nanosecond unless it is at its maximum.
    fn cut(&mut self, factor: f64) {
        let before = self.interval;
        self.set_rate(self.rate() * factor);
        // The pace of tries may be slower than any other.
        self.interval = self.interval.max(before.saturating_add(1)).min(self.slowest().max(before));
        self.sent_at_cut = self.sent;
    }

    /// Whether a request was sent after the last cut, and so is no echo of what caused it.
    const fn is_after_cut(&self, seq: u32) -> bool {
        let later = seq.wrapping_sub(self.sent_at_cut);
        later > 0 && later <= u32::MAX / 2
    }

    /// The longest interval.
    fn slowest(&self) -> u64 {
        INTERVAL_MAX.max(self.fastest)
    }

    fn enter(&mut self, mode: Mode, now: Time) {
        self.mode = mode;
        self.since = now;
        self.successes = 0;
    }

    /// Books a send.
    pub(crate) fn on_send(&mut self, now: Time, early: bool) {
        if self.count.from.is_none() {
            self.count.from = Some(now);
            self.since = now;
        }
        self.sent = self.sent.wrapping_add(1);
        self.count.accepted = self.count.accepted.saturating_add(1);
        self.window.on_send(now, early);
    }

    /// Takes back a send that was never made.
    pub(crate) fn on_cancel(&mut self, early: bool) {
        self.count.accepted = self.count.accepted.saturating_sub(1);
        self.window.refund();
        self.on_lost(early);
    }

    /// An answer that says nothing about limits.
    pub(crate) fn on_lost(&mut self, early: bool) {
        if early {
            self.window.on_lost();
        }
    }

    /// A refusal without a reason: after a few in a row it looks like a ban. Where the provider says how long it
    /// lasts, that closes the key and nothing else.
    pub(crate) fn on_forbidden(&mut self, is_ban: bool, says_when: bool, now: Time) {
        self.shut = if is_ban { self.shut.max(SHUT_AFTER - 1).saturating_add(1) } else { self.shut.saturating_add(1) };
        if self.is_shut() && !says_when {
            let doublings = u32::from(self.shut - SHUT_AFTER).min(6);
            self.close_until(now.plus(nanos_in(SHUT_S * f64::from(1u32 << doublings))));
        }
    }

    /// The provider did what was asked: the only way to get faster.
    pub(crate) fn on_success(&mut self, success: Accepted, now: Time) {
        self.refusals.on_accepted();
        self.shut = 0;
        if success.early {
            self.window.on_early_accepted(now);
        }
        if self.latency.on_success(success.sent_at, now) {
            self.slow_down(now);
        }
        if self.episode.is_some() {
            if self.is_after_cut(success.seq) {
                self.close_episode(success.sent_at, now);
            }
            return;
        }
        if self.window.is_learned() && self.refusals.may_risk(now) {
            self.window.experiment(now, self.rate());
        }
        if self.mode == Mode::Drain {
            return self.end_drain(now);
        }
        // At the owner's ceiling there is nothing to grow to.
        if success.sent_at >= self.since && self.interval > self.fastest {
            self.successes = self.successes.saturating_add(1);
            if self.is_used(now) {
                self.grow(self.successes.is_multiple_of(HOLD_LOOK), now);
            }
        }
    }

    /// Whether the rate is really used: whoever has less to do than it allows learns nothing about
    /// the limit, and must not get faster by it. Answers lag behind sends by their latency.
    fn is_used(&self, now: Time) -> bool {
        let answered_s = seconds_between(self.since, now) - self.latency.base_s();
        f64::from(self.successes) >= USED * self.rate() * answered_s
    }

    /// One more success at the present rate, or some more.
    fn grow(&mut self, is_time_to_look: bool, now: Time) {
        let rate = self.rate();
        match self.mode {
            Mode::Search => {
                if f64::from(self.successes) >= (SEARCH_S * rate).max(SEARCH_SUCCESSES) {
                    self.set_rate(rate * 2.0);
                    self.enter(Mode::Search, now);
                }
            }
            Mode::Climb if self.refusals.is_alarmed(now) && !self.is_free => {}
            Mode::Climb => self.step(if self.is_gentle { CLIMB_GENTLY } else { CLIMB }, now),
            // Neither a margin nor a quiet time ends within a few requests.
            Mode::Hold if !is_time_to_look => {}
            Mode::Hold => {
                self.raise_to(self.limit * (1.0 - self.refusals.margin(now)));
                self.probe_if_due(now);
            }
            Mode::Probe if self.has_risen(now) => {
                self.hold_s = HOLD_MOVED_S;
                self.limit = 0.0;
                self.enter(Mode::Climb, now);
            }
            Mode::Probe => self.step(PROBE, now),
            Mode::Drain => {}
        }
    }

    /// Raises the rate by a step when the last one has lasted.
    fn step(&mut self, by: f64, now: Time) {
        let rate = self.rate();
        // Where a window holds us anyway, a faster pace inside it only makes more echoes.
        let is_useful = rate <= 3.0 * self.window.rate();
        let has_lasted =
            seconds_between(self.since, now) >= f64::from(self.step_s).max(2.0 / rate) && self.successes >= 2;
        if is_useful && has_lasted {
            self.set_rate(rate * (1.0 + by));
            self.enter(self.mode, now);
        }
    }

    fn probe_if_due(&mut self, now: Time) {
        let is_pace = self.rate() <= 1.5 * self.window.rate();
        let is_quiet = seconds_between(self.since, now) >= f64::from(self.hold_s) && self.successes >= HOLD_SUCCESSES;
        if is_pace && is_quiet && self.refusals.may_risk(now) {
            self.enter(Mode::Probe, now);
            self.probe = (self.count.accepted, now);
        }
    }

    /// More was accepted since the bucket was empty than the limit lets through: it rose.
    fn has_risen(&self, now: Time) -> bool {
        let proven = f64::from(self.count.accepted.saturating_sub(4)) / self.counted_s(now);
        proven > 1.03 * self.limit && self.rate() > 1.1 * self.limit
    }

    fn counted_s(&self, now: Time) -> f64 {
        seconds_between(self.count.from.unwrap_or(now), now)
    }

    /// Sits down under a measured limit.
    fn settle(&mut self, limit: f64, now: Time) {
        let is_same = (limit - self.limit).abs() < SAME * self.limit;
        self.hold_s = if is_same { (self.hold_s * 2.0).min(HOLD_MAX_S) } else { HOLD_MOVED_S };
        self.limit = limit;
        self.raise_to(limit * (1.0 - self.refusals.margin(now)));
        self.enter(Mode::Hold, now);
    }

    /// Starts from what a former run learned; the search is over, but it is only a start.
    pub(crate) fn restore_rate(&mut self, interval: u64, limit: Option<f64>) {
        self.interval = interval.clamp(self.fastest, self.slowest());
        // A limit far above the rate at which it was held is no measurement.
        let limit = limit.filter(|limit| limit.is_finite() && *limit > 0.0 && *limit <= 1.2 * self.rate());
        self.limit = limit.unwrap_or(0.0);
        self.mode = if limit.is_some() { Mode::Hold } else { Mode::Search };
        self.count.rate = self.rate();
    }

    /// The former run has met the limit and not measured it yet: doubling would meet it again at once. The next
    /// refusal is not the first one either, and must not be taken for the end of a search.
    pub(crate) fn restore_contact(&mut self, now: Time) {
        if self.mode == Mode::Search {
            self.mode = Mode::Climb;
            self.count.refused = Some(now);
        }
    }

    pub(crate) fn restore_shut(&mut self, shut: u8) {
        self.shut = shut;
    }
}
