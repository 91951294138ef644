//! Saves the learned state of a key, and restores it in another run or process.

use super::KeyState;
use crate::config::{Rules, Strategy};
use crate::law::Law;
use crate::law::bucket::Bucket;
use crate::law::pace::Pace;
use crate::signals::retry_after::RETRY_AFTER_MAX;
use crate::time::{Time, WallTime, nanos};
use crate::warm_start::{Learned, STALE_AFTER};
use std::time::Duration;

impl KeyState {
    /// The learned state to save; `None` without pacing.
    pub(crate) fn learned(&self, rules: &Rules, now: Time, wall_now: WallTime) -> Option<Learned> {
        if matches!(self.pace, Pace::Off) {
            return None;
        }
        let mut gate = self.breaker.open_until(now).unwrap_or(Time::ZERO).max(self.pace.gate());
        if self.pace.is_told_too_short() {
            // The next run sends no earlier than this one would have.
            gate = gate.max(self.pace.slot(rules, now));
        }
        let mut learned = Learned {
            recorded_at: wall_now,
            interval: Duration::from_nanos(self.pace.lasting_interval(rules)),
            gate_until: (gate > now).then(|| wall_now + gate.since(now)),
            ..Learned::default()
        };
        if let Some(law) = self.pace.law() {
            learned.limit_per_s = law.limit();
            learned.window = law.window.learned();
            learned.shut = law.shut();
            learned.credit = law.refusals.credit();
            for at in law.refusals.times() {
                learned.push_strike(wall_now.before(now.since(at)));
            }
        }
        Some(learned)
    }

    /// Starts from the state that an earlier run learned. The rate counts only while it is fresh and never exceeds
    /// the ceiling; gates, bans and strikes count at any age. False when the record is dated in the future; it is
    /// then ignored.
    pub(crate) fn restore(&mut self, rules: &Rules, learned: &Learned, now: Time, wall_now: WallTime) -> bool {
        if learned.recorded_at > wall_now {
            return false;
        }
        let is_fresh = learned.is_fresh(wall_now);
        match &mut self.pace {
            Pace::Off => {}
            Pace::Law(pace) => restore_law(&mut pace.law, learned, is_fresh, now, wall_now),
            Pace::Bucket(bucket) => {
                if is_fresh && matches!(rules.strategy, Strategy::Aimd(_)) {
                    *bucket = Bucket::new(rules, nanos(learned.interval).max(1));
                }
            }
        }
        self.close_as_remembered(learned, now, wall_now);
        true
    }

    /// Closes the gate until the remembered time, if that is in the future.
    pub(crate) fn close_as_remembered(&mut self, learned: &Learned, now: Time, wall_now: WallTime) {
        if let Some(until) = learned.gate_until.filter(|&until| until > wall_now) {
            self.pace.close_until(now + until.since(wall_now).min(RETRY_AFTER_MAX));
        }
    }
}

fn restore_law(law: &mut Law, learned: &Learned, is_fresh: bool, now: Time, wall_now: WallTime) {
    if is_fresh {
        law.restore_rate(nanos(learned.interval), learned.limit_per_s);
        if learned.strikes().any(|at| at <= wall_now && wall_now.since(at) <= STALE_AFTER) {
            law.restore_contact(now);
        }
        if let Some((limit, length)) = learned.window {
            law.window.restore(limit, nanos(length), now, law.tuning());
        }
    }
    law.restore_shut(learned.shut);
    // The record has the newest first, the book the oldest.
    for at in learned.strikes().filter(|&at| at <= wall_now).collect::<Vec<_>>().into_iter().rev() {
        law.refusals.restore(nanos(wall_now.since(at)), now, law.tuning());
    }
    if let Some(credit) = learned.credit {
        law.refusals.restore_credit(credit, law.tuning());
    }
}
