//! The strategies `aimd` and `fixed`: a token bucket whose rate answers may move.
//!
//! Why offer it beside the law: it is what people know, and what they compare with. A success in time adds a
//! step, an overload or a late answer multiplies by a factor, once per burst: what was in flight when the
//! rate was cut says nothing new. Never sleeps; it answers with an absolute time.

use super::config::{Aimd, Rules, Strategy};
use crate::time::{SECOND, Time, seconds_between};

/// Floating point may leave this much of a token missing when its time has come.
const ALMOST: f64 = 1e-6;

/// What an answer says about the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sign {
    /// It succeeded, after so many nanoseconds.
    Success(u64),
    /// 429 or 5xx.
    Overload,
    /// Nothing.
    None,
}

/// A token bucket.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    tokens: f64,
    filled_at: Time,
    per_s: f64,
    /// Nothing is sent before: Retry-After.
    pub(crate) gate: Time,
    sent: u32,
    /// Sends so far at the last cut.
    sent_at_cut: u32,
}

impl Bucket {
    /// A full bucket.
    pub(crate) fn new(rules: &Rules, per_s: f64) -> Self {
        Self {
            tokens: rules.config.burst,
            filled_at: Time::ZERO,
            per_s: per_s.clamp(rules.config.min_per_s, rules.config.max_per_s),
            gate: Time::ZERO,
            sent: 0,
            sent_at_cut: 0,
        }
    }

    pub(crate) const fn per_s(&self) -> f64 {
        self.per_s
    }

    /// What is in it at `now`.
    pub(crate) fn tokens(&self, rules: &Rules, now: Time) -> f64 {
        if now <= self.filled_at {
            return self.tokens;
        }
        (self.tokens + seconds_between(self.filled_at, now) * self.per_s).min(rules.config.burst)
    }

    fn fill(&mut self, rules: &Rules, now: Time) {
        self.tokens = self.tokens(rules, now);
        self.filled_at = self.filled_at.max(now);
    }

    /// When the next send is due: at once, or when there is a whole token and the gate is open.
    pub(crate) fn due(&mut self, rules: &Rules, now: Time) -> Time {
        self.fill(rules, now);
        self.gate.max(self.token_at(rules, now))
    }

    /// When there is a whole token; zero when there is one.
    pub(crate) fn token_at(&self, rules: &Rules, now: Time) -> Time {
        let missing = 1.0 - self.tokens(rules, now);
        if missing <= ALMOST {
            return Time::ZERO;
        }
        // `filled_at` is later than `now` only when somebody's clock went backwards.
        self.filled_at.max(now).plus((missing / self.per_s * SECOND as f64).ceil() as u64)
    }

    /// Takes a token; returns the number of the send.
    pub(crate) fn on_send(&mut self) -> u32 {
        self.tokens -= 1.0;
        self.sent = self.sent.wrapping_add(1);
        self.sent
    }

    /// Takes back a send that was never made.
    pub(crate) fn refund(&mut self, rules: &Rules) {
        self.tokens = (self.tokens + 1.0).min(rules.config.burst);
    }

    /// Takes in an answer to the send number `seq`; true when it is the first of its burst to say "too fast".
    pub(crate) fn on_answer(&mut self, rules: &Rules, sign: Sign, seq: u32, mean: Option<u64>, now: Time) -> bool {
        let Strategy::Aimd(aimd) = rules.config.strategy else { return self.is_first(sign == Sign::Overload, seq) };
        let is_late = match sign {
            Sign::Success(latency) => {
                let target = target(&aimd, mean);
                if latency as f64 <= target {
                    self.set(rules, self.per_s + aimd.increase_per_s, now);
                }
                latency as f64 >= target * aimd.late_factor
            }
            Sign::Overload => true,
            Sign::None => false,
        };
        let is_first = self.is_first(is_late, seq);
        if is_first {
            self.set(rules, self.per_s * aimd.decrease_factor, now);
        }
        is_first
    }

    /// Whether this bad sign is no echo; the next ones are.
    const fn is_first(&mut self, is_bad: bool, seq: u32) -> bool {
        let is_first = is_bad && self.is_after_cut(seq);
        if is_first {
            self.sent_at_cut = self.sent;
        }
        is_first
    }

    /// What is in the bucket was filled at the old rate.
    fn set(&mut self, rules: &Rules, per_s: f64, now: Time) {
        self.fill(rules, now);
        self.per_s = per_s.clamp(rules.config.min_per_s, rules.config.max_per_s);
    }

    const fn is_after_cut(&self, seq: u32) -> bool {
        let later = seq.wrapping_sub(self.sent_at_cut);
        later > 0 && later <= u32::MAX / 2
    }
}

/// What counts as in time: the mean so far, no less than what was expected and no more than what is late.
fn target(aimd: &Aimd, mean: Option<u64>) -> f64 {
    let expected = aimd.latency_target.as_nanos() as f64;
    mean.map_or(expected, |mean| (mean as f64).clamp(expected, expected * aimd.late_factor))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyed::Config;
    use crate::time::MILLISECOND;

    const FAST: Sign = Sign::Success(100 * MILLISECOND);

    fn at(millis: u64) -> Time {
        Time::from_nanos(100 * SECOND + millis * MILLISECOND)
    }

    fn rules(strategy: Strategy) -> Rules {
        Rules::new(Config { strategy, initial_per_s: 10.0, burst: 3.0, ..Config::aimd() }).unwrap()
    }

    fn bucket(rules: &Rules) -> Bucket {
        Bucket::new(rules, rules.config.initial_per_s)
    }

    #[test]
    fn a_bucket_refills_up_to_its_capacity_and_says_when_the_next_token_is_there() {
        let rules = rules(Strategy::Fixed);
        let mut bucket = bucket(&rules);
        for _ in 0..3 {
            assert!(bucket.due(&rules, at(0)) <= at(0));
            bucket.on_send();
        }
        assert_eq!(bucket.due(&rules, at(0)), at(100));
        assert_eq!(bucket.due(&rules, at(40)), at(100), "asking costs nothing");
        assert!(bucket.due(&rules, at(100)) <= at(100));
        bucket.on_send();
        assert!(bucket.tokens(&rules, at(100)).abs() < 1e-6);
        assert!((bucket.tokens(&rules, at(250)) - 1.5).abs() < 1e-6);
        assert!((bucket.tokens(&rules, at(60_000)) - 3.0).abs() < 1e-6, "no more than the burst");
        bucket.refund(&rules);
        assert!((bucket.tokens(&rules, at(100)) - 1.0).abs() < 1e-6);
    }

    #[test]
    fn a_fast_success_adds_a_step_and_an_overload_halves_once_per_burst() {
        let rules = rules(Strategy::Aimd(Aimd::default()));
        let mut bucket = bucket(&rules);
        let [first, second, third] = [bucket.on_send(), bucket.on_send(), bucket.on_send()];
        bucket.on_answer(&rules, FAST, first, None, at(0));
        assert!((bucket.per_s() - 10.1).abs() < 1e-9);
        assert!(bucket.on_answer(&rules, Sign::Overload, second, None, at(0)));
        assert!((bucket.per_s() - 5.05).abs() < 1e-9);
        assert!(!bucket.on_answer(&rules, Sign::Overload, third, None, at(0)), "an echo");
        assert!((bucket.per_s() - 5.05).abs() < 1e-9);
        let fourth = bucket.on_send();
        assert!(bucket.on_answer(&rules, Sign::Overload, fourth, None, at(0)));
        assert!((bucket.per_s() - 2.525).abs() < 1e-9);
        let fifth = bucket.on_send();
        bucket.on_answer(&rules, Sign::None, fifth, None, at(0));
        assert!((bucket.per_s() - 2.525).abs() < 1e-9, "a 404 says nothing");
    }

    #[test]
    fn a_late_success_cuts_and_one_in_between_changes_nothing() {
        let rules = rules(Strategy::Aimd(Aimd::default()));
        let mut bucket = bucket(&rules);
        let send = bucket.on_send();
        bucket.on_answer(&rules, Sign::Success(700 * MILLISECOND), send, None, at(0));
        assert!((bucket.per_s() - 10.0).abs() < 1e-9);
        bucket.on_answer(&rules, Sign::Success(1000 * MILLISECOND), send, None, at(0));
        assert!((bucket.per_s() - 5.0).abs() < 1e-9);
        let send = bucket.on_send();
        let slow = Some(800 * MILLISECOND);
        bucket.on_answer(&rules, Sign::Success(700 * MILLISECOND), send, slow, at(0));
        assert!((bucket.per_s() - 5.1).abs() < 1e-9, "this provider is always slow");
    }

    #[test]
    fn the_rate_stays_between_floor_and_ceiling() {
        let rules = rules(Strategy::Aimd(Aimd { increase_per_s: 30.0, ..Aimd::default() }));
        let mut bucket = bucket(&rules);
        for _ in 0..100 {
            let send = bucket.on_send();
            bucket.on_answer(&rules, FAST, send, None, at(0));
        }
        assert!((bucket.per_s() - 50.0).abs() < 1e-9);
        for _ in 0..100 {
            let send = bucket.on_send();
            bucket.on_answer(&rules, Sign::Overload, send, None, at(0));
        }
        assert!((bucket.per_s() - 0.1).abs() < 1e-9);
    }
}
