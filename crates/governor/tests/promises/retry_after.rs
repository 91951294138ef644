//! A told wait: it closes the whole key, once, and beyond the horizon it is no wait at all. R6, R16.

use crate::harness::{Hand, Limit, Plan, Provider, Step, Tell, Trace};
use crate::plans;
use gleaner_governor::{
    Admission, Advice, Classifier, Config, DefaultClassifier, DeferReason, Outcome, PressureReason, RETRY_AFTER_MAX,
    ResponseView, Time, Verdict, WaitReason, WallTime, read_retry_after,
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

/// An answer and its latency in milliseconds: mostly refusals of every kind that say how long.
fn answer() -> impl Strategy<Value = (Outcome, u64)> {
    let verdict = prop_oneof![
        6 => Just(Verdict::Throttled),
        1 => Just(Verdict::Banned),
        1 => Just(Verdict::Forbidden),
        1 => Just(Verdict::ServerError),
        4 => Just(Verdict::Success),
    ];
    (verdict, 1_u64..400_000, 0_u64..400).prop_map(|(verdict, wait_ms, latency_ms)| {
        let retry_after = Some(Duration::from_millis(wait_ms)).filter(|_| verdict != Verdict::Success);
        (Outcome { retry_after, ..Outcome::bare(verdict) }, latency_ms)
    })
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
    fn r6_the_gate_ends_as_told_and_the_next_send_is_the_later_of_gate_and_pace(
        discovery_ms in 20_u64..5000, answers in prop::collection::vec(answer(), 1..40),
    ) {
        let discovery_interval = Duration::from_millis(discovery_ms);
        let mut hand = Hand::new(patient(Config { discovery_interval, ..Config::default() }));
        for (outcome, latency_ms) in answers {
            hand.exchange(&outcome, latency_ms);
            let snapshot = hand.snapshot();
            let Some(wait) = outcome.told_wait() else { continue };
            let gate = hand.now + wait;
            prop_assert_eq!(snapshot.gate_until, Some(gate));
            prop_assert!(snapshot.pace_slot <= hand.now + snapshot.interval, "the pace counts from the previous send");
            if snapshot.window.is_some() {
                continue; // A learned window has a say, too: `r6_nothing_is_sent_inside_a_told_wait`.
            }
            let due = gate.max(snapshot.pace_slot);
            let source = if gate >= snapshot.pace_slot { WaitReason::Gate } else { WaitReason::Pacing };
            prop_assert_eq!((snapshot.next_allowed, snapshot.waits_for), (due, Some(source)));
            let mut next = Hand { governor: hand.governor, now: hand.now };
            let permit = next.send();
            prop_assert_eq!(next.now, due);
            next.governor.cancel(permit);
            // A cancelled send owes only the owner's shortest gap.
            hand = Hand { governor: next.governor, now: due + Duration::from_millis(20) };
        }
    }

    #[test]
    fn r6_a_directive_that_proved_too_short_lowers_the_pace_and_not_the_gate(
        wait_ms in 1000_u64..60_000, refusals in 2_u32..9, latency_ms in 0_u64..300,
    ) {
        let mut hand = Hand::new(patient(Config::default()));
        let wait = Duration::from_millis(wait_ms);
        for refusal in 0..refusals {
            let sent = hand.send();
            let sent_at = hand.now;
            hand.wait(latency_ms).answer(sent, &Outcome::throttled(Some(wait)));
            let (arrived, snapshot) = (hand.now, hand.snapshot());
            prop_assert_eq!(snapshot.gate_until, Some(arrived + wait), "refusal {}", refusal);
            prop_assert_eq!(snapshot.retry_after_too_short, refusal > 0);
            let due = if refusal < 2 {
                prop_assert_eq!(snapshot.waits_for, Some(WaitReason::Gate));
                arrived + wait
            } else {
                // Kept and refused twice: twice, four times, ... as long between two sends, and never the sum.
                let interval = wait * (1 << (refusal - 1));
                prop_assert_eq!(snapshot.interval, interval);
                prop_assert_eq!(snapshot.waits_for, Some(WaitReason::Pacing));
                // Pacing makes up for the error of a timer, two milliseconds.
                let slot = snapshot.pace_slot.since(sent_at);
                prop_assert!(slot.abs_diff(interval) <= Duration::from_millis(2), "{slot:?} {interval:?}");
                snapshot.pace_slot
            };
            prop_assert_eq!(snapshot.next_allowed, due, "refusal {}", refusal);
        }
        // The slow pace was for the tries: the first success ends it.
        hand.exchange(&Outcome::success(), latency_ms);
        let snapshot = hand.snapshot();
        prop_assert!(!snapshot.retry_after_too_short && snapshot.gate_until.is_none(), "{snapshot:?}");
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

#[test]
fn a_retry_after_of_two_seconds_again_and_again_is_two_seconds() {
    // It was 2.5, 5, 10 and 20 s. The gate is two seconds each time; from the third refusal on the pace is lower.
    let mut hand = Hand::new(patient(Config::default()));
    let two = Duration::from_secs(2);
    let mut seen = Vec::new();
    let mut permit = hand.send();
    for _ in 0..4 {
        hand.wait(5).answer(permit, &Outcome::throttled(Some(two)));
        let (arrived, snapshot) = (hand.now, hand.snapshot());
        permit = hand.send();
        let gate = snapshot.gate_until.map(|gate| gate.since(arrived));
        seen.push((gate, snapshot.waits_for, hand.now.since(arrived).as_secs_f64().round()));
    }
    hand.governor.cancel(permit);
    let (gate, pace) = (Some(WaitReason::Gate), Some(WaitReason::Pacing));
    assert_eq!(seen, [(Some(two), gate, 2.0), (Some(two), gate, 2.0), (Some(two), pace, 4.0), (Some(two), pace, 8.0)]);
}

#[test]
fn of_a_burst_that_says_how_long_the_longest_counts_and_never_the_sum() {
    let mut hand = Hand::new(patient(Config { max_concurrency: 8, ..Config::default() }));
    hand.warm_with_eight_in_flight();
    let permits = hand.fill(4);
    assert!(permits.len() > 1, "{}", permits.len());
    let mut end = hand.now;
    for (number, permit) in (0..).zip(permits) {
        let wait = Duration::from_secs(10 - number);
        hand.wait(100).answer(permit, &Outcome::throttled(Some(wait)));
        end = end.max(hand.now + wait);
        assert_eq!(hand.snapshot().gate_until, Some(end));
    }
    let permit = hand.send();
    assert_eq!(hand.now, end);
    hand.governor.cancel(permit);
}
