//! A host that answers by a script, and what the rate and the circuit make of it.

use crate::hosts::{acquire, aimd, answer, exchange, fixed, ms, rate, touchy};
use gleaner_http::Next;
use gleaner_http::governor::CircuitState;
use gleaner_http::{AcquireError, Domains};
use std::time::Duration;
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn the_rate_follows_the_script() {
    let domains = Domains::new(aimd(2.0)).unwrap();
    let script = [
        (200, 100, 2.1),
        (200, 100, 2.2),
        // Later than half a second and earlier than a whole one: nothing changes.
        (200, 700, 2.2),
        (200, 1500, 1.1),
        (429, 50, 0.55),
        (200, 100, 0.65),
        (404, 100, 0.65),
        (503, 50, 0.325),
        (200, 100, 0.425),
    ];
    for (number, (status, latency, expected)) in script.into_iter().enumerate() {
        exchange(&domains, "a.com", status, ms(latency)).await;
        let rate = rate(&domains, "a.com");
        assert!((rate - expected).abs() < 1e-6, "after answer {number}: {rate}, not {expected}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_after_is_waited_for_once_and_by_everyone() {
    let domains = Domains::new(fixed(100.0)).unwrap();
    let permit = acquire(&domains, "a.com").await.unwrap();
    let start = Instant::now();
    let advice = answer(permit, 429, Duration::ZERO, "7").await;
    assert!(matches!(advice, Next::RetryAt(_)), "{advice:?}");
    let waits: Vec<_> = (0..3)
        .map(|_| {
            let domains = domains.clone();
            tokio::spawn(async move { acquire(&domains, "a.com").await.unwrap().waited() })
        })
        .collect();
    for wait in waits {
        let wait = wait.await.unwrap();
        assert!(wait >= ms(7000) && wait < ms(7100), "{wait:?}");
    }
    assert!(start.elapsed() < ms(7100));
}

#[tokio::test(start_paused = true)]
async fn the_circuit_opens_within_five_seconds_of_an_overload_and_closes_by_itself() {
    let domains = Domains::new(fixed(10.0)).unwrap();
    for _ in 0..50 {
        exchange(&domains, "a.com", 200, ms(20)).await;
    }
    let overload = Instant::now();
    let refused = loop {
        match acquire(&domains, "a.com").await {
            Ok(permit) => drop(answer(permit, 500, ms(20), "").await),
            Err(AcquireError::Refused(refused)) => break refused,
            Err(other) => panic!("{other}"),
        }
    };
    assert!(overload.elapsed() < Duration::from_secs(5), "{:?}", overload.elapsed());
    assert_eq!(refused.reason.as_str(), "circuit_open");
    let retry_in = refused.retry_in.unwrap();
    assert!(retry_in > Duration::from_secs(59) && retry_in <= Duration::from_secs(60), "{retry_in:?}");
    crate::hosts::provider_takes(retry_in).await;
    exchange(&domains, "a.com", 200, ms(20)).await;
    exchange(&domains, "a.com", 200, ms(20)).await;
    assert_eq!(domains.snapshot(1).keys[0].circuit, CircuitState::Closed);
}

#[tokio::test(start_paused = true)]
async fn who_waits_when_the_circuit_opens_is_told_so_at_once() {
    let mut settings = fixed(0.1);
    settings.config.key.breaker = touchy();
    let domains = Domains::new(settings).unwrap();
    let permit = acquire(&domains, "a.com").await.unwrap();
    let waiting: Vec<_> = (0..3)
        .map(|_| {
            let domains = domains.clone();
            tokio::spawn(async move { acquire(&domains, "a.com").await.map(drop) })
        })
        .collect();
    tokio::task::yield_now().await;
    let start = Instant::now();
    answer(permit, 0, Duration::ZERO, "").await;
    for waiting in waiting {
        let error = waiting.await.unwrap().unwrap_err();
        assert!(error.to_string().contains("the provider failed too often"), "{error}");
    }
    assert_eq!(start.elapsed(), Duration::ZERO);
}
