//! "The shared governor SHALL expose a warm-start runtime seam so the learned rate compounds across runs."

use crate::support::{Provider, Reply, fetch, governor, ms};
use gleaner_http::governor::{Learned, STALE_AFTER, WallTime};
use gleaner_http::{SendGovernor, Settings, UndeclaredStream, persist_onto, restore_from};
use serde_json::{Map, Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

const DECLARED: [&str; 2] = ["issues", "comments"];

fn wall_now() -> WallTime {
    let millis = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    WallTime::from_unix_millis(u64::try_from(millis).unwrap())
}

fn interval(governor: &SendGovernor) -> f64 {
    governor.collection_rate().unwrap().current_interval_ms
}

/// The cursor that a run of forty requests leaves behind, and the interval that it learned.
async fn first_run() -> (Map<String, Value>, f64) {
    let governor = governor(&Settings::default());
    let provider = Provider::always(200);
    for _ in 0..40 {
        fetch(&governor, &provider).await.unwrap();
    }
    let mut cursor = json!({ "since": "2026-11-01" }).as_object().cloned().unwrap();
    persist_onto(&mut cursor, "issues", &DECLARED, governor.learned().as_ref()).unwrap();
    (cursor, interval(&governor))
}

#[tokio::test(start_paused = true)]
async fn a_fresh_resume_restores_the_prior_runs_learned_interval() {
    let (cursor, learned) = first_run().await;
    let next = governor(&Settings::default());
    let cold = interval(&next);
    next.restore(&restore_from(&cursor).unwrap());
    assert!((interval(&next) - learned).abs() < 1e-3 && learned < cold, "{learned} learned, {cold} cold");
    // The two fields alone, as others write them, do the same.
    let mut plain = cursor.clone();
    plain.remove("pacing_learned");
    let next = governor(&Settings::default());
    next.restore(&restore_from(&plain).unwrap());
    assert!((interval(&next) - learned).abs() < 1e-3, "{} restored, {learned} learned", interval(&next));
    // Never faster than the ceiling.
    let mut slow = Settings::default();
    slow.config.ceiling_interval = ms(5000);
    let next = governor(&slow);
    next.restore(&restore_from(&cursor).unwrap());
    assert!(interval(&next) >= 5000.0, "{}", interval(&next));
}

#[tokio::test(start_paused = true)]
async fn a_stale_resume_cold_starts_conservatively() {
    let cold = interval(&governor(&Settings::default()));
    let long_ago = wall_now().before(STALE_AFTER + ms(60_000));
    let stale = Learned::from_interval(ms(50), long_ago);
    let mut cursor = Map::new();
    persist_onto(&mut cursor, "issues", &DECLARED, Some(&stale)).unwrap();
    let next = governor(&Settings::default());
    next.restore(&restore_from(&cursor).unwrap());
    assert_eq!(interval(&next), cold);
    for cursor in [
        json!({}),
        json!({ "pacing_interval_ms": 50 }),
        json!({ "pacing_interval_ms": "50", "pacing_recorded_at_ms": wall_now().as_unix_millis() }),
        json!({ "pacing_interval_ms": -50, "pacing_recorded_at_ms": wall_now().as_unix_millis() }),
        json!({ "pacing_interval_ms": 0, "pacing_recorded_at_ms": wall_now().as_unix_millis() }),
        json!({ "pacing_interval_ms": 1e300, "pacing_recorded_at_ms": wall_now().as_unix_millis() }),
        json!({ "pacing_interval_ms": 50, "pacing_recorded_at_ms": -1 }),
        json!({ "pacing_interval_ms": 50, "pacing_recorded_at_ms": "yesterday" }),
    ] {
        assert_eq!(restore_from(cursor.as_object().unwrap()), None, "{cursor}");
    }
}

#[tokio::test(start_paused = true)]
async fn warm_start_state_rides_a_declared_stream_cursor() {
    let (cursor, _) = first_run().await;
    assert_eq!(cursor["since"], "2026-11-01", "what the stream keeps there stays");
    assert!(cursor["pacing_interval_ms"].is_number() && cursor["pacing_recorded_at_ms"].is_u64());
    // A stream of our own making is refused, and nothing is written.
    let learned = Learned::from_interval(ms(50), wall_now());
    let mut synthetic = Map::new();
    let error = persist_onto(&mut synthetic, "_pacing", &DECLARED, Some(&learned)).unwrap_err();
    let declared = DECLARED.map(str::to_owned).to_vec();
    assert_eq!(error, UndeclaredStream { stream: "_pacing".to_owned(), declared });
    assert!(synthetic.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_gate_rides_along_and_still_holds_in_the_next_run() {
    let first = governor(&Settings::default());
    let provider = Provider::first(vec![Reply::throttled("200")]);
    let _refused = crate::support::fetch_with(&first, &provider, &gleaner_http::CallLimits::single_attempt()).await;
    let mut cursor = Map::new();
    persist_onto(&mut cursor, "issues", &DECLARED, first.learned().as_ref()).unwrap();
    let next = governor(&Settings::default());
    next.restore(&restore_from(&cursor).unwrap());
    let remaining = next.waiting().and_then(|waiting| waiting.remaining).unwrap();
    assert!(remaining > ms(198_000), "{remaining:?}");
}
