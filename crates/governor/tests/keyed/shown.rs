//! Content of a snapshot.

use crate::desk::{Desk, fixed, never_opens, opens_after, seconds, with};
use gleaner_governor::keyed::{Feedback, RegistryConfig};
use gleaner_governor::{Admission, CircuitState, Jitter};
use std::time::Duration;

#[test]
fn sums_are_those_of_all_keys_also_of_those_at_rest() {
    let mut desk = Desk::new(with(fixed(100.0), |key| key.breaker = opens_after(2)));
    for n in 0..300 {
        desk.exchange(&format!("h{n}.com"), 200, 1);
    }
    desk.pass(seconds(60)).tend();
    let handle = desk.handle("slow.com");
    let late = desk.now + seconds(1);
    assert!(matches!(desk.registry.acquire(&handle, desk.now, late), Admission::Send(_)));
    desk.tell("bad.com", &Feedback::status(500, None), 1);
    desk.tell("bad.com", &Feedback::status(500, None).of_attempt(9, Jitter::from_bits(0)), 1);
    assert!(desk.is_denied("bad.com"));
    let snapshot = desk.snapshot();
    assert_eq!(snapshot.totals.granted, 303);
    assert_eq!((snapshot.totals.throttled, snapshot.totals.denied, snapshot.totals.retries), (1, 1, 1));
    assert_eq!((snapshot.circuits_open, snapshot.circuits_half_open), (1, 0));
    assert_eq!((snapshot.keys_known, snapshot.keys_active), (302, 2));
    desk.pass(seconds(60));
    let snapshot = desk.snapshot();
    assert_eq!((snapshot.circuits_open, snapshot.circuits_half_open), (0, 1));
}

#[test]
fn a_key_shows_its_rate_latencies_errors_and_gate() {
    let mut desk = Desk::new(with(fixed(10.0), |key| (key.breaker, key.burst) = (never_opens(), 5.0)));
    for latency in [100, 100, 100, 600] {
        desk.exchange("a.com", 200, latency);
    }
    desk.exchange("a.com", 500, 100);
    desk.tell("a.com", &Feedback::status(429, Some(Duration::from_millis(2500))), 100);
    let key = desk.key("a.com");
    assert!((key.rate_per_s - 10.0).abs() < 1e-9);
    assert!((4.0..=5.0).contains(&key.tokens), "{}", key.tokens);
    assert_eq!(key.opens_in, Duration::from_millis(2500));
    assert_eq!((key.answers, key.failures_in_row, key.in_flight), (5, 1, 0));
    assert!((key.error_rate - 0.2).abs() < 1e-9);
    assert_eq!(key.circuit, CircuitState::Closed);
    let mean = key.latency_mean.unwrap();
    assert!(mean > Duration::from_millis(150) && mean < Duration::from_millis(200), "{mean:?}");
    let p95 = key.latency_p95.unwrap();
    assert!(p95 > Duration::from_millis(599) && p95 <= Duration::from_millis(600), "{p95:?}");
}

#[test]
fn the_keys_that_are_used_most_come_first_and_no_more_than_asked_for() {
    let mut desk = Desk::new(fixed(1000.0));
    for n in 0..20_u32 {
        for _ in 0..=n {
            desk.exchange(&format!("h{n:02}.com"), 200, 0);
        }
    }
    let names: Vec<_> = desk.registry.snapshot(3, desk.now).keys.iter().map(|key| key.domain.to_string()).collect();
    assert_eq!(names, ["h19.com", "h18.com", "h17.com"]);
    assert!(desk.registry.snapshot(0, desk.now).keys.is_empty());
}

#[test]
fn ordinary_requests_that_went_the_short_way_are_counted() {
    let mut desk = Desk::new(RegistryConfig::default());
    for _ in 0..500 {
        desk.exchange("a.com", 200, 10);
    }
    let key = desk.key("a.com");
    assert_eq!((key.totals.granted, desk.snapshot().totals.granted), (500, 500));
    assert_eq!(key.in_flight, 0);
    assert!(key.latency_p95.unwrap().abs_diff(Duration::from_millis(10)) < Duration::from_micros(20));
}
