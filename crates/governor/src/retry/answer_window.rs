//! Counts failures among the recent answers over a sliding window, in bounded memory.
//!
//! Why not exact times: their number is unbounded. In exchange the oldest bucket expires as a whole. Running sums
//! keep additions out of a request's path. Never reads a clock.

use super::breaker::BreakerRules;
use crate::time::Time;

/// Maximum number of buckets. An active key of a registry has one kibibyte, and a bucket takes four bytes.
pub const BUCKETS_MAX: usize = 15;

/// Answers and failures of one bucket.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    all: u16,
    failed: u16,
}

/// Failures among the recent answers.
#[derive(Clone, Debug)]
pub(crate) struct AnswerWindow {
    /// End of the current bucket.
    end: Time,
    /// Sums over all buckets.
    all: u32,
    failed: u32,
    buckets: [Tally; BUCKETS_MAX],
    /// The current bucket.
    at: u8,
}

impl AnswerWindow {
    pub(crate) const fn new() -> Self {
        Self { end: Time::ZERO, all: 0, failed: 0, buckets: [Tally { all: 0, failed: 0 }; BUCKETS_MAX], at: 0 }
    }

    /// Counts an answer.
    #[inline]
    pub(crate) fn add(&mut self, rules: &BreakerRules, failed: bool, now: Time) {
        if now >= self.end {
            self.roll(rules, now);
        }
        let bucket = &mut self.buckets[usize::from(self.at).min(BUCKETS_MAX - 1)];
        if bucket.all == u16::MAX {
            // Halving keeps the ratio.
            self.all -= u32::from(bucket.all - bucket.all / 2);
            self.failed -= u32::from(bucket.failed - bucket.failed / 2);
            *bucket = Tally { all: bucket.all / 2, failed: bucket.failed / 2 };
        }
        bucket.all += 1;
        bucket.failed += u16::from(failed);
        self.all += 1;
        self.failed += u32::from(failed);
    }

    /// Counts `answers` successes.
    pub(crate) fn add_good(&mut self, rules: &BreakerRules, answers: u16, now: Time) {
        if now >= self.end {
            self.roll(rules, now);
        }
        let bucket = &mut self.buckets[usize::from(self.at).min(BUCKETS_MAX - 1)];
        match bucket.all.checked_add(answers) {
            Some(all) => {
                bucket.all = all;
                self.all += u32::from(answers);
            }
            None => (0..answers).for_each(|_| self.add(rules, false, now)),
        }
    }

    /// Answers and failures in the window.
    pub(crate) fn sums(&mut self, rules: &BreakerRules, now: Time) -> (u32, u32) {
        if now >= self.end {
            self.roll(rules, now);
        }
        (self.all, self.failed)
    }

    /// Starts afresh.
    pub(crate) const fn clear(&mut self) {
        *self = Self { end: self.end, ..Self::new() };
    }

    /// Moves to the bucket of `now`, and subtracts expired buckets from the sums.
    #[cold]
    fn roll(&mut self, rules: &BreakerRules, now: Time) {
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
    use crate::retry::breaker::BreakerConfig;
    use crate::time::SECOND;
    use proptest::prelude::*;
    use std::time::Duration;

    fn rules(window_s: u64, bucket_s: u64) -> BreakerRules {
        let (window, bucket) = (Duration::from_secs(window_s), Duration::from_secs(bucket_s));
        BreakerRules::new(BreakerConfig { window, bucket, ..BreakerConfig::default() })
    }

    fn at(seconds: u64) -> Time {
        Time::from_nanos(seconds * SECOND)
    }

    #[test]
    fn the_error_rate_counts_what_is_in_the_window_and_nothing_older() {
        let rules = rules(30, 2);
        let mut window = AnswerWindow::new();
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
        let mut window = AnswerWindow::new();
        (0..200_000).for_each(|n| window.add(&rules, n % 4 == 0, at(100)));
        let (all, failed) = window.sums(&rules, at(100));
        let share = f64::from(failed) / f64::from(all);
        assert!((share - 0.25).abs() < 0.01, "{share}");
    }

    proptest! {
        #[test]
        fn sums_are_those_of_a_window_that_is_counted_by_hand(
            steps in prop::collection::vec((0_u64..7, any::<bool>()), 1..200), buckets in 1_u64..=15,
        ) {
            let rules = rules(buckets, 1);
            let mut window = AnswerWindow::new();
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
