//! The pacing law: finds an unknown rate limit from below, stays just under it, and remembers it.
//!
//! It controls one variable, the interval between two sends. Only successes may shorten it, and only refusals and
//! late answers lengthen it (D2, D3). `tuning.rs` has name, range and reason of every number.
//!
//! ```text
//!             refused                  refused again
//!   Search ──────────────▶ Climb ──────────────────────▶ Hold ◀────────┐
//!     │                      ▲      limit measured        │            │ refused:
//!     │                      │                            │ quiet      │ measured anew
//!     │                      │      limit rose            ▼            │
//!     │                      └───────────────────────── Probe ─────────┘
//!     │
//!     └── refused for long: a window is learned ───────▶ Hold
//!
//!   any ── a row of late answers ──▶ Drain ── ordinary answers ──▶ Climb or Hold
//! ```
//!
//! A refusal opens an *episode* in any mode, and the first success after it closes the episode (`episode.rs`). In
//! between, one request at a time (a trial) tests whether the provider accepts requests again.
//!
//! A share below 1 is a share of the rate: the interval is divided by it and gets longer.
//!
//! | mode | event | next mode | interval |
//! |---|---|---|---|
//! | Search | enough successes (`search_successes`, `search_s`) | Search | ÷ `search_growth` |
//! | Climb | a step has lasted (`step_min_s`), and few refusals are fresh | Climb | ÷ (1 + `climb`) |
//! | Hold | a look (`hold_look`) | Hold | back to limit × (1 − `margin`), never longer |
//! | Hold | quiet for `hold_moved_s`, × `hold_growth` per confirmation, and a refusal is affordable | Probe | stays |
//! | Probe | a step has lasted | Probe | ÷ (1 + `probe`) |
//! | Probe | more accepted than the limit allows (`risen_accepted`) | Climb | stays; the limit is forgotten |
//! | any | first refusal of a burst: an episode opens | stays | ÷ `first_cut`, or `explained_cut` if the window explains it |
//! | any | other refusals of the burst | stays | stays |
//! | any, in an episode | a try is refused | stays | ÷ `trial_cut`; told how long: as told |
//! | any, in an episode | success, refusal explained | stays | the refused one ÷ `slight_cut` |
//! | any, in an episode | success, refusal lasted (`long_s`) | Hold | the window is learned, pace by `window_pace` |
//! | any, in an episode | the same, window known | stays | the refused one ÷ `slight_cut`; the window gets longer |
//! | any, in an episode | success after the first contact | Climb | the refused one ÷ `climb_from` |
//! | any, in an episode | success, fewer than `few` accepted | Climb | by what the few allow, ÷ `few_climb_from` |
//! | any, in an episode | success, limit measured | Hold | limit × (1 − `margin`) |
//! | any | a shorter window was tried and refused | stays | ÷ `slight_cut` |
//! | Search | too many in flight explain the refusal | Search | ÷ `slight_cut` |
//! | any other | the same | Climb | ÷ `slight_cut`; the limit is forgotten |
//! | any but Drain | a row of late answers (`late_row`) | Drain | ÷ `drain_rate` |
//! | Drain | another row | Drain | ÷ `drain_again_max` at least |
//! | Drain | `drain_rows_max` rows: we are not the cause | Climb | back to where the drain would end; the baseline is forgotten |
//! | Drain | `drain_ordinary` ordinary answers | Climb, Hold | back to `after_search`, `after_climb`; to hold: `after_probe`, `after_gentle_climb` |
//! | any | 401 or 403, `shut_after` in a row | stays | stays; the key closes for `shut_s` |
//! | any | a quota is used up, nobody says until when | stays | stays; an episode opens |
//! | any | 5xx, reset, 404 | stays | stays |
//!
//! Why not halve and add as textbooks do: that costs a seventh of the goodput for ever. Here the provider's bucket
//! was empty when it refused, so the number accepted until the next refusal, divided by the time, *is* the limit. A
//! refusal that lasts is a window, not a pace, and is mirrored (`window.rs`). Late answers are a limit too
//! (`slowdown.rs`).
//!
//! Only a success evaluates curves over time, so an error can never speed us up.

mod batch;
pub(crate) mod bucket;
mod episode;
pub(crate) mod gcra;
mod latency;
pub(crate) mod pace;
mod refusals;
mod rest;
mod send_log;
mod slowdown;
pub(crate) mod tuning;
mod window;

use crate::admission::permit::is_later;
use crate::time::{SECOND, Time, nanos_in, seconds_between};
pub(crate) use batch::Ordinary;
use episode::Episode;
use latency::Latency;
use refusals::Refusals;
pub(crate) use rest::IdleLaw;
use slowdown::Drain;
use tuning::Tuning;
use window::Window;

/// Mode of the law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Doubling the rate; nothing is known.
    Search,
    /// Rising towards the limit.
    Climb,
    /// Just under the limit.
    Hold,
    /// Testing whether the limit rose.
    Probe,
    /// Waiting for latency to fall.
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

/// When the provider's bucket was last known to be empty, and our rate then.
#[derive(Clone, Debug)]
struct Count {
    /// The first send that was accepted after the last refusal, or the first of all; [`Time::NEVER`] before it.
    from: Time,
    /// The last refusal.
    refused: Option<Time>,
    /// The rate at that time: if it has hardly changed since, the count gives the limit.
    rate: f64,
}

/// The law of one key.
#[derive(Clone, Debug)]
pub(crate) struct Law {
    tuning: &'static Tuning,
    /// The owner's ceiling: no interval is shorter.
    fastest: u64,
    interval: u64,
    mode: Mode,
    /// The measured limit per second; 0 while unknown.
    limit: f64,
    /// Start of the current step, and its successes.
    since: Time,
    successes: u32,
    /// Sends since then that were not refused. A request that failed for another reason was admitted by the provider
    /// too.
    accepted: u32,
    count: Count,
    /// Start of the probe, and the number accepted until then.
    probe_from: Time,
    accepted_before_probe: u32,
    hold_s: f32,
    /// Length of a step in Climb: longer where refusals last longer.
    step_s: f32,
    /// Duration of the last refusal.
    lasted_s: f32,
    episode: Option<Episode>,
    /// Sends so far, wrapping, and their number at the last cut: answers to those are echoes of its cause. Numbers,
    /// because two sends may have the same time.
    sent: u32,
    sent_at_cut: u32,
    /// Nothing is sent before this time: Retry-After, trials, bans.
    gate: Time,
    /// Refusals in a row that look like a ban.
    shut: u8,
    /// The in-flight limit explains the refusals, so they do not slow Climb down.
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
    /// The send that it answers.
    pub(crate) seq: u32,
    pub(crate) sent_at: Time,
    /// The provider's Retry-After.
    pub(crate) retry_after: Option<u64>,
    /// The request tested a shorter window.
    pub(crate) early: bool,
    /// The number of requests in flight explains it.
    pub(crate) company: bool,
}

/// A success as the law sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Accepted {
    /// The send that it answers.
    pub(crate) seq: u32,
    pub(crate) sent_at: Time,
    /// The request tested a shorter window.
    pub(crate) early: bool,
}

impl Law {
    pub(crate) fn new(discovery: u64, fastest: u64, tuning: &'static Tuning) -> Self {
        let interval = discovery.clamp(fastest, tuning.interval_max.max(fastest));
        Self {
            tuning,
            fastest,
            interval,
            mode: Mode::Search,
            limit: 0.0,
            since: Time::ZERO,
            successes: 0,
            accepted: 0,
            count: Count { from: Time::NEVER, refused: None, rate: SECOND as f64 / interval as f64 },
            probe_from: Time::ZERO,
            accepted_before_probe: 0,
            hold_s: tuning.hold_s,
            step_s: tuning.step_min_s,
            lasted_s: 0.0,
            episode: None,
            sent: 0,
            sent_at_cut: 0,
            gate: Time::ZERO,
            shut: 0,
            is_free: false,
            is_gentle: false,
            drain: Drain::default(),
            window: Window::new(tuning),
            refusals: Refusals::new(tuning),
            latency: Latency::default(),
        }
    }

    /// The same for an account that is penalized for refusals.
    pub(crate) fn conservative(mut self) -> Self {
        self.refusals = Refusals::conservative(self.tuning);
        self
    }

    /// The numbers of the law.
    pub(crate) const fn tuning(&self) -> &'static Tuning {
        self.tuning
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

    /// Whether requests are sent one at a time, as trials.
    pub(crate) const fn is_trying(&self) -> bool {
        self.episode.is_some()
    }

    /// Whether the account looks banned.
    pub(crate) const fn is_shut(&self) -> bool {
        self.shut >= self.tuning.shut_after
    }

    pub(crate) const fn shut(&self) -> u8 {
        self.shut
    }

    /// Whether a refusal is affordable.
    pub(crate) fn may_risk(&self, now: Time) -> bool {
        self.refusals.may_risk(now, self.tuning)
    }

    /// Maximum of requests in flight that timely answers would explain.
    pub(crate) fn in_flight_max(&self) -> u32 {
        self.latency.in_flight_max(self.rate(), self.tuning)
    }

    pub(crate) fn rate(&self) -> f64 {
        SECOND as f64 / self.interval as f64
    }

    fn set_rate(&mut self, rate: f64) {
        let interval = (SECOND as f64 / rate.max(f64::MIN_POSITIVE)) as u64;
        self.interval = interval.clamp(self.fastest, self.slowest());
    }

    /// Raises the rate to `rate` if that is faster.
    fn raise_to(&mut self, rate: f64) {
        if rate > self.rate() {
            self.set_rate(rate);
        }
    }

    /// Lengthens the interval, by at least a nanosecond unless it is at its maximum.
    fn cut(&mut self, factor: f64) {
        let before = self.interval;
        self.set_rate(self.rate() * factor);
        // Trials may be slower than the slowest interval.
        self.interval = self.interval.max(before.saturating_add(1)).min(self.slowest().max(before));
        self.sent_at_cut = self.sent;
    }

    /// Whether a request was sent after the last cut, so that its answer is no echo of the cause.
    const fn is_after_cut(&self, seq: u32) -> bool {
        is_later(seq, self.sent_at_cut)
    }

    /// The longest interval.
    fn slowest(&self) -> u64 {
        self.tuning.interval_max.max(self.fastest)
    }

    fn enter(&mut self, mode: Mode, now: Time) {
        self.mode = mode;
        self.since = now;
        self.successes = 0;
    }

    /// Counts a send.
    pub(crate) fn on_send(&mut self, now: Time, early: bool) {
        if self.count.from == Time::NEVER {
            self.count.from = now;
            self.since = now;
        }
        self.sent = self.sent.wrapping_add(1);
        self.accepted = self.accepted.saturating_add(1);
        self.window.on_send(now, early, self.tuning);
    }

    /// Takes back a send that was never made.
    pub(crate) fn on_cancel(&mut self, early: bool) {
        self.accepted = self.accepted.saturating_sub(1);
        self.window.refund();
        self.on_lost(early);
    }

    /// An answer without information about limits.
    pub(crate) fn on_lost(&mut self, early: bool) {
        if early {
            self.window.on_lost();
        }
    }

    /// A refusal without a reason: a few in a row look like a ban. If the provider says how long it lasts, the gate
    /// closes for that time and nothing else changes.
    pub(crate) fn on_forbidden(&mut self, is_ban: bool, says_when: bool, now: Time) {
        let Tuning { shut_after, shut_s, shut_doublings_max, .. } = *self.tuning;
        self.shut = if is_ban { self.shut.max(shut_after - 1).saturating_add(1) } else { self.shut.saturating_add(1) };
        if self.is_shut() && !says_when {
            let doublings = u32::from(self.shut - shut_after).min(shut_doublings_max);
            self.close_until(now.plus(nanos_in(shut_s * f64::from(1u32 << doublings))));
        }
    }

    /// The provider accepted a request: the only way to get faster.
    ///
    /// Returns whether the law slows down because answers are late.
    pub(crate) fn on_success(&mut self, success: Accepted, now: Time) -> bool {
        self.refusals.on_accepted(1, self.tuning);
        self.shut = 0;
        if success.early {
            self.window.on_early_accepted(now, self.tuning);
        }
        let before = self.interval;
        if self.latency.on_success(success.sent_at, now, self.tuning) {
            self.slow_down(now);
        }
        let is_late = self.interval > before;
        self.climb_on(success, now);
        is_late
    }

    fn climb_on(&mut self, success: Accepted, now: Time) {
        if self.episode.is_some() {
            if self.is_after_cut(success.seq) {
                self.close_episode(success.sent_at, now);
            }
            return;
        }
        if self.window.is_learned() && self.may_risk(now) {
            self.window.experiment(now, self.rate(), self.tuning);
        }
        if self.mode == Mode::Drain {
            return self.end_drain(now);
        }
        // At the ceiling the rate cannot grow.
        if success.sent_at >= self.since && self.interval > self.fastest {
            self.successes = self.successes.saturating_add(1);
            if self.is_used(now) {
                self.grow(self.successes.is_multiple_of(self.tuning.hold_look), now);
            }
        }
    }

    /// Whether the caller uses the current rate: one that sends less learns nothing about the limit and must not get
    /// faster. Answers lag behind sends by their latency.
    fn is_used(&self, now: Time) -> bool {
        let answered_s = seconds_between(self.since, now) - self.latency.base_s();
        f64::from(self.successes) >= self.tuning.used * self.rate() * answered_s
    }

    /// One or more successes at the current rate.
    fn grow(&mut self, is_time_to_look: bool, now: Time) {
        let (rate, tuning) = (self.rate(), self.tuning);
        match self.mode {
            Mode::Search => {
                if f64::from(self.successes) >= (tuning.search_s * rate).max(tuning.search_successes) {
                    self.set_rate(rate * tuning.search_growth);
                    self.enter(Mode::Search, now);
                }
            }
            Mode::Climb if self.refusals.is_alarmed(now, tuning) && !self.is_free => {}
            Mode::Climb => self.step(if self.is_gentle { tuning.climb_gently } else { tuning.climb }, now),
            Mode::Hold if !is_time_to_look => {}
            Mode::Hold => {
                self.raise_to(self.limit * (1.0 - self.refusals.margin(now, tuning)));
                self.probe_if_due(now);
            }
            Mode::Probe if self.has_risen(now) => {
                self.hold_s = tuning.hold_moved_s;
                self.limit = 0.0;
                self.enter(Mode::Climb, now);
            }
            Mode::Probe => self.step(tuning.probe, now),
            Mode::Drain => {}
        }
    }

    /// Raises the rate by a step when the current step has lasted long enough.
    fn step(&mut self, by: f64, now: Time) {
        let (rate, tuning) = (self.rate(), self.tuning);
        let is_useful = rate <= tuning.step_window_max * self.window.rate();
        let has_lasted = seconds_between(self.since, now) >= f64::from(self.step_s).max(tuning.step_intervals / rate);
        if is_useful && has_lasted && self.successes >= tuning.step_successes {
            self.set_rate(rate * (1.0 + by));
            self.enter(self.mode, now);
        }
    }

    fn probe_if_due(&mut self, now: Time) {
        let is_pace = self.rate() <= self.tuning.probe_window_max * self.window.rate();
        let is_quiet = seconds_between(self.since, now) >= f64::from(self.hold_s);
        if is_pace && is_quiet && self.successes >= self.tuning.hold_successes && self.may_risk(now) {
            self.enter(Mode::Probe, now);
            self.probe_from = now;
            self.accepted_before_probe = self.accepted;
        }
    }

    /// Whether the limit rose: more was accepted since the bucket was empty than the limit allows.
    fn has_risen(&self, now: Time) -> bool {
        let Tuning { risen_burst, risen_accepted, risen_rate, .. } = *self.tuning;
        let proven = f64::from(self.accepted.saturating_sub(risen_burst)) / self.counted_s(now);
        proven > risen_accepted * self.limit && self.rate() > risen_rate * self.limit
    }

    fn counted_s(&self, now: Time) -> f64 {
        seconds_between(self.count.from.min(now), now)
    }

    /// Goes to Hold under a measured limit.
    fn settle(&mut self, limit: f64, now: Time) {
        let Tuning { same_limit, hold_growth, hold_max_s, hold_moved_s, .. } = *self.tuning;
        let is_same = (limit - self.limit).abs() < same_limit * self.limit;
        self.hold_s = if is_same { (self.hold_s * hold_growth).min(hold_max_s) } else { hold_moved_s };
        self.limit = limit;
        self.raise_to(limit * (1.0 - self.refusals.margin(now, self.tuning)));
        self.enter(Mode::Hold, now);
    }

    /// Starts from the rate of an earlier run, without Search; the rate is only a starting point.
    pub(crate) fn restore_rate(&mut self, interval: u64, limit: Option<f64>) {
        self.interval = interval.clamp(self.fastest, self.slowest());
        // A limit far above the rate at which it was held was not measured.
        let believed = self.tuning.restored_limit_max * self.rate();
        let limit = limit.filter(|limit| limit.is_finite() && *limit > 0.0 && *limit <= believed);
        self.limit = limit.unwrap_or(0.0);
        self.mode = if limit.is_some() { Mode::Hold } else { Mode::Search };
        self.count.rate = self.rate();
    }

    /// The earlier run met the limit and did not measure it: doubling would meet it again at once. So the next refusal
    /// is not the first one and must not end Search.
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
