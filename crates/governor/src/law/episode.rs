//! From the first refusal to the first success behind it.
//!
//! Requests that were in flight when the first refusal came are echoes of the same event and
//! change nothing (one decrease per burst). Then one request at a time tries whether the provider
//! is open again: soon at first, because a bucket refills within a few intervals, and if that is
//! refused too, at the moments at which windows of the usual lengths would have turned. What the
//! episode took, and what was accepted since the one before, tell the limit.

use super::tuning::Tuning;
use super::{Law, Mode, Refusal};
use crate::law::window::Wait;
use crate::time::{Time, nanos_in, seconds_between};

/// A refusal that is not over.
#[derive(Clone, Debug)]
pub(super) struct Episode {
    /// When the first refused request was sent, and the last.
    contact: Time,
    last_refused: Time,
    /// The rate at which it was sent.
    rate: f64,
    /// Accepted since the last episode.
    accepted: u32,
    /// Refused tries.
    trials: u8,
    /// The provider said how long, at the first refusal and at the last.
    told: bool,
    last_told: bool,
    /// Directives that were kept and refused again: they proved too short.
    in_vain: u8,
    /// The window's limit explains it.
    explained: bool,
    /// A quota that the provider shows is used up: surely a window, so tries can be rarer.
    exhausted: bool,
    /// The limit of that quota; 0 if nobody said.
    limit: u32,
    /// When the oldest place was taken.
    taken: Time,
}

/// The interval between tries while the provider says how long to stay away, after it was `before` and the cut made it
/// `cut`. A directive is believed: the try goes out when it ends, and the deeper cut counts only after the episode.
/// Directives that proved too short, `in_vain` of them, double the interval each time. The gate is never longer than
/// the directive: what is lowered is the pace.
fn trial_interval(before: u64, cut: u64, told: u64, at_contact: u64, in_vain: u8, tuning: &Tuning) -> u64 {
    let doublings = u32::from(in_vain.saturating_sub(tuning.told_in_vain)).min(tuning.told_doublings_max);
    let interval = match doublings {
        0 => cut.min(told),
        _ => told.max(at_contact).saturating_mul(1 << doublings).min(tuning.trial_max.max(told)),
    };
    interval.max(before.saturating_add(1))
}

/// What the end of an episode measured.
struct Measured {
    wait: Wait,
    lasted_s: f64,
    /// A window's, not a bucket's.
    is_long: bool,
    is_first: bool,
    /// The rate has hardly changed since the last episode, so the estimate is the limit.
    is_steady: bool,
    /// Accepted requests, and per second.
    accepted: f64,
    estimate: f64,
}

impl Law {
    /// The interval that outlasts the episode, if there is one: the pace of tries is for the tries alone.
    pub(crate) fn lasting_interval(&self) -> u64 {
        self.episode.as_ref().map_or(self.interval, |episode| self.pace_after(episode))
    }

    /// The interval to go on with after `episode`: the one before it with all its cuts. The tries have their own, see
    /// [`trial_interval`].
    fn pace_after(&self, episode: &Episode) -> u64 {
        let first = match episode {
            Episode { exhausted: true, .. } => 1.0,
            Episode { explained: true, .. } => self.tuning.explained_cut,
            _ => self.tuning.first_cut,
        };
        let rate = episode.rate * first * self.tuning.trial_cut.powi(i32::from(episode.trials));
        nanos_in(1.0 / rate).clamp(self.fastest, self.slowest())
    }

    /// Whether a Retry-After was kept and refused again, so that the pace of tries is lowered.
    pub(crate) fn is_told_too_short(&self) -> bool {
        self.episode.as_ref().is_some_and(|episode| episode.in_vain > 0)
    }

    /// The provider refused. True for the first of a burst.
    pub(crate) fn on_throttle(&mut self, refusal: Refusal, now: Time) -> bool {
        self.refusals.on_refused(now);
        self.window.refund();
        self.accepted = self.accepted.saturating_sub(1);
        if let Some(wait) = refusal.retry_after {
            // Exactly as long as told, and nothing on top.
            self.close_until(now.plus(wait));
        }
        if refusal.early && self.window.on_early_refused(now, self.tuning) {
            self.cut(self.tuning.slight_cut);
            return true;
        }
        let is_first = self.is_after_cut(refusal.seq);
        if refusal.company && is_first {
            self.crowded();
            return true;
        }
        self.is_free &= refusal.company;
        if !is_first {
            if let Some(episode) = &mut self.episode {
                episode.last_told |= refusal.retry_after.is_some();
                episode.accepted = episode.accepted.saturating_sub(1);
            }
            return false;
        }
        match self.episode.take() {
            None => self.open_episode(refusal, now),
            Some(episode) => self.refuse_trial(episode, refusal, now),
        }
        true
    }

    /// Too many in flight: the lane has seen to it, and the pace is free to grow again.
    fn crowded(&mut self) {
        self.cut(self.tuning.slight_cut);
        self.is_free = true;
        if self.mode != Mode::Search {
            self.limit = 0.0;
            self.mode = Mode::Climb;
        }
    }

    fn open_episode(&mut self, refusal: Refusal, now: Time) {
        let (rate, before) = (self.rate(), self.interval);
        let taken = self.window.taken();
        let tuning = self.tuning;
        let explained = self.window.on_refused(now, tuning);
        self.cut(if explained { tuning.explained_cut } else { tuning.first_cut });
        let told = refusal.retry_after;
        self.episode = Some(Episode {
            contact: refusal.sent_at,
            last_refused: refusal.sent_at,
            rate,
            accepted: self.accepted,
            trials: 0,
            told: told.is_some(),
            last_told: told.is_some(),
            in_vain: 0,
            explained,
            exhausted: false,
            limit: 0,
            taken,
        });
        if let Some(told) = told {
            self.interval = trial_interval(before, self.interval, told, before, 0, tuning);
            return;
        }
        if explained {
            return;
        }
        let wait_s = (tuning.first_trial_intervals / rate).max(f64::from(self.lasted_s) / tuning.first_trial_part);
        self.close_until(now.plus(nanos_in(wait_s)));
    }

    fn refuse_trial(&mut self, mut episode: Episode, refusal: Refusal, now: Time) {
        episode.trials = episode.trials.saturating_add(1);
        episode.in_vain = episode.in_vain.saturating_add(u8::from(episode.last_told));
        episode.last_refused = refusal.sent_at;
        episode.last_told = refusal.retry_after.is_some();
        let before = self.interval;
        let cut = self.pace_after(&episode);
        self.sent_at_cut = self.sent;
        match refusal.retry_after {
            Some(told) => {
                let at_contact = nanos_in(1.0 / episode.rate);
                self.interval = trial_interval(before, cut, told, at_contact, episode.in_vain, self.tuning);
            }
            None => {
                self.interval = cut.max(before.saturating_add(1)).min(self.slowest().max(before));
                let next = self.next_trial(&episode, now);
                self.close_until(
                    next.clamp(now.plus(self.interval), now.plus(self.tuning.trial_max.max(self.interval))),
                );
            }
        }
        self.episode = Some(episode);
    }

    /// When to try again. The first episode knows no window, so it waits for one to turn; later
    /// ones know how long it may take.
    fn next_trial(&self, episode: &Episode, now: Time) -> Time {
        let (tuning, waited_s) = (self.tuning, seconds_between(episode.contact, now));
        if !self.window.is_learned() && self.count.refused.is_some() {
            return episode.contact.plus(nanos_in(tuning.trial_growth * waited_s));
        }
        let before_s = seconds_between(episode.taken, episode.contact);
        if !self.window.is_learned() && before_s > tuning.turn_old_s {
            // What was sent so long ago says nothing about a window that is full now.
            let wait_s = (tuning.trial_growth_old * waited_s).max(tuning.trial_old_min_s);
            return episode.contact.plus(nanos_in(wait_s));
        }
        let total_s = before_s + waited_s;
        let growth = if episode.exhausted { tuning.turn_growth_exhausted } else { tuning.turn_growth };
        let turns = |&turn: &f64| turn >= tuning.turn_beyond * total_s && turn - before_s >= growth * waited_s;
        let turn_s = tuning.turns.iter().find(turns).unwrap_or(tuning.turn_after_last * total_s);
        let soon_s = (tuning.soon_beyond * total_s).max(before_s + tuning.soon_growth * waited_s);
        let try_s = if self.window.is_learned() { turn_s.min(soon_s) } else { turn_s };
        episode.taken.plus(nanos_in(try_s * tuning.turn_pad)).plus(tuning.turn_pad_by)
    }

    /// A quota is used up and nobody says until when: an episode without a refusal.
    pub(crate) fn on_exhausted(&mut self, limit: u32, now: Time) {
        if self.episode.is_some() {
            return;
        }
        let episode = Episode {
            contact: now,
            last_refused: now,
            rate: self.rate(),
            accepted: self.accepted,
            trials: 0,
            told: false,
            last_told: false,
            in_vain: 0,
            explained: false,
            exhausted: true,
            limit,
            taken: self.window.taken(),
        };
        let next = if self.window.is_learned() {
            episode.taken.plus(self.window.length())
        } else {
            self.next_trial(&episode, now)
        };
        self.sent_at_cut = self.sent;
        self.close_until(next);
        self.episode = Some(episode);
    }

    /// The first success after a refusal.
    pub(super) fn close_episode(&mut self, opened: Time, now: Time) {
        let Some(episode) = self.episode.take() else { return };
        self.interval = self.pace_after(&episode);
        let measured = self.measure(&episode, opened);
        self.count.refused = Some(episode.contact);
        self.count.from = opened;
        self.accepted = 1;
        let tuning = self.tuning;
        if episode.explained {
            self.raise_to(tuning.slight_cut * episode.rate);
            self.enter(self.mode, now);
        } else {
            self.lasted_s = measured.lasted_s as f32;
            self.step_s = (self.lasted_s / tuning.step_part).clamp(tuning.step_min_s, tuning.step_max_s);
            if measured.is_long {
                self.learn_window(&episode, &measured, now);
            } else {
                self.learn_pace(&episode, &measured, now);
            }
        }
        self.count.rate = self.rate();
    }

    fn measure(&self, episode: &Episode, opened: Time) -> Measured {
        let lasted_s = seconds_between(episode.contact, opened);
        let is_long = lasted_s > self.tuning.long_s && lasted_s * episode.rate > self.tuning.long_requests;
        let accepted = f64::from(episode.accepted);
        // A bucket was empty at each refusal; a window was full when it opened.
        let span_s = match self.count.refused {
            Some(refused) if !is_long => seconds_between(refused, episode.contact),
            _ => self.counted_s(opened),
        };
        Measured {
            wait: Wait {
                contact: episode.contact,
                last_refused: episode.last_refused,
                opened,
                told: episode.told && episode.trials == 0,
            },
            lasted_s,
            is_long,
            is_first: self.count.refused.is_none(),
            is_steady: self.count.rate >= self.tuning.steady * episode.rate,
            accepted,
            estimate: accepted / span_s,
        }
    }

    /// The refusal lasted: the provider counts per window.
    fn learn_window(&mut self, episode: &Episode, measured: &Measured, now: Time) {
        if self.window.is_learned() {
            self.window.lengthen(&measured.wait, episode.taken, now, self.tuning);
            self.raise_to(self.tuning.slight_cut * episode.rate);
            return self.enter(self.mode, now);
        }
        self.window.learn(&measured.wait, now, self.tuning);
        if episode.limit > 0 {
            self.window.cap(episode.limit, measured.wait.opened, self.tuning);
        }
        let Tuning { window_pace, window_pace_min, window_pace_max, .. } = *self.tuning;
        let window = self.window.rate();
        self.limit = (window_pace * episode.rate).clamp(window_pace_min * window, window_pace_max * window);
        self.raise_to(self.limit);
        self.enter(Mode::Hold, now);
    }

    /// The refusal passed soon: the provider has a pace.
    fn learn_pace(&mut self, episode: &Episode, measured: &Measured, now: Time) {
        let (rate, tuning) = (episode.rate, self.tuning);
        let Measured { accepted, estimate, .. } = *measured;
        if measured.is_first {
            self.raise_to(tuning.climb_from * rate);
            self.enter(Mode::Climb, now);
        } else if accepted < tuning.few {
            // Too few to measure: between half of the rate and what the count allows.
            let is_counted = accepted >= tuning.few_counted;
            let counted = estimate * (accepted + tuning.few_missing) / accepted;
            let limit = if is_counted { counted } else { tuning.few_guess * rate };
            self.limit = limit.min(tuning.few_under * rate);
            self.raise_to(tuning.few_climb_from * self.limit);
            self.enter(Mode::Climb, now);
        } else if self.mode == Mode::Probe && estimate > tuning.probe_believed * self.limit {
            let probed = self.probed(episode, estimate);
            // What has been held for long is safer than a new measurement when refusals are many.
            let is_alarmed = self.refusals.is_alarmed(now, tuning);
            self.settle(if is_alarmed { probed.min(self.limit) } else { probed }, now);
        } else if measured.is_steady || estimate > tuning.steady * rate {
            self.settle(estimate.min(rate), now);
        } else {
            // The rate rose all the while, so the count is too low: the limit is near the rate.
            // With many refusals behind us another one is not worth the difference.
            let near = if self.refusals.is_alarmed(now, tuning) { tuning.far_under } else { tuning.just_under };
            self.settle((near * rate).max(estimate), now);
        }
    }

    /// What a refused probe tells: refused at once, the limit is just under its rate; refused after
    /// many extra requests, those were saved up and the limit is where it was.
    fn probed(&self, episode: &Episode, estimate: f64) -> f64 {
        let extra = f64::from(episode.accepted.saturating_sub(self.accepted_before_probe))
            - self.limit * seconds_between(self.probe_from, episode.contact);
        let is_at_once = extra < self.tuning.probe_extra;
        let at_once = (self.tuning.probe_under * episode.rate).max(self.limit);
        let limit = if is_at_once { at_once } else { estimate.max(self.tuning.probe_same * self.limit) };
        limit.min(episode.rate)
    }
}
