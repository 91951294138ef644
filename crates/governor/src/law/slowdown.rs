//! Reaction to late answers: let the provider's queue drain, then continue a little slower.
//!
//! A queue that we filled must drain before anything can be measured, so the rate drops far at first and returns when
//! latency is ordinary again. If the rate keeps dropping and answers stay late, we are not the cause: the new latency
//! becomes the baseline.

use super::{Law, Mode};
use crate::time::{Time, nanos_in};

/// State after the drain.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Drain {
    /// The rate to return to.
    rate: f64,
    /// The limit to hold; 0: climb.
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
        let (rate, tuning) = (self.rate(), self.tuning);
        let (after_probe, after_gentle) = (tuning.after_probe * self.limit, tuning.after_gentle_climb * rate);
        self.drain = match self.mode {
            Mode::Search => Drain { rate: tuning.after_search * rate, limit: 0.0, rows: 1 },
            Mode::Climb if !self.is_gentle => Drain { rate: tuning.after_climb * rate, limit: 0.0, rows: 1 },
            Mode::Probe => Drain { rate: after_probe, limit: after_probe, rows: 1 },
            _ => Drain { rate: after_gentle, limit: after_gentle, rows: 1 },
        };
        self.is_gentle = self.mode == Mode::Climb;
        self.cut(tuning.drain_rate);
        self.close_until(now.plus(nanos_in(late_s.min(tuning.drain_pause_s))));
        self.latency.expect_ordinary();
        self.enter(Mode::Drain, now);
    }

    /// Answers are still late.
    fn drain_further(&mut self, late_s: f64, delivered: f64, now: Time) {
        let tuning = self.tuning;
        if self.drain.rows >= tuning.drain_rows_max {
            self.latency.forget();
            self.raise_to(self.drain.rate);
            return self.enter(Mode::Climb, now);
        }
        self.drain.rows += 1;
        // A queue that is never empty delivers at its own rate.
        let is_queue = delivered < tuning.queue_below * self.drain.rate;
        self.drain.rate = if is_queue { tuning.queue_rate * delivered } else { tuning.drain_again * self.drain.rate };
        let factor = (self.drain.rate / self.rate()).min(tuning.drain_again_max);
        self.cut(factor);
        self.close_until(now.plus(nanos_in(late_s.min(tuning.drain_pause_again_s))));
    }

    /// Ends the drain when latency is ordinary again.
    pub(super) fn end_drain(&mut self, now: Time) {
        if self.latency.ordinary() < self.tuning.drain_ordinary {
            return;
        }
        if self.drain.limit > 0.0 {
            self.settle(self.drain.limit.min(self.drain.rate), now);
            self.hold_s = self.hold_s.max(self.tuning.hold_after_late_s);
        } else {
            self.limit = 0.0;
            self.step_s = self.tuning.step_min_s;
            self.raise_to(self.drain.rate);
            self.enter(Mode::Climb, now);
        }
        self.count.from = now;
        self.count.refused = Some(now);
        self.accepted = 0;
        self.count.rate = self.rate();
    }
}
