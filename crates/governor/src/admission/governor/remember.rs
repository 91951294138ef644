//! Saves the learned state of a governor at the end of a run, and restores it in the next run.

use super::Governor;
use crate::time::{Time, WallTime, nanos};
use crate::warm_start::Learned;
use std::time::Duration;

impl Governor {
    /// The learned state to save; `None` without pacing.
    #[must_use]
    pub fn learned(&self, now: Time, wall_now: WallTime) -> Option<Learned> {
        self.state.learned(&self.rules, now, wall_now)
    }

    /// Starts from the state that an earlier run learned. The rate counts only while it is fresh and never exceeds
    /// the ceiling; gates, bans and strikes count at any age. A record dated in the future is ignored.
    pub fn restore(&mut self, learned: &Learned, now: Time, wall_now: WallTime) {
        self.state.restore(&self.rules, learned, now, wall_now);
    }

    /// Merges a second record of the same key into the restored one: the slower pace, the later gate, and the
    /// refusals that are new.
    pub fn restore_also(&mut self, other: &Learned, now: Time, wall_now: WallTime) {
        let Some(law) = self.state.pace.law_mut() else { return };
        if other.is_fresh(wall_now) && nanos(other.interval) > law.lasting_interval() {
            law.restore_rate(nanos(other.interval), other.limit_per_s);
            if let Some((limit, length)) = other.window {
                law.window.restore(limit, nanos(length), now, law.tuning());
            }
        }
        if let Some(credit) = other.credit.filter(|&credit| law.refusals.credit().is_some_and(|own| credit < own)) {
            law.refusals.restore_credit(credit, law.tuning());
        }
        let known = law.refusals.times().map(|at| wall_now.before(now.since(at))).collect();
        self.take_refusals(other, known, now, wall_now);
    }

    /// Takes over what another process with the same key learned since `before`, the record that both started from:
    /// the later gate and new refusals. The pace stays, because this process measured its own.
    pub fn hear_of(&mut self, other: &Learned, before: Option<&Learned>, now: Time, wall_now: WallTime) {
        let known = before.map(|before| before.strikes().collect()).unwrap_or_default();
        self.take_refusals(other, known, now, wall_now);
    }

    fn take_refusals(&mut self, other: &Learned, known: Vec<WallTime>, now: Time, wall_now: WallTime) {
        if other.recorded_at > wall_now {
            return;
        }
        self.state.close_as_remembered(other, now, wall_now);
        let Some(law) = self.state.pace.law_mut() else { return };
        law.restore_shut(law.shut().max(other.shut));
        let unknown = unknown_strikes(known, other, wall_now);
        if !unknown.is_empty() {
            law.restore_contact(now);
        }
        for at in unknown.into_iter().rev() {
            law.refusals.restore(nanos(wall_now.since(at)), now, law.tuning());
        }
    }
}

/// Two records of one refusal may differ by this much, because records keep whole seconds.
const SAME_STRIKE: Duration = Duration::from_millis(1500);

/// The refusals of `other` that are not in `known`, newest first. Each known refusal matches one refusal of `other`.
fn unknown_strikes(mut known: Vec<WallTime>, other: &Learned, wall_now: WallTime) -> Vec<WallTime> {
    let is_same = |a: WallTime, b: WallTime| a.since(b).max(b.since(a)) <= SAME_STRIKE;
    let is_unknown = |at: &WallTime| match known.iter().position(|&one| is_same(one, *at)) {
        Some(index) => {
            known.swap_remove(index);
            false
        }
        None => true,
    };
    other.strikes().filter(|&at| at <= wall_now).filter(is_unknown).collect()
}
