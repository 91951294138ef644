//! When the next send goes out: R1, R7, R9, R10, R13, and what a told time is worth.

use crate::harness::{Drive, Hand, Limit, MS, Plan, Provider, SECOND, Step, Tell, Trace, at};
use crate::plans;
use gleaner_governor::{
    Admission, Classifier, Config, DefaultClassifier, Governor, Jitter, Outcome, ResponseView, Time, WaitReason,
    WallTime,
};
use proptest::prelude::*;
use std::time::Duration;

fn gaps(sends: &[Time]) -> impl Iterator<Item = Duration> + '_ {
    sends.windows(2).map(|pair| pair[1].since(pair[0]))
}

/// Nothing happens between two questions: the second is not told a later time, and is refused
/// before the told one.
fn assert_told_times_are_kept(plan: &Plan) -> Result<(), TestCaseError> {
    let plan = Plan { late_us: 0, ..plan.clone() };
    let mut told = None;
    for event in &plan.run().events {
        match event.step {
            Step::WaitUntil(until) => {
                // A caller after the told time may have missed the moment of an experiment with the
                // window, and waits for the window instead.
                let is_late = told.is_some_and(|told| event.at > told);
                prop_assert!(
                    is_late || told.is_none_or(|told| until <= told),
                    "told {told:?}, then {until:?} at {:?}",
                    event.at
                );
                told = Some(until);
            }
            Step::Sent { .. } | Step::Cancelled => {
                prop_assert!(told.is_none_or(|told| event.at >= told), "admitted at {:?}, told {told:?}", event.at);
                told = None;
            }
            Step::WaitForOutcome { .. } => {}
            Step::Answered { .. } | Step::Deferred(_) => told = None,
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn r1_never_two_sends_closer_than_the_ceiling(plan in plans::plan()) {
        let shortest = gaps(&plan.run().sends()).min();
        prop_assert!(shortest.is_none_or(|gap| gap >= plan.config.ceiling_interval), "{shortest:?}");
    }

    #[test]
    fn r1_not_even_right_after_the_interval_shrank_or_after_idle_time(
        mut plan in plans::obedient(), late_us in 0_u64..3_000_000, idle in proptest::collection::vec((0_u64..2000, 1_u64..900), 0..5),
    ) {
        plan.late_us = late_us;
        plan.idle = idle;
        let shortest = gaps(&plan.run().sends()).min();
        prop_assert!(shortest.is_none_or(|gap| gap >= plan.config.ceiling_interval), "{shortest:?}");
    }

    #[test]
    fn r7_one_wait_that_is_the_latest_of_its_causes_and_never_their_sum(mut plan in plans::plan()) {
        // Quotas are the one cause that a snapshot does not show.
        if !matches!(plan.provider.tell, Tell::RetryAfter(_)) {
            plan.provider.tell = Tell::Nothing;
        }
        for event in plan.run().events {
            if let (Step::WaitUntil(until), Some(snapshot)) = (event.step, event.before) {
                prop_assert_eq!(until, snapshot.next_allowed);
            }
        }
    }

    #[test]
    fn r7_what_is_told_to_wait_for_an_answer_has_one_on_its_way(plan in plans::plan()) {
        for event in plan.run().events {
            if let Step::WaitForOutcome { in_flight } = event.step {
                prop_assert!(in_flight > 0, "nobody will ever answer, at {:?}", event.at);
            }
        }
    }

    #[test]
    fn r9_no_idle_time_buys_more_than_the_lateness_credit(
        interval_ms in 5_u64..5000, late_us in 0_u64..10_000_000, idle in proptest::collection::vec((0_u64..500, 1_u64..900), 0..6), seed: u64,
    ) {
        let interval = Duration::from_millis(interval_ms);
        let config = Config { discovery_interval: interval, ceiling_interval: Duration::from_millis(1), ..Config::default() };
        let plan = Plan { late_us, idle, seed, sends_max: 200, ..Plan::new(plans::without_circuit(config), Provider::OPEN) };
        let sends = Failing::new(&plan).sends();
        let credit = Duration::from_millis(2).min(interval / 2);
        for (first, from) in sends.iter().enumerate() {
            for (count, to) in sends[first..].iter().enumerate() {
                prop_assert!(to.since(*from) + credit >= interval * count as u32, "{count} after {:?}", to.since(*from));
            }
        }
    }

    #[test]
    fn r10_faults_at_one_provider_leave_the_send_times_of_another_unchanged(x in plans::plan(), y in plans::plan()) {
        let alone = y.run().sends();
        let (mut x, mut beside) = (Drive::new(&x), Drive::new(&y));
        let (mut x_goes_on, mut y_goes_on) = (true, true);
        while x_goes_on || y_goes_on {
            if y_goes_on && (!x_goes_on || beside.now <= x.now) {
                y_goes_on = beside.step();
            } else {
                x_goes_on = x.step();
            }
        }
        prop_assert_eq!(alone, beside.trace.sends());
    }

    #[test]
    fn r13_no_jump_of_the_wall_clock_changes_a_send_time(
        script in proptest::collection::vec((0_u8..7, 0_u64..40), 1..200), jump_s in 1_u64..1_000_000_000, at_answer in 0_usize..200,
    ) {
        let steady = sends_by_headers(&script, |_| 0);
        prop_assert_eq!(&steady, &sends_by_headers(&script, |_| jump_s));
        prop_assert_eq!(&steady, &sends_by_headers(&script, |answer| if answer < at_answer { jump_s } else { 0 }));
        prop_assert_eq!(&steady, &sends_by_headers(&script, |answer| if answer < at_answer { 0 } else { jump_s }));
    }

    #[test]
    fn a_told_time_lies_ahead(plan in plans::plan()) {
        for event in plan.run().events {
            if let Step::WaitUntil(until) = event.step {
                prop_assert!(until > event.at, "told {until:?} at {:?}", event.at);
            }
        }
    }

    #[test]
    fn a_told_time_is_kept_and_every_instant_before_is_refused(mut plan in plans::plan()) {
        if !matches!(plan.provider.tell, Tell::RetryAfter(_)) {
            plan.provider.tell = Tell::Nothing;
        }
        assert_told_times_are_kept(&plan)?;
    }

    #[test]
    fn a_told_time_is_kept_whatever_quotas_are_told(plan in plans::plan()) {
        assert_told_times_are_kept(&plan)?;
    }

    #[test]
    fn a_cancelled_request_leaves_no_debt(mut plan in plans::obedient(), cancels in 1_u64..60) {
        // A request that is given up at once frees the place: the next one is due as if it were the
        // first, and only the ceiling lies between the two.
        plan.cancels = cancels;
        plan.provider.limit = Limit::None;
        for pair in plan.run().events.windows(2) {
            let (first, second) = (&pair[0], &pair[1]);
            let (Step::Cancelled, Step::WaitUntil(until)) = (first.step, second.step) else { continue };
            let ceiling = plan.config.ceiling_interval;
            prop_assert!(until.since(first.at) <= ceiling, "{:?} after a cancelled request", until.since(first.at));
            prop_assert_eq!(first.before.map(|snapshot| snapshot.in_flight), first.after.map(|snapshot| snapshot.in_flight));
        }
    }

    #[test]
    fn cancelled_requests_do_not_slow_the_others_down(cancels in 1_u64..50, seed: u64) {
        let config = Config { ceiling_interval: Duration::from_millis(1), ..Config::default() };
        let plan = |cancels| Plan { cancels, seed, sends_max: 100, ..Plan::new(config, Provider { latency_ms: (1, 1), ..Provider::OPEN }) };
        // Each costs at most the ceiling, a small part of the interval.
        let last = |trace: Trace| trace.sends().last().copied().unwrap_or(Time::ZERO);
        let (with, without) = (last(plan(cancels).run()), last(plan(0).run()));
        prop_assert!(with.since(at(5)).as_secs_f64() <= 1.5 * without.since(at(5)).as_secs_f64(), "{with:?} against {without:?}");
    }
}

#[test]
fn a_cancelled_request_is_not_counted_by_the_run_budget() {
    let mut hand = Hand::new(Config {
        run_budget: gleaner_governor::RunBudgetConfig { request_cap: Some(1), wall_clock: None },
        ..Config::default()
    });
    for _ in 0..5 {
        let permit = hand.send();
        hand.governor.cancel(permit);
    }
    let permit = hand.send();
    hand.answer(permit, &Outcome::success());
    assert_eq!(hand.deferral().0, gleaner_governor::DeferReason::RequestCap);
}

#[test]
fn a_cancelled_request_is_taken_back_also_when_others_are_under_way() {
    let mut hand = Hand::new(Config { max_concurrency: 4, ..Config::default() });
    hand.warm_to(Duration::from_millis(20));
    let permits = hand.fill(3);
    assert_eq!(usize::from(hand.snapshot().in_flight), permits.len());
    for permit in permits {
        hand.governor.cancel(permit);
    }
    assert_eq!(hand.snapshot().in_flight, 0);
    assert_eq!(hand.snapshot().interval, Duration::from_millis(20), "giving up is no evidence");
}

#[test]
fn an_abandoned_request_frees_its_place_and_keeps_what_the_provider_has_counted() {
    let mut hand = Hand::new(Config {
        max_concurrency: 1,
        run_budget: gleaner_governor::RunBudgetConfig { request_cap: Some(2), wall_clock: None },
        ..Config::default()
    });
    let permit = hand.send();
    let first = hand.now;
    hand.governor.abandon(permit);
    assert_eq!(hand.snapshot().in_flight, 0);
    // The distance to the next one is the whole interval, and two requests are two.
    let permit = hand.send();
    assert!(hand.now.since(first) >= Duration::from_millis(998), "{:?}", hand.now.since(first));
    hand.governor.abandon(permit);
    assert_eq!(hand.deferral().0, gleaner_governor::DeferReason::RequestCap);
}

#[test]
fn an_abandoned_trial_lets_the_next_one_try() {
    let mut hand = Hand::new(Config { max_concurrency: 4, ..Config::default() });
    let permit = hand.send();
    hand.answer(permit, &Outcome::throttled(None));
    let trial = hand.send();
    assert_eq!(hand.governor.wait_reason(hand.now), Some(WaitReason::InFlight));
    hand.governor.abandon(trial);
    let permit = hand.send();
    hand.answer(permit, &Outcome::success());
}

/// A governor whose next request waits for an answer that never comes.
fn stalled(prepare: impl Fn(&mut Hand)) -> Hand {
    let mut hand = Hand::new(Config::default());
    prepare(&mut hand);
    drop(hand.send());
    assert!(matches!(hand.governor.poll_admit(hand.now), Admission::WaitForOutcome));
    hand
}

#[test]
fn a_permit_that_was_lost_is_given_up_whatever_it_was_for() {
    let ordinary = |_: &mut Hand| {};
    let trial = |hand: &mut Hand| {
        hand.exchange(&Outcome::throttled(None), 5);
    };
    let probe = |hand: &mut Hand| {
        for _ in 0..5 {
            hand.exchange(&gleaner_governor::network_error(), 10);
        }
        hand.now = hand.deferral().1.unwrap();
    };
    for mut hand in [stalled(ordinary), stalled(trial), stalled(probe)] {
        let lost_at = hand.now;
        // The harness asks at each moment at which something may have changed.
        while let Admission::WaitForOutcome = hand.governor.poll_admit(hand.now) {
            hand.now = hand.now + gleaner_governor::PERMIT_LIFE;
        }
        let life = hand.now.since(lost_at);
        assert!(life <= 2 * gleaner_governor::PERMIT_LIFE, "{life:?}");
        assert_eq!(hand.snapshot().in_flight, 1, "the next one");
    }
}

proptest! {
    #[test]
    fn a_wait_has_a_reason_and_no_wait_has_none(plan in plans::plan()) {
        for event in &plan.run().events {
            let is_wait = matches!(event.step, Step::WaitUntil(_) | Step::WaitForOutcome { .. });
            prop_assert!(!is_wait || event.reason.is_some(), "{:?} without a reason", event.step);
            let is_send = matches!(event.step, Step::Sent { .. });
            prop_assert!(!is_send || event.reason.is_none(), "sent in spite of {:?}", event.reason);
            if matches!(event.step, Step::WaitForOutcome { .. }) {
                prop_assert_eq!(event.reason, Some(WaitReason::InFlight));
            }
        }
    }
}

#[test]
fn the_reason_that_holds_longest_is_told() {
    let mut hand = Hand::new(Config { max_concurrency: 1, ..Config::default() });
    assert_eq!(hand.governor.wait_reason(hand.now), None);
    let permit = hand.send();
    assert_eq!(hand.governor.wait_reason(hand.now), Some(WaitReason::InFlight));
    hand.answer(permit, &Outcome::success());
    assert_eq!(hand.governor.wait_reason(hand.now), Some(WaitReason::Pacing));
    let permit = hand.send();
    hand.answer(permit, &Outcome::throttled(Some(Duration::from_secs(40))));
    assert_eq!(hand.governor.wait_reason(hand.now), Some(WaitReason::Gate));
}

/// A driver whose every request is lost on the network, so that the interval stays far above the
/// ceiling.
struct Failing<'a> {
    plan: &'a Plan,
    governor: Governor,
}

impl<'a> Failing<'a> {
    fn new(plan: &'a Plan) -> Self {
        Self { plan, governor: Governor::with_config("test", plan.config) }
    }

    fn sends(&mut self) -> Vec<Time> {
        let (mut now, mut sends) = (at(5), Vec::new());
        while sends.len() < self.plan.sends_max {
            let idle = self.plan.idle.iter().find(|&&(from, length)| at(from) <= now && now < at(from + length));
            if let Some(&(from, length)) = idle {
                now = at(from + length);
            }
            match self.governor.poll_admit(now) {
                Admission::Send(permit) => {
                    sends.push(now);
                    self.governor.on_outcome(permit, &gleaner_governor::network_error(), 9, Jitter::from_bits(0), now);
                }
                Admission::WaitUntil(until) => {
                    let late = self.plan.seed.rotate_left(sends.len() as u32) % (self.plan.late_us * 1000 + 1);
                    now = until + Duration::from_nanos(late);
                }
                other => panic!("{other:?}"),
            }
        }
        sends
    }
}

/// Send times of a run whose answers are read from headers, with a wall clock that is `skew_s`
/// ahead at each answer.
fn sends_by_headers(script: &[(u8, u64)], skew_s: impl Fn(usize) -> u64) -> Vec<Time> {
    const EPOCH_S: u64 = 1_794_830_400;
    let config = Config { horizon: Duration::MAX, ..plans::without_circuit(Config::default()) };
    let mut hand = Hand::new(config);
    let mut sends = Vec::new();
    for (index, &(kind, number)) in script.iter().enumerate() {
        let permit = hand.send();
        sends.push(hand.now);
        hand.wait(30);
        // Row after row of refusals ends in waits of years, and HTTP dates end in 9999.
        if hand.now > at(86_400 * 365) {
            break;
        }
        let wall_now = WallTime::from_unix_millis((EPOCH_S + skew_s(index)) * 1000 + hand.now.as_nanos() / MS);
        let true_s = EPOCH_S + hand.now.as_nanos() / SECOND;
        let text = number.to_string();
        let (date, later) = (http_date(true_s), http_date(true_s + number));
        let (status, headers): (u16, Vec<(&str, &str)>) = match kind {
            0..=2 => (200, vec![]),
            3 => (429, vec![("retry-after", &text)]),
            4 => (429, vec![("retry-after", &later), ("date", &date)]),
            5 => (200, vec![("x-ratelimit-remaining", &text), ("x-ratelimit-reset", "7")]),
            _ => (503, vec![]),
        };
        let headers: Vec<(&str, &[u8])> = headers.iter().map(|&(name, value)| (name, value.as_bytes())).collect();
        let outcome = DefaultClassifier::new().classify(&ResponseView::new(status, &headers), wall_now);
        hand.answer(permit, &outcome);
        // The record also takes the wall clock.
        let _learned = hand.governor.learned(hand.now, wall_now);
    }
    sends
}

fn http_date(unix_s: u64) -> String {
    httpdate::fmt_http_date(std::time::UNIX_EPOCH + Duration::from_secs(unix_s))
}
