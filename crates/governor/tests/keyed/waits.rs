//! When a request may go out: buckets, gates, and strategies.

use crate::desk::{Desk, every, fixed, never_opens, seconds, with};
use gleaner_governor::keyed::{Feedback, RegistryConfig};
use gleaner_governor::{Admission, Advice, Aimd, PERMIT_LIFE, Strategy, Time, WaitReason};
use proptest::prelude::*;
use std::time::Duration;

#[test]
fn a_burst_goes_out_at_once_and_then_one_per_interval() {
    let mut desk = Desk::new(with(fixed(10.0), |key| key.burst = 3.0));
    let permits: Vec<_> = (0..3).map(|_| desk.send("a.com")).collect();
    assert_eq!(desk.wait("a.com"), Duration::from_millis(100));
    assert_eq!(desk.wait("b.com"), Duration::ZERO, "another host has its own bucket");
    desk.pass_ms(100);
    assert_eq!(desk.wait("a.com"), Duration::ZERO);
    desk.pass(seconds(3600));
    for permit in permits {
        desk.answer("a.com", permit, &Feedback::status(200, None));
    }
    (0..3).for_each(|_| desk.registry.abandon(&desk.handle("a.com"), desk.send("a.com"), desk.now));
    assert_eq!(desk.wait("a.com"), Duration::from_millis(100), "an hour buys no more than the burst");
}

#[test]
fn aimd_goes_up_by_steps_on_fast_successes_and_down_by_a_factor_on_throttles() {
    let mut desk = Desk::new(with(RegistryConfig::aimd(), |key| key.discovery_interval = every(2.0)));
    for _ in 0..10 {
        desk.exchange("a.com", 200, 50);
    }
    assert!((desk.key("a.com").rate_per_s - 3.0).abs() < 1e-6);
    desk.exchange("a.com", 429, 50);
    assert!((desk.key("a.com").rate_per_s - 1.5).abs() < 1e-6);
    desk.exchange("a.com", 503, 50);
    assert!((desk.key("a.com").rate_per_s - 0.75).abs() < 1e-6);
    desk.exchange("a.com", 200, 1500);
    assert!((desk.key("a.com").rate_per_s - 0.375).abs() < 1e-6, "late");
    desk.exchange("a.com", 404, 50);
    assert!((desk.key("a.com").rate_per_s - 0.375).abs() < 1e-6);
}

#[test]
fn a_retry_after_closes_the_key_for_everyone_until_then_and_takes_the_longest() {
    for strategy in [Strategy::Gleaner, Strategy::Aimd(Aimd::default()), Strategy::Fixed] {
        let mut desk = Desk::new(with(RegistryConfig::aimd(), |key| key.strategy = strategy));
        let permit = desk.send("a.com");
        let throttled = Feedback::status(429, Some(seconds(30)));
        let Advice::RetryAt(at) = desk.answer("a.com", permit, &throttled) else { panic!("no retry") };
        assert_eq!(at.since(desk.now), seconds(30), "{strategy:?}");
        assert_eq!(desk.wait("a.com"), seconds(30), "{strategy:?}");
        assert_eq!(desk.key("a.com").opens_in, seconds(30), "{strategy:?}");
        assert_eq!(desk.wait("b.com"), Duration::ZERO, "{strategy:?}");
        desk.pass(seconds(29));
        assert!(desk.wait("a.com") >= seconds(1), "{strategy:?}");
        desk.pass(seconds(1));
        assert_eq!(desk.wait("a.com"), Duration::ZERO, "{strategy:?}");
    }
}

proptest! {
    #[test]
    fn the_gate_ends_as_told_and_the_next_send_is_the_later_of_gate_and_pace(
        kind in 0_usize..3, waits_ms in prop::collection::vec((1_u64..60_000, 0_usize..4, 0_u64..300), 1..30),
    ) {
        let strategy = [Strategy::Gleaner, Strategy::Aimd(Aimd::default()), Strategy::Fixed][kind];
        let change = |key: &mut gleaner_governor::Config| (key.strategy, key.breaker) = (strategy, never_opens());
        let mut desk = Desk::new(with(RegistryConfig::aimd(), change));
        for (wait_ms, status, latency_ms) in waits_ms {
            let wait = Duration::from_millis(wait_ms);
            let status = [429, 503, 500, 200][status];
            desk.tell("a.com", &Feedback::status(status, Some(wait).filter(|_| status != 200)), latency_ms);
            if status == 200 {
                continue;
            }
            let key = desk.key("a.com");
            prop_assert_eq!(key.gate_in, wait, "{:?} {}", strategy, status);
            let due = wait.max(key.pace_in);
            let source = if wait >= key.pace_in { WaitReason::Gate } else { WaitReason::Pacing };
            if key.waits_for != Some(WaitReason::Window) {
                prop_assert_eq!((desk.wait("a.com"), key.waits_for), (due, Some(source)));
            }
        }
    }
}

#[test]
fn a_directive_that_proved_too_short_lowers_the_pace_and_not_the_gate() {
    let mut desk = Desk::new(RegistryConfig::default());
    let two = seconds(2);
    let mut seen = Vec::new();
    for _ in 0..4 {
        desk.tell("a.com", &Feedback::status(429, Some(two)), 5);
        let key = desk.key("a.com");
        let wait = desk.wait("a.com").as_secs_f64().round();
        seen.push((key.gate_in, key.waits_for, wait, key.retry_after_too_short));
    }
    let (gate, pace) = (Some(WaitReason::Gate), Some(WaitReason::Pacing));
    let expected = [(two, gate, 2.0, false), (two, gate, 2.0, true), (two, pace, 4.0, true), (two, pace, 8.0, true)];
    assert_eq!(seen, expected);
}

/// A key of the law that is at its ceiling, so that ordinary requests take the short way.
fn busy() -> Desk {
    let mut desk = Desk::new(RegistryConfig::default());
    for _ in 0..1500 {
        desk.exchange("a.com", 200, 10);
    }
    assert!(desk.key("a.com").rate_per_s > 49.9);
    // A look takes the long way, and two requests are on the short one again.
    desk.exchange("a.com", 200, 10);
    desk.exchange("a.com", 200, 10);
    desk
}

#[test]
fn a_retry_after_of_a_failure_closes_a_busy_key_too() {
    let mut desk = busy();
    desk.tell("a.com", &Feedback::status(500, Some(seconds(30))), 10);
    desk.exchange("b.com", 200, 10);
    let wait = desk.wait("a.com");
    assert!(wait > seconds(29) && wait <= seconds(30), "{wait:?}");
    desk.pass(seconds(3));
    assert!(matches!(desk.ask("a.com"), Admission::WaitUntil(_)));
}

#[test]
fn after_a_refusal_a_busy_key_is_tried_with_one_request_at_a_time() {
    let mut desk = busy();
    desk.exchange("a.com", 429, 10);
    let trial = loop {
        match desk.ask("a.com") {
            Admission::Send(permit) => break permit,
            Admission::WaitUntil(at) => desk.now = at,
            other => panic!("{other:?}"),
        }
    };
    for _ in 0..20 {
        desk.pass_ms(100);
        assert!(matches!(desk.ask("a.com"), Admission::WaitForOutcome));
    }
    desk.answer("a.com", trial, &Feedback::status(200, None));
}

#[test]
fn a_learned_window_is_kept_however_busy_the_key_is() {
    let mut desk = Desk::new(RegistryConfig::default());
    let (limit, length) = (40, 60);
    let (mut window, mut used) = (0, 0);
    let start = desk.now;
    let mut halves = [[0_u32; 2]; 2];
    while desk.now.since(start) < seconds(7200) {
        match desk.ask("a.com") {
            Admission::Send(permit) => {
                let at = desk.now.since(start).as_secs() / length;
                if at != window {
                    (window, used) = (at, 0);
                }
                used += 1;
                let told = Duration::from_secs((window + 1) * length).saturating_sub(desk.now.since(start));
                let is_refused = used > limit;
                let feedback = if is_refused { Feedback::status(429, Some(told)) } else { Feedback::status(200, None) };
                let half = usize::from(desk.now.since(start) > seconds(3600));
                halves[half][usize::from(is_refused)] += 1;
                desk.pass_ms(30).answer("a.com", permit, &feedback);
            }
            Admission::WaitUntil(at) => desk.now = at,
            Admission::Defer(deferral) => desk.now = deferral.not_before.unwrap(),
            Admission::WaitForOutcome => panic!("nothing else is in flight"),
        }
    }
    println!("first hour {:?}, second hour {:?} of {}", halves[0], halves[1], 60 * limit);
    assert!(halves[1][0] >= 60 * limit * 9 / 10, "{halves:?}");
    assert!(halves[1][1] <= 6, "{halves:?}");
}

#[test]
fn a_shorter_retry_after_does_not_shorten_a_longer_one() {
    let desk = Desk::new(with(fixed(10.0), |key| key.burst = 2.0));
    let [one, other] = [desk.send("a.com"), desk.send("a.com")];
    desk.answer("a.com", one, &Feedback::status(429, Some(seconds(30))));
    desk.answer("a.com", other, &Feedback::status(429, Some(seconds(5))));
    assert_eq!(desk.wait("a.com"), seconds(30));
}

#[test]
fn requests_in_flight_are_counted_and_given_back() {
    let desk = Desk::new(with(fixed(1000.0), |key| (key.max_concurrency, key.burst) = (2, 100.0)));
    let handle = desk.handle("a.com");
    let [one, other] = [desk.send("a.com"), desk.send("a.com")];
    assert!(matches!(desk.ask("a.com"), Admission::WaitForOutcome));
    desk.registry.abandon(&handle, one, desk.now);
    let third = desk.send("a.com");
    desk.registry.cancel(&handle, other, desk.now);
    desk.answer("a.com", third, &Feedback::status(200, None));
    assert_eq!(desk.key("a.com").in_flight, 0);
}

#[test]
fn a_permit_that_was_lost_is_given_up_and_its_late_answer_frees_nothing() {
    let mut desk = Desk::new(with(fixed(1000.0), |key| (key.max_concurrency, key.burst) = (2, 100.0)));
    let [lost, other] = [desk.send("a.com"), desk.send("a.com")];
    desk.pass(PERMIT_LIFE);
    assert!(matches!(desk.ask("a.com"), Admission::WaitForOutcome));
    desk.answer("a.com", other, &Feedback::status(200, None));
    let other = desk.send("a.com");
    desk.pass(PERMIT_LIFE);
    let third = desk.send("a.com");
    desk.answer("a.com", lost, &Feedback::status(200, None));
    assert_eq!(desk.key("a.com").in_flight, 2);
    desk.answer("a.com", other, &Feedback::status(200, None));
    desk.answer("a.com", third, &Feedback::status(200, None));
    assert_eq!(desk.key("a.com").in_flight, 0);
}

/// A provider with a bucket of its own, which a key is sent against for so long: accepted, rejected.
fn against_a_limit(desk: &mut Desk, per_s: f64, time: Duration) -> (u32, u32) {
    let (mut tokens, mut filled_at) = (10.0_f64, desk.now);
    let (end, mut counts) = (desk.now + time, (0, 0));
    while desk.now < end {
        match desk.ask("a.com") {
            Admission::Send(permit) => {
                tokens = (tokens + per_s * desk.now.since(filled_at).as_secs_f64()).min(10.0);
                filled_at = desk.now;
                let status = if tokens >= 1.0 { 200 } else { 429 };
                if status == 200 {
                    tokens -= 1.0;
                    counts.0 += 1;
                } else {
                    counts.1 += 1;
                }
                desk.pass_ms(30).answer("a.com", permit, &Feedback::status(status, None));
            }
            Admission::WaitUntil(at) => desk.now = at,
            Admission::Defer(deferral) => desk.now = deferral.not_before.unwrap(),
            Admission::WaitForOutcome => panic!("nothing else is in flight"),
        }
    }
    counts
}

#[test]
fn the_law_finds_a_limit_and_more_than_nine_tenths_succeed_once_it_is_found() {
    let mut desk = Desk::new(RegistryConfig::default());
    let (accepted, rejected) = against_a_limit(&mut desk, 10.0, seconds(300));
    println!("learning: {accepted} accepted, {rejected} rejected");
    let (accepted, rejected) = against_a_limit(&mut desk, 10.0, seconds(600));
    println!("then: {accepted} accepted of 6000, {rejected} rejected");
    assert!(accepted >= 5400, "{accepted} of 6000");
    assert!(rejected * 300 < accepted, "{rejected} rejected");
}

#[test]
fn aimd_keeps_nine_tenths_of_its_requests_successful() {
    let mut desk = Desk::new(with(RegistryConfig::aimd(), |key| key.burst = 1.0));
    against_a_limit(&mut desk, 10.0, seconds(300));
    let (accepted, rejected) = against_a_limit(&mut desk, 10.0, seconds(600));
    println!("aimd: {accepted} accepted, {rejected} rejected");
    assert!(accepted > 9 * rejected, "{accepted} {rejected}");
}

#[test]
fn telling_answers_by_the_dozen_finds_the_same_pace_as_telling_each() {
    // A key with statuses of its own never takes the short way, and otherwise the two are alike.
    let mut config = with(RegistryConfig::default(), |key| key.ceiling_interval = every(20.0));
    config.statuses.insert("b.com".into(), Default::default());
    let mut desk = Desk::new(config);
    let mut sent = [0_u32; 2];
    while desk.now < Time::ZERO + seconds(1120) {
        for (host, sent) in ["a.com", "b.com"].iter().zip(&mut sent) {
            if let Admission::Send(permit) = desk.ask(host) {
                *sent += 1;
                desk.pass_ms(1).answer(host, permit, &Feedback::status(200, None));
            }
        }
        desk.pass_ms(3);
    }
    let [a, b] = ["a.com", "b.com"].map(|host| desk.key(host));
    assert!((a.rate_per_s - b.rate_per_s).abs() < 1e-6, "{a:?} {b:?}");
    assert!(sent[0].abs_diff(sent[1]) <= sent[1] / 50, "{sent:?}");
    assert!(a.totals.granted.abs_diff(b.totals.granted) <= u64::from(sent[1]) / 50, "{a:?} {b:?}");
    assert_eq!((a.in_flight, a.error_rate), (0, 0.0));
    assert!(a.answers.abs_diff(b.answers) <= 32, "{} {}", a.answers, b.answers);
}
