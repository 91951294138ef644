//! What is known about the recent answers of a key: how long they took, and how many failed.
//!
//! Fixed memory and no loop on the way of a request: a ring of latencies from which the 95th percentile
//! is taken when somebody asks, and a ring of buckets with running sums. Never decides anything.

use super::config::{BUCKETS_MAX, Rules};
use crate::time::Time;

/// Latencies kept: enough for a 95th percentile that one outlier does not move.
const KEPT: usize = 32;
/// Weight of a new answer in the mean: five answers ago counts a third.
const WEIGHT: f32 = 0.2;

/// How long answers take.
#[derive(Clone, Debug)]
pub(crate) struct Latencies {
    /// Packed microseconds; the oldest is overwritten.
    ring: [u16; KEPT],
    len: u8,
    next: u8,
    /// In microseconds.
    mean: f32,
}

impl Latencies {
    pub(crate) const fn new() -> Self {
        Self { ring: [0; KEPT], len: 0, next: 0, mean: 0.0 }
    }

    #[inline]
    pub(crate) fn add(&mut self, nanos: u64) {
        let micros = nanos / 1000;
        let new = micros as f32;
        self.mean = if self.len == 0 { new } else { self.mean + (new - self.mean) * WEIGHT };
        self.keep(pack(micros));
    }

    /// Adds some packed latencies, whose mean in microseconds is known. In the mean they weigh as if each had been it.
    pub(crate) fn add_many(&mut self, packed: &[u16], mean: u64) {
        let new = mean as f32;
        let weight = 1.0 - (1.0 - WEIGHT).powi(packed.len() as i32);
        self.mean = if self.len == 0 { new } else { self.mean + (new - self.mean) * weight };
        packed.iter().for_each(|&packed| self.keep(packed));
    }

    #[inline]
    fn keep(&mut self, packed: u16) {
        let slot = usize::from(self.next) % KEPT;
        self.ring[slot] = packed;
        self.next = ((slot + 1) % KEPT) as u8;
        self.len = self.len.max(slot as u8 + 1);
    }

    /// The smoothed mean in nanoseconds; `None` before the first answer.
    pub(crate) fn mean(&self) -> Option<u64> {
        (self.len > 0).then_some((f64::from(self.mean) * 1000.0) as u64)
    }

    /// The 95th percentile by nearest rank, in nanoseconds; `None` before the first answer.
    pub(crate) fn p95(&self) -> Option<u64> {
        let len = usize::from(self.len);
        let rank = (len * 95).div_ceil(100).checked_sub(1)?;
        let mut kept = self.ring;
        // Packing keeps the order.
        let (_, &mut packed, _) = kept[..len].select_nth_unstable(rank);
        Some(unpack(packed) * 1000)
    }
}

/// Bits of the number before the shift.
const MANTISSA: u32 = 11;

/// Microseconds in 16 bits, to a twentieth of a percent: eleven bits and how far to shift them. Order is kept.
#[inline]
pub(crate) const fn pack(micros: u64) -> u16 {
    let bits = u64::BITS - micros.leading_zeros();
    if bits <= MANTISSA {
        return micros as u16;
    }
    let shift = bits - MANTISSA;
    // 2^42 microseconds are fifty days.
    if shift > 31 { u16::MAX } else { ((shift << MANTISSA) | (micros >> shift) as u32) as u16 }
}

pub(crate) const fn unpack(packed: u16) -> u64 {
    let shift = packed >> MANTISSA;
    (packed as u64 & ((1 << MANTISSA) - 1)) << shift
}

/// Answers and failures of one bucket.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    all: u16,
    failed: u16,
}

/// How many of the recent answers failed.
#[derive(Clone, Debug)]
pub(crate) struct ErrorWindow {
    /// End of the present bucket.
    end: Time,
    /// Sums over all buckets.
    all: u32,
    failed: u32,
    buckets: [Tally; BUCKETS_MAX],
    /// The present bucket.
    at: u8,
}

impl ErrorWindow {
    pub(crate) const fn new() -> Self {
        Self { end: Time::ZERO, all: 0, failed: 0, buckets: [Tally { all: 0, failed: 0 }; BUCKETS_MAX], at: 0 }
    }

    /// Counts an answer.
    #[inline]
    pub(crate) fn add(&mut self, rules: &Rules, failed: bool, now: Time) {
        if now >= self.end {
            self.roll(rules, now);
        }
        let bucket = &mut self.buckets[usize::from(self.at) % BUCKETS_MAX];
        if bucket.all == u16::MAX {
            // Halving keeps the share.
            self.all -= u32::from(bucket.all - bucket.all / 2);
            self.failed -= u32::from(bucket.failed - bucket.failed / 2);
            *bucket = Tally { all: bucket.all / 2, failed: bucket.failed / 2 };
        }
        bucket.all += 1;
        bucket.failed += u16::from(failed);
        self.all += 1;
        self.failed += u32::from(failed);
    }

    /// Counts so many answers that succeeded.
    pub(crate) fn add_good(&mut self, rules: &Rules, answers: u16, now: Time) {
        if now >= self.end {
            self.roll(rules, now);
        }
        let bucket = &mut self.buckets[usize::from(self.at) % BUCKETS_MAX];
        match bucket.all.checked_add(answers) {
            Some(all) => {
                bucket.all = all;
                self.all += u32::from(answers);
            }
            None => (0..answers).for_each(|_| self.add(rules, false, now)),
        }
    }

    /// Answers and failures in the window.
    pub(crate) fn sums(&mut self, rules: &Rules, now: Time) -> (u32, u32) {
        if now >= self.end {
            self.roll(rules, now);
        }
        (self.all, self.failed)
    }

    /// Starts afresh.
    pub(crate) const fn clear(&mut self) {
        *self = Self { end: self.end, ..Self::new() };
    }

    /// Moves on to the bucket of `now`, and takes those out of the sums that are too old.
    #[cold]
    fn roll(&mut self, rules: &Rules, now: Time) {
        let passed = now.nanos_since(self.end) / rules.bucket + 1;
        if passed >= u64::from(rules.buckets) {
            *self = Self { end: now.plus(rules.bucket), ..Self::new() };
            return;
        }
        for _ in 0..passed {
            self.at = (self.at + 1) % rules.buckets;
            let old = std::mem::take(&mut self.buckets[usize::from(self.at)]);
            self.all -= u32::from(old.all);
            self.failed -= u32::from(old.failed);
        }
        self.end = self.end.plus(passed * rules.bucket);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyed::Config;
    use crate::time::{MILLISECOND, SECOND};
    use proptest::prelude::*;
    use std::time::Duration;

    fn rules(window_s: u64, bucket_s: u64) -> Rules {
        Rules::new(Config {
            stats_window: Duration::from_secs(window_s),
            stats_bucket: Duration::from_secs(bucket_s),
            ..Config::default()
        })
        .unwrap()
    }

    fn at(seconds: u64) -> Time {
        Time::from_nanos(seconds * SECOND)
    }

    #[test]
    fn the_mean_follows_and_the_95th_percentile_is_the_nearest_rank() {
        let mut latencies = Latencies::new();
        assert_eq!((latencies.mean(), latencies.p95()), (None, None));
        latencies.add(MILLISECOND);
        assert_eq!((latencies.mean(), latencies.p95()), (Some(MILLISECOND), Some(MILLISECOND)));
        latencies.add(2 * MILLISECOND);
        assert_eq!(latencies.mean(), Some(1200 * MILLISECOND / 1000));
        let mut latencies = Latencies::new();
        (1..=20).for_each(|ms| latencies.add(ms * MILLISECOND));
        assert_eq!(latencies.p95().unwrap() / MILLISECOND, 18, "19 ms, packed down by less than a promille");
        (0..KEPT).for_each(|_| latencies.add(MILLISECOND));
        assert_eq!(latencies.p95(), Some(MILLISECOND), "old answers are gone");
    }

    #[test]
    fn the_error_rate_counts_what_is_in_the_window_and_nothing_older() {
        let rules = rules(30, 2);
        let mut window = ErrorWindow::new();
        window.add(&rules, true, at(100));
        window.add(&rules, false, at(101));
        assert_eq!(window.sums(&rules, at(101)), (2, 1));
        window.add(&rules, true, at(115));
        assert_eq!(window.sums(&rules, at(115)), (3, 2));
        // The first bucket ends at 102 and has gone when the window has moved on by fifteen.
        assert_eq!(window.sums(&rules, at(129)), (3, 2));
        assert_eq!(window.sums(&rules, at(130)), (1, 1));
        assert_eq!(window.sums(&rules, at(1000)), (0, 0));
    }

    #[test]
    fn a_full_bucket_keeps_the_share() {
        let rules = rules(30, 2);
        let mut window = ErrorWindow::new();
        (0..200_000).for_each(|n| window.add(&rules, n % 4 == 0, at(100)));
        let (all, failed) = window.sums(&rules, at(100));
        let share = f64::from(failed) / f64::from(all);
        assert!((share - 0.25).abs() < 0.01, "{share}");
    }

    proptest! {
        #[test]
        fn packing_keeps_order_and_size(a in 0_u64..1 << 41, b in 0_u64..1 << 41) {
            prop_assert!(pack(a.min(b)) <= pack(a.max(b)));
            let back = unpack(pack(a));
            prop_assert!(back <= a && a - back <= a / 1000, "{a} {back}");
        }

        #[test]
        fn sums_are_those_of_a_window_that_is_counted_by_hand(
            steps in prop::collection::vec((0_u64..7, any::<bool>()), 1..200), buckets in 1_u64..=16,
        ) {
            let rules = rules(buckets, 1);
            let mut window = ErrorWindow::new();
            let (mut now, mut seen) = (at(50), Vec::new());
            for (pause, failed) in steps {
                now = now + Duration::from_secs(pause);
                window.add(&rules, failed, now);
                seen.push((now, failed));
                // The present second and those before it, as many as there are buckets.
                let from = now.minus((buckets - 1) * SECOND);
                let kept: Vec<_> = seen.iter().filter(|(at, _)| *at >= from).collect();
                let failed = kept.iter().filter(|(_, failed)| *failed).count();
                prop_assert_eq!(window.sums(&rules, now), (kept.len() as u32, failed as u32));
            }
        }
    }
}
