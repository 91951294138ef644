//! Caps on a stream that goes forward: off unless set, looked at between pages, and never the provider's fault.

use crate::script::{Said, Script, start};
use gleaner_protocol::{DeferReason, GapReason};
use gleaner_sdk::{FetchError, FetchErrorKind, Left, Page};
use serde_json::{Value, json};
use std::cell::Cell;
use std::time::Duration;

/// Fetching a page takes this long.
const FETCH: Duration = Duration::from_secs(4);

/// Collects a list of ten pages of one note each, and says how it was left and how many were fetched.
fn collect(script: Script) -> (Said, Option<Left>, u64) {
    let (clock, fetches, left) = (std::sync::Arc::clone(&script.clock), Cell::new(0), Cell::new(None));
    let said = script.run(|run| {
        left.set(Some(run.pages("notes", |at| {
            fetches.set(fetches.get() + 1);
            clock.advance(FETCH);
            let page = at.and_then(|at| at["page"].as_u64()).unwrap_or(0);
            let next = json!({"page": page + 1});
            let next = if page == 9 { Page::last(next) } else { Page::then(next) };
            Ok(next.record(format!("n{page}"), &json!({"id": page})))
        })?));
        Ok(())
    });
    (said, left.get(), fetches.get())
}

#[test]
fn no_cap_configured_leaves_a_run_unbounded_and_unchanged() {
    let (plain, left, fetches) = collect(Script::new(start()));
    assert_eq!((left, fetches), (Some(Left::Finished), 10));
    for text in ["", "0", "-1", "many"] {
        let script = Script::new(start())
            .set("PDPP_NOTES_MAX_DETAIL_FETCHES_PER_RUN", text)
            .set("PDPP_NOTES_MAX_RUN_WALL_CLOCK_MS", text)
            .set("PDPP_NOTES_MAX_TAIL_DEFERRAL_GAPS_PER_RUN", text)
            .set("GLEANER_MAX_REQUESTS", text)
            .set("GLEANER_MAX_DURATION_MS", text);
        let (said, left, _) = collect(script);
        assert_eq!(left, Some(Left::Finished));
        assert_eq!(said.lines, plain.lines, "not a byte differs with {text:?}");
    }
    assert_eq!(plain.check().of("DETAIL_GAP").len(), 0);
}

/// The one gap of a run that a cap ended, which succeeded all the same.
fn cap_gap(said: &Said) -> &Value {
    assert_eq!(said.check().done()["status"], "succeeded", "a planned stop is no failure");
    let gaps = said.of("DETAIL_GAP");
    assert_eq!(gaps.len(), 1, "one gap stands for the rest of a stream");
    gaps[0]
}

#[test]
fn a_run_cap_deferral_does_not_arm_the_source_pressure_cooldown() {
    let mut start = start();
    start["run_budget"] = json!({"max_requests": 3});
    let (said, left, fetches) = collect(Script::new(start));
    assert_eq!((left, fetches), (Some(Left::Unfinished(DeferReason::RequestCap)), 3));
    let gap = cap_gap(&said);
    let reason = GapReason::from_code(gap["reason"].as_str().unwrap()).unwrap();
    assert_eq!((reason.code(), reason.pressure()), ("retry_exhausted", None));
    assert_eq!(gap["last_error"], json!({"class": "run_cap_deferred"}), "nothing failed, so there is no status");
    assert_eq!(gap["list_cursor"], json!({"page": 3}), "the last durable cursor");
    assert_eq!(said.of("STATE").last().unwrap()["cursor"], json!({"page": 3}));
}

#[test]
fn a_configured_wall_clock_cap_is_bounded_by_at_most_one_in_flight_fetch() {
    let script = Script::new(start()).set("PDPP_NOTES_MAX_RUN_WALL_CLOCK_MS", "10000");
    let clock = std::sync::Arc::clone(&script.clock);
    // Time before the first question does not count.
    clock.advance(Duration::from_secs(500));
    let (said, left, fetches) = collect(script);
    // At 0, 4 and 8 seconds a page is begun; the third ends at 12, four seconds being what one takes.
    assert_eq!((left, fetches), (Some(Left::Unfinished(DeferReason::WallClock)), 3));
    assert_eq!(said.of("RECORD").len(), 3, "a page that was begun is sent whole");
    assert_eq!(cap_gap(&said)["last_error"]["class"], "run_cap_deferred");
}

#[test]
fn the_rest_of_a_stream_is_closed_by_the_run_that_reaches_its_end() {
    let mut next = start();
    next["state"] = json!({"notes": {"page": 8}});
    next["detail_gaps"] = json!([{
        "gap_id": "g1", "stream": "notes", "record_key": "gleaner:rest-of-stream", "detail_locator": null,
        "list_cursor": {"page": 8}, "status": "pending", "reference_only": true, "lease_id": "l1",
    }]);
    let (said, left, _) = collect(Script::new(next.clone()));
    assert_eq!(left, Some(Left::Finished));
    assert_eq!(
        said.check().types(),
        ["RECORD", "STATE", "RECORD", "DETAIL_GAP_RECOVERED", "STATE", "DONE"],
        "before the cursor, so that both become durable together"
    );
    assert_eq!((&said.of("DETAIL_GAP_RECOVERED")[0]["gap_id"], said.of("DETAIL_GAP").len()), (&json!("g1"), 0));
    // A run that stops again writes the gap again and does not close it.
    next["state"] = json!({"notes": {"page": 2}});
    next["run_budget"] = json!({"max_requests": 1});
    let (said, _, _) = collect(Script::new(next.clone()));
    assert_eq!((cap_gap(&said)["list_cursor"].clone(), said.of("DETAIL_GAP_RECOVERED").len()), (json!({"page": 3}), 0));
    // A run that only recovers goes on where such a gap is, and nowhere else.
    next["recovery_only"] = json!(true);
    let (_, left, fetches) = collect(Script::new(next.clone()));
    assert_eq!((left, fetches), (Some(Left::Unfinished(DeferReason::RequestCap)), 1));
    next["detail_gaps"] = json!([]);
    let (said, left, fetches) = collect(Script::new(next));
    assert_eq!((left, fetches, said.check().types().len()), (Some(Left::NotAsked), 0, 1));
}

#[test]
fn an_open_circuit_is_waited_for_while_the_budget_remains() {
    let open = |wait| {
        let mut error = FetchError::new(FetchErrorKind::CircuitOpen, "open");
        error.retry_in = Some(wait);
        error
    };
    // It lets something through at the third try.
    let tries = Cell::new(0);
    let script = Script::new(start());
    let clock = std::sync::Arc::clone(&script.clock);
    let said = script.run(|run| {
        let left = run.pages("notes", |_| {
            tries.set(tries.get() + 1);
            if tries.get() < 3 { Err(open(Duration::from_secs(60))) } else { Ok(Page::last(json!({"page": 1}))) }
        })?;
        assert_eq!(left, Left::Finished);
        Ok(())
    });
    assert_eq!(said.check().done()["status"], "succeeded");
    assert_eq!(gleaner_sdk::Clock::now(clock.as_ref()).as_millis(), 120_000);
    // It never does: the rest is left, and that is neither a cap of the owner's nor pressure.
    let said = Script::new(start()).run(|run| run.pages("notes", |_| Err(open(Duration::from_secs(60)))).map(drop));
    let gap = cap_gap(&said);
    assert_eq!((&gap["reason"], &gap["last_error"]), (&json!("retry_exhausted"), &json!({"class": "circuit_open"})));
    // There is less time than that.
    let script = Script::new(start()).set("PDPP_NOTES_MAX_RUN_WALL_CLOCK_MS", "30000");
    let clock = std::sync::Arc::clone(&script.clock);
    let said = script.run(|run| run.pages("notes", |_| Err(open(Duration::from_secs(60)))).map(drop));
    assert_eq!(cap_gap(&said)["last_error"]["class"], "run_cap_deferred");
    assert_eq!(gleaner_sdk::Clock::now(clock.as_ref()).as_millis(), 0, "it did not wait in vain");
}

#[test]
fn a_budget_that_ends_in_the_authors_own_code_leaves_a_gap_per_unfinished_stream() {
    let mut start = start();
    start["state"] = json!({"events": {"at": 5}});
    let said = Script::new(start).run(|run| {
        let _: Left = run.pages("notes", |_| Ok(Page::last(json!({"page": 1}))))?;
        let used_up = FetchError::new(FetchErrorKind::Deferred(DeferReason::RequestCap), "used up");
        Err(used_up.into())
    });
    let gap = cap_gap(&said);
    assert_eq!((&gap["stream"], &gap["list_cursor"]), (&json!("events"), &json!({"at": 5})));
}
