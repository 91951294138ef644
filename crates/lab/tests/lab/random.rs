//! The generator: valid, reproducible, and with every trait of the catalogue.

use gleaner_lab::random::scenario;
use gleaner_lab::scenario::{HeaderKind, LimitKind, RetryAfterKind, Scenario};

#[test]
fn the_same_number_is_the_same_scenario() {
    assert_eq!(format!("{:?}", scenario(1, 5)), format!("{:?}", scenario(1, 5)));
    assert_ne!(format!("{:?}", scenario(1, 5)), format!("{:?}", scenario(1, 6)));
    assert_ne!(format!("{:?}", scenario(1, 5).limits), format!("{:?}", scenario(2, 5).limits));
}

#[test]
fn every_trait_of_the_catalogue_is_drawn() {
    let all: Vec<Scenario> = (0..500).map(|index| scenario(1, index)).collect();
    let share = |what: &str, holds: &dyn Fn(&Scenario) -> bool, least: usize| {
        let count = all.iter().filter(|s| holds(s)).count();
        assert!(count >= least, "{what}: {count} of 500");
    };
    use LimitKind::{Concurrency, DelayQueue, FixedWindow, SlidingWindow, Tarpit, TokenBucket};
    for kind in [TokenBucket, FixedWindow, SlidingWindow, DelayQueue, Tarpit, Concurrency] {
        share("kind", &|s| s.limits[0].kind == kind, 30);
    }
    for status in [429, 503, 403, 200] {
        share("status", &|s| s.signal.status == status, 50);
    }
    use RetryAfterKind::{Date, None, Seconds, WrongLong, WrongShort, Zero};
    for form in [None, Seconds, Date, Zero, WrongShort, WrongLong] {
        share("retry_after", &|s| s.signal.retry_after == form, 25);
    }
    for form in [HeaderKind::XRateLimit, HeaderKind::Ietf, HeaderKind::UsedLimit] {
        share("headers", &|s| s.signal.headers == form, 15);
    }
    share("one worker", &|s| s.workers == 1, 60);
    share("nested", &|s| s.limits.iter().filter(|l| l.until_s == 0.0).count() > 1, 40);
    share("one change", &|s| s.limits.iter().filter(|l| l.until_s > 0.0).count() == 1, 20);
    share("several changes", &|s| s.limits.iter().filter(|l| l.until_s > 0.0).count() > 1, 15);
    share("deep burst", &|s| s.limits[0].burst.is_some_and(|b| b >= 30.0 * s.limits[0].rate_per_s.unwrap()), 15);
    share("100 per second", &|s| s.limits[0].rate_per_s == Some(100.0), 3);
    share("one per 10 s or slower", &|s| s.limits[0].rate_per_s.is_some_and(|r| r <= 0.1), 10);
    share("rejections count", &|s| s.limits[0].count_rejected, 80);
    share("strikes", &|s| s.penalty.is_some(), 60);
    share("suspended with another status", &|s| s.penalty.as_ref().is_some_and(|p| p.status != 403), 10);
    share("noise", &|s| s.noise.server_error > 0.0, 90);
}

#[test]
fn an_unhindered_answer_is_never_twice_as_slow_as_the_base() {
    // p95 of a log-normal is the median times e^(1.645 sigma).
    assert!((0..500).all(|index| (1.645 * scenario(3, index).latency.sigma).exp() < 2.0));
}
