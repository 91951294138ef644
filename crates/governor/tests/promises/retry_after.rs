//! A told wait: it closes the whole key, once, and beyond the horizon it is no wait at all. R6, R16.

use crate::harness::{Hand, Limit, Plan, Provider, Step, Tell, Trace};
use crate::plans;
use gleaner_governor::{
    Admission, Advice, Classifier, Config, DefaultClassifier, DeferReason, Outcome, PressureReason, RETRY_AFTER_MAX,
    ResponseView, Time, Verdict, WallTime, read_retry_after,
};
use proptest::prelude::*;
use std::time::Duration;

/// Ends of told waits, with the time at which each was told.
fn told_waits(trace: &Trace) -> Vec<(Time, Time)> {
    let directed = |outcome: Outcome| outcome.retry_after.filter(|_| outcome.verdict == Verdict::Throttled);
    trace
        .answers()
        .filter_map(|(event, outcome, _)| directed(outcome).map(|wait| (event.at, event.at + wait)))
        .collect()
}

fn patient(config: Config) -> Config {
    plans::without_circuit(Config { horizon: Duration::MAX, ..config })
}

proptest! {
    #[test]
    fn r6_nothing_is_sent_inside_a_told_wait(mut plan in plans::plan(), wait_ms in 1_u64..400_000) {
        plan.provider.tell = Tell::RetryAfter(Duration::from_millis(wait_ms));
        let trace = plan.run();
        let sends = trace.sends();
        for (from, to) in told_waits(&trace) {
            let inside = sends.iter().find(|&&sent| from < sent && sent < to);
            prop_assert!(inside.is_none(), "sent at {inside:?} between {from:?} and {to:?}");
        }
    }

    #[test]
    fn r6_the_trial_after_a_told_wait_comes_at_most_one_interval_later(
        discovery_ms in 20_u64..2000, warm in 0_u32..200, wait_ms in 1_u64..400_000, refusals in 1_u32..3,
    ) {
        // Told twice in vain, a wait is no longer believed: see the next test.
        // Each time the provider says exactly how long, and each time the first thing sent after it
        // is one trial, without our own pause on top.
        let discovery_interval = Duration::from_millis(discovery_ms);
        let mut hand = Hand::new(patient(Config { discovery_interval, ..Config::default() }));
        for _ in 0..warm {
            hand.exchange(&Outcome::success(), 5);
        }
        let wait = Duration::from_millis(wait_ms);
        for refusal in 0..refusals {
            hand.exchange(&Outcome::throttled(Some(wait)), 5);
            let (told_at, interval) = (hand.now, hand.snapshot().interval);
            let permit = hand.send();
            let waited = hand.now.since(told_at);
            prop_assert!(waited >= wait, "{waited:?} of {wait:?}");
            prop_assert!(waited <= wait + interval, "refusal {refusal}: {waited:?} for {wait:?} at {interval:?}");
            hand.governor.cancel(permit);
        }
    }

    #[test]
    fn a_told_wait_that_was_in_vain_twice_is_doubled_and_never_shortened(wait_ms in 1_u64..60_000, refusals in 3_u32..9) {
        let mut hand = Hand::new(patient(Config::default()));
        let wait = Duration::from_millis(wait_ms);
        for refusal in 0..refusals {
            hand.exchange(&Outcome::throttled(Some(wait)), 5);
            let (told_at, interval) = (hand.now, hand.snapshot().interval);
            let permit = hand.send();
            let waited = hand.now.since(told_at);
            let believed = wait * (1 << refusal.saturating_sub(1));
            prop_assert!(waited >= believed, "refusal {refusal}: {waited:?} of {believed:?}");
            prop_assert!(waited <= believed + interval, "refusal {refusal}: {waited:?} for {believed:?} at {interval:?}");
            hand.governor.cancel(permit);
        }
    }

    #[test]
    fn r6_a_retry_waits_as_told_without_jitter_on_top(wait_ms in 1_u64..200_000, attempt in 0_u32..3) {
        let mut hand = Hand::new(Config::default());
        let permit = hand.send();
        let wait = Duration::from_millis(wait_ms);
        let advice = hand.answer_attempt(permit, &Outcome::throttled(Some(wait)), attempt);
        prop_assert_eq!(advice, Advice::RetryAt(hand.now + wait));
    }

    #[test]
    fn r6_the_request_after_the_trial_does_not_pay_the_wait_again(wait_ms in 1_u64..200_000) {
        let mut hand = Hand::new(patient(Config::default()));
        hand.exchange(&Outcome::throttled(Some(Duration::from_millis(wait_ms))), 5);
        hand.exchange(&Outcome::success(), 5);
        let (from, interval) = (hand.now, hand.snapshot().interval);
        let permit = hand.send();
        prop_assert!(hand.now.since(from) <= interval, "{:?} at {interval:?}", hand.now.since(from));
        hand.governor.cancel(permit);
    }

    #[test]
    fn r6_a_told_wait_closes_the_whole_key_for_every_worker(wait_ms in 100_u64..200_000) {
        let mut hand = Hand::new(patient(Config { max_concurrency: 8, ..Config::default() }));
        hand.warm_to(Duration::from_millis(20));
        let first = hand.send();
        let second = hand.send();
        hand.wait(1).answer(first, &Outcome::throttled(Some(Duration::from_millis(wait_ms))));
        let told_at = hand.now;
        // A success that was under way all the while opens nothing.
        hand.answer(second, &Outcome::success());
        let permit = hand.send();
        prop_assert!(hand.now.since(told_at) >= Duration::from_millis(wait_ms));
        // And behind it goes one trial, not a crowd.
        let others = hand.fill(8);
        prop_assert_eq!(others.len(), 0);
        hand.governor.cancel(permit);
    }

    #[test]
    fn r16_beyond_the_horizon_it_is_a_deferral_and_nobody_sleeps(wait_s in 301_u64..u64::MAX / 2, attempt in 0_u32..3) {
        let mut hand = Hand::new(Config::default());
        let permit = hand.send();
        let wait = Duration::from_secs(wait_s);
        let advice = hand.answer_attempt(permit, &Outcome::throttled(Some(wait)), attempt);
        let not_before = Some(hand.now + wait.min(RETRY_AFTER_MAX));
        prop_assert!(matches!(advice, Advice::Defer(deferral)
            if deferral.reason == DeferReason::BeyondHorizon && deferral.not_before == not_before), "{advice:?}");
        prop_assert_eq!(hand.deferral(), (DeferReason::BeyondHorizon, not_before));
    }

    #[test]
    fn r16_no_plan_ever_waits_beyond_the_horizon(plan in plans::plan()) {
        for event in plan.run().events {
            match event.step {
                Step::WaitUntil(until) => prop_assert!(until.since(event.at) <= plan.config.horizon),
                Step::Answered { advice: Advice::RetryAt(from), .. } => {
                    prop_assert!(from.since(event.at) <= plan.config.horizon);
                }
                Step::Deferred(deferral) if deferral.reason == DeferReason::BeyondHorizon => {
                    prop_assert!(deferral.not_before.is_some_and(|at| at.since(event.at) > plan.config.horizon));
                }
                _ => {}
            }
        }
    }

    #[test]
    fn r16_a_header_is_absent_or_a_finite_wait(value in "\\PC{0,30}|-?[0-9]{1,25}(\\.[0-9]{1,5})?", now: u64) {
        let wall_now = WallTime::from_unix_millis(now);
        let read = read_retry_after(&[("retry-after", value.as_str())], wall_now);
        prop_assert!(read.is_none_or(|wait| wait <= RETRY_AFTER_MAX));
    }
}

#[test]
fn r16_when_the_deferral_is_over_a_trial_goes_out() {
    let mut hand = Hand::new(Config::default());
    hand.exchange(&Outcome::throttled(Some(Duration::from_secs(7200))), 5);
    let (_, not_before) = hand.deferral();
    hand.now = not_before.unwrap();
    assert!(matches!(hand.governor.poll_admit(hand.now), Admission::Send(_)));
}

#[test]
fn a_wait_of_zero_or_one_that_cannot_be_read_is_no_directive() {
    for value in ["0", "-5", "abc", ""] {
        let headers = [("retry-after", value)];
        let view = ResponseView::new(429, &headers);
        let told = DefaultClassifier::new().classify(&view, WallTime::from_unix_millis(0));
        let mut hand = Hand::new(Config::default());
        let mut bare = Hand::new(Config::default());
        hand.exchange(&told, 5);
        bare.exchange(&Outcome::throttled(None), 5);
        assert_eq!(hand.snapshot(), bare.snapshot(), "{value:?}");
    }
}

#[test]
fn a_told_wait_is_met_by_a_real_window_too() {
    // A window of 10 in 30 s that tells its end: no send inside, and no more than a few refusals.
    let provider = Provider { limit: Limit::Window { limit: 10, seconds: 30 }, ..Provider::OPEN };
    let tell = Tell::RetryAfter(Duration::from_secs(30));
    let plan = Plan { sends_max: 200, ..Plan::new(Config::default(), Provider { tell, ..provider }) };
    let trace = plan.run();
    let sends = trace.sends();
    assert!(told_waits(&trace).iter().all(|&(from, to)| !sends.iter().any(|&sent| from < sent && sent < to)));
    assert!(trace.answers().any(|(_, outcome, _)| outcome.verdict == Verdict::Throttled), "the plan has no refusal");
}

#[test]
fn a_ban_that_tells_its_end_is_kept_out_for_that_long() {
    let mut hand = Hand::new(Config::default());
    let two_hours = Duration::from_secs(7200);
    let advice = hand.exchange(&Outcome { retry_after: Some(two_hours), ..Outcome::bare(Verdict::Banned) }, 5);
    let not_before = Some(hand.now + two_hours);
    assert_eq!(advice, Advice::Pressure { reason: PressureReason::UpstreamPressure, not_before });
    assert_eq!(hand.deferral(), (DeferReason::BeyondHorizon, not_before));
}

#[test]
fn a_server_error_that_asks_for_a_pause_closes_the_key_for_that_long() {
    let mut hand = Hand::new(Config::default());
    let pause = Duration::from_secs(200);
    let advice = hand.exchange(&Outcome { retry_after: Some(pause), ..Outcome::bare(Verdict::ServerError) }, 5);
    assert_eq!(advice, Advice::RetryAt(hand.now + pause));
    assert_eq!(hand.snapshot().next_allowed, hand.now + pause);
}
