//! What outlives a governor: taking it down at the end of a run, and starting from it in the next.

use super::Governor;
use crate::retry_after::RETRY_AFTER_MAX;
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
            gate = gate.max(self.pacing.due(law.interval(), self.ceiling));
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
                law.window.restore(limit, nanos(length), now);
            }
        }
        if let Some(until) = learned.gate_until.filter(|&until| until > wall_now) {
            law.close_until(now + until.since(wall_now).min(RETRY_AFTER_MAX));
        }
        law.restore_shut(learned.shut);
        // Newest first in the record, oldest first in the book.
        for at in learned.strikes().filter(|&at| at <= wall_now).collect::<Vec<_>>().into_iter().rev() {
            law.refusals.restore(nanos(wall_now.since(at)), now);
        }
        if let Some(credit) = learned.credit {
            law.refusals.restore_credit(credit);
        }
    }
}
