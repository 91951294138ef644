//! A quota that is told is never overrun.

use crate::harness::{Hand, Step, Tell, at};
use crate::plans;
use gleaner_governor::{Admission, BackoffReason, Config, Outcome, QuotaReading, Quotas, Verdict};
use proptest::prelude::*;
use std::time::Duration;

fn told(limit: u64, remaining: u64, resets_in: Option<Duration>) -> Outcome {
    let mut quotas = Quotas::NONE;
    quotas.push(QuotaReading { limit: Some(limit), remaining: Some(remaining), resets_in, window: None });
    Outcome { quotas, ..Outcome::success() }
}

proptest! {
    #[test]
    fn a_used_up_quota_closes_the_key_until_its_reset(remaining in 0_u64..30, reset_s in 3_u64..250) {
        let mut hand = Hand::new(Config { max_concurrency: 4, ..Config::default() });
        hand.exchange(&told(1000, remaining, Some(Duration::from_secs(reset_s))), 10);
        let (told_at, mut sent) = (hand.now, 0);
        while sent < remaining + 1 {
            let permit = hand.send();
            if hand.now < told_at + Duration::from_secs(reset_s) {
                sent += 1;
                prop_assert!(sent <= remaining, "{sent} sent of {remaining}");
            } else {
                sent = remaining + 1;
            }
            hand.answer(permit, &Outcome::success());
        }
    }

    #[test]
    fn a_reading_never_makes_the_next_send_earlier(
        before in 0_u32..100, verdict in 0_usize..3, limit: Option<u64>, remaining: Option<u64>, reset_ms in proptest::option::of(0_u64..500_000),
    ) {
        // Two governors with the same past; the last answer of one tells a quota.
        let verdict = [Verdict::Success, Verdict::Throttled, Verdict::ServerError][verdict];
        let mut quotas = Quotas::NONE;
        let resets_in = reset_ms.map(Duration::from_millis);
        quotas.push(QuotaReading { limit, remaining: remaining.map(|remaining| remaining % 3), resets_in, window: None });
        let next = |quotas: Quotas| {
            let mut hand = Hand::new(plans::without_circuit(Config { horizon: Duration::MAX, ..Config::default() }));
            for _ in 0..before {
                hand.exchange(&Outcome::success(), 20);
            }
            hand.exchange(&Outcome { quotas, ..Outcome::bare(verdict) }, 20);
            let interval = hand.snapshot().interval;
            let permit = hand.send();
            hand.governor.cancel(permit);
            (hand.now, interval)
        };
        let (silent, told) = (next(Quotas::NONE), next(quotas));
        prop_assert!(told.0 >= silent.0 && told.1 >= silent.1, "{told:?} against {silent:?}");
    }

    #[test]
    fn nonsense_in_headers_neither_panics_nor_stops_the_run_for_good(mut plan in plans::plan()) {
        plan.provider.tell = Tell::Nonsense;
        for event in plan.run().events {
            if let Step::WaitForOutcome { in_flight } = event.step {
                prop_assert!(in_flight > 0);
            }
        }
    }
}

#[test]
fn a_used_up_quota_is_told_as_the_reason() {
    let mut hand = Hand::new(Config::default());
    hand.exchange(&told(100, 0, Some(Duration::from_secs(30))), 10);
    assert_eq!(hand.snapshot().last_backoff.map(|backoff| backoff.reason), Some(BackoffReason::Quota));
    let closed_until = hand.now + Duration::from_secs(30);
    assert!(matches!(hand.governor.poll_admit(hand.now), Admission::WaitUntil(until) if until == closed_until));
}

#[test]
fn the_newest_request_s_reading_wins_whichever_answer_comes_last() {
    let mut hand = Hand::new(Config { max_concurrency: 4, ..Config::default() });
    hand.warm_to(Duration::from_millis(20));
    let (first, second) = (hand.send(), hand.send());
    hand.answer(second, &told(100, 40, Some(Duration::from_secs(30))));
    hand.answer(first, &told(100, 0, Some(Duration::from_secs(30))));
    let before = hand.now;
    let permit = hand.send();
    assert!(hand.now.since(before) < Duration::from_secs(1), "an older answer closed the key");
    hand.governor.cancel(permit);
}

#[test]
fn two_used_up_quotas_of_which_one_tells_no_reset_wait_once() {
    let mut hand = Hand::new(Config::default());
    let mut quotas = Quotas::NONE;
    let closed = QuotaReading { limit: Some(100), remaining: Some(0), resets_in: None, window: None };
    quotas.push(QuotaReading { resets_in: Some(Duration::from_secs(20)), ..closed });
    quotas.push(closed);
    hand.exchange(&Outcome { quotas, ..Outcome::success() }, 10);
    let Admission::WaitUntil(until) = hand.governor.poll_admit(hand.now) else { panic!("not closed") };
    assert!(matches!(hand.governor.poll_admit(until), Admission::Send(_)), "the told time was not kept");
}

#[test]
fn behind_a_reset_one_request_goes_first() {
    let mut hand = Hand::new(Config { max_concurrency: 8, ..Config::default() });
    hand.warm_to(Duration::from_millis(20));
    hand.exchange(&told(100, 0, Some(Duration::from_secs(30))), 10);
    let permits = hand.fill(8);
    assert_eq!(permits.len(), 1, "a crowd behind a reset");
    assert!(hand.now >= at(5 + 30));
    for permit in permits {
        hand.answer(permit, &told(100, 99, Some(Duration::from_secs(30))));
    }
    assert!(hand.fill(8).len() > 1, "and then the others");
}

#[test]
fn a_throttle_with_a_quota_is_a_throttle() {
    let mut hand = Hand::new(Config::default());
    let before = hand.snapshot().interval;
    let outcome = Outcome { verdict: Verdict::Throttled, ..told(100, 99, Some(Duration::from_secs(1))) };
    hand.exchange(&outcome, 10);
    assert!(hand.snapshot().interval > before);
}
