//! What to do about late answers: let the queue run empty, then go on a little slower.
//!
//! A queue that we built has to be waited out before anything can be learned, so the rate drops
//! far at first and comes back when answers are ordinary again. If it drops further and further
//! and answers stay late, we are not the cause: the new latency is the ordinary one.

use super::{Law, Mode};
use crate::time::{Time, nanos_in};

/// Rate while a queue runs empty, as a part of the rate that built it.
const DRAIN_RATE: f64 = 0.4;
/// Longest pause for a queue to run empty when it is first noticed, and later.
const PAUSE_S: f64 = 10.0;
const PAUSE_AGAIN_S: f64 = 60.0;
/// Where to go on after a climb: it rises by a twentieth at a time, and by the time that a row of
/// answers is late it is a tenth too fast, or a little more.
const AFTER_CLIMB: f64 = 0.85;
/// Where to hold: a gentle climb rises by a sixty-fourth, and is late by one or two steps.
const AFTER_GENTLE_CLIMB: f64 = 0.97;
/// Rows of late answers in a drain after which it is not us.
const ROWS_MAX: u8 = 4;
/// Ordinary answers that end a drain.
const ORDINARY: u8 = 3;
/// Quiet time after late answers, at least: a probe here is not refused, it makes everybody wait.
const HOLD_AFTER_LATE_S: f32 = 240.0;

/// How a drain goes on when it is over.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Drain {
    /// The rate to go back to.
    rate: f64,
    /// The limit to hold; 0 to climb.
    limit: f64,
    /// Rows of late answers so far.
    rows: u8,
}

impl Law {
    /// A row of late answers is complete.
    pub(super) fn slow_down(&mut self, now: Time) {
        let (late_s, delivered) = self.latency.take_row(now);
        if self.episode.is_some() {
            return;
        }
        if self.mode == Mode::Drain {
            return self.drain_further(late_s, delivered, now);
        }
        let rate = self.rate();
        self.drain = match self.mode {
            Mode::Search => Drain { rate: 0.4 * rate, limit: 0.0, rows: 1 },
            Mode::Climb if !self.is_gentle => Drain { rate: AFTER_CLIMB * rate, limit: 0.0, rows: 1 },
            Mode::Probe => Drain { rate: 0.995 * self.limit, limit: 0.995 * self.limit, rows: 1 },
            _ => Drain { rate: AFTER_GENTLE_CLIMB * rate, limit: AFTER_GENTLE_CLIMB * rate, rows: 1 },
        };
        self.is_gentle = self.mode == Mode::Climb;
        self.cut(DRAIN_RATE);
        self.close_until(now.plus(nanos_in(late_s.min(PAUSE_S))));
        self.latency.expect_ordinary();
        self.enter(Mode::Drain, now);
    }

    /// Answers are still late.
    fn drain_further(&mut self, late_s: f64, delivered: f64, now: Time) {
        if self.drain.rows >= ROWS_MAX {
            self.latency.forget();
            self.raise_to(self.drain.rate);
            return self.enter(Mode::Climb, now);
        }
        self.drain.rows += 1;
        // What a queue lets through while it is never empty is its rate.
        let is_queue = delivered < 0.7 * self.drain.rate;
        self.drain.rate = if is_queue { 0.95 * delivered } else { 0.9 * self.drain.rate };
        let factor = (self.drain.rate / self.rate()).min(0.7);
        self.cut(factor);
        self.close_until(now.plus(nanos_in(late_s.min(PAUSE_AGAIN_S))));
    }

    /// Ends the drain when answers are ordinary again.
    pub(super) fn end_drain(&mut self, now: Time) {
        if self.latency.ordinary() < ORDINARY {
            return;
        }
        if self.drain.limit > 0.0 {
            self.settle(self.drain.limit.min(self.drain.rate), now);
            self.hold_s = self.hold_s.max(HOLD_AFTER_LATE_S);
        } else {
            self.limit = 0.0;
            self.step_s = 1.0;
            self.raise_to(self.drain.rate);
            self.enter(Mode::Climb, now);
        }
        self.count.from = Some(now);
        self.count.refused = Some(now);
        self.count.accepted = 0;
        self.count.rate = self.rate();
    }
}
