//! Quota that remains by the provider's headers, so that a known quota is never exceeded.
//!
//! A reading describes the moment at which the provider handled that request and does not include later sends. So the
//! remainder is the reading minus the sends since; the newest request's reading wins, in whatever order answers
//! arrive. When nothing is left, the gate closes until the reset; after it one request goes first and reads the new
//! quota, because a reset means a full window at one provider and a single free slot at another.
//!
//! A reset comes in whole seconds, or not at all. Where slots come back one by one, their rate is measured from the
//! counter.

use crate::law::tuning::{QUOTAS_KEPT, Tuning};
use crate::signals::outcome::{QuotaReading, Quotas};
use crate::signals::quota_headers::QUOTA_RESET_MAX;
use crate::time::Time;
use std::time::Duration;

/// One quota as last read.
#[derive(Clone, Copy, Debug, Default)]
struct View {
    known: bool,
    /// Too small to plan by.
    tiny: bool,
    /// Slots came back in lumps: a window, not a leak.
    lumpy: bool,
    /// Left after the request `seq`.
    remaining: u32,
    seq: u32,
    /// 0 if unknown.
    limit: u32,
    /// Slots that came back since `leak_from`.
    leaked: u32,
    leak_from: Time,
    told_at: Time,
    /// Time of the reset; `NEVER` if unknown.
    resets_at: Time,
}

/// Effect of the quotas on the next send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QuotaAdvice {
    /// Closed until this time; zero when open.
    pub(crate) closed_until: Time,
    /// The quota should be open again, or its reset is unknown: one request at a time finds out.
    pub(crate) needs_answer: bool,
    /// Used up with an unknown reset; holds the limit, 0 if unknown.
    pub(crate) exhausted: Option<u32>,
}

impl View {
    fn is_used_up(&self, sent: u32) -> bool {
        self.known && !self.tiny && self.remaining <= sent.wrapping_sub(self.seq)
    }

    /// When the next slot comes back, if known.
    fn opens_at(&self, tuning: &Tuning) -> Option<Time> {
        let reset = (self.resets_at != Time::NEVER).then_some(self.resets_at);
        let is_coarse = reset.is_none_or(|at| at < self.told_at.plus(tuning.quota_coarse));
        if self.leaked < tuning.quota_leak_seen || self.lumpy || !is_coarse {
            return reset;
        }
        let per_place = self.told_at.nanos_since(self.leak_from) / u64::from(self.leaked);
        let next = self.told_at.plus(per_place + per_place / 2);
        Some(reset.map_or(next, |at| at.min(next)))
    }

    fn read(&mut self, reading: &QuotaReading, remaining: u64, seq: u32, now: Time, tuning: &Tuning) {
        let remaining = u32::try_from(remaining).unwrap_or(u32::MAX);
        let sends = seq.wrapping_sub(self.seq);
        let back = if self.known { remaining.saturating_add(sends).saturating_sub(self.remaining) } else { 0 };
        let limit = reading.limit.unwrap_or(u64::MAX);
        let part = u32::try_from(limit / u64::from(tuning.quota_lump_part)).unwrap_or(u32::MAX);
        let is_near = |wait: Duration| wait.as_secs() <= u64::from(tuning.quota_tiny_reset_s);
        *self = Self {
            known: true,
            tiny: limit < u64::from(tuning.quota_tiny) && reading.resets_in.is_none_or(is_near),
            lumpy: self.lumpy || back > part.saturating_add(tuning.quota_lump),
            remaining,
            seq,
            limit: reading.limit.map_or(0, |limit| u32::try_from(limit).unwrap_or(0)),
            leaked: self.leaked.saturating_add(back),
            leak_from: if self.known { self.leak_from } else { now },
            told_at: now,
            resets_at: reading.resets_in.map_or(Time::NEVER, |wait| now + wait.min(QUOTA_RESET_MAX)),
        };
    }
}

/// All quotas of one key.
#[derive(Clone, Debug, Default)]
pub(crate) struct QuotaBook {
    views: [View; QUOTAS_KEPT],
}

impl QuotaBook {
    /// Whether one more send, after `sent` sends in total, fits into the remainder.
    #[inline]
    pub(crate) fn advice(&self, sent: u32, now: Time, tuning: &Tuning) -> QuotaAdvice {
        if self.is_untold() { QuotaAdvice::default() } else { self.told_advice(sent, now, tuning) }
    }

    /// Fast exit: most providers send no quotas.
    const fn is_untold(&self) -> bool {
        !self.views[0].known
    }

    fn told_advice(&self, sent: u32, now: Time, tuning: &Tuning) -> QuotaAdvice {
        let mut advice = QuotaAdvice::default();
        for view in self.views.iter().filter(|view| view.is_used_up(sent)) {
            match view.opens_at(tuning) {
                Some(at) if now < at => advice.closed_until = advice.closed_until.max(at),
                Some(_) => advice.needs_answer = true,
                None => {
                    advice.needs_answer = true;
                    advice.exhausted = Some(view.limit);
                }
            }
        }
        advice
    }

    /// Whether any quota is used up.
    #[inline]
    pub(crate) fn is_closed(&self, sent: u32) -> bool {
        !self.is_untold() && self.views.iter().any(|view| view.is_used_up(sent))
    }

    /// Applies the readings of the answer to request `seq`. An older answer that arrives later is ignored.
    pub(crate) fn on_answer(&mut self, quotas: &Quotas, seq: u32, now: Time, tuning: &Tuning) {
        for (view, reading) in self.views.iter_mut().zip(quotas.as_slice()) {
            let is_older = view.known && seq.wrapping_sub(view.seq) > u32::MAX / 2;
            if let Some(remaining) = reading.remaining.filter(|_| !is_older) {
                view.read(reading, remaining, seq, now, tuning);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::SECOND;

    fn at(seconds: u64) -> Time {
        Time::from_nanos(seconds * SECOND)
    }

    fn reading(remaining: u64, reset_s: Option<u64>) -> Quotas {
        let mut quotas = Quotas::NONE;
        let resets_in = reset_s.map(Duration::from_secs);
        quotas.push(QuotaReading { limit: Some(100), remaining: Some(remaining), resets_in, window: None });
        quotas
    }

    #[test]
    fn sends_since_the_reading_are_taken_off() {
        let mut book = QuotaBook::default();
        book.on_answer(&reading(2, Some(10)), 7, at(100), Tuning::SHIPPED);
        assert_eq!(book.advice(7, at(100), Tuning::SHIPPED), QuotaAdvice::default());
        assert_eq!(book.advice(8, at(100), Tuning::SHIPPED), QuotaAdvice::default());
        assert_eq!(
            book.advice(9, at(100), Tuning::SHIPPED),
            QuotaAdvice { closed_until: at(110), ..QuotaAdvice::default() }
        );
        assert!(book.is_closed(9) && !book.is_closed(8));
    }

    #[test]
    fn behind_the_reset_one_request_finds_out() {
        let mut book = QuotaBook::default();
        book.on_answer(&reading(0, Some(10)), 7, at(100), Tuning::SHIPPED);
        assert_eq!(
            book.advice(7, at(110), Tuning::SHIPPED),
            QuotaAdvice { needs_answer: true, ..QuotaAdvice::default() }
        );
    }

    #[test]
    fn an_older_answer_says_nothing_new_also_when_the_numbers_wrap() {
        for (newer, older) in [(8, 7), (0, u32::MAX), (3, u32::MAX - 2)] {
            let mut book = QuotaBook::default();
            book.on_answer(&reading(50, Some(10)), newer, at(100), Tuning::SHIPPED);
            book.on_answer(&reading(0, Some(10)), older, at(101), Tuning::SHIPPED);
            assert_eq!(book.advice(newer, at(101), Tuning::SHIPPED), QuotaAdvice::default(), "{older} after {newer}");
        }
    }

    #[test]
    fn without_a_reset_nobody_knows_until_when() {
        let mut book = QuotaBook::default();
        book.on_answer(&reading(0, None), 7, at(100), Tuning::SHIPPED);
        let expected = QuotaAdvice { closed_until: Time::ZERO, needs_answer: true, exhausted: Some(100) };
        assert_eq!(book.advice(7, at(100), Tuning::SHIPPED), expected);
    }

    #[test]
    fn of_two_used_up_quotas_the_later_reset_counts() {
        let mut quotas = reading(0, Some(10));
        quotas.push(reading(0, Some(30)).as_slice()[0]);
        let mut book = QuotaBook::default();
        book.on_answer(&quotas, 7, at(100), Tuning::SHIPPED);
        assert_eq!(book.advice(7, at(105), Tuning::SHIPPED).closed_until, at(130));
        assert_eq!(book.advice(7, at(115), Tuning::SHIPPED).closed_until, at(130));
    }
}
