//! Retries: how long their pauses are, and how many there may be.

use crate::desk::{Desk, attempt, every, fixed, never_opens, seconds, with};
use gleaner_governor::keyed::{Feedback, RegistryConfig, Statuses};
use gleaner_governor::{Advice, DeferReason, Jitter, RetryBudgetConfig};
use std::time::Duration;

fn generous() -> RegistryConfig {
    with(fixed(1000.0), |key| {
        key.backoff.attempts = 100;
        key.retry_budget = None;
        key.breaker = never_opens();
    })
}

fn pause(desk: &mut Desk, feedback: &Feedback) -> Duration {
    match desk.tell("a.com", feedback, 0) {
        Advice::RetryAt(at) => at.since(desk.now),
        other => panic!("no retry: {other:?}"),
    }
}

#[test]
fn the_longest_pause_doubles_from_base_to_cap() {
    let mut desk = Desk::new(generous());
    for (number, most) in [(0, 1), (1, 2), (2, 4), (5, 32), (6, 60), (40, 60)] {
        assert_eq!(pause(&mut desk, &attempt(500, number)), seconds(most), "attempt {number}");
    }
}

#[test]
fn the_jitter_is_full_and_stays_within_its_bounds() {
    let mut desk = Desk::new(generous());
    let mut pauses: Vec<_> = (0..64_u64)
        .map(|bits| {
            let jitter = Jitter::from_bits(bits << 58);
            pause(&mut desk, &Feedback::status(502, None).of_attempt(2, jitter))
        })
        .collect();
    pauses.sort_unstable();
    assert!(pauses[0] < Duration::from_millis(100) && pauses[63] > Duration::from_millis(3900), "{pauses:?}");
    assert!(pauses.iter().all(|&pause| pause <= seconds(4)));
    assert!(pauses[32] > Duration::from_millis(1900) && pauses[32] < Duration::from_millis(2100), "{pauses:?}");
}

#[test]
fn a_told_wait_replaces_the_pause() {
    let mut desk = Desk::new(generous());
    let feedback = Feedback::status(503, Some(seconds(7))).of_attempt(3, Jitter::from_bits(u64::MAX));
    assert_eq!(pause(&mut desk, &feedback), seconds(7));
}

#[test]
fn transient_failures_are_retried_and_permanent_ones_are_not() {
    for status in [408, 429, 500, 502, 503, 504] {
        let advice = Desk::new(generous()).exchange("a.com", status, 0);
        assert!(matches!(advice, Advice::RetryAt(_)), "{status}: {advice:?}");
    }
    for status in [200, 301, 400, 401, 403, 404, 410] {
        assert_eq!(Desk::new(generous()).exchange("a.com", status, 0), Advice::Done, "{status}");
    }
    assert!(matches!(Desk::new(generous()).tell("a.com", &Feedback::lost(), 0), Advice::RetryAt(_)));
}

#[test]
fn statuses_of_one_key_can_mean_something_else() {
    let mut config = generous();
    config.statuses.insert("a.com".into(), Statuses::new(&[404, 202, 500], &[500, 503]));
    let mut desk = Desk::new(config);
    assert!(matches!(desk.exchange("a.com", 404, 0), Advice::RetryAt(_)));
    assert!(matches!(desk.exchange("a.com", 202, 0), Advice::RetryAt(_)), "not ready yet");
    assert_eq!(desk.exchange("a.com", 500, 0), Advice::Done, "what is in both lists is permanent");
    assert_eq!(desk.exchange("a.com", 503, 0), Advice::Done);
    assert_eq!(desk.key("a.com").failures_in_row, 2, "and still counts against the provider");
    assert!(matches!(desk.exchange("a.com", 502, 0), Advice::RetryAt(_)), "as usual");
    assert_eq!(desk.exchange("b.com", 404, 0), Advice::Done, "others are not concerned");
}

#[test]
fn statuses_are_heeded_on_a_busy_key_too() {
    let mut config = with(RegistryConfig::default(), |key| key.retry_budget = None);
    config.key.backoff.attempts = 9;
    config.statuses.insert("a.com".into(), Statuses::new(&[202], &[]));
    let mut desk = Desk::new(config);
    for n in 0..300 {
        let advice = desk.exchange("a.com", 202, 10);
        assert!(matches!(advice, Advice::RetryAt(_)), "{n}: {advice:?}");
    }
}

#[test]
fn a_dead_host_uses_up_its_own_retry_budget_and_no_other() {
    let config = with(generous(), |key| {
        key.retry_budget = Some(RetryBudgetConfig::default());
        key.discovery_interval = every(10.0);
    });
    let mut desk = Desk::new(config);
    let is_retry = |advice| matches!(advice, Advice::RetryAt(_));
    let retries = (0..1000).filter(|_| is_retry(desk.exchange("dead.com", 500, 0))).count();
    // A fifth of what succeeds in ten seconds at its rate.
    assert_eq!(retries, 20);
    let advice = desk.exchange("dead.com", 500, 0);
    assert!(matches!(advice, Advice::Defer(deferral) if deferral.reason == DeferReason::RetryBudget), "{advice:?}");
    assert!(is_retry(desk.exchange("alive.com", 500, 0)));
}

#[test]
fn transient_failures_cost_less_than_three_retries_on_average() {
    // A provider that fails a fifth of the time, and a caller that follows all advice.
    let mut desk = Desk::new(with(RegistryConfig::default(), |key| key.breaker = never_opens()));
    let (mut failed, mut retries, mut seed) = (0_u64, 0_u64, 1_u64);
    for _ in 0..2000 {
        let mut number = 0;
        loop {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let status = if (seed >> 33).is_multiple_of(5) { 502 } else { 200 };
            let feedback = Feedback::status(status, None).of_attempt(number, Jitter::from_bits(seed));
            match desk.tell("a.com", &feedback, 20) {
                Advice::RetryAt(at) => {
                    failed += u64::from(number == 0);
                    retries += 1;
                    number += 1;
                    desk.now = desk.now.max(at);
                }
                _ => break,
            }
        }
    }
    assert!(failed > 100, "{failed}");
    let mean = retries as f64 / failed as f64;
    println!("{mean:.2} retries per transient failure");
    assert!(mean < 3.0, "{mean}");
}
