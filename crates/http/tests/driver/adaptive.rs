//! "The shared connector HTTP governor SHALL provide adaptive, fastest-safe collection by default."

use crate::support::{Provider, Reply, fetch, fetch_with, governor, ms};
use gleaner_http::governor::{BackoffReason, CEILING_INTERVAL, DISCOVERY_INTERVAL};
use gleaner_http::{CallLimits, Governors, Key, Settings};
use std::time::Duration;
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn a_bare_governor_cold_starts_adaptive() {
    let governor = Governors::new().governor(&Key::new("example"), &Settings::default()).unwrap();
    let rate = governor.collection_rate().expect("pacing is on by default");
    assert_eq!(rate.current_interval_ms, DISCOVERY_INTERVAL.as_secs_f64() * 1000.0);
    assert_eq!(rate.last_backoff, None);
}

#[tokio::test(start_paused = true)]
async fn sustained_success_accelerates_the_rate_toward_the_ceiling() {
    let governor = governor(&Settings::default());
    let provider = Provider::always(200);
    let mut last = f64::INFINITY;
    for _ in 0..2000 {
        fetch(&governor, &provider).await.unwrap();
        let interval = governor.collection_rate().unwrap().current_interval_ms;
        assert!(interval <= last, "{interval} after {last}");
        last = interval;
    }
    let ceiling = CEILING_INTERVAL.as_secs_f64() * 1000.0;
    assert!((last - ceiling).abs() < 1e-6, "{last} is not the ceiling {ceiling}");
    let shortest = provider.gaps().into_iter().min().unwrap();
    assert!(shortest >= CEILING_INTERVAL, "{shortest:?}");
}

#[tokio::test(start_paused = true)]
async fn a_throttle_backs_the_rate_off_and_the_back_off_is_legible() {
    let governor = governor(&Settings::default());
    let provider = Provider::new(|send| Reply::status(if send == 30 { 429 } else { 200 }));
    for _ in 0..30 {
        fetch(&governor, &provider).await.unwrap();
    }
    let before = governor.collection_rate().unwrap();
    fetch_with(&governor, &provider, &CallLimits::single_attempt()).await.unwrap();
    let after = governor.collection_rate().unwrap();
    assert!(after.current_interval_ms > before.current_interval_ms, "{before:?} then {after:?}");
    let backoff = after.last_backoff.unwrap();
    assert_eq!((backoff.reason, backoff.at_interval_ms), (BackoffReason::Throttle, after.current_interval_ms));
}

#[tokio::test(start_paused = true)]
async fn a_connector_opts_out_of_pacing() {
    let mut settings = Settings::default();
    settings.config.discovery_interval = Duration::ZERO;
    let governor = governor(&settings);
    let provider = Provider::always(200);
    let start = Instant::now();
    for _ in 0..1000 {
        fetch(&governor, &provider).await.unwrap();
    }
    assert_eq!(start.elapsed(), ms(0));
    assert_eq!(governor.collection_rate(), None);
}
