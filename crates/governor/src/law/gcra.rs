//! When the next send is due: GCRA with a bounded credit for lateness.
//!
//! GCRA(I, L), ITU-T I.371: a request conforms if it comes no earlier than TAT - L, and then TAT = max(TAT, now) + I.
//! Why not a token bucket: it is the same with a float that drifts, and its credit after idle time must be capped;
//! here an idle gap resets TAT (D2).
//!
//! The emission interval I changes between two sends. So the stored time is `base` = TAT without the last I, and I is
//! added when the caller asks: a shorter or longer interval takes effect at once. Two sends are never closer than the
//! ceiling. Never sleeps: it returns an absolute time.

use crate::law::tuning::Tuning;
use crate::time::Time;

/// The pacing state of one key.
#[derive(Clone, Debug)]
pub(crate) struct Pacing {
    /// TAT without the last emission interval.
    base: Time,
    /// The last send; [`Time::NEVER`] before the first.
    last_send: Time,
}

impl Pacing {
    pub(crate) const fn new() -> Self {
        Self { base: Time::ZERO, last_send: Time::NEVER }
    }

    /// The earliest conforming send time, for the current emission interval and the ceiling.
    pub(crate) fn due(&self, interval: u64, ceiling: u64, tuning: &Tuning) -> Time {
        if self.last_send == Time::NEVER {
            return Time::ZERO;
        }
        self.base.plus(interval - credit(interval, tuning)).max(self.last_send.plus(ceiling))
    }

    /// Counts a send.
    pub(crate) fn on_send(&mut self, now: Time, interval: u64) {
        self.base = if self.last_send == Time::NEVER { now } else { self.base.plus(interval).max(now) };
        self.last_send = now;
    }

    /// The last send left later than it was counted. The ceiling counts from the real time; the pace does not, or
    /// each delay would slow it down.
    pub(crate) fn on_launch(&mut self, at: Time) {
        self.last_send = self.last_send.max(at);
    }

    /// The shortest gap after a send on time, for this interval and ceiling.
    pub(crate) fn gap(interval: u64, ceiling: u64, tuning: &Tuning) -> u64 {
        (interval - credit(interval, tuning)).max(ceiling)
    }

    /// Continues from sends spaced by [`Self::gap`], the next of which is due at `due`.
    pub(crate) fn resume(&mut self, due: Time, interval: u64, ceiling: u64, tuning: &Tuning) {
        self.base = due.minus(interval - credit(interval, tuning));
        // The last send was at this time or earlier.
        self.last_send = due.minus(Self::gap(interval, ceiling, tuning));
    }

    /// Takes back a send that was never made. The gap to the next one still respects the ceiling, because the
    /// cancelled request may have left.
    pub(crate) fn refund(&mut self, interval: u64) {
        self.base = self.base.minus(interval);
    }
}

/// Tolerance L: how much lateness the next send may make up for.
fn credit(interval: u64, tuning: &Tuning) -> u64 {
    tuning.lateness_credit.min(interval / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{MILLISECOND, SECOND};

    const CEILING: u64 = 20 * MILLISECOND;

    fn ms(millis: u64) -> Time {
        Time::from_nanos(millis * MILLISECOND)
    }

    #[test]
    fn the_first_send_is_due_at_once_and_the_next_an_interval_later() {
        let mut pacing = Pacing::new();
        assert_eq!(pacing.due(SECOND, CEILING, Tuning::SHIPPED), Time::ZERO);
        pacing.on_send(ms(10_000), SECOND);
        assert_eq!(pacing.due(SECOND, CEILING, Tuning::SHIPPED), ms(10_998));
    }

    #[test]
    fn a_send_within_the_credit_does_not_push_the_next_one_back() {
        let mut pacing = Pacing::new();
        pacing.on_send(ms(10_000), SECOND);
        pacing.on_send(ms(10_998), SECOND);
        assert_eq!(pacing.due(SECOND, CEILING, Tuning::SHIPPED), ms(11_998));
    }

    #[test]
    fn idle_time_is_no_credit() {
        let mut pacing = Pacing::new();
        pacing.on_send(ms(10_000), SECOND);
        pacing.on_send(ms(70_000), SECOND);
        assert_eq!(pacing.due(SECOND, CEILING, Tuning::SHIPPED), ms(70_998));
    }

    #[test]
    fn a_new_interval_takes_effect_at_once_in_both_directions() {
        let mut pacing = Pacing::new();
        pacing.on_send(ms(10_000), SECOND);
        assert_eq!(pacing.due(4 * SECOND, CEILING, Tuning::SHIPPED), ms(13_998));
        assert_eq!(pacing.due(100 * MILLISECOND, CEILING, Tuning::SHIPPED), ms(10_098));
        assert_eq!(pacing.due(MILLISECOND, CEILING, Tuning::SHIPPED), ms(10_020), "but never below the ceiling");
    }

    #[test]
    fn a_send_that_left_late_keeps_the_ceiling_from_then_on_and_the_pace_from_its_turn() {
        let mut pacing = Pacing::new();
        pacing.on_send(ms(10_000), SECOND);
        pacing.on_launch(ms(10_015));
        assert_eq!(pacing.due(CEILING, CEILING, Tuning::SHIPPED), ms(10_035));
        assert_eq!(pacing.due(SECOND, CEILING, Tuning::SHIPPED), ms(10_998));
        pacing.on_launch(ms(10_001));
        assert_eq!(pacing.due(CEILING, CEILING, Tuning::SHIPPED), ms(10_035), "an older one changes nothing");
    }

    #[test]
    fn a_refund_leaves_only_the_ceiling_between_the_two() {
        let mut pacing = Pacing::new();
        pacing.on_send(ms(10_000), SECOND);
        pacing.on_send(ms(10_998), SECOND);
        pacing.refund(SECOND);
        assert_eq!(pacing.due(SECOND, CEILING, Tuning::SHIPPED), ms(11_018));
    }
}
