//! A learned window: no more than `limit` sends in any `length`, mirrored from our own sends.
//!
//! Why not a rate: a provider that counts per window lets us use the window at once and then refuses until it ends. A
//! rate can only average that; the mirror uses every slot and is not refused. A sliding mirror is also safe for
//! windows with fixed boundaries.
//!
//! Length and limit may both be wrong, and each has its experiment, paid by the refusal budget: a shorter length is
//! tested while we would wait, a larger limit after a quiet time. A refusal ends the experiment and costs only
//! itself, because we would have waited anyway.

use crate::law::send_log::SendLog;
use crate::law::tuning::Tuning;
use crate::time::{SECOND, Time, nanos_in, seconds_between};
use std::time::Duration;

/// An experiment with the learned window.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Experiment {
    None,
    /// A shorter length; `accepted` sends came too early for the learned one.
    Shorter {
        length: u64,
        accepted: u32,
        in_flight: bool,
    },
    /// A larger limit than the confirmed one.
    Larger {
        confirmed: u32,
    },
}

/// A window, or the history to learn one from.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    log: SendLog,
    /// Sends allowed per `length`; 0 while unknown.
    limit: u32,
    length: u64,
    /// The longest refused length: the true one is longer.
    shortest: u64,
    experiment: Experiment,
    quiet_since: Time,
    patience_s: f32,
    raise: f32,
    /// Sends since the last pause of an eighth of the length, and their start.
    burst: u32,
    burst_from: Time,
    last_send: Time,
    /// Whether the provider sent the length, so that one refused experiment is enough.
    told: bool,
    /// Refusals that the limit explained, each soon after the previous.
    in_a_row: u8,
}

impl Window {
    pub(crate) const fn new(tuning: &Tuning) -> Self {
        Self {
            log: SendLog::new(),
            limit: 0,
            length: 0,
            shortest: 0,
            experiment: Experiment::None,
            quiet_since: Time::ZERO,
            patience_s: tuning.patience_s,
            raise: tuning.raise,
            burst: 0,
            burst_from: Time::ZERO,
            last_send: Time::ZERO,
            told: false,
            in_a_row: 0,
        }
    }

    pub(crate) const fn is_learned(&self) -> bool {
        self.limit > 0
    }

    pub(crate) const fn length(&self) -> u64 {
        self.length
    }

    /// Limit and length, once learned.
    pub(crate) fn learned(&self) -> Option<(u32, Duration)> {
        self.is_learned().then(|| (self.limit, Duration::from_nanos(self.length)))
    }

    /// The average rate that the window allows; unlimited while none is learned.
    pub(crate) fn rate(&self) -> f64 {
        if self.limit == 0 { f64::INFINITY } else { f64::from(self.limit) * SECOND as f64 / self.length as f64 }
    }

    /// When the next send fits.
    #[inline]
    pub(crate) fn due(&self, now: Time, tuning: &Tuning) -> Time {
        let due = self.due_after(self.length);
        match self.experiment {
            Experiment::Shorter { length, .. } => self.due_early(length, due, now, tuning),
            Experiment::None | Experiment::Larger { .. } => due,
        }
    }

    #[cold]
    fn due_early(&self, length: u64, due: Time, now: Time, tuning: &Tuning) -> Time {
        let early = self.due_after(length);
        // Only a send close to the shorter length tests it.
        if now <= early.plus(due.nanos_since(early) / u64::from(tuning.early_part)) { early } else { due }
    }

    fn due_after(&self, length: u64) -> Time {
        if self.limit == 0 {
            return Time::ZERO;
        }
        self.log.blocking(self.limit).map_or(Time::ZERO, |sent| sent.plus(length))
    }

    /// Whether a send at `at` tests a shorter length.
    pub(crate) fn is_early(&self, at: Time) -> bool {
        matches!(self.experiment, Experiment::Shorter { .. }) && self.due_after(self.length) > at
    }

    /// Whether such a test is in flight: one at a time.
    pub(crate) const fn is_testing(&self) -> bool {
        matches!(self.experiment, Experiment::Shorter { in_flight: true, .. })
    }

    /// Counts a send.
    pub(crate) fn on_send(&mut self, now: Time, early: bool, tuning: &Tuning) {
        let pause = now.nanos_since(self.last_send);
        if pause.saturating_mul(u64::from(tuning.burst_pause_part)) > self.length {
            self.burst = 0;
            self.burst_from = now;
        }
        self.last_send = now;
        self.burst = self.burst.saturating_add(1);
        if let Experiment::Shorter { in_flight, .. } = &mut self.experiment {
            *in_flight |= early;
        }
        self.log.on_send(now, self.limit == 0);
    }

    /// Counts `sends` sends up to `last`, `interval` apart, while no window is learned.
    pub(crate) fn on_sends(&mut self, sends: u16, last: Time, interval: u64) {
        if sends == 0 {
            return;
        }
        self.burst = 1;
        self.burst_from = last;
        self.last_send = last;
        self.log.on_sends(sends, last, interval);
    }

    /// Takes back the last send, which was refused or cancelled.
    pub(crate) fn refund(&mut self) {
        self.log.refund();
    }

    /// The answer to a test was lost.
    pub(crate) fn on_lost(&mut self) {
        if let Experiment::Shorter { in_flight, .. } = &mut self.experiment {
            *in_flight = false;
        }
    }

    /// An early send was accepted: after enough of them the shorter length is adopted. A few are not enough, because
    /// the limit may be counted a little too low.
    pub(crate) fn on_early_accepted(&mut self, now: Time, tuning: &Tuning) {
        let Experiment::Shorter { length, accepted, in_flight } = &mut self.experiment else { return };
        *in_flight = false;
        *accepted += 1;
        let many = (self.limit / tuning.early_needed_part).max(tuning.early_needed_min);
        let needed = if self.limit > tuning.early_small_limit { many } else { 1 };
        if *accepted >= needed {
            let length = *length;
            self.experiment = Experiment::None;
            self.set(self.limit, length, self.shortest, tuning);
            self.quiet_since = now;
        }
    }

    /// An early send was refused: the length is longer than the tested one. False when there was no test, so that the
    /// refusal has another cause.
    pub(crate) fn on_early_refused(&mut self, now: Time, tuning: &Tuning) -> bool {
        let Experiment::Shorter { length, .. } = self.experiment else { return false };
        self.experiment = Experiment::None;
        let shortest = if self.told { length.max(all_but_one(self.length, tuning.told_known_part)) } else { length };
        self.set(self.limit, self.length, shortest, tuning);
        self.quiet_since = now;
        true
    }

    /// A refusal while the mirror had a free slot. True when the limit explains it: a larger one was being tested, or
    /// a good part of the window was used. Then the limit is corrected.
    pub(crate) fn on_refused(&mut self, now: Time, tuning: &Tuning) -> bool {
        if self.limit == 0 {
            return false;
        }
        let inside = self.log.count_after(now.minus(self.length));
        let spread =
            now.nanos_since(self.burst_from) > self.length.saturating_add(self.length / u64::from(tuning.spread_part));
        let was_raised = matches!(self.experiment, Experiment::Larger { .. });
        let limit = match self.experiment {
            Experiment::Larger { confirmed } => confirmed.min(inside),
            // An even pace through the whole window: the limit is a little too high.
            _ if spread => inside - inside.div_ceil(tuning.spread_cut_part),
            // A good part of the window was used at once: the number used is the limit.
            _ if f64::from(self.burst) >= tuning.burst_share * f64::from(self.limit) => inside,
            _ => return false,
        };
        let longer_s = (self.patience_s * tuning.patience_growth).min(tuning.patience_max_s);
        self.patience_s = if was_raised { longer_s } else { tuning.patience_s };
        let soon = self.length.saturating_mul(u64::from(tuning.again_lengths));
        let is_again = !was_raised && now.nanos_since(self.quiet_since) < soon;
        self.in_a_row = if is_again { (self.in_a_row + 1).min(tuning.again_max) } else { 0 };
        let lower = (u64::from(limit) * u64::from(self.in_a_row)).div_ceil(u64::from(tuning.again_cut_part)) as u32;
        let limit = limit - lower;
        self.experiment = Experiment::None;
        self.raise = tuning.raise;
        self.set(limit, self.length, self.shortest, tuning);
        self.quiet_since = now;
        true
    }

    /// Starts an experiment if one is due. Called on successes, when the budget allows a refusal.
    pub(crate) fn experiment(&mut self, now: Time, pace: f64, tuning: &Tuning) {
        if self.limit == 0 || matches!(self.experiment, Experiment::Shorter { .. }) {
            return;
        }
        let (length, shortest) = (self.length as f64 / SECOND as f64, self.shortest as f64 / SECOND as f64);
        if length > tuning.known_well * shortest && self.due_after(self.length) > now {
            self.try_shorter(length, shortest, now, tuning);
            return;
        }
        let patience_s = match self.experiment {
            Experiment::Larger { .. } => 0.0,
            _ => f64::from(self.patience_s),
        };
        let is_quiet = seconds_between(self.quiet_since, now) > patience_s.max(tuning.larger_after * length);
        if is_quiet && pace > tuning.larger_pace * self.rate() {
            self.try_larger(now, tuning);
        }
    }

    fn try_shorter(&mut self, length: f64, shortest: f64, now: Time, tuning: &Tuning) {
        let middle = (length * shortest.max(length / tuning.shorter_part)).sqrt();
        let near = tuning.shorter_near_min..tuning.shorter_near_max;
        let between = |usual: f64| usual > tuning.shorter_above * shortest && usual < tuning.shorter_below * length;
        let fits = |&usual: &f64| between(usual) && near.contains(&(usual / middle));
        let tried = padded(tuning.usual_lengths.iter().find(fits).unwrap_or(middle), tuning);
        if self.due_after(tried) > now {
            self.experiment = Experiment::Shorter { length: tried, accepted: 0, in_flight: false };
        }
    }

    fn try_larger(&mut self, now: Time, tuning: &Tuning) {
        let confirmed = self.limit;
        let larger = (f64::from(confirmed) * (1.0 + f64::from(self.raise))).ceil() as u32;
        let larger = larger.saturating_add(1);
        self.raise = (self.raise * tuning.raise_growth).min(tuning.raise_max);
        self.set(larger, self.length, self.shortest, tuning);
        self.experiment = Experiment::Larger { confirmed };
        self.quiet_since = now;
    }

    /// Learns the first window from a wait. Its limit is the number of sends since the first one, or within a shorter
    /// length that allows clearly more.
    pub(crate) fn learn(&mut self, wait: &Wait, now: Time, tuning: &Tuning) {
        let longest = self.most_generous(wait, tuning);
        self.told = wait.told;
        let start = wait.opened.minus(nanos_in(longest));
        let shortest =
            if wait.told { tuning.told_shortest * longest } else { seconds_between(start, wait.last_refused) };
        let limit = self.log.count_after(start.minus(tuning.learn_slack)).saturating_sub(1);
        let length = padded(rounded(shortest, longest, tuning), tuning);
        self.set(limit, length, nanos_in(shortest), tuning);
        self.quiet_since = now;
    }

    /// The provider's header shows a lower limit: then the window is the shorter one that held that many.
    pub(crate) fn cap(&mut self, limit: u32, opened: Time, tuning: &Tuning) {
        if limit < self.limit {
            let length = opened.nanos_since(self.log.nth_last(limit + 1)).min(self.length);
            self.set(limit, length, length / 2, tuning);
        }
    }

    /// Length of the most generous window that explains a wait: if it allows too much, a refusal soon corrects it; if
    /// it allowed too little, nothing would show that.
    fn most_generous(&self, wait: &Wait, tuning: &Tuning) -> f64 {
        let age = seconds_between(self.log.start(), wait.opened);
        let allows = |length: f64| f64::from(self.log.count_after(wait.opened.minus(nanos_in(length)))) / length;
        let mut best = age;
        for usual in tuning.usual_lengths.iter().rev().filter(|&usual| usual < age && usual > wait.lasted_s()) {
            if allows(usual) > tuning.more_generous * allows(best) {
                best = usual;
            }
        }
        best
    }

    /// Learns from a further wait: the slot that came free was taken at `taken`, so the window is at least that long.
    pub(crate) fn lengthen(&mut self, wait: &Wait, taken: Time, now: Time, tuning: &Tuning) {
        let longest = seconds_between(taken, wait.opened);
        let refused = seconds_between(taken, wait.last_refused);
        let shortest = if wait.told { refused.max(tuning.told_shortest_again * longest) } else { refused };
        let length = padded(rounded(refused, longest, tuning), tuning).max(self.length);
        self.told = wait.told;
        self.experiment = Experiment::None;
        self.set(self.limit, length, nanos_in(shortest), tuning);
        self.quiet_since = now;
    }

    /// When the oldest occupied slot was taken; the first send while no window is learned.
    pub(crate) fn taken(&self) -> Time {
        if self.limit == 0 { self.log.start() } else { self.log.nth_last(self.limit) }
    }

    fn set(&mut self, limit: u32, length: u64, shortest: u64, tuning: &Tuning) {
        self.limit = limit.max(1);
        self.length = length.max(tuning.length_min);
        self.shortest = shortest.min(self.length);
        self.log.cover(self.limit);
    }

    /// Restores the window of an earlier run; all its slots are free.
    pub(crate) fn restore(&mut self, limit: u32, length: u64, now: Time, tuning: &Tuning) {
        let length = length.min(tuning.length_max);
        self.set(limit, length, all_but_one(length, tuning.restored_known_part), tuning);
        self.quiet_since = now;
    }
}

/// A wait that ended with an accepted request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    /// When the first refused request was sent.
    pub(crate) contact: Time,
    /// When the last refused one was sent.
    pub(crate) last_refused: Time,
    /// When the first accepted one was sent.
    pub(crate) opened: Time,
    /// Whether the wait was a Retry-After and the first trial after it was accepted.
    pub(crate) told: bool,
}

impl Wait {
    pub(crate) fn lasted_s(&self) -> f64 {
        seconds_between(self.contact, self.opened)
    }
}

/// All parts of a length but one of `parts`.
fn all_but_one(length: u64, parts: u32) -> u64 {
    length / u64::from(parts) * u64::from(parts - 1)
}

/// A usual length just below `longest`, if there is one above `shortest`.
fn rounded(shortest: f64, longest: f64, tuning: &Tuning) -> f64 {
    let lowest = (longest - tuning.round_by_s).min(tuning.round_by * longest).max(shortest);
    let fits = |&usual: &f64| usual > lowest && usual <= tuning.round_over * longest;
    tuning.usual_lengths.iter().rev().find(fits).unwrap_or(longest)
}

/// A length with a margin for jitter.
fn padded(seconds: f64, tuning: &Tuning) -> u64 {
    nanos_in(seconds * tuning.length_pad + tuning.length_pad_s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::MILLISECOND;
    use proptest::prelude::*;

    fn at(seconds: u64) -> Time {
        Time::from_nanos(seconds * SECOND)
    }

    #[test]
    fn nothing_is_held_back_while_nothing_is_learned() {
        let mut window = Window::new(Tuning::SHIPPED);
        (1..100).for_each(|second| window.on_send(at(second), false, Tuning::SHIPPED));
        assert!(!window.is_learned());
        assert_eq!(window.due(at(100), Tuning::SHIPPED), Time::ZERO);
        assert_eq!(window.rate(), f64::INFINITY);
    }

    #[test]
    fn the_place_of_the_oldest_send_comes_back_after_the_length() {
        let mut window = Window::new(Tuning::SHIPPED);
        window.restore(3, 10 * SECOND, Time::ZERO, Tuning::SHIPPED);
        (5..8).for_each(|second| window.on_send(at(second), false, Tuning::SHIPPED));
        assert_eq!(window.due(at(8), Tuning::SHIPPED), at(15).plus(MILLISECOND));
        window.refund();
        assert_eq!(window.due(at(8), Tuning::SHIPPED), Time::ZERO, "a refused request takes no place");
    }

    #[test]
    fn a_restored_window_says_what_it_was() {
        let mut window = Window::new(Tuning::SHIPPED);
        window.restore(60, 30 * SECOND, Time::ZERO, Tuning::SHIPPED);
        assert_eq!((window.limit, window.length()), (60, 30 * SECOND));
        assert!((window.rate() - 2.0).abs() < 1e-9);
        window.restore(0, 0, Time::ZERO, Tuning::SHIPPED);
        assert!(window.limit >= 1 && window.length() > 0, "nonsense is made whole");
    }

    #[test]
    fn a_length_is_rounded_to_a_usual_one_where_the_evidence_allows() {
        // Told to wait until 60.4 s after the first send, refused at 40 s: a minute.
        assert!((rounded(40.0, 60.4, Tuning::SHIPPED) - 60.0).abs() < 1e-9);
        // Refused at 60.2 s: a minute it is not.
        assert!((rounded(60.2, 60.4, Tuning::SHIPPED) - 60.4).abs() < 1e-9);
    }

    #[test]
    fn a_test_of_a_shorter_window_goes_out_alone_and_may_be_lost() {
        let mut window = Window::new(Tuning::SHIPPED);
        window.restore(1, 100 * SECOND, Time::ZERO, Tuning::SHIPPED);
        window.experiment = Experiment::Shorter { length: 50 * SECOND, accepted: 0, in_flight: false };
        window.on_send(at(10), false, Tuning::SHIPPED);
        assert_eq!(window.due(at(11), Tuning::SHIPPED), at(60).plus(MILLISECOND));
        assert!(window.is_early(at(61)) && !window.is_testing());
        window.on_send(at(61), true, Tuning::SHIPPED);
        assert!(window.is_testing());
        window.on_lost();
        assert!(!window.is_testing());
    }

    proptest! {
        #[test]
        fn no_period_ever_holds_more_than_the_limit(limit in 1_u32..60, seconds in 1_u64..100, pauses in proptest::collection::vec(0_u64..5000, 1..300)) {
            let length = seconds * SECOND;
            let mut window = Window::new(Tuning::SHIPPED);
            window.restore(limit, length, Time::ZERO, Tuning::SHIPPED);
            let (mut now, mut sends) = (at(1), Vec::new());
            for pause in pauses {
                now = now.plus(pause * MILLISECOND).max(window.due(now, Tuning::SHIPPED));
                window.on_send(now, false, Tuning::SHIPPED);
                sends.push(now);
                let inside = sends.iter().filter(|&&sent| sent > now.minus(length)).count();
                prop_assert!(inside <= limit as usize, "{inside} in {seconds} s");
            }
        }
    }
}
