//! The circuit: R11, what counts, and the evidence of every change.

use crate::harness::{Hand, Plan, Step, Trace};
use crate::plans;
use gleaner_governor::{
    Admission, BreakerConfig, CircuitReason, CircuitState, CircuitTransition, CircuitTrigger, Config, DeferReason,
    Outcome, RetryBudgetConfig, Time, Verdict, network_error,
};
use proptest::prelude::*;
use std::time::Duration;

fn breaker() -> impl Strategy<Value = BreakerConfig> {
    (1_u64..100, 1_u16..20, 1_u8..=100, 0_u16..20, 1_u64..200, 1_u8..4, 1_u8..4).prop_map(
        |(window, throughput_min, failure_percent, consecutive_failures, open_for, probes, successes_to_close)| {
            BreakerConfig {
                window: Duration::from_secs(window),
                bucket: Duration::from_secs(2),
                throughput_min,
                failure_percent,
                consecutive_failures,
                open_for: Duration::from_secs(open_for),
                probes,
                successes_to_close,
            }
        },
    )
}

prop_compose! {
    fn faulty()(plan in plans::plan(), breaker in breaker(), noise in 20_u64..=100) -> Plan {
        let mut plan = plan;
        plan.config.breaker = breaker;
        plan.provider.noise = noise;
        plan
    }
}

/// State of the circuit after each event, as its evidence tells it.
fn states(trace: &Trace) -> Vec<CircuitState> {
    let mut state = CircuitState::Closed;
    let mut told = |transition: Option<CircuitTransition>| {
        state = transition.map_or(state, |transition| transition.state);
        state
    };
    trace.events.iter().map(|event| told(event.transition)).collect()
}

fn counts_as_failure(outcome: Outcome) -> bool {
    match outcome.verdict {
        Verdict::ServerError | Verdict::Network => true,
        Verdict::Throttled => outcome.retry_after.is_none_or(|wait| wait.is_zero()),
        _ => false,
    }
}

proptest! {
    #[test]
    fn r11_nothing_is_sent_while_the_circuit_is_open(plan in faulty()) {
        let trace = plan.run();
        let states = states(&trace);
        let mut opened: Option<Time> = None;
        for (event, state) in trace.events.iter().zip(states) {
            if let Some(transition) = event.transition {
                opened = (transition.state == CircuitState::Open).then_some(event.at);
            }
            let open_until = opened.map(|at| at + plan.config.breaker.open_for);
            if let Step::Sent { .. } | Step::Cancelled = event.step {
                prop_assert!(state != CircuitState::Open, "sent at {:?}", event.at);
            }
            if event.is_poll() && open_until.is_some_and(|until| event.at < until) {
                prop_assert!(matches!(event.step, Step::Deferred(_)), "{event:?}");
            }
        }
    }

    #[test]
    fn r11_half_open_lets_out_no_more_than_its_probes(plan in faulty()) {
        let trace = plan.run();
        let states = states(&trace);
        let (mut half_open_since, mut out) = (None, Vec::new());
        for (event, state) in trace.events.iter().zip(states) {
            if event.transition.is_some() {
                half_open_since = (state == CircuitState::HalfOpen).then_some(event.at);
                out.clear();
            }
            match event.step {
                Step::Sent { .. } if half_open_since.is_some() => out.push(event.at),
                Step::Answered { sent_at, .. } => {
                    let probe = out.iter().position(|&at| at == sent_at);
                    probe.map(|index| out.swap_remove(index));
                }
                _ => {}
            }
            prop_assert!(out.len() <= usize::from(plan.config.breaker.probes), "{} probes", out.len());
        }
    }

    #[test]
    fn r11_no_circuit_opens_below_the_minimum_throughput(plan in faulty()) {
        let mut observed = 0_u32;
        for event in plan.run().events {
            if let Step::Answered { outcome, .. } = event.step {
                observed += u32::from(outcome.verdict == Verdict::Success || counts_as_failure(outcome));
            }
            if let Some(transition) = event.transition {
                if transition.previous == CircuitState::Closed {
                    prop_assert!(observed >= u32::from(plan.config.breaker.throughput_min), "opened after {observed}");
                }
                observed = 0;
            }
        }
    }

    #[test]
    fn r11_every_change_is_in_the_evidence_and_follows_from_the_one_before(plan in faulty()) {
        let mut state = CircuitState::Closed;
        let trace = plan.run();
        for (index, event) in trace.events.iter().enumerate() {
            if let Step::Deferred(deferral) = event.step && deferral.reason == DeferReason::CircuitOpen {
                prop_assert_eq!(state, CircuitState::Open, "refused without evidence");
            }
            let Some(transition) = event.transition else { continue };
            let CircuitTransition { previous, state: next, trigger, reason, request_count, .. } = transition;
            prop_assert_eq!(previous, state);
            let fits = match (previous, next) {
                (CircuitState::Open, CircuitState::HalfOpen) => {
                    (trigger, reason) == (CircuitTrigger::BeforeRequest, CircuitReason::ResetTimeout)
                }
                (CircuitState::HalfOpen, CircuitState::Closed) => {
                    (trigger, reason) == (CircuitTrigger::Success, CircuitReason::Success)
                }
                (CircuitState::Closed | CircuitState::HalfOpen, CircuitState::Open) => {
                    let failure = (CircuitTrigger::ProviderFailure, CircuitReason::ProviderFailure);
                    let throttle = (CircuitTrigger::ProviderThrottle, CircuitReason::ProviderThrottle);
                    (trigger, reason) == failure || (trigger, reason) == throttle
                }
                _ => false,
            };
            prop_assert!(fits, "{transition:?}");
            let sends = trace.events[..index].iter().filter(|event| matches!(event.step, Step::Sent { .. })).count();
            prop_assert_eq!(request_count, sends as u64);
            state = next;
        }
    }

    #[test]
    fn r11_a_directed_throttle_never_opens_the_circuit(mut plan in faulty(), wait_ms in 1_u64..5000) {
        plan.provider.noise = 0;
        plan.provider.tell = crate::harness::Tell::RetryAfter(Duration::from_millis(wait_ms));
        prop_assert_eq!(plan.run().transitions().count(), 0);
    }
}

/// Opens on five failures of five, for a minute.
fn touchy() -> Config {
    let breaker = BreakerConfig { consecutive_failures: 0, ..BreakerConfig::default() };
    Config { breaker, max_concurrency: 8, ..Config::default() }
}

#[test]
fn a_bare_429_counts_once_per_burst() {
    let mut hand = Hand::new(touchy());
    hand.warm_with_eight_in_flight().wait(60_000);
    let permits = hand.fill(8);
    assert_eq!(permits.len(), 8);
    for permit in permits {
        hand.wait(1).answer(permit, &Outcome::throttled(None));
    }
    // One failure of one observation: below the minimum throughput, though there were more answers.
    assert_eq!(hand.governor.circuit(hand.now), CircuitState::Closed);
}

#[test]
fn five_bursts_of_bare_429_open_the_circuit() {
    let mut hand = Hand::new(Config { horizon: Duration::MAX, ..touchy() });
    hand.governor = gleaner_governor::Governor::with_config(
        "test",
        Config {
            breaker: BreakerConfig { window: Duration::from_secs(100_000), ..touchy().breaker },
            horizon: Duration::MAX,
            ..touchy()
        },
    );
    for burst in 1..=5 {
        hand.exchange(&Outcome::throttled(None), 1);
        let is_open = hand.governor.circuit(hand.now) == CircuitState::Open;
        assert_eq!(is_open, burst == 5, "after {burst}");
    }
    let transition = hand.governor.next_transition().unwrap();
    assert_eq!(transition.reason, CircuitReason::ProviderThrottle);
}

#[test]
fn the_evidence_of_an_outage_tells_it_in_numbers() {
    let retry_budget = Some(RetryBudgetConfig::default());
    let mut hand = Hand::new(Config { retry_budget, ..Config::default() });
    let started = hand.now;
    for _ in 0..5 {
        hand.exchange(&network_error(), 10);
    }
    let opened_at = hand.now;
    let opened = hand.governor.next_transition().unwrap();
    assert_eq!(opened.previous, CircuitState::Closed);
    assert_eq!(opened.state, CircuitState::Open);
    assert_eq!(opened.trigger, CircuitTrigger::ProviderFailure);
    assert_eq!(opened.reason, CircuitReason::ProviderFailure);
    assert_eq!(opened.elapsed, opened_at.since(started));
    assert_eq!(opened.request_count, 5);
    assert_eq!(opened.retry_tokens_remaining, Some(0), "three retries, all used");
    assert_eq!(hand.governor.next_transition(), None, "evidence is handed out once");

    let (reason, until) = hand.deferral();
    assert_eq!((reason, until), (DeferReason::CircuitOpen, Some(opened_at + Duration::from_secs(60))));
    hand.now = until.unwrap();
    assert_eq!(hand.governor.circuit(hand.now), CircuitState::HalfOpen);
    hand.exchange(&Outcome::success(), 10);
    let half_open = hand.governor.next_transition().unwrap();
    assert_eq!((half_open.previous, half_open.state), (CircuitState::Open, CircuitState::HalfOpen));
    assert_eq!((half_open.trigger, half_open.reason), (CircuitTrigger::BeforeRequest, CircuitReason::ResetTimeout));
    hand.exchange(&Outcome::success(), 10);
    let closed = hand.governor.next_transition().unwrap();
    assert_eq!((closed.previous, closed.state), (CircuitState::HalfOpen, CircuitState::Closed));
    assert_eq!((closed.trigger, closed.reason), (CircuitTrigger::Success, CircuitReason::Success));
    assert_eq!(closed.request_count, 7);
}

#[test]
fn a_probe_that_is_cancelled_makes_room_for_another() {
    let mut hand = Hand::new(Config::default());
    for _ in 0..5 {
        hand.exchange(&network_error(), 10);
    }
    hand.now = hand.deferral().1.unwrap();
    for _ in 0..3 {
        let permit = hand.send();
        assert!(matches!(hand.governor.poll_admit(hand.now), Admission::WaitForOutcome));
        hand.governor.cancel(permit);
    }
}

#[test]
fn the_evidence_holds_counters_and_stable_names_only() {
    let mut hand = Hand::new(Config::default());
    for _ in 0..5 {
        hand.exchange(&network_error(), 10);
    }
    let CircuitTransition { previous, state, trigger, reason, elapsed: _, request_count: _, retry_tokens_remaining: _ } =
        hand.governor.next_transition().unwrap();
    assert_eq!([previous.as_str(), state.as_str()], ["closed", "open"]);
    assert_eq!([trigger.as_str(), reason.as_str()], ["provider_failure", "provider_failure"]);
}

/// Failures until the circuit opens, and how long they took, of a key that was sending at this interval for minutes.
fn overload(interval: Duration, failure: &Outcome) -> (u32, Duration) {
    let mut hand = Hand::new(Config { ceiling_interval: interval, horizon: Duration::MAX, ..Config::default() });
    hand.warm_to(interval);
    for _ in 0..200 {
        hand.exchange(&Outcome::success(), 10);
    }
    let (start, mut failures) = (hand.now, 0);
    while hand.governor.circuit(hand.now) == CircuitState::Closed && failures < 1000 {
        hand.exchange(failure, 10);
        failures += 1;
    }
    (failures, hand.now.since(start))
}

#[test]
fn at_five_per_second_and_more_an_overload_opens_the_circuit_within_five_seconds() {
    for millis in [200, 100, 20] {
        let (_, took) = overload(Duration::from_millis(millis), &network_error());
        assert!(took < Duration::from_secs(5), "{millis} ms: {took:?}");
    }
}

#[test]
fn below_five_per_second_five_failures_open_the_circuit() {
    for millis in [201, 1000, 10_000] {
        for verdict in [Verdict::Network, Verdict::ServerError] {
            assert_eq!(
                overload(Duration::from_millis(millis), &Outcome::bare(verdict)).0,
                5,
                "{millis} ms: {verdict:?}"
            );
        }
        // The pace falls with each, so that sooner or later they are half of what is seen.
        let (failures, _) = overload(Duration::from_millis(millis), &Outcome::throttled(None));
        assert!(failures <= 5, "{millis} ms: {failures} bare throttles");
    }
}

#[test]
fn a_directed_throttle_alone_never_opens_the_circuit() {
    let directed = Outcome::throttled(Some(Duration::from_secs(1)));
    assert_eq!(overload(Duration::from_millis(20), &directed).0, 1000);
}
