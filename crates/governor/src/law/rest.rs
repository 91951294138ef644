//! Small form of a law while its key is idle: the result, without the measurements.
//!
//! A registry of a million keys cannot keep the send log, the latency baseline and the counts of each. The small form
//! drops what a restart drops too; it keeps strikes, bans, gates and the pace. A law within an episode, or with a
//! window that still has slots taken, keeps its full form.

use super::tuning::Tuning;
use super::{Law, Mode};
use crate::law::refusals::Refusals;
use crate::time::Time;

/// Small form of an idle law.
#[derive(Clone, Debug)]
pub(crate) struct IdleLaw {
    interval: u64,
    gate: Time,
    limit: f64,
    window_length: u64,
    window_limit: u32,
    hold_s: f32,
    step_s: f32,
    lasted_s: f32,
    refusals: Refusals,
    mode: Mode,
    shut: u8,
    is_free: bool,
    is_gentle: bool,
}

impl IdleLaw {
    /// When the gate opens.
    pub(crate) const fn gate(&self) -> Time {
        self.gate
    }
}

impl Law {
    /// The small form, after nothing was sent for `idle` nanoseconds; `None` while the full form is needed.
    pub(crate) fn rest(&self, idle: u64) -> Option<IdleLaw> {
        if self.episode.is_some() || (self.window.is_learned() && self.window.length() > idle) {
            return None;
        }
        let window = self.window.learned();
        Some(IdleLaw {
            interval: self.interval,
            gate: self.gate,
            limit: self.limit,
            window_length: self.window.length(),
            window_limit: window.map_or(0, |(limit, _)| limit),
            hold_s: self.hold_s,
            step_s: self.step_s,
            lasted_s: self.lasted_s,
            refusals: self.refusals.clone(),
            mode: self.mode,
            shut: self.shut,
            is_free: self.is_free,
            is_gentle: self.is_gentle,
        })
    }

    /// Continues from the small form.
    pub(crate) fn wake(rest: &IdleLaw, fastest: u64, now: Time, tuning: &'static Tuning) -> Self {
        let mut law = Self::new(rest.interval, fastest, tuning);
        law.gate = rest.gate;
        law.limit = rest.limit;
        law.hold_s = rest.hold_s;
        law.step_s = rest.step_s;
        law.lasted_s = rest.lasted_s;
        law.refusals = rest.refusals.clone();
        law.shut = rest.shut;
        law.is_free = rest.is_free;
        law.is_gentle = rest.is_gentle;
        // A probe must restart, and a queue that was drained is empty by now.
        law.mode = match rest.mode {
            Mode::Search | Mode::Climb => rest.mode,
            Mode::Hold | Mode::Probe | Mode::Drain if rest.limit > 0.0 => Mode::Hold,
            Mode::Hold | Mode::Probe | Mode::Drain => Mode::Climb,
        };
        if rest.window_limit > 0 {
            law.window.restore(rest.window_limit, rest.window_length, now, tuning);
        }
        law
    }
}

#[cfg(test)]
mod tests {
    use super::super::Accepted;
    use super::*;
    use crate::time::SECOND;

    const FASTEST: u64 = SECOND / 50;

    fn at(seconds: u64) -> Time {
        Time::from_nanos(seconds * SECOND)
    }

    #[test]
    fn a_law_wakes_with_the_pace_it_fell_asleep_with() {
        let mut law = Law::new(SECOND, FASTEST, Tuning::SHIPPED);
        for second in 0..20 {
            law.on_send(at(second), false);
            law.on_success(Accepted { seq: second as u32 + 1, sent_at: at(second), early: false }, at(second));
        }
        law.close_until(at(500));
        let before = law.interval();
        assert!(before < SECOND);
        let rest = law.rest(60 * SECOND).unwrap();
        assert!(size_of::<IdleLaw>() <= 104, "{}", size_of::<IdleLaw>());
        let awake = Law::wake(&rest, FASTEST, at(100), Tuning::SHIPPED);
        assert_eq!((awake.interval(), awake.gate(), awake.mode()), (before, at(500), Mode::Search));
    }

    #[test]
    fn a_law_with_places_taken_in_its_window_does_not_rest() {
        let mut law = Law::new(SECOND, FASTEST, Tuning::SHIPPED);
        law.window.restore(60, 3600 * SECOND, at(0), Tuning::SHIPPED);
        assert!(law.rest(3599 * SECOND).is_none());
        let rest = law.rest(3600 * SECOND).unwrap();
        assert_eq!(Law::wake(&rest, FASTEST, at(4000), Tuning::SHIPPED).window.learned(), law.window.learned());
    }
}
