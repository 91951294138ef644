//! Retries of a failed request: R4, R5, R8, R14.

use crate::harness::{Hand, Step};
use crate::plans;
use gleaner_governor::{
    Advice, BackoffConfig, Classifier, Config, DefaultClassifier, DeferReason, Jitter, Outcome, PressureReason,
    ResponseView, RetryBudgetConfig, RunBudgetConfig, Verdict, WallTime, network_error, untrusted_certificate,
};
use proptest::prelude::*;
use std::time::Duration;

const RETRYABLE: [Verdict; 3] = [Verdict::Throttled, Verdict::ServerError, Verdict::Network];

fn is_retry(advice: Advice) -> bool {
    matches!(advice, Advice::RetryAt(_))
}

proptest! {
    #[test]
    fn r4_retries_never_pass_the_budget(mut plan in plans::plan(), request_cap in prop_oneof![Just(None), (1_u64..500).prop_map(Some)]) {
        plan.config.run_budget.request_cap = request_cap;
        // A fifth of the cap, or ten seconds' worth at the starting pace; one or three at least.
        let starting_pace = Duration::from_secs(10).div_duration_f64(plan.config.discovery_interval) / 5.0;
        let capacity = request_cap.map_or_else(|| starting_pace.max(3.0), |cap| (cap as f64 / 5.0).max(1.0));
        let (mut retries, mut successes) = (0_u32, 0_u32);
        for event in plan.run().events {
            let Step::Answered { outcome, attempt, advice, .. } = event.step else { continue };
            prop_assert!(attempt < plan.config.backoff.attempts);
            successes += u32::from(outcome.verdict == Verdict::Success);
            retries += u32::from(is_retry(advice));
            prop_assert!(f64::from(retries) <= capacity + f64::from(successes) / 5.0, "{retries} retries, {successes} successes");
        }
    }

    #[test]
    fn r5_only_429_408_5xx_and_the_network_are_worth_another_try(status in 100_u16..=599) {
        let advice = |outcome: &Outcome| Hand::new(Config::default()).exchange(outcome, 10);
        let outcome = DefaultClassifier::new().classify(&ResponseView::new(status, &()), WallTime::from_unix_millis(0));
        // 418 and 420 are what some providers call a 429.
        prop_assert_eq!(is_retry(advice(&outcome)), matches!(status, 408 | 418 | 420 | 429 | 500..=599), "{}", status);
    }

    #[test]
    fn r8_only_a_refusal_by_the_provider_is_pressure(mut plan in plans::plan(), cap in 0_u64..60, seconds in 0_u64..2000) {
        plan.config.run_budget = RunBudgetConfig { request_cap: Some(cap), wall_clock: Some(Duration::from_secs(seconds)) };
        for event in plan.run().events {
            let Step::Answered { outcome, advice, attempt, .. } = event.step else { continue };
            if let Advice::Pressure { reason, .. } = advice {
                match outcome.verdict {
                    Verdict::Throttled => {
                        prop_assert_eq!(reason, PressureReason::RateLimited);
                        prop_assert_eq!(attempt + 1, plan.config.backoff.attempts);
                    }
                    Verdict::Banned => prop_assert_eq!(reason, PressureReason::UpstreamPressure),
                    other => prop_assert!(false, "{other:?} is no pressure"),
                }
            }
        }
    }

    #[test]
    fn r8_budgets_alone_never_make_pressure(mut plan in plans::plan(), cap in 1_u64..60, seconds in 1_u64..2000) {
        // Every error but a refusal.
        plan.provider = crate::harness::Provider { limit: crate::harness::Limit::None, ..plan.provider };
        plan.config.run_budget = RunBudgetConfig { request_cap: Some(cap), wall_clock: Some(Duration::from_secs(seconds)) };
        let trace = plan.run();
        let has_refusal = trace.answers().any(|(_, outcome, _)| matches!(outcome.verdict, Verdict::Throttled | Verdict::Banned));
        let has_pressure = trace.events.iter().any(|event| matches!(event.step, Step::Answered { advice: Advice::Pressure { .. }, .. }));
        prop_assert!(has_refusal || !has_pressure);
    }

    #[test]
    fn r14_a_pause_is_never_longer_than_the_cap_nor_than_base_times_two_to_the_n(
        base_ms in 0_u64..5000, cap_ms in 0_u64..200_000, attempt in prop_oneof![0_u32..12, Just(u32::MAX - 1), any::<u32>()], bits: u64,
    ) {
        let backoff = BackoffConfig {
            base: Duration::from_millis(base_ms),
            cap: Duration::from_millis(cap_ms),
            attempts: u32::MAX,
        };
        let mut hand = Hand::new(Config { backoff, ..Config::default() });
        let permit = hand.send();
        let advice = hand.governor.on_outcome(permit, &network_error(), attempt, Jitter::from_bits(bits), hand.now);
        match advice {
            Advice::RetryAt(at) => {
                let most = base_ms.saturating_mul(1_u64.checked_shl(attempt).unwrap_or(u64::MAX)).min(cap_ms);
                prop_assert!(at >= hand.now && at.since(hand.now) <= Duration::from_millis(most));
            }
            other => prop_assert!(attempt >= u32::MAX - 1, "the attempts are not used up: {other:?}"),
        }
    }
}

#[test]
fn r5_a_network_error_is_tried_again_and_an_untrusted_certificate_is_not() {
    assert!(is_retry(Hand::new(Config::default()).exchange(&network_error(), 10)));
    assert_eq!(Hand::new(Config::default()).exchange(&untrusted_certificate(), 10), Advice::Done);
}

#[test]
fn r8_no_reason_to_defer_has_the_name_of_a_pressure() {
    use DeferReason::{Attempts, BeyondHorizon, CircuitOpen, RequestCap, RetryBudget, WallClock};
    let defer = [RequestCap, WallClock, RetryBudget, Attempts, CircuitOpen, BeyondHorizon].map(DeferReason::as_str);
    let pressure = [PressureReason::RateLimited, PressureReason::UpstreamPressure].map(PressureReason::as_str);
    assert!(defer.iter().all(|name| !pressure.contains(name)));
    // `fn arm(reason: PressureReason)` takes no `DeferReason`: there is no conversion to call.
}

#[test]
fn the_retry_budget_is_a_fifth_of_the_cap_and_at_least_one() {
    for (cap, retries) in [(1, 1), (4, 1), (10, 2), (100, 20)] {
        let run_budget = RunBudgetConfig { request_cap: Some(cap), wall_clock: None };
        let mut hand = Hand::new(plans::without_circuit(Config { run_budget, ..Config::default() }));
        // Retries are granted after the answer, so the first send is enough to ask for all of them.
        let permit = hand.send();
        let mut advices = vec![hand.answer(permit, &network_error())];
        while is_retry(advices[advices.len() - 1]) && (advices.len() as u64) < cap {
            let permit = hand.send();
            advices.push(hand.answer(permit, &network_error()));
        }
        let granted = advices.iter().filter(|&&advice| is_retry(advice)).count();
        assert_eq!(granted, retries.min(cap as usize), "cap {cap}: {advices:?}");
    }
}

#[test]
fn five_successes_pay_for_one_retry() {
    let budget = Some(RetryBudgetConfig { successes_per_retry: 5 });
    let mut hand = Hand::new(plans::without_circuit(Config { retry_budget: budget, ..Config::default() }));
    assert!((0..100).any(|_| !is_retry(hand.exchange(&network_error(), 10))), "retries without end");
    for _ in 0..4 {
        hand.exchange(&Outcome::success(), 10);
    }
    assert!(!is_retry(hand.exchange(&network_error(), 10)), "four successes are not enough");
    hand.exchange(&Outcome::success(), 10);
    assert!(is_retry(hand.exchange(&network_error(), 10)), "the fifth is");
    assert!(!is_retry(hand.exchange(&network_error(), 10)), "and it pays for one");
}

#[test]
fn every_retryable_verdict_says_so_and_no_other() {
    let all = [
        Verdict::Success,
        Verdict::Throttled,
        Verdict::Banned,
        Verdict::ServerError,
        Verdict::Network,
        Verdict::Forbidden,
        Verdict::Permanent,
    ];
    for verdict in all {
        let advice = Hand::new(Config::default()).exchange(&Outcome::bare(verdict), 10);
        assert_eq!(is_retry(advice), RETRYABLE.contains(&verdict), "{verdict:?}");
    }
}

#[test]
fn after_a_throttle_a_request_pauses_by_the_pace_and_after_an_error_by_the_clock() {
    let pause_after = |outcome: &Outcome| {
        let mut hand = Hand::new(Config::default());
        hand.warm_to(Duration::from_millis(50));
        match hand.exchange(outcome, 10) {
            Advice::RetryAt(at) => at.since(hand.now),
            other => panic!("{other:?}"),
        }
    };
    // Half of the range: the harness draws the middle. A throttle has lengthened the interval by then.
    let throttled = pause_after(&Outcome::throttled(None));
    assert!(throttled <= Duration::from_millis(100), "{throttled:?}");
    let failed = pause_after(&Outcome::bare(Verdict::ServerError));
    assert!(failed >= Duration::from_millis(450), "{failed:?}");
}
