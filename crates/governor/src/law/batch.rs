//! A batch of ordinary requests, which a busy key reports to its law at once.
//!
//! An ordinary request alone changes nothing: it was sent on time, accepted, not late, with no trial running and no gate
//! closed. The law adds the batch and checks once whether to raise the rate. It raises at most one batch late.

use super::{Law, Mode};
use crate::time::Time;

/// Ordinary sends and answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ordinary {
    pub(crate) sends: u16,
    /// The last of them.
    pub(crate) last_send: Time,
    /// Between two of them.
    pub(crate) interval: u64,
    pub(crate) answers: u16,
    /// Mean latency of the answers in nanoseconds.
    pub(crate) latency: u64,
}

impl Law {
    /// How many ordinary answers may be reported at once; `None` while the law must see every request.
    pub(crate) fn batch_max(&self) -> Option<u8> {
        let every_one_matters = self.episode.is_some()
            || self.shut > 0
            || self.mode == Mode::Drain
            || self.window.is_learned()
            || self.count.from == Time::NEVER
            || !self.latency.is_settled(self.tuning);
        if every_one_matters {
            return None;
        }
        let is_still = self.mode == Mode::Hold || self.interval <= self.fastest;
        Some(if is_still { self.tuning.batch_still } else { self.tuning.batch_growing })
    }

    /// Answers to requests sent before this do not count.
    pub(crate) const fn since(&self) -> Time {
        self.since
    }

    /// Nanoseconds after which an answer is late.
    pub(crate) fn late_after(&self) -> u64 {
        self.latency.late_after(self.tuning)
    }

    /// Applies ordinary requests up to `now`.
    pub(crate) fn on_ordinary(&mut self, batch: &Ordinary, now: Time) {
        self.sent = self.sent.wrapping_add(u32::from(batch.sends));
        self.accepted = self.accepted.saturating_add(u32::from(batch.sends));
        self.window.on_sends(batch.sends, batch.last_send, batch.interval);
        if batch.answers == 0 {
            return;
        }
        self.refusals.on_accepted(batch.answers, self.tuning);
        self.latency.on_ordinary(batch.answers, batch.latency, now, self.tuning);
        if self.interval > self.fastest {
            let before = self.successes;
            self.successes = before.saturating_add(u32::from(batch.answers));
            if self.is_used(now) {
                let look = self.tuning.hold_look;
                self.grow(before / look != self.successes / look, now);
            }
        }
    }
}
