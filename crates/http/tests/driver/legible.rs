//! "The adaptive controller's live rate SHALL be legible for every governor-using connector."

use crate::support::{Provider, Reply, fetch, fetch_with, governor, ms, provider_takes, steady};
use gleaner_http::governor::{BackoffReason, CircuitReason, CircuitState, CircuitTrigger};
use gleaner_http::{CallLimits, CollectionRate, LastBackoff, Settings};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[tokio::test(start_paused = true)]
async fn rate_state_is_emitted_as_redacted_progress() {
    let governor = governor(&Settings::default());
    let provider = Provider::first(vec![Reply::status(200), Reply::status(429)]);
    fetch(&governor, &provider).await.unwrap();
    // These fields and no others: there is no place for an account, a route or a body.
    let CollectionRate {
        current_interval_ms,
        effective_rate_per_min,
        ceiling_interval_ms,
        ceiling_rate_per_min,
        last_backoff,
    } = governor.collection_rate().unwrap();
    assert_eq!(last_backoff, None);
    for product in [current_interval_ms * effective_rate_per_min, ceiling_interval_ms * ceiling_rate_per_min] {
        assert!((product - 60_000.0).abs() < 1e-6, "{product}");
    }
    fetch(&governor, &provider).await.unwrap();
    let LastBackoff { at_interval_ms, reason } = governor.collection_rate().unwrap().last_backoff.unwrap();
    assert_eq!(reason, BackoffReason::Throttle);
    assert!(at_interval_ms > current_interval_ms, "{at_interval_ms}");
}

#[tokio::test(start_paused = true)]
async fn absent_controller_reads_as_honest_unknown() {
    let mut settings = Settings::default();
    settings.config.discovery_interval = Duration::ZERO;
    let governor = governor(&settings);
    fetch(&governor, &Provider::always(200)).await.unwrap();
    assert_eq!(governor.collection_rate(), None);
    assert!(governor.take_circuit_transitions().is_empty());
    let status = serde_json::to_value(governor.status()).unwrap();
    assert_eq!((&status["interval_ms"], &status["rate_per_s"]), (&Value::Null, &Value::Null));
    assert_eq!(status["sent"], 1);
}

#[tokio::test(start_paused = true)]
async fn changes_of_the_circuit_are_handed_out_once_and_in_full() {
    let governor = governor(&steady(ms(100)));
    let provider = Provider::always(500);
    while fetch_with(&governor, &provider, &CallLimits::single_attempt()).await.is_ok() {}
    let change = governor.take_circuit_transitions()[0];
    assert_eq!((change.previous, change.state), (CircuitState::Closed, CircuitState::Open));
    assert_eq!((change.reason, change.trigger), (CircuitReason::ProviderFailure, CircuitTrigger::ProviderFailure));
    assert_eq!(change.request_count, provider.sends().len() as u64);
    assert!(governor.take_circuit_transitions().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_pause_before_a_retry_is_a_wait_that_is_seen() {
    let governor = governor(&Settings::default());
    let provider = Provider::first(vec![Reply::throttled("40")]);
    let call = tokio::spawn({
        let governor = governor.clone();
        async move { fetch(&governor, &provider).await.is_ok() }
    });
    provider_takes(ms(1000)).await;
    assert_eq!((governor.status().waiting, governor.status().waiting_for), (1, Some("gate")));
    assert!(call.await.unwrap());
    let status = governor.status();
    assert!(status.waiting == 0 && status.wait_p95_ms.is_some_and(|wait| wait >= 40_000), "{status:?}");
}

#[tokio::test(start_paused = true)]
async fn the_status_of_a_key_says_all_that_the_sidecar_shows() {
    let governor = governor(&Settings::default());
    let provider = Provider::first(vec![Reply::status(200), Reply::throttled("40")]);
    fetch(&governor, &provider).await.unwrap();
    fetch_with(&governor, &provider, &CallLimits::single_attempt()).await.unwrap();
    let status = serde_json::to_value(governor.status()).unwrap();
    for field in ["key", "mode", "interval_ms", "rate_per_s", "ceiling_interval_ms", "breaker", "wait_p95_ms"] {
        assert!(!status[field].is_null(), "{field}: {status}");
    }
    assert_eq!(keys(&status["last_backoff"]), BTreeSet::from(["reason", "at", "interval_ms"]));
    assert!(status["gate_until"].as_str().unwrap().ends_with('Z'), "{status}");
    let counts = ["sent", "rejected", "retried", "waiting"].map(|field| status[field].as_u64().unwrap());
    assert_eq!(counts, [2, 1, 0, 0]);
}
