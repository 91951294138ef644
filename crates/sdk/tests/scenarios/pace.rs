//! The pace: begun where the last run ended, kept on a declared stream's cursor, shown without an account.

use crate::script::{Said, Script, start};
use crate::server::serve;
use gleaner_protocol::DeferReason;
use gleaner_sdk::http::Settings;
use gleaner_sdk::{Collect, Left, Page, Stop};
use serde_json::{Value, json};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

fn unix_ms() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

/// One page, by one request.
fn one_page(run: &mut Collect<'_>, url: &str) -> Result<(), Stop> {
    let client = run.client()?;
    run.pages("notes", |_| {
        client.get(url).send()?.error_for_status()?;
        Ok(Page::last(json!({"page": 1})))
    })
    .map(drop)
}

/// The pace at the end of a run that began with this cursor.
fn pace_after(cursor: &Value) -> (Said, f64) {
    let url = serve(|_| ("200 OK", "{}".to_owned()));
    let mut start = start();
    start["state"] = json!({"notes": cursor});
    let said = Script::new(start).run(|run| one_page(run, &url));
    assert_eq!(said.check().done()["status"], "succeeded");
    let rate = &said.of("PROGRESS")[0]["collection_rate"];
    let interval = rate["current_interval_ms"].as_f64().unwrap();
    (said, interval)
}

/// The start of a run that has learned nothing.
const DISCOVERY_MS: f64 = 1000.0;

#[test]
fn a_fresh_resume_restores_the_prior_runs_learned_interval() {
    let cursor = json!({"page": 0, "pacing_interval_ms": 137.0, "pacing_recorded_at_ms": unix_ms()});
    let (_, interval) = pace_after(&cursor);
    // One success may have shortened it; the cold seed is far away.
    assert!((60.0..=137.0).contains(&interval), "{interval} ms");
}

#[test]
fn a_stale_resume_cold_starts_conservatively() {
    let stale = unix_ms() - 7 * 3_600_000;
    for cursor in [
        json!({"page": 0}),
        json!({"page": 0, "pacing_interval_ms": 137.0, "pacing_recorded_at_ms": stale}),
        json!({"page": 0, "pacing_interval_ms": "fast", "pacing_recorded_at_ms": unix_ms()}),
    ] {
        let (_, interval) = pace_after(&cursor);
        assert!(interval > DISCOVERY_MS / 2.1, "{interval} ms");
    }
}

#[test]
fn warm_start_state_rides_a_declared_stream_cursor() {
    let cursor = json!({"page": 0, "pacing_interval_ms": 137.0, "pacing_recorded_at_ms": unix_ms()});
    let (said, _) = pace_after(&cursor);
    for state in said.of("STATE") {
        assert_eq!(state["stream"], "notes", "no stream is made up for it");
        assert_eq!(state["cursor"]["page"], 1, "what the author put there stays");
    }
    let last = &said.of("STATE").last().unwrap()["cursor"];
    assert!(last["pacing_interval_ms"].as_f64().unwrap() > 0.0, "{last}");
    // The next run reads what this one wrote, and its author sees only his own.
    let mut next = start();
    next["state"] = json!({"notes": last});
    let said = Script::new(next).run(|run| {
        assert_eq!(run.cursor("notes").map(|cursor| Value::Object(cursor.clone())), Some(json!({"page": 1})));
        Ok(())
    });
    assert_eq!(said.check().of("STATE").len(), 0, "without a client nothing was learned");
}

#[test]
fn a_run_that_finds_nothing_new_keeps_the_pace_all_the_same() {
    let url = serve(|_| ("200 OK", "{}".to_owned()));
    let mut start = start();
    start["state"] = json!({"events": {"at": 5}});
    let said = Script::new(start).run(|run| {
        run.client()?.get(&url).send()?;
        Ok(())
    });
    let states = said.check().of("STATE");
    assert_eq!((states.len(), &states[0]["stream"], &states[0]["cursor"]["at"]), (1, &json!("events"), &json!(5)));
    assert!(states[0]["cursor"]["pacing_interval_ms"].is_number());
}

#[test]
fn a_cursor_that_waits_for_the_end_is_not_committed_to_keep_the_pace() {
    let url = serve(|_| ("200 OK", "{}".to_owned()));
    let mut start = start();
    start["state"] = json!({"notes": {"page": 0}});
    let said = Script::new(start).run(|run| {
        run.client()?.get(&url).send()?;
        run.emitter().stage("notes", json!({"page": 1}).as_object().unwrap())?;
        Err(Stop::failed("half-way"))
    });
    let states = said.check().of("STATE");
    assert_eq!((states.len(), states[0].get("slice")), (1, None));
}

#[test]
fn rate_state_is_emitted_as_redacted_progress() {
    let cursor = json!({"page": 0, "pacing_interval_ms": 137.0, "pacing_recorded_at_ms": unix_ms()});
    let (said, _) = pace_after(&cursor);
    let rate = said.of("PROGRESS")[0]["collection_rate"].as_object().unwrap();
    let names = rate.keys().map(String::as_str).collect::<std::collections::BTreeSet<_>>();
    let expected = [
        "ceiling_interval_ms",
        "ceiling_rate_per_min",
        "current_interval_ms",
        "effective_rate_per_min",
        "last_backoff",
        "object",
    ];
    assert_eq!(names, expected.into(), "numbers and a reason, nothing about an account");
}

#[test]
fn absent_controller_reads_as_honest_unknown() {
    let url = serve(|_| ("200 OK", "{}".to_owned()));
    let said = Script::new(start()).run(|run| {
        let mut settings = Settings::default();
        settings.config.discovery_interval = Duration::ZERO;
        let client = run.client_with(|builder| builder.settings(settings))?;
        client.get(&url).send()?;
        run.report_rate()
    });
    assert_eq!(said.check().types(), ["DONE"], "nothing is said, and no zero");
}

#[test]
fn the_owners_one_number_is_the_ceiling() {
    let url = serve(|_| ("200 OK", "{}".to_owned()));
    let said = Script::new(start()).set("PDPP_NOTES_PACING_MIN_INTERVAL_MS", "250").run(|run| one_page(run, &url));
    assert_eq!(said.check().of("PROGRESS")[0]["collection_rate"]["ceiling_interval_ms"], 250.0);
}

/// A START with a fast pace, so that a test does not wait, and this budget.
fn budgeted(budget: &Value) -> Script {
    let mut start = start();
    start["run_budget"] = budget.clone();
    start["state"] = json!({"notes": {"page": 0, "pacing_interval_ms": 20.0, "pacing_recorded_at_ms": unix_ms()}});
    Script::new(start)
}

#[test]
fn requests_that_only_the_client_sees_count_too() {
    let url = serve(|_| ("200 OK", "{}".to_owned()));
    let said = budgeted(&json!({"max_requests": 3})).run(|run| {
        let client = run.client()?;
        let page = |at: Option<&gleaner_sdk::Cursor>| {
            // Two requests for one page: the third is the last, in the middle of the second page.
            client.get(&url).send()?;
            client.get(&url).send()?;
            let page = at.and_then(|at| at["page"].as_u64()).unwrap_or(0);
            Ok(Page::then(json!({"page": page + 1})).record(page.to_string(), &json!({"id": page})))
        };
        let used_up = Left::Unfinished(DeferReason::RequestCap);
        assert_eq!(run.pages("notes", page)?, used_up, "a planned stop, after which the author's code goes on");
        let next = run.pages("events", |_| panic!("nothing more is fetched in this run"))?;
        assert_eq!(next, used_up);
        run.say("that was all for now")
    });
    assert_eq!((&said.check().done()["status"], said.of("RECORD").len()), (&json!("succeeded"), 1));
    let said_last = said.of("PROGRESS").iter().any(|progress| progress["message"] == "that was all for now");
    assert!(said_last, "the author's code went on");
    let gaps = said.of("DETAIL_GAP");
    assert_eq!(gaps.iter().map(|gap| &gap["stream"]).collect::<Vec<_>>(), ["notes", "events"]);
    for gap in gaps {
        assert_eq!(gap["last_error"], json!({"class": "run_cap_deferred"}));
    }
}

#[test]
fn when_the_retry_budget_is_exhausted_the_run_defers_rather_than_spins() {
    let url = serve(|_| ("503 Service Unavailable", String::new()));
    let said = budgeted(&json!({"max_requests": 3})).run(|run| one_page(run, &url));
    assert_eq!(said.check().done()["status"], "succeeded", "{:?}", said.lines);
    let gap = said.of("DETAIL_GAP")[0];
    assert_eq!((&gap["reason"], &gap["last_error"]), (&json!("retry_exhausted"), &json!({"class": "retry_budget"})));
}

#[test]
fn circuit_breaker_state_changes_are_observable_for_operator_health_views() {
    let url = serve(|_| ("500 Internal Server Error", String::new()));
    let said = budgeted(&Value::Null).run(|run| {
        let mut settings = Settings::default();
        settings.config.breaker.throughput_min = 3;
        settings.config.breaker.consecutive_failures = 3;
        settings.config.discovery_interval = Duration::from_millis(20);
        let client = run.client_with(|builder| builder.settings(settings).single_attempt())?;
        let left = run.pages("notes", |_| {
            // Three failures open it; then nothing is sent any more, and the client says so.
            while client.get(&url).send()?.status().is_server_error() {}
            Ok(Page::only())
        })?;
        assert_eq!(left, Left::Unfinished(DeferReason::CircuitOpen));
        Ok(())
    });
    assert_eq!(said.check().done()["status"], "succeeded", "a record that could not be fetched is a gap");
    let changes = said.of("PROGRESS").into_iter().filter(|progress| progress["provider_budget"].is_object());
    let circuit = &changes.collect::<Vec<_>>()[0]["provider_budget"]["circuit"];
    assert_eq!((&circuit["previous_state"], &circuit["state"]), (&json!("closed"), &json!("open")));
    assert_eq!(circuit["reason"], "provider_failure");
    let gap = said.of("DETAIL_GAP")[0];
    assert_eq!((&gap["reason"], &gap["last_error"]), (&json!("retry_exhausted"), &json!({"class": "circuit_open"})));
}
