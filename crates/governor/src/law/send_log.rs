//! Send log in bounded memory: enough to count the sends of any recent period.
//!
//! Why not all times: an hour at ten per second has 36,000. Only every `stride`-th is kept; when the marks are full,
//! every other one is dropped and the stride doubles. All sends of a block count as late as its last one, so an error
//! makes us wait longer. Never reads a clock.

use crate::law::tuning::MARKS;
use crate::time::{MILLISECOND, Time};

/// The sends of one key.
#[derive(Clone, Debug)]
pub(crate) struct SendLog {
    origin: Time,
    /// Milliseconds since `origin` of the last send of each full block, oldest first from `head`.
    marks: [u32; MARKS],
    head: u8,
    len: u8,
    /// Sends per block.
    stride: u32,
    /// Sends since the last mark.
    partial: u32,
    /// Whether the oldest blocks were dropped.
    has_forgotten: bool,
}

impl SendLog {
    pub(crate) const fn new() -> Self {
        Self { origin: Time::ZERO, marks: [0; MARKS], head: 0, len: 0, stride: 1, partial: 0, has_forgotten: false }
    }

    /// Adds a send. `grows`: nothing may be dropped yet, so full marks are thinned out; otherwise the oldest block is
    /// dropped.
    #[inline]
    pub(crate) fn on_send(&mut self, now: Time, grows: bool) {
        // Inside a block a send only counts.
        if self.partial > 0 && self.partial + 1 < self.stride {
            self.partial += 1;
        } else {
            self.on_block(now, grows);
        }
    }

    /// Adds the send that begins or completes a block.
    #[cold]
    fn on_block(&mut self, now: Time, grows: bool) {
        if self.len == 0 && self.partial == 0 {
            self.origin = now;
        }
        self.partial += 1;
        if self.partial >= self.stride && usize::from(self.len) == MARKS {
            self.make_room(grows);
        }
        if self.partial >= self.stride {
            self.push_mark(now);
        }
    }

    /// Adds `sends` sends up to `last`, `interval` apart, while nothing may be dropped.
    pub(crate) fn on_sends(&mut self, sends: u16, last: Time, interval: u64) {
        if self.partial > 0 && self.partial + u32::from(sends) < self.stride {
            self.partial += u32::from(sends);
            return;
        }
        for later in (0..u64::from(sends)).rev() {
            self.on_send(last.minus(later.saturating_mul(interval)), true);
        }
    }

    fn make_room(&mut self, grows: bool) {
        if grows {
            self.thin();
        } else {
            self.head = ((usize::from(self.head) + 1) % MARKS) as u8;
            self.len -= 1;
            self.has_forgotten = true;
        }
    }

    fn push_mark(&mut self, now: Time) {
        let Ok(offset) = u32::try_from(now.nanos_since(self.origin) / MILLISECOND + 1) else {
            // After 49 days the offsets overflow: start over.
            *self = Self { origin: now, stride: self.stride, ..Self::new() };
            return;
        };
        let slot = (usize::from(self.head) + usize::from(self.len)) % MARKS;
        self.marks[slot] = offset;
        self.len += 1;
        self.partial = 0;
    }

    /// Takes back the last send, which was refused or cancelled.
    pub(crate) fn refund(&mut self) {
        if self.partial > 0 {
            self.partial -= 1;
        } else if self.len > 0 {
            self.len -= 1;
            self.partial = self.stride - 1;
        }
    }

    /// Halves the marks: each remaining one stands for twice as many sends.
    fn thin(&mut self) {
        let kept = self.len / 2;
        let mut marks = [0; MARKS];
        for (index, mark) in marks.iter_mut().enumerate().take(usize::from(kept)) {
            *mark = self.marks[(usize::from(self.head) + 2 * index + 1) % MARKS];
        }
        // A block without a partner joins the unfinished block.
        self.partial += self.stride * u32::from(self.len % 2);
        self.marks = marks;
        self.head = 0;
        self.len = kept;
        self.stride = self.stride.saturating_mul(2);
    }

    /// Makes the marks cover `sends` sends.
    pub(crate) fn cover(&mut self, sends: u32) {
        while u64::from(self.stride) * (MARKS as u64 - 1) < u64::from(sends) {
            self.thin();
        }
    }

    fn mark(&self, index: u8) -> Time {
        let slot = (usize::from(self.head) + usize::from(index)) % MARKS;
        self.origin.plus(u64::from(self.marks[slot]) * MILLISECOND)
    }

    /// The send that must leave the window before another one fits into `limit`, if any.
    pub(crate) fn blocking(&self, limit: u32) -> Option<Time> {
        let room = limit.saturating_sub(1).saturating_sub(self.partial) / self.stride;
        let live = u32::from(self.len);
        (live > room).then(|| self.mark((live - 1 - room) as u8))
    }

    /// Remembered sends after `from`.
    pub(crate) fn count_after(&self, from: Time) -> u32 {
        let blocks = (0..self.len).filter(|&index| self.mark(index) > from).count() as u32;
        blocks.saturating_mul(self.stride).saturating_add(self.partial)
    }

    /// Time of the `nth` last send, rounded to the end of its block; the oldest remembered time if the send is older.
    pub(crate) fn nth_last(&self, nth: u32) -> Time {
        let blocks = nth.saturating_sub(self.partial).div_ceil(self.stride).max(1);
        if blocks >= u32::from(self.len) { self.start() } else { self.mark(self.len - blocks as u8) }
    }

    /// The first remembered send.
    pub(crate) fn start(&self) -> Time {
        if self.has_forgotten && self.len > 0 { self.mark(0) } else { self.origin }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::SECOND;
    use proptest::prelude::*;

    fn at(seconds: u64) -> Time {
        Time::from_nanos(seconds * SECOND)
    }

    fn log(sends: std::ops::RangeInclusive<u64>, grows: bool) -> SendLog {
        let mut log = SendLog::new();
        sends.for_each(|second| log.on_send(at(second), grows));
        log
    }

    #[test]
    fn the_send_that_blocks_is_the_oldest_of_as_many_as_fit() {
        let log = log(1..=5, true);
        // A mark is rounded up to the next millisecond.
        assert_eq!(log.blocking(5), Some(at(1).plus(MILLISECOND)));
        assert_eq!(log.blocking(2), Some(at(4).plus(MILLISECOND)));
        assert_eq!(log.blocking(6), None);
    }

    #[test]
    fn a_refund_takes_back_the_last_send() {
        let mut log = log(1..=5, true);
        log.refund();
        assert_eq!(log.blocking(5), None);
        assert_eq!(log.count_after(Time::ZERO), 4);
    }

    #[test]
    fn sends_after_a_time_are_counted() {
        let log = log(1..=30, true);
        assert_eq!(log.count_after(at(20)), 11, "the send at 20 s is marked a millisecond later");
        assert_eq!(log.count_after(at(21)), 10);
        assert_eq!(log.start(), at(1));
    }

    #[test]
    fn forty_nine_days_start_over_instead_of_wrapping() {
        let mut log = log(1..=3, true);
        log.on_send(at(60 * 86_400), true);
        assert_eq!(log.start(), at(60 * 86_400));
        assert!(log.count_after(Time::ZERO) <= 1);
    }

    proptest! {
        #[test]
        fn no_send_is_lost_while_the_log_grows(sends in 1_u64..2000) {
            prop_assert_eq!(u64::from(log(1..=sends, true).count_after(Time::ZERO)), sends);
        }

        #[test]
        fn a_place_is_never_given_back_too_early(limit in 1_u32..500, gaps in proptest::collection::vec(1_u64..5000, 1..700)) {
            let mut log = SendLog::new();
            log.cover(limit);
            let (mut now, mut sends) = (at(1), Vec::new());
            for gap in gaps {
                now = now.plus(gap * MILLISECOND);
                log.on_send(now, false);
                sends.push(now);
                let oldest = sends.len().checked_sub(limit as usize).map(|index| sends[index]);
                prop_assert!(log.blocking(limit) >= oldest, "{:?} before {oldest:?}", log.blocking(limit));
                prop_assert_eq!(log.blocking(limit).is_some(), oldest.is_some());
            }
        }
    }
}
