//! An episode: from the first refusal to the first success after it.
//!
//! Answers to requests that were in flight at the first refusal are echoes of the same event and change nothing (one
//! decrease per burst). Then one request at a time (a trial) tests whether the provider accepts requests again: soon
//! at first, because a bucket refills within a few intervals, and if that is refused too, at the ends of windows of
//! the usual lengths. The duration of the episode and the number accepted since the previous one give the limit.

use super::tuning::Tuning;
use super::{Law, Mode, Refusal};
use crate::law::window::Wait;
use crate::time::{Time, nanos_in, seconds_between};

/// An episode that has not ended.
#[derive(Clone, Debug)]
pub(super) struct Episode {
    /// When the first refused request was sent, and the last.
    contact: Time,
    last_refused: Time,
    /// The rate at which it was sent.
    rate: f64,
    /// Accepted since the last episode.
    accepted: u32,
    /// Refused trials.
    trials: u8,
    /// Whether the provider said how long to wait, at the first refusal and at the last.
    told: bool,
    last_told: bool,
    /// Number of Retry-Afters that were kept and still refused: they were too short.
    in_vain: u8,
    /// The window's limit explains it.
    explained: bool,
    /// A quota header shows zero left: surely a window, so trials can be rarer.
    exhausted: bool,
    /// The limit of that quota; 0 if unknown.
    limit: u32,
    /// When the oldest slot of the window was taken.
    taken: Time,
}

/// The interval between trials while the provider sends a Retry-After. It was `before`, and the cut made it `cut`. A
/// Retry-After is believed: the trial is sent when it ends, and the deeper cut applies only after the episode. Each
/// Retry-After that proved too short (`in_vain` of them) doubles the interval. The gate is never longer than the
/// Retry-After; only the pace drops.
fn trial_interval(before: u64, cut: u64, told: u64, at_contact: u64, in_vain: u8, tuning: &Tuning) -> u64 {
    let doublings = u32::from(in_vain.saturating_sub(tuning.told_in_vain)).min(tuning.told_doublings_max);
    let interval = match doublings {
        0 => cut.min(told),
        _ => told.max(at_contact).saturating_mul(1 << doublings).min(tuning.trial_max.max(told)),
    };
    interval.max(before.saturating_add(1))
}

/// Measurement at the end of an episode.
struct Measured {
    wait: Wait,
    lasted_s: f64,
    /// The limit is a window's, not a bucket's.
    is_long: bool,
    is_first: bool,
    /// The rate has hardly changed since the last episode, so the estimate is the limit.
    is_steady: bool,
    /// Accepted requests, and per second.
    accepted: f64,
    estimate: f64,
}

impl Law {
    /// The interval after the current episode, if there is one: the interval of trials ends with it.
    pub(crate) fn lasting_interval(&self) -> u64 {
        self.episode.as_ref().map_or(self.interval, |episode| self.pace_after(episode))
    }

    /// The interval after `episode`: the one before it with all its cuts. Trials have their own, see
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

    /// Whether the provider refused again after its Retry-After was kept, so that trials are slower.
    pub(crate) fn is_told_too_short(&self) -> bool {
        self.episode.as_ref().is_some_and(|episode| episode.in_vain > 0)
    }

    /// The provider refused. True for the first of a burst.
    pub(crate) fn on_throttle(&mut self, refusal: Refusal, now: Time) -> bool {
        self.refusals.on_refused(now);
        self.window.refund();
        self.accepted = self.accepted.saturating_sub(1);
        if let Some(wait) = refusal.retry_after {
            // Exactly the Retry-After, nothing added.
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

    /// Too many requests in flight: the lane handles it, and the rate may grow again.
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

    /// When to send the next trial. The first episode knows no window and waits for the end of one; later ones know
    /// how long that may take.
    fn next_trial(&self, episode: &Episode, now: Time) -> Time {
        let (tuning, waited_s) = (self.tuning, seconds_between(episode.contact, now));
        if !self.window.is_learned() && self.count.refused.is_some() {
            return episode.contact.plus(nanos_in(tuning.trial_growth * waited_s));
        }
        let before_s = seconds_between(episode.taken, episode.contact);
        if !self.window.is_learned() && before_s > tuning.turn_old_s {
            // Sends from so long ago say nothing about a window that is full now.
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

    /// A quota is used up and its reset time is unknown: an episode without a refusal.
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
        // A bucket was empty at each refusal; a window was full when the episode opened.
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

    /// The refusal was short: the provider limits the rate.
    fn learn_pace(&mut self, episode: &Episode, measured: &Measured, now: Time) {
        let (rate, tuning) = (episode.rate, self.tuning);
        let Measured { accepted, estimate, .. } = *measured;
        if measured.is_first {
            self.raise_to(tuning.climb_from * rate);
            self.enter(Mode::Climb, now);
        } else if accepted < tuning.few {
            // Too few to measure: between half the rate and the rate that the count allows.
            let is_counted = accepted >= tuning.few_counted;
            let counted = estimate * (accepted + tuning.few_missing) / accepted;
            let limit = if is_counted { counted } else { tuning.few_guess * rate };
            self.limit = limit.min(tuning.few_under * rate);
            self.raise_to(tuning.few_climb_from * self.limit);
            self.enter(Mode::Climb, now);
        } else if self.mode == Mode::Probe && estimate > tuning.probe_believed * self.limit {
            let probed = self.probed(episode, estimate);
            // After many refusals, a rate held for long is safer than a new measurement.
            let is_alarmed = self.refusals.is_alarmed(now, tuning);
            self.settle(if is_alarmed { probed.min(self.limit) } else { probed }, now);
        } else if measured.is_steady || estimate > tuning.steady * rate {
            self.settle(estimate.min(rate), now);
        } else {
            // The rate rose meanwhile, so the count is too low: the limit is near the rate. After many refusals
            // another one is not worth the difference.
            let near = if self.refusals.is_alarmed(now, tuning) { tuning.far_under } else { tuning.just_under };
            self.settle((near * rate).max(estimate), now);
        }
    }

    /// The limit that a refused probe shows: refused at once, it is just under the probe's rate; refused after many
    /// extra requests, those came from saved-up capacity and the limit is unchanged.
    fn probed(&self, episode: &Episode, estimate: f64) -> f64 {
        let extra = f64::from(episode.accepted.saturating_sub(self.accepted_before_probe))
            - self.limit * seconds_between(self.probe_from, episode.contact);
        let is_at_once = extra < self.tuning.probe_extra;
        let at_once = (self.tuning.probe_under * episode.rate).max(self.limit);
        let limit = if is_at_once { at_once } else { estimate.max(self.tuning.probe_same * self.limit) };
        limit.min(episode.rate)
    }
}
