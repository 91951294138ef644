//! Dropping of keys: the order, and the keys that are never dropped.

use crate::desk::{Desk, domain, every, fixed, opens_after, seconds, with};
use gleaner_governor::keyed::{Feedback, RegistryConfig};
use gleaner_governor::{BreakerConfig, CircuitState, PERMIT_LIFE};
use std::time::Duration;

fn is_known(desk: &Desk, host: &str) -> bool {
    let before = desk.registry.len();
    // A key that is asked for is made; with a full registry that would push another one out.
    let _handle = desk.handle(host);
    desk.registry.len() == before
}

#[test]
fn keys_that_nobody_used_for_their_time_are_forgotten_and_others_are_not() {
    let mut desk = Desk::new(fixed(100.0));
    for n in 0..1000 {
        desk.exchange(&format!("old{n}.com"), 200, 0);
    }
    desk.pass(seconds(1800));
    for n in 0..300 {
        desk.exchange(&format!("young{n}.com"), 200, 0);
    }
    desk.exchange("old7.com", 200, 0);
    desk.pass(seconds(1801)).tend();
    assert_eq!(desk.registry.len(), 301);
    assert!(is_known(&desk, "old7.com") && is_known(&desk, "young299.com"));
    assert_eq!(desk.snapshot().keys_forgotten, 999);
    assert_eq!(desk.snapshot().totals.granted, 1301, "what they counted is kept");
}

#[test]
fn a_key_with_a_request_on_its_way_is_not_forgotten() {
    let mut desk = Desk::new(fixed(100.0));
    let permit = desk.send("a.com");
    desk.pass(seconds(36_000)).tend();
    assert_eq!(desk.registry.len(), 1);
    desk.answer("a.com", permit, &Feedback::status(200, None));
    desk.pass(seconds(7201)).tend();
    assert_eq!(desk.registry.len(), 0);
}

#[test]
fn a_key_whose_permit_was_lost_is_forgotten_in_the_end() {
    for config in [fixed(100.0), RegistryConfig::default()] {
        let mut desk = Desk::new(config);
        drop(desk.send("a.com"));
        desk.pass(PERMIT_LIFE).tend();
        assert_eq!(desk.registry.len(), 1);
        desk.pass(PERMIT_LIFE).tend();
        assert_eq!(desk.registry.len(), 0);
    }
}

#[test]
fn a_key_whose_handle_is_kept_is_not_forgotten() {
    let mut desk = Desk::new(fixed(100.0));
    let handle = desk.handle("a.com");
    desk.pass(seconds(7200)).tend();
    assert_eq!(desk.registry.len(), 1);
    drop(handle);
    desk.pass(seconds(7200)).tend();
    assert_eq!(desk.registry.len(), 0);
}

#[test]
fn a_closed_gate_and_an_open_circuit_are_never_forgotten() {
    let breaker = BreakerConfig { open_for: seconds(90_000), ..opens_after(1) };
    let config = RegistryConfig { forget_after: seconds(600), ..with(fixed(100.0), |key| key.breaker = breaker) };
    let mut desk = Desk::new(config);
    desk.tell("gate.com", &Feedback::status(429, Some(seconds(80_000))), 0);
    desk.exchange("circuit.com", 500, 0);
    for _ in 0..12 {
        desk.pass(seconds(6000)).tend();
        assert_eq!(desk.registry.len(), 2);
    }
    assert_eq!(desk.wait("gate.com"), seconds(8000), "also after it was put away");
    assert!(desk.is_denied("circuit.com"));
    assert_eq!(desk.snapshot().circuits_open, 1);
    desk.pass(seconds(100_000)).tend();
    desk.pass(seconds(700)).tend();
    assert_eq!(desk.registry.len(), 0, "what is over may go");
}

#[test]
fn one_more_than_allowed_pushes_out_the_one_that_was_idle_the_longest() {
    for shards in [1, 16] {
        let mut desk = Desk::new(RegistryConfig { keys_max: 50, shards, ..fixed(100.0) });
        for n in 0..50 {
            desk.exchange(&format!("h{n}.com"), 200, 1);
        }
        // The first twenty are used again, in another order.
        for n in (0..20).rev() {
            desk.exchange(&format!("h{n}.com"), 200, 1);
        }
        for n in 0..30 {
            desk.exchange(&format!("new{n}.com"), 200, 1);
            assert_eq!(desk.registry.len(), 50);
            let gone = 20 + n;
            let names: Vec<_> = desk.snapshot().keys.iter().map(|key| key.domain.to_string()).collect();
            assert!(!names.contains(&format!("h{gone}.com")), "{shards} shards, after new{n}: {names:?}");
            let kept = (gone + 1..50).map(|n| format!("h{n}.com"));
            assert!(kept.into_iter().all(|name| names.contains(&name)), "{shards} shards, after new{n}: {names:?}");
        }
    }
}

#[test]
fn when_everything_is_in_use_or_closed_there_is_no_room() {
    let desk = Desk::new(RegistryConfig { keys_max: 3, ..fixed(100.0) });
    let _kept = desk.handle("kept.com");
    let permit = desk.send("closed.com");
    desk.answer("closed.com", permit, &Feedback::status(429, Some(seconds(60))));
    let in_flight = (desk.handle("flying.com"), desk.send("flying.com"));
    let full = desk.registry.handle(&domain("more.com"), desk.now).unwrap_err();
    assert_eq!(full.to_string(), "key limit reached: all 3 keys are in use or closed; no room for more.com");
    desk.registry.feedback(&in_flight.0, in_flight.1, &Feedback::status(200, None), desk.now);
    drop(in_flight.0);
    assert!(desk.registry.handle(&domain("more.com"), desk.now).is_ok());
}

#[test]
fn a_key_goes_on_with_its_pace_after_it_was_put_away() {
    let mut desk = Desk::new(RegistryConfig::default());
    while desk.snapshot().keys.first().is_none_or(|key| key.rate_per_s < 8.0) {
        desk.exchange("a.com", 200, 10);
    }
    let before = desk.key("a.com").rate_per_s;
    desk.pass(seconds(60)).tend();
    assert_eq!((desk.snapshot().keys_active, desk.registry.len()), (0, 1), "at rest");
    desk.exchange("a.com", 200, 10);
    assert!((desk.key("a.com").rate_per_s - before).abs() < 1e-6);
    // Twice in a row would be faster than the pace allows.
    assert!(desk.wait("a.com") > Duration::from_millis(50));
}

#[test]
fn a_key_that_was_used_within_the_window_is_not_put_away() {
    let mut desk = Desk::new(RegistryConfig::default());
    desk.exchange("a.com", 200, 10);
    desk.pass(seconds(29)).tend();
    assert_eq!(desk.snapshot().keys_active, 1);
    desk.pass(seconds(1)).tend();
    assert_eq!(desk.snapshot().keys_active, 0);
}

#[test]
fn a_slow_key_keeps_its_distance_across_a_rest() {
    let mut desk = Desk::new(with(RegistryConfig::default(), |key| key.discovery_interval = every(0.01)));
    desk.exchange("a.com", 200, 0);
    desk.pass(seconds(60)).tend();
    assert_eq!(desk.snapshot().keys_active, 0);
    let wait = desk.wait("a.com");
    assert!(wait > seconds(39) && wait <= seconds(40), "{wait:?}");
}

#[test]
fn an_open_circuit_is_seen_although_its_key_is_at_rest() {
    let breaker = BreakerConfig { open_for: seconds(600), ..opens_after(1) };
    let mut desk = Desk::new(with(RegistryConfig::default(), |key| key.breaker = breaker));
    desk.exchange("a.com", 500, 0);
    desk.pass(seconds(100)).tend();
    let snapshot = desk.snapshot();
    assert_eq!((snapshot.circuits_open, snapshot.keys.len()), (1, 0));
    desk.pass(seconds(500));
    assert_eq!(desk.snapshot().circuits_half_open, 1);
    desk.exchange("a.com", 200, 0);
    assert_eq!(desk.key("a.com").circuit, CircuitState::HalfOpen);
    desk.exchange("a.com", 200, 0);
    assert_eq!(desk.key("a.com").circuit, CircuitState::Closed);
}
