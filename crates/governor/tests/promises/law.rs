//! Changes of the interval and their direction: R2, R3, and the law as seen from outside.

use crate::harness::{Hand, Limit, Plan, Provider, Step, Trace, at};
use crate::plans;
use gleaner_governor::{Admission, BackoffReason, Config, Governor, Jitter, Outcome, Time, Verdict};
use proptest::prelude::*;
use std::time::Duration;

/// Nothing is slower: the law's maximum as the documentation of a snapshot tells it.
const INTERVAL_MAX: Duration = Duration::from_secs(3600);

/// The interval only ever shrinks at successes.
fn assert_shrinks_only_on_success(trace: &Trace) -> Result<(), TestCaseError> {
    for event in &trace.events {
        let (before, after) = event.intervals();
        let is_success = matches!(event.step, Step::Answered { outcome, .. } if outcome.verdict == Verdict::Success);
        prop_assert!(is_success || after >= before, "{before:?} -> {after:?} by {:?}", event.step);
    }
    Ok(())
}

/// First throttles of bursts: sent after the first refusal of the burst before was answered.
fn bursts(trace: &Trace) -> Vec<(bool, Duration, Duration)> {
    let mut seen_at: Option<Time> = None;
    let mut throttles = Vec::new();
    for (event, outcome, sent_at) in trace.answers() {
        if outcome.verdict == Verdict::Throttled {
            let is_first = seen_at.is_none_or(|seen_at| sent_at >= seen_at);
            if is_first {
                seen_at = Some(event.at);
            }
            let (before, after) = event.intervals();
            throttles.push((is_first, before, after));
        }
    }
    throttles
}

proptest! {
    #[test]
    fn r2_no_error_ever_shortens_the_interval_however_fast_it_comes(mut plan in plans::plan(), is_instant: bool) {
        if is_instant {
            plan.provider.latency_ms = (0, 0);
        }
        for (event, outcome, _) in plan.run().answers() {
            let (before, after) = event.intervals();
            prop_assert!(outcome.verdict == Verdict::Success || after >= before, "{before:?} -> {after:?} by {outcome:?}");
        }
    }

    #[test]
    fn r2_a_provider_that_only_fails_never_speeds_us_up(mut plan in plans::plan()) {
        plan.provider.noise = 100;
        let trace = plan.run();
        let intervals = trace.events.iter().map(|event| event.intervals().1);
        prop_assert!(intervals.is_sorted(), "the interval fell");
    }

    #[test]
    fn r3_the_interval_shrinks_only_on_a_success_and_never_below_the_ceiling(plan in plans::plan()) {
        let trace = plan.run();
        assert_shrinks_only_on_success(&trace)?;
        let shortest = trace.events.iter().map(|event| event.intervals().1).min();
        prop_assert!(shortest.is_none_or(|shortest| shortest >= plan.config.ceiling_interval), "{shortest:?}");
    }

    #[test]
    fn successes_at_normal_latency_never_lengthen_the_interval(mut plan in plans::obedient()) {
        plan.provider.limit = Limit::None;
        for (event, _, _) in plan.run().answers() {
            let (before, after) = event.intervals();
            prop_assert!(after <= before, "{before:?} -> {after:?}");
        }
    }

    #[test]
    fn successes_reach_the_ceiling_when_nothing_throttles(
        discovery_ms in 1_u64..4000, ceiling_ms in 1_u64..2000, max_concurrency in 1_u16..=8, shortest in 0_u64..300, seed: u64,
    ) {
        let config = Config {
            discovery_interval: Duration::from_millis(discovery_ms),
            ceiling_interval: Duration::from_millis(ceiling_ms),
            max_concurrency,
            ..Config::default()
        };
        // One at a time can only use the rate that its latency allows, so some need more in flight.
        let fits = Duration::from_millis(shortest + shortest / 2) < config.ceiling_interval * u32::from(max_concurrency);
        prop_assume!(fits);
        let provider = Provider { latency_ms: (shortest, shortest + shortest / 2), ..Provider::OPEN };
        let plan = Plan { sends_max: 20_000, seconds: 1_000_000, seed, ..Plan::new(config, provider) };
        prop_assert_eq!(plan.run().last_interval(), config.ceiling_interval);
    }

    #[test]
    fn the_first_throttle_of_a_burst_lengthens_the_interval_unless_it_is_at_its_maximum(plan in plans::obedient()) {
        for (is_first, before, after) in bursts(&plan.run()) {
            prop_assert!(!is_first || after > before || before >= INTERVAL_MAX, "{before:?} -> {after:?}");
        }
    }

    #[test]
    fn the_other_throttles_of_a_burst_change_nothing(plan in plans::obedient()) {
        for (is_first, before, after) in bursts(&plan.run()) {
            prop_assert!(is_first || after == before, "{before:?} -> {after:?} by an echo");
        }
    }

    #[test]
    fn r3_the_rate_grows_only_while_it_is_used(discovery_ms in 20_u64..4000, latency in plans::steady_latency(), seed: u64) {
        // Every send comes a whole interval later than it may, so half of the rate is used: whether more
        // would be accepted is unknown.
        let interval = Duration::from_millis(discovery_ms);
        let mut hand = Hand::new(Config { discovery_interval: interval, ..Config::default() });
        for index in 0..200 {
            let permit = hand.send();
            let others = latency.0 + (seed.rotate_left(index) % (latency.1 - latency.0 + 1));
            hand.wait(others).answer(permit, &Outcome::success());
            let due = hand.snapshot().next_allowed.max(hand.now);
            hand.now = due + interval + Duration::from_millis(3);
        }
        prop_assert_eq!(hand.snapshot().interval, interval.max(hand.snapshot().ceiling_interval));
    }

    #[test]
    fn the_lane_is_inert_with_one_request_at_a_time(mut plan in plans::plan()) {
        plan.config.max_concurrency = 1;
        let trace = plan.run();
        for snapshot in trace.events.iter().filter_map(|event| event.after) {
            prop_assert_eq!(snapshot.in_flight_limit, 1);
            prop_assert!(snapshot.in_flight <= 1);
        }
    }

    #[test]
    fn no_more_are_in_flight_than_the_owner_allows(plan in plans::plan()) {
        for event in plan.run().events {
            if let Step::Sent { in_flight, .. } = event.step {
                prop_assert!(in_flight <= usize::from(plan.config.max_concurrency));
            }
        }
    }
}

#[test]
fn eight_in_flight_all_refused_are_one_decrease() {
    let mut hand = Hand::new(Config { max_concurrency: 8, ..Config::default() });
    hand.warm_with_eight_in_flight();
    let permits = hand.fill(8);
    assert_eq!(permits.len(), 8);
    let mut intervals = vec![hand.snapshot().interval];
    for permit in permits {
        hand.wait(1).answer(permit, &Outcome::throttled(None));
        intervals.push(hand.snapshot().interval);
    }
    assert!(intervals[1] > intervals[0], "{intervals:?}");
    assert!(intervals[1..].iter().all(|&interval| interval == intervals[1]), "{intervals:?}");
}

#[test]
fn ten_thousand_instant_refusals_never_speed_us_up() {
    let mut hand = Hand::new(plans::without_circuit(Config { horizon: Duration::MAX, ..Config::default() }));
    let mut interval = hand.snapshot().interval;
    for _ in 0..10_000 {
        // The pauses between tries grow without end; a century is enough.
        if hand.now > at(100 * 365 * 86_400) {
            return;
        }
        let permit = hand.send();
        hand.wait(1);
        hand.answer(permit, &Outcome::throttled(None));
        assert!(hand.snapshot().interval >= interval);
        interval = hand.snapshot().interval;
    }
}

#[test]
fn late_answers_slow_us_down_and_say_so() {
    let mut hand = Hand::new(Config { max_concurrency: 4, ..Config::default() });
    hand.warm_to(Duration::from_millis(100));
    let before = hand.snapshot().interval;
    for _ in 0..12 {
        hand.exchange(&Outcome::success(), 900);
    }
    let snapshot = hand.snapshot();
    assert!(snapshot.interval > before, "{snapshot:?}");
    assert_eq!(snapshot.last_backoff.map(|backoff| backoff.reason), Some(BackoffReason::Latency));
}

#[test]
fn a_refusal_stays_the_reason_when_the_next_success_lowers_the_pace() {
    let mut hand = Hand::new(Config::default());
    hand.exchange(&Outcome::throttled(Some(Duration::from_secs(2))), 5);
    let refused = hand.snapshot().interval;
    hand.exchange(&Outcome::success(), 5);
    let snapshot = hand.snapshot();
    assert!(snapshot.interval > refused, "{snapshot:?}");
    let reason = snapshot.last_backoff.map(|backoff| backoff.reason);
    assert_eq!(reason, Some(BackoffReason::RetryAfter), "nothing was late");
}

#[test]
fn a_growing_interval_takes_effect_at_once() {
    let mut hand = Hand::new(Config::default());
    hand.warm_to(Duration::from_millis(20));
    let permit = hand.send();
    let sent_at = hand.now;
    hand.wait(1).answer(permit, &Outcome::throttled(None));
    let interval = hand.snapshot().interval;
    let permit = hand.send();
    assert!(hand.now.since(sent_at) + Duration::from_millis(2) >= interval, "{:?}", hand.now.since(sent_at));
    hand.governor.cancel(permit);
}

#[test]
fn an_echo_that_was_sent_at_the_very_time_of_the_refusal_changes_nothing() {
    // An event loop reads the clock once per turn: the second request is sent at the time at which
    // the refusal of the first one is processed, and was in flight all the same.
    let mut governor = Governor::with_config("test", Config { max_concurrency: 2, ..Config::default() });
    let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
    let Admission::Send(first) = governor.poll_admit(at(0)) else { panic!("the first request is admitted") };
    let Admission::Send(second) = governor.poll_admit(at(1000)) else { panic!("the second request is admitted") };
    let refused = Outcome::throttled(None);
    governor.on_outcome(first, &refused, 0, Jitter::from_bits(0), at(1000));
    let interval = governor.snapshot(at(1000)).expect("paced").interval;
    governor.on_outcome(second, &refused, 0, Jitter::from_bits(0), at(1001));
    assert_eq!(governor.snapshot(at(1001)).expect("paced").interval, interval);
}

/// Refusals of so many sends to a bucket that says nothing.
fn refusals(conservative: bool, sends_max: usize, seed: u64, per_s: f64) -> usize {
    let ceiling_interval = Duration::from_millis(250);
    let config = Config { ceiling_interval, conservative, max_concurrency: 1, ..Config::default() };
    let provider = Provider { limit: Limit::Bucket { per_s, burst: 3.0 }, ..Provider::OPEN };
    let trace = Plan { sends_max, seed, ..Plan::new(config, provider) }.run();
    trace.answers().filter(|(_, outcome, _)| outcome.verdict == Verdict::Throttled).count()
}

#[test]
fn where_refusals_are_held_against_the_account_one_finds_the_limit_and_then_there_is_one_in_a_hundred() {
    assert_eq!(refusals(true, 75, 1, 2.5), 1);
    assert!(refusals(false, 75, 1, 2.5) > 1, "or being careful would be for nothing");
    for (seed, per_s) in (1..30).zip([1.2, 1.7, 2.1, 2.5, 3.3].into_iter().cycle()) {
        // The search had passed two in a second because the bucket was full, and went back to just under that.
        let to_find_it = if per_s == 1.7 { 2 } else { 1 };
        for sends in [150, 300, 600, 1000] {
            let refused = refusals(true, sends, seed, per_s);
            assert!(refused <= (sends / 100).max(to_find_it), "{refused} of {sends} at {per_s}, seed {seed}");
        }
    }
}
