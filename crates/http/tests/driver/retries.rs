//! "The retry layer SHALL bound retry volume with a ratio-based retry budget distinct from per-request
//! attempts", and what else bounds a call.

use crate::support::{Provider, Reply, assert_about, fetch, fetch_with, governor, ms, secs, steady};
use gleaner_http::governor::{DeferReason, PressureReason, Verdict};
use gleaner_http::{CallLimits, End, Refusal, Settings};
use std::time::Duration;
use tokio::time::Instant;

/// With a cap of eight requests the budget is a fifth of them: one retry.
fn with_one_retry() -> Settings {
    let mut settings = steady(ms(100));
    settings.config.run_budget.request_cap = Some(8);
    settings
}

fn without_budget() -> Settings {
    let mut settings = steady(ms(100));
    settings.config.retry_budget = None;
    settings
}

#[tokio::test(start_paused = true)]
async fn retry_budget_exhaustion_stops_retries_before_the_attempt_count() {
    let governor = governor(&with_one_retry());
    let provider = Provider::always(500);
    let finished = fetch(&governor, &provider).await.unwrap();
    assert_eq!(finished.attempts, 2);
    assert!(matches!(finished.end, End::Deferred { reason: DeferReason::RetryBudget, .. }), "{:?}", finished.end);
    // The same shape as when the attempts are used up: the last answer, and a deferral.
    let governor = self::governor(&without_budget());
    let by_attempts = fetch(&governor, &Provider::always(500)).await.unwrap();
    assert_eq!(by_attempts.attempts, 4);
    assert!(matches!(by_attempts.end, End::Deferred { reason: DeferReason::Attempts, .. }), "{:?}", by_attempts.end);
    assert_eq!(by_attempts.result.unwrap().status, finished.result.unwrap().status);
}

#[tokio::test(start_paused = true)]
async fn no_retry_budget_configured_preserves_attempt_count_only_behavior() {
    for attempts in [1, 2, 4] {
        let governor = governor(&without_budget());
        let provider = Provider::always(500);
        let call_limits = CallLimits { attempts, ..CallLimits::default() };
        let finished = fetch_with(&governor, &provider, &call_limits).await.unwrap();
        assert_eq!((finished.attempts, provider.sends().len()), (attempts, attempts as usize));
    }
}

#[tokio::test(start_paused = true)]
async fn no_budget_exhaustion_reason_arms_the_source_pressure_cooldown() {
    // A cooldown is armed by a PressureReason. Each axis of the budget ends in a DeferReason, and there is
    // no way from the one to the other.
    let pressure = [PressureReason::RateLimited, PressureReason::UpstreamPressure].map(PressureReason::as_str);
    let mut seen = Vec::new();
    for cap in ["request_cap", "wall_clock", "retry_budget", "circuit_open"] {
        let mut settings = with_one_retry();
        let (provider, call_limits) = match cap {
            "request_cap" => {
                settings.config.run_budget.request_cap = Some(1);
                (Provider::always(200), CallLimits::default())
            }
            "wall_clock" => {
                settings.config.run_budget.wall_clock = Some(ms(50));
                (Provider::always(200), CallLimits::default())
            }
            "retry_budget" => (Provider::always(429), CallLimits::default()),
            _ => {
                settings.config.run_budget.request_cap = None;
                (Provider::always(500), CallLimits::single_attempt())
            }
        };
        let governor = governor(&settings);
        for _ in 0..20 {
            match fetch_with(&governor, &provider, &call_limits).await {
                Ok(finished) => {
                    if let End::Deferred { reason, .. } = finished.end {
                        seen.push(reason.as_str());
                    }
                    assert!(!matches!(finished.end, End::Pressure { .. }), "{cap}: {:?}", finished.end);
                }
                Err(refused) => seen.push(refused.reason.as_str()),
            }
        }
        assert!(seen.contains(&cap), "{cap} was not reached: {seen:?}");
    }
    assert!(seen.iter().all(|reason| !pressure.contains(reason)), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn the_attempt_timeout_starts_with_the_send_and_not_in_the_queue() {
    let governor = governor(&steady(secs(30)));
    let provider = Provider::new(|send| Reply::status(200).after(if send < 2 { secs(4) } else { secs(60) }));
    let call_limits = CallLimits { attempt_timeout: secs(5), attempts: 1, ..CallLimits::default() };
    for _ in 0..2 {
        // The second waits 30 s before it is sent; its five seconds begin then.
        assert!(fetch_with(&governor, &provider, &call_limits).await.unwrap().result.is_ok());
    }
    let finished = fetch_with(&governor, &provider, &call_limits).await.unwrap();
    assert!(finished.result.is_err());
    assert_eq!(finished.verdict, Verdict::Network);
    assert_about(Instant::now() - *provider.sends().last().unwrap(), secs(5));
}

#[tokio::test(start_paused = true)]
async fn a_deadline_bounds_attempts_and_waits_together() {
    let governor = governor(&steady(secs(10)));
    let provider = Provider::new(|_| Reply::status(200).after(secs(3)));
    fetch(&governor, &provider).await.unwrap();
    let start = Instant::now();
    // The turn comes after seven seconds, which leaves two of the three that the answer takes.
    let call_limits = CallLimits { deadline: Some(start + secs(9)), ..CallLimits::default() };
    let finished = fetch_with(&governor, &provider, &call_limits).await;
    assert_about(start.elapsed(), secs(9));
    assert!(finished.is_ok_and(|finished| finished.result.is_err()));
    // And if the turn comes too late, nothing is sent and nobody waits for it.
    let (start, sends) = (Instant::now(), provider.sends().len());
    let call_limits = CallLimits { deadline: Some(start + secs(1)), ..CallLimits::default() };
    let refused = fetch_with(&governor, &provider, &call_limits).await.unwrap_err();
    assert_eq!((refused.reason, start.elapsed()), (Refusal::MaxWait, Duration::ZERO));
    assert_eq!(provider.sends().len(), sends);
}

#[tokio::test(start_paused = true)]
async fn the_hurry_of_one_caller_opens_no_circuit() {
    let governor = governor(&steady(ms(10)));
    let provider = Provider::new(|_| Reply::status(200).after(ms(300)));
    for _ in 0..20 {
        let call_limits = CallLimits { deadline: Some(Instant::now() + ms(100)), ..CallLimits::default() };
        let finished = fetch_with(&governor, &provider, &call_limits).await.unwrap();
        assert!(finished.result.is_err() && matches!(finished.end, End::TooLate(_)), "{finished:?}");
    }
    assert_eq!((governor.status().breaker, governor.status().in_flight), ("closed", Some(0)));
    assert!(fetch(&governor, &provider).await.unwrap().result.is_ok());
}

#[tokio::test(start_paused = true)]
async fn one_broken_route_does_not_close_all_others() {
    let governor = governor(&steady(ms(10)));
    let (good, broken) = (Provider::always(200), Provider::always(500));
    fetch(&governor, &good).await.unwrap();
    assert_eq!(fetch(&governor, &broken).await.unwrap().attempts, 4);
    assert!(fetch(&governor, &good).await.is_ok());
    assert_eq!(governor.status().breaker, "closed");
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_is_not_sent_says_how_often_it_was() {
    let mut settings = steady(ms(10));
    settings.config.run_budget.request_cap = Some(2);
    settings.config.retry_budget = None;
    let refused = fetch(&governor(&settings), &Provider::always(500)).await.unwrap_err();
    assert_eq!((refused.attempts, refused.reason.as_str()), (2, "request_cap"));
    assert!(refused.to_string().contains("not retried after 2 attempts"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn what_may_have_been_done_is_not_done_twice() {
    for (reply, sends) in [
        (Reply::status(429), 2),
        (Reply { headers: vec![("retry-after", "1".to_owned())], ..Reply::status(503) }, 2),
        (Reply::status(503), 1),
        (Reply::status(500), 1),
        (Reply::status(0), 1),
    ] {
        let governor = governor(&steady(ms(10)));
        let provider = Provider::first(vec![reply.clone()]);
        fetch(&governor, &provider.post()).await.unwrap();
        assert_eq!(provider.sends().len(), sends, "POST answered with {reply:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_attempt_is_admitted_by_the_same_core() {
    let mut settings = steady(secs(1));
    settings.config.run_budget.request_cap = Some(3);
    settings.config.retry_budget = None;
    let governor = governor(&settings);
    let provider = Provider::always(500);
    let refused = fetch(&governor, &provider).await.unwrap_err();
    // Three attempts of one request used up the cap of three: retries count like first sends.
    assert_eq!(refused.reason, Refusal::Deferred(DeferReason::RequestCap));
    assert_eq!(provider.sends().len(), 3);
    assert!(provider.gaps().iter().all(|gap| *gap >= ms(997)), "{:?}", provider.gaps());
}
