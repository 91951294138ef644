//! "429-prone connectors SHALL route provider requests through the shared send governor and retry layer":
//! the part of it that does not need a client. The error text is tested with the client.

use crate::support::{Provider, Reply, fetch, fetch_with, governor, ms, secs, steady};
use gleaner_http::governor::{BackoffReason, DeferReason, PressureReason};
use gleaner_http::{CallLimits, End, Refusal};
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn a_single_bounded_attempt_preserves_immediate_throw_behavior() {
    let governor = governor(&steady(ms(100)));
    let provider = Provider::first(vec![Reply::throttled("12")]);
    let asked = Instant::now();
    let finished = fetch_with(&governor, &provider, &CallLimits::single_attempt()).await.unwrap();
    // One call, at once, and it is pressure.
    assert_eq!((provider.sends().len(), asked.elapsed()), (1, ms(0)));
    assert_eq!(finished.end, End::Pressure { reason: PressureReason::RateLimited, retry_in: Some(secs(12)) });
    // The governor has learned, and left the gate to the next call, which pays it once.
    assert_eq!(governor.collection_rate().unwrap().last_backoff.unwrap().reason, BackoffReason::RetryAfter);
    fetch_with(&governor, &provider, &CallLimits::single_attempt()).await.unwrap();
    let gap = provider.gaps()[0];
    assert!(gap >= secs(12) && gap <= secs(12) + ms(2), "{gap:?}");
    // Raising the attempt count honours Retry-After inline and ends the same way.
    let governor = self::governor(&steady(ms(100)));
    let provider = Provider::new(|_| Reply::throttled("3"));
    let finished = fetch(&governor, &provider).await.unwrap();
    assert_eq!(finished.attempts, 4);
    assert!(matches!(finished.end, End::Pressure { reason: PressureReason::RateLimited, .. }), "{:?}", finished.end);
    assert!(provider.gaps().iter().all(|gap| *gap >= secs(3)), "{:?}", provider.gaps());
}

#[tokio::test(start_paused = true)]
async fn the_refusal_that_opens_the_circuit_is_still_a_refusal() {
    let governor = governor(&steady(ms(100)));
    let provider = Provider::always(429);
    // Where every answer says when to come back there is no circuit to open; here none does.
    let refused = loop {
        match fetch_with(&governor, &provider, &CallLimits::single_attempt()).await {
            Ok(finished) => {
                let is_pressure = matches!(finished.end, End::Pressure { reason: PressureReason::RateLimited, .. });
                assert!(is_pressure, "{:?}", finished.end);
            }
            Err(refused) => break refused.reason,
        }
    };
    let stops = [DeferReason::CircuitOpen, DeferReason::BeyondHorizon].map(Refusal::Deferred);
    assert!(stops.contains(&refused), "{refused}");
}
