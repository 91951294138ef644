//! The scenarios of the requirements that concern the bare governor, each under its own name.
//! Where a scenario is a property, it is tested as one elsewhere and only shown here.

use crate::harness::{Hand, Limit, Plan, Provider, Step, at};
use crate::plans;
use gleaner_governor::{
    Admission, Advice, BackoffConfig, BackoffReason, BreakerConfig, CircuitState, Config, DISCOVERY_INTERVAL,
    DeferReason, Governor, Outcome, PressureReason, RetryBudgetConfig, RunBudgetConfig, Snapshot, Time, Verdict,
    WaitReason, network_error,
};
use std::time::Duration;

mod the_shared_governor_is_adaptive_by_default {
    use super::*;

    #[test]
    fn a_bare_governor_cold_starts_adaptive() {
        let governor = Governor::new("github");
        let snapshot = governor.snapshot(Time::ZERO).expect("pacing is on by default");
        assert_eq!(snapshot.interval, DISCOVERY_INTERVAL);
        assert_eq!(snapshot.mode, "search");
        assert_eq!(governor.name(), "github");
    }

    #[test]
    fn sustained_success_accelerates_the_rate_toward_the_ceiling() {
        let config = Config { max_concurrency: 8, ..Config::default() };
        let trace = Plan { sends_max: 3000, ..Plan::new(config, Provider::OPEN) }.run();
        let intervals: Vec<Duration> = trace.answers().map(|(event, _, _)| event.intervals().1).collect();
        assert!(intervals.is_sorted_by(|before, after| after <= before), "the interval shrinks monotonically");
        assert!(intervals.iter().all(|&interval| interval >= config.ceiling_interval));
        assert_eq!(trace.last_interval(), config.ceiling_interval);
    }

    #[test]
    fn a_throttle_backs_the_rate_off_and_the_back_off_is_legible() {
        for (retry_after, reason) in
            [(None, BackoffReason::Throttle), (Some(Duration::from_secs(9)), BackoffReason::RetryAfter)]
        {
            let mut hand = Hand::new(Config::default());
            hand.warm_to(Duration::from_millis(20));
            let before = hand.snapshot().interval;
            assert_eq!(hand.snapshot().last_backoff, None);
            hand.exchange(&Outcome::throttled(retry_after), 5);
            let snapshot = hand.snapshot();
            assert!(snapshot.interval > before);
            let backoff = snapshot.last_backoff.expect("legible");
            assert_eq!((backoff.reason, backoff.interval, backoff.at), (reason, snapshot.interval, hand.now));
        }
    }

    #[test]
    fn a_connector_opts_out_of_pacing() {
        let config = Config { discovery_interval: Duration::ZERO, ..Config::default() };
        let mut governor = Governor::with_config("quiet", config);
        for _ in 0..1000 {
            assert!(matches!(governor.poll_admit(Time::ZERO), Admission::Send(_)), "no pre-flight wait");
        }
        assert_eq!(governor.snapshot(Time::ZERO), None);
    }
}

mod the_live_rate_is_legible {
    use super::*;

    #[test]
    fn rate_state_is_emitted_as_redacted_progress() {
        let mut hand = Hand::new(Config::default());
        hand.exchange(&Outcome::throttled(None), 5);
        let snapshot = hand.snapshot();
        // Every field by name: one more is one more decision about what an operator may see.
        let Snapshot {
            interval,
            ceiling_interval,
            mode: _,
            limit_per_s: _,
            window: _,
            last_backoff,
            next_allowed,
            gate_until,
            pace_slot,
            waits_for,
            retry_after_too_short,
            refusals_left: _,
            in_flight: _,
            in_flight_limit: _,
        } = snapshot;
        assert!((snapshot.rate_per_min() - 60.0 / interval.as_secs_f64()).abs() < 1e-9);
        assert!((snapshot.ceiling_rate_per_min() - 60.0 / ceiling_interval.as_secs_f64()).abs() < 1e-9);
        assert_eq!(last_backoff.map(|backoff| backoff.reason.as_str()), Some("throttle"));
        assert!(next_allowed > hand.now);
        assert_eq!(next_allowed, pace_slot.max(gate_until.unwrap_or(Time::ZERO)));
        assert_eq!((waits_for, retry_after_too_short), (Some(WaitReason::Gate), false));
        // Not even the key's name, which may tell whose account it is.
        assert!(!format!("{snapshot:?}").contains("test"));
    }

    #[test]
    fn absent_controller_reads_as_honest_unknown() {
        let config = Config { discovery_interval: Duration::ZERO, ..Config::default() };
        let mut hand = Hand::new(config);
        hand.exchange(&Outcome::throttled(None), 5);
        assert_eq!(hand.governor.snapshot(hand.now), None, "absent, not zero");
    }
}

mod exactly_one_pre_flight_send_governor {
    use super::*;

    #[test]
    fn one_pre_flight_wait_source_per_admitted_request() {
        // Run budget, retry budget and circuit are all configured and none of them adds to a wait:
        // the send times are those of the bare governor.
        let provider = Provider { limit: Limit::Bucket { per_s: 3.0, burst: 5.0 }, ..Provider::OPEN };
        let bare = Config {
            breaker: BreakerConfig { throughput_min: u16::MAX, consecutive_failures: 0, ..BreakerConfig::default() },
            retry_budget: None,
            ..Config::default()
        };
        let layered = Config {
            breaker: BreakerConfig { throughput_min: 100, ..BreakerConfig::default() },
            retry_budget: Some(RetryBudgetConfig::default()),
            run_budget: RunBudgetConfig {
                request_cap: Some(1_000_000),
                wall_clock: Some(Duration::from_secs(999_999)),
            },
            ..Config::default()
        };
        let sends = |config| Plan { sends_max: 500, ..Plan::new(config, provider) }.run().sends();
        assert_eq!(sends(bare), sends(layered));
    }

    #[test]
    fn gcra_pacing_contributes_a_signal_not_a_second_gate() {
        // A lane, a gate and a pace: the wait is the longest of them, never a sum.
        let mut hand = Hand::new(Config { max_concurrency: 2, ..Config::default() });
        let permit = hand.send();
        let sent_at = hand.now;
        hand.answer(permit, &Outcome::throttled(Some(Duration::from_secs(30))));
        let Admission::WaitUntil(until) = hand.governor.poll_admit(hand.now) else { panic!("not closed") };
        assert_eq!(until, sent_at + Duration::from_secs(30));
    }

    #[test]
    fn two_independent_pre_flight_gates_is_a_spec_violation() {
        // A driver that sleeps once, until the told time, is always admitted: no second gate exists.
        let provider = Provider { limit: Limit::Bucket { per_s: 5.0, burst: 2.0 }, ..Provider::OPEN };
        let config = Config { max_concurrency: 4, ..Config::default() };
        let events = Plan { sends_max: 2000, ..Plan::new(config, provider) }.run().events;
        let mut told = false;
        for event in events {
            match event.step {
                Step::WaitUntil(_) => {
                    assert!(!told, "a second wait at {:?}", event.at);
                    told = true;
                }
                _ => told = false,
            }
        }
    }
}

mod retry_after_is_honored_exactly {
    use super::*;

    #[test]
    fn retry_after_is_slept_once_not_stacked_on_backoff() {
        let mut hand = Hand::new(Config::default());
        let permit = hand.send();
        let wait = Duration::from_secs(42);
        assert_eq!(hand.answer(permit, &Outcome::throttled(Some(wait))), Advice::RetryAt(hand.now + wait));
        // A caller that slept until then is admitted at once.
        hand.now = hand.now + wait;
        let Admission::Send(permit) = hand.governor.poll_admit(hand.now) else { panic!("the wait is paid twice") };
        hand.wait(10).answer(permit, &Outcome::success());
        let Admission::WaitUntil(until) = hand.governor.poll_admit(hand.now) else { return };
        assert!(until.since(hand.now) <= hand.snapshot().interval, "only the pace is left");
    }

    #[test]
    fn throttle_still_feeds_the_fill_rate_decrease_signal() {
        let mut hand = Hand::new(Config::default());
        hand.warm_to(Duration::from_millis(100));
        let before = hand.snapshot().interval;
        hand.exchange(&Outcome::throttled(Some(Duration::from_secs(5))), 10);
        assert!(hand.snapshot().interval > before);
    }
}

mod the_retry_layer_is_bounded {
    use super::*;

    fn failing(config: Config) -> (u32, Advice) {
        let mut hand = Hand::new(plans::without_circuit(config));
        for attempt in 0..1000 {
            let permit = hand.send();
            let advice = hand.wait(10).answer_attempt(permit, &network_error(), attempt);
            if !matches!(advice, Advice::RetryAt(_)) {
                return (attempt + 1, advice);
            }
        }
        panic!("attempts without end");
    }

    #[test]
    fn retry_budget_exhaustion_stops_retries_before_the_attempt_count() {
        let backoff = BackoffConfig { attempts: 10, ..BackoffConfig::default() };
        let run_budget = RunBudgetConfig { request_cap: Some(10), wall_clock: None };
        let (sends, advice) = failing(Config { backoff, run_budget, ..Config::default() });
        assert_eq!(sends, 3, "two retries are a fifth of ten");
        let (_, by_attempts) = failing(Config { retry_budget: None, ..Config::default() });
        for (advice, reason) in [(advice, DeferReason::RetryBudget), (by_attempts, DeferReason::Attempts)] {
            assert!(
                matches!(advice, Advice::Defer(deferral) if deferral.reason == reason && deferral.not_before.is_none())
            );
        }
    }

    #[test]
    fn no_retry_budget_configured_preserves_attempt_count_only_behavior() {
        for attempts in [1, 2, 4, 50] {
            let backoff = BackoffConfig { attempts, ..BackoffConfig::default() };
            let (sends, _) = failing(Config { backoff, retry_budget: None, ..Config::default() });
            assert_eq!(sends, attempts);
        }
    }

    #[test]
    fn terminal_rate_limit_preserves_the_cross_run_cooldown_contract() {
        let mut hand = Hand::new(Config::default());
        let wait = Duration::from_secs(3);
        for attempt in 0..3 {
            let permit = hand.send();
            assert!(matches!(
                hand.answer_attempt(permit, &Outcome::throttled(Some(wait)), attempt),
                Advice::RetryAt(_)
            ));
        }
        let permit = hand.send();
        let advice = hand.answer_attempt(permit, &Outcome::throttled(Some(wait)), 3);
        // Not before the key opens, which is at least what the provider asked for.
        let Advice::Pressure { reason: PressureReason::RateLimited, not_before: Some(not_before) } = advice else {
            panic!("{advice:?}")
        };
        assert!(not_before >= hand.now + wait);
    }

    #[test]
    fn a_single_bounded_attempt_preserves_immediate_throw_behavior() {
        let backoff = BackoffConfig { attempts: 1, ..BackoffConfig::default() };
        let mut hand = Hand::new(Config { backoff, ..Config::default() });
        let advice = hand.exchange(&Outcome::throttled(None), 5);
        let not_before = Some(hand.snapshot().next_allowed);
        assert_eq!(advice, Advice::Pressure { reason: PressureReason::RateLimited, not_before });
        let mut hand = Hand::new(Config::default());
        assert!(matches!(hand.exchange(&Outcome::throttled(None), 5), Advice::RetryAt(_)));
    }
}

mod budgets_are_disjoint_from_pressure {
    use super::*;

    fn deferral(config: Config, prepare: impl Fn(&mut Hand)) -> DeferReason {
        let mut hand = Hand::new(config);
        prepare(&mut hand);
        hand.deferral().0
    }

    #[test]
    fn no_budget_exhaustion_reason_arms_the_source_pressure_cooldown() {
        let capped = RunBudgetConfig { request_cap: Some(1), wall_clock: None };
        let bounded = RunBudgetConfig { request_cap: None, wall_clock: Some(Duration::from_secs(1)) };
        let once = |hand: &mut Hand| {
            hand.exchange(&Outcome::success(), 10);
        };
        let reasons = [
            deferral(Config { run_budget: capped, ..Config::default() }, once),
            deferral(Config { run_budget: bounded, ..Config::default() }, |hand| {
                once(hand);
                hand.now = at(100);
            }),
            deferral(Config::default(), |hand| {
                for _ in 0..5 {
                    hand.exchange(&network_error(), 10);
                }
                assert_eq!(hand.governor.circuit(hand.now), CircuitState::Open);
            }),
        ];
        assert_eq!(reasons, [DeferReason::RequestCap, DeferReason::WallClock, DeferReason::CircuitOpen]);
        for reason in reasons {
            assert!(!["rate_limited", "upstream_pressure"].contains(&reason.as_str()));
        }
    }

    #[test]
    fn an_outage_is_never_told_as_pressure() {
        let provider = Provider { noise: 0, ..Provider::OPEN };
        let plan = Plan { sends_max: 50, ..Plan::new(Config::default(), provider) };
        assert!(plan.run().answers().all(|(_, outcome, _)| outcome.verdict == Verdict::Success));
        let mut hand = Hand::new(plans::without_circuit(Config::default()));
        for attempt in 0..8 {
            let permit = hand.send();
            let advice = hand.wait(10).answer_attempt(permit, &network_error(), attempt);
            assert!(!matches!(advice, Advice::Pressure { .. }), "{advice:?}");
        }
    }
}
