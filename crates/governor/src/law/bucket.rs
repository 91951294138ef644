//! The strategies `aimd` and `fixed`: a token bucket whose rate may change with the answers.
//!
//! Why offer it beside the law: people know it and compare with it. A timely success adds a step; an overload or a
//! late answer multiplies by a factor, once per burst: requests in flight during a cut say nothing new. Never sleeps:
//! it returns an absolute time.

use crate::admission::permit::is_later;
use crate::config::{Aimd, Rules, Strategy};
use crate::signals::outcome::Verdict;
use crate::time::{SECOND, Time, seconds_between};

/// Rounding may leave this much of a token missing at its due time.
const ALMOST: f64 = 1e-6;
/// Weight of a new answer in the mean latency: an answer five back counts a third.
const WEIGHT: f64 = 0.2;

/// A token bucket.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    tokens: f64,
    filled_at: Time,
    per_s: f64,
    /// Nothing is sent before this time: Retry-After.
    pub(crate) gate: Time,
    /// Smoothed mean of latencies in nanoseconds; 0 before the first answer.
    latency: f64,
    /// Number of sends at the last cut.
    sent_at_cut: u32,
}

impl Bucket {
    /// A full bucket with the rate of this interval in nanoseconds.
    pub(crate) fn new(rules: &Rules, interval: u64) -> Self {
        let mut bucket = Self {
            tokens: rules.burst,
            filled_at: Time::ZERO,
            per_s: 0.0,
            gate: Time::ZERO,
            latency: 0.0,
            sent_at_cut: 0,
        };
        bucket.set(rules, rate(interval), Time::ZERO);
        bucket
    }

    pub(crate) const fn interval(&self) -> u64 {
        (SECOND as f64 / self.per_s) as u64
    }

    pub(crate) const fn per_s(&self) -> f64 {
        self.per_s
    }

    /// Tokens at `now`.
    pub(crate) fn tokens(&self, rules: &Rules, now: Time) -> f64 {
        if now <= self.filled_at {
            return self.tokens;
        }
        (self.tokens + seconds_between(self.filled_at, now) * self.per_s).min(rules.burst)
    }

    fn fill(&mut self, rules: &Rules, now: Time) {
        self.tokens = self.tokens(rules, now);
        self.filled_at = self.filled_at.max(now);
    }

    /// When a whole token is available; zero when it is already.
    pub(crate) fn token_at(&self, rules: &Rules, now: Time) -> Time {
        let missing = 1.0 - self.tokens(rules, now);
        if missing <= ALMOST {
            return Time::ZERO;
        }
        // `filled_at` is later than `now` only when a clock went backwards.
        self.filled_at.max(now).plus((missing / self.per_s * SECOND as f64).ceil() as u64)
    }

    /// The same for an idle key, whose sends are counted from zero.
    pub(crate) fn at_rest(&self) -> Self {
        Self { sent_at_cut: 0, ..self.clone() }
    }

    /// Takes a token.
    pub(crate) fn on_send(&mut self, rules: &Rules, now: Time) {
        self.fill(rules, now);
        self.tokens -= 1.0;
    }

    /// Takes back a send that was never made.
    pub(crate) fn refund(&mut self, rules: &Rules) {
        self.tokens = (self.tokens + 1.0).min(rules.burst);
    }

    /// Applies the answer to send number `seq` of `sent`, which took `latency` nanoseconds; true for the first
    /// throttle of a burst.
    pub(crate) fn on_answer(
        &mut self,
        rules: &Rules,
        verdict: Verdict,
        latency: u64,
        (seq, sent): (u32, u32),
        now: Time,
    ) -> bool {
        let is_overload = matches!(verdict, Verdict::Throttled | Verdict::ServerError | Verdict::Banned);
        let is_late = match rules.strategy {
            Strategy::Aimd(aimd) if verdict == Verdict::Success => self.on_success(rules, &aimd, latency as f64, now),
            _ => false,
        };
        if verdict != Verdict::Network {
            self.see(latency as f64);
        }
        let is_first = (is_overload || is_late) && is_later(seq, self.sent_at_cut);
        if is_first {
            self.sent_at_cut = sent;
            if let Strategy::Aimd(aimd) = rules.strategy {
                self.set(rules, self.per_s * aimd.decrease_factor, now);
            }
        }
        is_first
    }

    /// A timely success adds a step; true for a late one. Timely is the mean so far, within the target and
    /// `late_factor` times the target.
    fn on_success(&mut self, rules: &Rules, aimd: &Aimd, latency: f64, now: Time) -> bool {
        let expected = aimd.latency_target.as_nanos() as f64;
        let target = self.latency.clamp(expected, expected * aimd.late_factor);
        if latency <= target {
            self.set(rules, self.per_s + aimd.increase_per_s, now);
        }
        latency >= target * aimd.late_factor
    }

    fn see(&mut self, latency: f64) {
        let weight = if self.latency > 0.0 { WEIGHT } else { 1.0 };
        self.latency += (latency - self.latency) * weight;
    }

    /// Fills the bucket at the old rate first.
    fn set(&mut self, rules: &Rules, per_s: f64, now: Time) {
        self.fill(rules, now);
        self.per_s = per_s.clamp(rate(rules.slowest), rate(rules.fastest));
    }
}

/// Requests per second at this interval in nanoseconds.
const fn rate(interval: u64) -> f64 {
    SECOND as f64 / interval as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::time::MILLISECOND;
    use std::time::Duration;

    /// A bucket, its rules, and the sends so far.
    struct Bench {
        rules: Rules,
        bucket: Bucket,
        sent: u32,
    }

    impl Bench {
        fn due(&self, now: Time) -> Time {
            self.bucket.token_at(&self.rules, now)
        }

        fn send(&mut self, now: Time) -> u32 {
            self.bucket.on_send(&self.rules, now);
            self.sent += 1;
            self.sent
        }

        fn answer(&mut self, verdict: Verdict, latency_ms: u64, seq: u32) -> bool {
            self.bucket.on_answer(&self.rules, verdict, latency_ms * MILLISECOND, (seq, self.sent), at(0))
        }

        fn is_at(&self, per_s: f64) -> bool {
            (self.bucket.per_s() - per_s).abs() < 1e-9
        }
    }

    fn at(millis: u64) -> Time {
        Time::from_nanos(100 * SECOND + millis * MILLISECOND)
    }

    fn bench(strategy: Strategy) -> Bench {
        let discovery_interval = Duration::from_millis(100);
        let rules = Rules::new(&Config { strategy, discovery_interval, burst: 3.0, ..Config::aimd() });
        Bench { bucket: Bucket::new(&rules, rules.discovery), rules, sent: 0 }
    }

    #[test]
    fn a_bucket_refills_up_to_its_capacity_and_says_when_the_next_token_is_there() {
        let mut bench = bench(Strategy::Fixed);
        for _ in 0..3 {
            assert!(bench.due(at(0)) <= at(0));
            bench.send(at(0));
        }
        assert_eq!(bench.due(at(0)), at(100));
        assert_eq!(bench.due(at(40)), at(100), "asking costs nothing");
        assert!(bench.due(at(100)) <= at(100));
        bench.send(at(100));
        let tokens = |bench: &Bench, millis| bench.bucket.tokens(&bench.rules, at(millis));
        assert!(tokens(&bench, 100).abs() < 1e-6);
        assert!((tokens(&bench, 250) - 1.5).abs() < 1e-6);
        assert!((tokens(&bench, 60_000) - 3.0).abs() < 1e-6, "no more than the burst");
        bench.bucket.refund(&bench.rules);
        assert!((tokens(&bench, 100) - 1.0).abs() < 1e-6);
    }

    #[test]
    fn a_fast_success_adds_a_step_and_an_overload_halves_once_per_burst() {
        let mut bench = bench(Strategy::Aimd(Aimd::default()));
        let [first, second, third] = [(); 3].map(|()| bench.send(at(0)));
        bench.answer(Verdict::Success, 100, first);
        assert!(bench.is_at(10.1));
        assert!(bench.answer(Verdict::Throttled, 100, second));
        assert!(bench.is_at(5.05));
        assert!(!bench.answer(Verdict::Throttled, 100, third), "an echo");
        assert!(bench.is_at(5.05));
        let fourth = bench.send(at(0));
        assert!(bench.answer(Verdict::ServerError, 100, fourth));
        assert!(bench.is_at(2.525));
        let fifth = bench.send(at(0));
        bench.answer(Verdict::Permanent, 100, fifth);
        assert!(bench.is_at(2.525), "a 404 says nothing");
    }

    #[test]
    fn a_late_success_cuts_and_one_in_between_changes_nothing() {
        let mut bench = bench(Strategy::Aimd(Aimd::default()));
        let send = bench.send(at(0));
        bench.answer(Verdict::Success, 700, send);
        assert!(bench.is_at(10.0));
        bench.answer(Verdict::Success, 1400, send);
        assert!(bench.is_at(5.0));
        let send = bench.send(at(0));
        bench.answer(Verdict::Success, 800, send);
        assert!(bench.is_at(5.1), "this provider is always slow");
    }

    #[test]
    fn the_rate_stays_between_floor_and_ceiling() {
        let mut bench = bench(Strategy::Aimd(Aimd { increase_per_s: 30.0, ..Aimd::default() }));
        for (verdict, per_s) in [(Verdict::Success, 50.0), (Verdict::Throttled, 0.1)] {
            for _ in 0..100 {
                let send = bench.send(at(0));
                bench.answer(verdict, 100, send);
            }
            assert!(bench.is_at(per_s));
        }
    }
}
