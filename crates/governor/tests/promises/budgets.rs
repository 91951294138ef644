//! The owner's envelope, and opting out. R15: the deadline is checked between requests, before waits.

use crate::harness::{Hand, Step, at};
use crate::plans;
use gleaner_governor::{Admission, Config, DeferReason, Outcome, RunBudgetConfig, Time};
use proptest::prelude::*;
use std::time::Duration;

proptest! {
    #[test]
    fn a_request_cap_never_changes_a_send_time(plan in plans::plan(), cap in 1_u64..700) {
        let without = plan.run().sends();
        let mut capped = plan.clone();
        capped.config.run_budget.request_cap = Some(cap);
        // The retry budget of a capped run is another one, and retries are requests like all others.
        let with = capped.run().sends();
        prop_assert_eq!(&without[..without.len().min(cap as usize)], &with[..]);
    }

    #[test]
    fn a_wall_clock_never_changes_a_send_time_before_its_end(plan in plans::plan(), seconds in 1_u64..4000) {
        let without = plan.run().sends();
        let mut bounded = plan.clone();
        bounded.config.run_budget.wall_clock = Some(Duration::from_secs(seconds));
        let with = bounded.run().sends();
        prop_assert!(without.starts_with(&with), "{without:?} against {with:?}");
    }

    #[test]
    fn r15_nothing_is_sent_and_nobody_waits_past_the_deadline(mut plan in plans::plan(), seconds in 1_u64..4000) {
        plan.config.run_budget.wall_clock = Some(Duration::from_secs(seconds));
        let events = plan.run().events;
        let started = events.iter().find(|event| event.is_poll()).map(|event| event.at);
        let Some(deadline) = started.map(|started| started + Duration::from_secs(seconds)) else { return Ok(()) };
        for event in events {
            match event.step {
                Step::Sent { .. } => prop_assert!(event.at < deadline, "sent at {:?}", event.at),
                Step::WaitUntil(until) => prop_assert!(until < deadline, "told to wait until {until:?}"),
                Step::Deferred(deferral) if deferral.reason == DeferReason::WallClock => {
                    prop_assert!(event.at >= deadline || deferral.not_before.is_some_and(|at| at >= deadline));
                }
                _ => {}
            }
        }
    }

    #[test]
    fn the_cap_counts_every_attempt(mut plan in plans::plan(), cap in 1_u64..200) {
        plan.config.run_budget.request_cap = Some(cap);
        prop_assert!(plan.run().sends().len() as u64 <= cap);
    }

    #[test]
    fn an_opt_out_never_waits_and_shows_nothing(mut plan in plans::plan()) {
        plan.config = plans::without_circuit(Config { discovery_interval: Duration::ZERO, ..plan.config });
        for event in plan.run().events {
            prop_assert!(matches!(event.step, Step::Sent { .. } | Step::Cancelled | Step::Answered { .. }), "{event:?}");
            prop_assert!(event.before.is_none() && event.after.is_none());
        }
    }
}

#[test]
fn an_exhausted_budget_defers_before_any_wait() {
    let run_budget = RunBudgetConfig { request_cap: Some(1), wall_clock: None };
    let mut hand = Hand::new(Config { run_budget, ..Config::default() });
    hand.exchange(&Outcome::throttled(Some(Duration::from_secs(60))), 5);
    assert_eq!(hand.deferral(), (DeferReason::RequestCap, None));
}

#[test]
fn a_wait_that_ends_after_the_deadline_is_not_begun() {
    let run_budget = RunBudgetConfig { request_cap: None, wall_clock: Some(Duration::from_secs(20)) };
    let mut hand = Hand::new(Config { run_budget, ..Config::default() });
    hand.exchange(&Outcome::throttled(Some(Duration::from_secs(60))), 5);
    let told_at = hand.now;
    assert_eq!(hand.deferral(), (DeferReason::WallClock, Some(told_at + Duration::from_secs(60))));
}

#[test]
fn the_wall_clock_runs_from_first_use() {
    let run_budget = RunBudgetConfig { request_cap: None, wall_clock: Some(Duration::from_secs(20)) };
    let mut hand = Hand::new(Config { run_budget, ..Config::default() });
    hand.now = at(1_000_000);
    hand.exchange(&Outcome::success(), 5);
    assert!(hand.now < at(1_000_020));
    hand.now = at(1_000_020);
    assert_eq!(hand.deferral(), (DeferReason::WallClock, None));
}

#[test]
fn a_governor_that_opted_out_remembers_nothing() {
    let config = Config { discovery_interval: Duration::ZERO, ..Config::default() };
    let mut hand = Hand::new(config);
    let wall_now = gleaner_governor::WallTime::from_unix_millis(1);
    assert!(matches!(hand.governor.poll_admit(Time::ZERO), Admission::Send(_)));
    assert!(matches!(hand.governor.poll_admit(Time::ZERO), Admission::Send(_)));
    assert_eq!(hand.governor.learned(hand.now, wall_now), None);
    assert_eq!(hand.governor.snapshot(hand.now), None);
}
