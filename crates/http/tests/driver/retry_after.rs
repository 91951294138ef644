//! "Retry-After SHALL be honored exactly without double-paying the wait."

use crate::support::{Provider, Reply, assert_about, fetch, fetch_with, governor, ms, secs, steady};
use gleaner_http::governor::{BackoffReason, DeferReason, RETRY_AFTER_MAX};
use gleaner_http::{CallLimits, End, Refusal, Settings};
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn retry_after_is_slept_once_not_stacked_on_backoff() {
    let governor = governor(&steady(ms(100)));
    let provider = Provider::first(vec![Reply::throttled("7")]);
    let finished = fetch(&governor, &provider).await.unwrap();
    assert_eq!((finished.attempts, finished.result.unwrap().status), (2, 200));
    // Exactly what was asked for, without jitter: the timer's grain is a millisecond.
    let gap = provider.gaps()[0];
    assert!(gap >= secs(7) && gap <= secs(7) + ms(2), "{gap:?}");
    // Not imposed again on the request after it.
    let asked = Instant::now();
    fetch(&governor, &provider).await.unwrap();
    let next = *provider.sends().last().unwrap() - asked;
    assert!(next < secs(2), "{next:?}");
}

#[tokio::test(start_paused = true)]
async fn two_seconds_again_and_again_are_two_seconds_and_launch_jitter_is_not_added() {
    let mut settings = Settings { launch_jitter: ms(1500), ..Settings::default() };
    settings.config.retry_budget = None;
    let governor = governor(&settings);
    let provider = Provider::first(vec![Reply::throttled("2"), Reply::throttled("2"), Reply::throttled("2")]);
    let finished = fetch(&governor, &provider).await.unwrap();
    assert_eq!((finished.attempts, finished.result.unwrap().status), (4, 200));
    let gaps = provider.gaps();
    // The gate is two seconds each time. Kept and refused again twice, the pace is lowered to one in four seconds.
    for (gap, expected) in gaps.iter().zip([secs(2), secs(2), secs(4)]) {
        assert!(*gap >= expected - ms(2) && *gap <= expected + ms(2), "{gaps:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn throttle_still_feeds_the_fill_rate_decrease_signal() {
    let mut settings = Settings::default();
    settings.config.discovery_interval = ms(100);
    let governor = governor(&settings);
    let provider = Provider::first(vec![Reply::status(200), Reply::status(200), Reply::throttled("7")]);
    for _ in 0..2 {
        fetch(&governor, &provider).await.unwrap();
    }
    let before = governor.collection_rate().unwrap().current_interval_ms;
    fetch(&governor, &provider).await.unwrap();
    let after = governor.collection_rate().unwrap();
    assert!(after.current_interval_ms > before, "{before} then {after:?}");
    assert_eq!(after.last_backoff.unwrap().reason, BackoffReason::RetryAfter);
    // Slower, but the seven seconds are not paid a second time.
    let asked = Instant::now();
    fetch(&governor, &provider).await.unwrap();
    let next = *provider.sends().last().unwrap() - asked;
    assert!(next < secs(7), "{next:?}");
}

/// One header, or two, and what is slept for them.
#[tokio::test(start_paused = true)]
async fn what_is_slept_is_what_the_table_says() {
    let in_ten_seconds = httpdate::fmt_http_date(SystemTime::now() + secs(10));
    let in_the_past = httpdate::fmt_http_date(SystemTime::now() - secs(3600));
    // The pace is 100 ms, so "nothing asked for" is our own backoff: anything up to a second.
    let backoff = (Duration::ZERO, ms(1100));
    let exactly = |wait: Duration| (wait, wait + ms(2));
    for (case, headers, (least, most)) in [
        ("seconds", vec!["7"], exactly(secs(7))),
        // A date has whole seconds, so up to one of the ten is gone already.
        ("date", vec![in_ten_seconds.as_str()], (secs(8), secs(10) + ms(2))),
        ("date in the past", vec![in_the_past.as_str()], backoff),
        ("zero", vec!["0"], backoff),
        ("negative", vec!["-5"], backoff),
        ("fraction", vec!["2.5"], exactly(ms(2500))),
        ("garbage", vec!["soon"], backoff),
        ("empty", vec![""], backoff),
        ("two headers: the longer", vec!["3", "6"], exactly(secs(6))),
        ("two headers, one of them garbage", vec!["soon", "4"], exactly(secs(4))),
    ] {
        let governor = governor(&steady(ms(100)));
        let headers: Vec<_> = headers.into_iter().map(|value| ("retry-after", value.to_owned())).collect();
        let provider = Provider::first(vec![Reply { headers, ..Reply::status(429) }]);
        let finished = fetch(&governor, &provider).await.unwrap();
        assert_eq!(finished.result.unwrap().status, 200, "{case}");
        let slept = provider.gaps()[0];
        assert!(slept >= least && slept <= most, "{case}: slept {slept:?}, expected {least:?} to {most:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn ten_years_are_not_slept_but_deferred_and_the_key_stays_closed_for_a_year() {
    let governor = governor(&steady(ms(100)));
    let provider = Provider::first(vec![Reply::throttled("315360000")]);
    let asked = Instant::now();
    let finished = fetch(&governor, &provider).await.unwrap();
    let End::Deferred { reason: DeferReason::BeyondHorizon, retry_in: Some(wait) } = finished.end else {
        panic!("{:?}", finished.end)
    };
    assert_eq!(asked.elapsed(), Duration::ZERO);
    assert_about(wait, RETRY_AFTER_MAX);
    let refused = fetch(&governor, &provider).await.unwrap_err();
    assert_eq!(refused.reason, Refusal::Deferred(DeferReason::BeyondHorizon));
    assert_eq!(provider.sends().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_cannot_wait_that_long_is_told_at_once_and_the_next_one_pays() {
    let governor = governor(&steady(ms(100)));
    let provider = Provider::first(vec![Reply::throttled("20")]);
    let hurried = CallLimits { max_wait: Some(secs(5)), ..CallLimits::default() };
    let asked = Instant::now();
    let finished = fetch_with(&governor, &provider, &hurried).await.unwrap();
    assert_eq!((finished.end, asked.elapsed()), (End::TooLate(secs(20)), Duration::ZERO));
    let refused = fetch_with(&governor, &provider, &hurried).await.unwrap_err();
    assert_eq!((refused.reason, asked.elapsed()), (Refusal::MaxWait, Duration::ZERO));
    assert_about(refused.retry_in.unwrap(), secs(20));
    fetch(&governor, &provider).await.unwrap();
    let gap = provider.gaps()[0];
    assert!(gap >= secs(20) && gap <= secs(20) + ms(2), "{gap:?}");
}

#[tokio::test(start_paused = true)]
async fn one_refusal_closes_the_key_for_everyone() {
    let governor = governor(&steady(ms(10)));
    let provider = Provider::first(vec![Reply::throttled("9")]);
    let start = Instant::now();
    let calls: Vec<_> = (0..20)
        .map(|_| {
            let (governor, provider) = (governor.clone(), provider.clone());
            tokio::spawn(async move { fetch(&governor, &provider).await })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap().result.unwrap().status, 200);
    }
    // The first was alone: at the start one request is sent, and the rest after what it says.
    let inside = provider.sends().iter().skip(1).filter(|at| **at - start < secs(9)).count();
    assert_eq!(inside, 0, "{:?}", provider.gaps());
}
