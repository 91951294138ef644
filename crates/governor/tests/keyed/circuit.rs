//! The circuit of one key: what opens it, what closes it, and what does neither.

use crate::desk::{Desk, every, fixed, opens_after, seconds, with};
use gleaner_governor::keyed::{Feedback, RegistryConfig};
use gleaner_governor::{Admission, Advice, BreakerConfig, CircuitState, DeferReason, Jitter};
use std::time::Duration;

fn desk() -> Desk {
    Desk::new(with(fixed(100.0), |key| key.breaker = opens_after(3)))
}

fn fail(desk: &mut Desk, times: usize) {
    for _ in 0..times {
        desk.exchange("a.com", 500, 10);
    }
}

#[test]
fn failures_in_a_row_open_the_circuit_and_nobody_gets_through() {
    let mut desk = desk();
    fail(&mut desk, 2);
    assert_eq!(desk.key("a.com").circuit, CircuitState::Closed);
    fail(&mut desk, 1);
    assert_eq!(desk.key("a.com").circuit, CircuitState::Open);
    let until = desk.denied_until("a.com").expect("open");
    assert_eq!(until.since(desk.now), seconds(60));
    assert_eq!(desk.snapshot().totals.denied, 1);
    desk.exchange("b.com", 200, 10);
}

#[test]
fn the_failure_that_opens_it_is_not_retried_before_it_may_close() {
    let mut desk = desk();
    assert!(matches!(desk.exchange("a.com", 500, 10), Advice::RetryAt(_)));
    fail(&mut desk, 1);
    let Advice::Defer(deferral) = desk.exchange("a.com", 500, 10) else { panic!("retried") };
    assert_eq!(deferral.reason, DeferReason::CircuitOpen);
    assert_eq!(deferral.not_before, Some(desk.now + seconds(60)));
}

#[test]
fn a_success_in_between_starts_the_row_anew() {
    let mut desk = desk();
    fail(&mut desk, 2);
    desk.exchange("a.com", 200, 10);
    fail(&mut desk, 2);
    assert_eq!(desk.key("a.com").circuit, CircuitState::Closed);
}

#[test]
fn after_its_time_one_probe_at_a_time_is_let_through_and_two_successes_close_it() {
    let mut desk = desk();
    fail(&mut desk, 3);
    desk.pass(seconds(59));
    assert!(desk.is_denied("a.com"));
    desk.pass(seconds(1));
    assert_eq!(desk.key("a.com").circuit, CircuitState::HalfOpen);
    let probe = desk.send("a.com");
    assert!(matches!(desk.ask("a.com"), Admission::WaitForOutcome), "one at a time");
    desk.answer("a.com", probe, &Feedback::status(200, None));
    assert_eq!(desk.key("a.com").circuit, CircuitState::HalfOpen);
    desk.exchange("a.com", 200, 10);
    assert_eq!(desk.key("a.com").circuit, CircuitState::Closed);
    assert_eq!(desk.key("a.com").failures_in_row, 0);
}

#[test]
fn a_failed_probe_opens_it_again_for_twice_as_long_up_to_64_times() {
    let mut desk = desk();
    fail(&mut desk, 3);
    let mut open_for = 60;
    for _ in 0..8 {
        desk.pass(seconds(open_for));
        fail(&mut desk, 1);
        open_for = (open_for * 2).min(60 * 64);
        let until = desk.denied_until("a.com").expect("open");
        assert_eq!(until.since(desk.now), seconds(open_for));
    }
}

#[test]
fn a_probe_that_is_given_up_makes_room_for_another() {
    let mut desk = desk();
    fail(&mut desk, 3);
    desk.pass(seconds(60));
    let probe = desk.send("a.com");
    desk.registry.abandon(&desk.handle("a.com"), probe, desk.now);
    let probe = desk.send("a.com");
    desk.registry.cancel(&desk.handle("a.com"), probe, desk.now);
    desk.exchange("a.com", 200, 10);
}

#[test]
fn answers_to_what_was_sent_before_the_circuit_changed_do_not_count() {
    let mut desk = desk();
    let early: Vec<_> = (0..6).map(|_| desk.send("a.com")).collect();
    fail(&mut desk, 3);
    desk.pass(seconds(60));
    let probe = desk.send("a.com");
    for (permit, status) in early.into_iter().zip([200, 200, 200, 500, 500, 500]) {
        desk.answer("a.com", permit, &Feedback::status(status, None));
        let circuit = desk.key("a.com").circuit;
        assert_eq!(circuit, CircuitState::HalfOpen, "{status} from before neither closes nor opens it");
        assert!(matches!(desk.ask("a.com"), Admission::WaitForOutcome), "the probe is still out");
    }
    desk.answer("a.com", probe, &Feedback::status(500, None));
    assert!(desk.is_denied("a.com"));
}

#[test]
fn a_share_of_failures_opens_it_once_there_are_enough_answers() {
    let breaker = BreakerConfig { consecutive_failures: 0, throughput_min: 10, ..BreakerConfig::default() };
    let mut desk = Desk::new(with(fixed(100.0), |key| key.breaker = breaker));
    for n in 0..9 {
        desk.exchange("a.com", if n % 2 == 0 { 500 } else { 200 }, 10);
    }
    assert_eq!(desk.key("a.com").circuit, CircuitState::Closed, "nine are not enough");
    desk.exchange("a.com", 500, 10);
    assert_eq!(desk.key("a.com").circuit, CircuitState::Open);
}

#[test]
fn a_retry_after_never_opens_it_nor_does_a_404() {
    let mut desk = desk();
    for _ in 0..20 {
        desk.tell("a.com", &Feedback::status(429, Some(Duration::from_millis(50))), 10);
        desk.exchange("a.com", 404, 10);
    }
    assert_eq!(desk.key("a.com").circuit, CircuitState::Closed);
}

#[test]
fn lost_connections_open_it_too() {
    let mut desk = desk();
    for _ in 0..3 {
        desk.tell("a.com", &Feedback::lost().of_attempt(9, Jitter::from_bits(0)), 10);
    }
    assert!(desk.is_denied("a.com"));
}

/// A key of the strategy that ships, which has been sending at `per_s` for a while.
fn under_way(per_s: f64) -> Desk {
    let mut desk = Desk::new(with(RegistryConfig::default(), |key| {
        key.ceiling_interval = every(per_s);
        key.discovery_interval = key.discovery_interval.max(key.ceiling_interval);
    }));
    while desk.now < gleaner_governor::Time::ZERO + seconds(1200) {
        desk.exchange("a.com", 200, 20);
    }
    assert!(desk.key("a.com").rate_per_s > 0.99 * per_s);
    desk
}

#[test]
fn at_five_per_second_and_more_an_overload_opens_it_within_five_seconds_and_it_closes_by_itself() {
    for per_s in [5.0, 10.0, 50.0] {
        let mut desk = under_way(per_s);
        let start = desk.now;
        while !desk.is_denied("a.com") {
            desk.exchange("a.com", 500, 20);
        }
        assert!(desk.now.since(start) < seconds(5), "{per_s}: {:?}", desk.now.since(start));
        desk.pass(seconds(60));
        desk.exchange("a.com", 200, 20);
        desk.exchange("a.com", 200, 20);
        assert_eq!(desk.key("a.com").circuit, CircuitState::Closed);
    }
}

#[test]
fn below_five_per_second_five_failures_open_it() {
    for per_s in [4.9, 1.0, 0.1] {
        let mut desk = under_way(per_s);
        fail(&mut desk, 4);
        assert_eq!(desk.key("a.com").circuit, CircuitState::Closed, "{per_s}");
        fail(&mut desk, 1);
        assert_eq!(desk.key("a.com").circuit, CircuitState::Open, "{per_s}");
    }
}
