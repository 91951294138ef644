//! Types of admission: permits, answers, advice; and the expiry of lost permits.

use crate::reasons::{Deferral, PressureReason};
use crate::time::{SECOND, Time};
use std::time::Duration;

/// Permission to send one request now. Give it back: with the outcome, by cancelling it when the request was never
/// sent, or by abandoning it when the request was sent and nobody waits for the answer. A lost permit expires after
/// [`PERMIT_LIFE`].
#[must_use = "an admitted request must be answered, with its outcome or by cancelling it"]
#[derive(Debug)]
pub struct Permit {
    pub(crate) sent_at: Time,
    /// Sequence number among the sends of the key, wrapping.
    pub(crate) seq: u32,
    /// Circuit generation at the time of the send.
    pub(crate) generation: u16,
    /// Other requests in flight when this was sent.
    pub(crate) others: u16,
    /// A trial: it tests whether the provider accepts requests again.
    pub(crate) trial: bool,
    /// It tests a shorter window.
    pub(crate) early: bool,
}

/// The answer to a request for a permit.
#[derive(Debug)]
pub enum Admission {
    /// Send now.
    Send(Permit),
    /// Wait until this time, which is later than now, then ask again.
    WaitUntil(Time),
    /// Wait for the outcome of a request in flight, then ask again. Ask again after [`PERMIT_LIFE`] in any case: a
    /// lost permit expires at most twice that time after it was given.
    WaitForOutcome,
    /// Do not send in this run, or the wait is too long.
    Defer(Deferral),
}

/// Next step for a request after its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// The answer is final, good or bad.
    Done,
    /// Retry, not before this time. The retry needs a new permit.
    RetryAt(Time),
    /// Stop because of our own budget; the provider is not at fault.
    Defer(Deferral),
    /// The provider rate-limited us and the attempts are used up: may start a cooldown.
    Pressure {
        /// The provider's signal.
        reason: PressureReason,
        /// The earliest time at which a retry makes sense.
        not_before: Option<Time>,
    },
}

/// A permit that was not given back for this long counts as lost. Two hours: twice the longest attempt of our own
/// drivers, a body that the proxy streams for an hour. Our drivers give back dropped permits; the expiry is for all
/// other callers.
pub const PERMIT_LIFE: Duration = Duration::from_secs(2 * 3600);
const LIFE: u64 = 2 * 3600 * SECOND;

/// Whether the send number `seq` came after number `than`. Numbers wrap.
pub(crate) const fn is_later(seq: u32, than: u32) -> bool {
    let later = seq.wrapping_sub(than);
    later > 0 && later <= u32::MAX / 2
}

/// Ages of permits, so that lost ones do not stay in flight for ever. Permits older than the mark are given up when
/// the mark moves, one `PERMIT_LIFE` later.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PermitAges {
    /// In whole seconds: a key has few bytes to spare.
    marked_at_s: u32,
    /// The last send before the mark, and the last one that was given up.
    marked: u32,
    given_up: u32,
    /// Requests in flight that were sent before the mark.
    older: u16,
}

impl PermitAges {
    /// Whether it is time to move the mark.
    #[inline]
    pub(crate) const fn is_due(&self, now: Time) -> bool {
        now.as_nanos() >= self.marked_at_s as u64 * SECOND + LIFE
    }

    /// Moves the mark behind send number `sent`; returns how many requests in flight are given up.
    #[cold]
    pub(crate) fn move_mark(&mut self, sent: u32, in_flight: u16, now: Time) -> u16 {
        let lost = self.older.min(in_flight);
        let marked_at_s = u32::try_from(now.as_nanos() / SECOND).unwrap_or(u32::MAX);
        *self = Self { marked_at_s, marked: sent, given_up: self.marked, older: in_flight - lost };
        lost
    }

    /// A permit came back; false when it had expired.
    #[inline]
    pub(crate) fn on_done(&mut self, seq: u32) -> bool {
        is_later(seq, self.marked) || self.on_older_done(seq)
    }

    #[cold]
    fn on_older_done(&mut self, seq: u32) -> bool {
        let is_alive = is_later(seq, self.given_up);
        self.older -= u16::from(is_alive && self.older > 0);
        is_alive
    }

    /// Whether no request in flight is older than the mark, so that answers need no check.
    pub(crate) const fn are_young(&self) -> bool {
        self.older == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(lives: u64) -> Time {
        Time::from_nanos(lives * LIFE)
    }

    #[test]
    fn a_permit_is_given_up_between_one_and_two_lives_after_it_was_handed_out() {
        let mut ages = PermitAges::default();
        assert!(!ages.is_due(at(1).minus(1)) && ages.is_due(at(1)));
        // 1, 2 and 3 are in flight, then 2 is answered, and 4 and 5 are sent.
        assert_eq!(ages.move_mark(3, 3, at(1)), 0);
        assert!(ages.on_done(2) && ages.on_done(5));
        assert_eq!(ages.move_mark(5, 3, at(2)), 2, "1 and 3");
        assert!(!ages.on_done(1), "too late");
        assert!(ages.on_done(4) && ages.are_young());
        assert_eq!(ages.move_mark(5, 0, at(3)), 0);
    }

    #[test]
    fn numbers_wrap() {
        assert!(is_later(3, u32::MAX - 2) && !is_later(u32::MAX - 2, 3) && !is_later(7, 7));
        assert_eq!(PERMIT_LIFE, Duration::from_nanos(LIFE));
    }
}
