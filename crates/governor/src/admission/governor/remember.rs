//! What outlives a governor: taking it down at the end of a run, and starting from it in the next.

use super::Governor;
use crate::law::Law;
use crate::signals::retry_after::RETRY_AFTER_MAX;
use crate::time::{Time, WallTime, nanos};
use crate::warm_start::{Learned, STALE_AFTER};
use std::time::Duration;

impl Governor {
    /// What is worth remembering; `None` after an opt-out.
    #[must_use]
    pub fn learned(&self, now: Time, wall_now: WallTime) -> Option<Learned> {
        let law = self.law.as_ref()?;
        let mut gate = self.breaker.opened().map_or(Time::ZERO, |(until, _)| until).max(law.gate());
        if law.is_told_too_short() {
            // The next run tries no earlier than this one would have.
            gate = gate.max(self.pacing.due(law.interval(), self.ceiling, law.tuning()));
        }
        let mut learned = Learned {
            recorded_at: wall_now,
            interval: Duration::from_nanos(law.lasting_interval()),
            limit_per_s: law.limit(),
            window: law.window.learned(),
            gate_until: (gate > now).then(|| wall_now + gate.since(now)),
            shut: law.shut(),
            credit: law.refusals.credit(),
            ..Learned::default()
        };
        for at in law.refusals.times() {
            learned.push_strike(wall_now.before(now.since(at)));
        }
        Some(learned)
    }

    /// Starts from what a former run learned. The rate only while it is fresh, and never faster
    /// than the ceiling; gates, bans and strikes whatever their age. What is dated in the future is
    /// nobody's memory and changes nothing.
    pub fn restore(&mut self, learned: &Learned, now: Time, wall_now: WallTime) {
        let Some(law) = &mut self.law else { return };
        if learned.recorded_at > wall_now {
            return;
        }
        if learned.is_fresh(wall_now) {
            law.restore_rate(nanos(learned.interval), learned.limit_per_s);
            if learned.strikes().any(|at| at <= wall_now && wall_now.since(at) <= STALE_AFTER) {
                law.restore_contact(now);
            }
            if let Some((limit, length)) = learned.window {
                law.window.restore(limit, nanos(length), now, law.tuning());
            }
        }
        close_as_remembered(law, learned, now, wall_now);
        law.restore_shut(learned.shut);
        // Newest first in the record, oldest first in the book.
        for at in learned.strikes().filter(|&at| at <= wall_now).collect::<Vec<_>>().into_iter().rev() {
            law.refusals.restore(nanos(wall_now.since(at)), now, law.tuning());
        }
        if let Some(credit) = learned.credit {
            law.refusals.restore_credit(credit, law.tuning());
        }
    }

    /// Adds what another memory of the same key says to what was restored: of two paces the slower, of two gates the
    /// later, and refusals that are not known yet.
    pub fn restore_also(&mut self, other: &Learned, now: Time, wall_now: WallTime) {
        let Some(law) = &mut self.law else { return };
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

    /// Takes over what another process with the same key has written down since `before`, which both knew: the later
    /// gate, and new refusals. The pace stays: it was learned here.
    pub fn hear_of(&mut self, other: &Learned, before: Option<&Learned>, now: Time, wall_now: WallTime) {
        let known = before.map(|before| before.strikes().collect()).unwrap_or_default();
        self.take_refusals(other, known, now, wall_now);
    }

    fn take_refusals(&mut self, other: &Learned, known: Vec<WallTime>, now: Time, wall_now: WallTime) {
        let Some(law) = &mut self.law else { return };
        if other.recorded_at > wall_now {
            return;
        }
        close_as_remembered(law, other, now, wall_now);
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

/// Closes the key until the remembered gate ends, if that is still to come.
fn close_as_remembered(law: &mut Law, learned: &Learned, now: Time, wall_now: WallTime) {
    if let Some(until) = learned.gate_until.filter(|&until| until > wall_now) {
        law.close_until(now + until.since(wall_now).min(RETRY_AFTER_MAX));
    }
}

/// Two memories of one refusal may differ by so much: they are kept in whole seconds.
const SAME_STRIKE: Duration = Duration::from_millis(1500);

/// The refusals of `other` that are not among the known ones, newest first. Each known one stands for one of the other's.
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
