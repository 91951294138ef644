//! Records: validated, limited to the scope, deleted where that exists, never with a credential.

use crate::script::{Script, manifest_with_auth, start};
use gleaner_protocol::{DetailGap, GapKey, RawJson};
use gleaner_sdk::{Emitted, Page, Stop};
use serde_json::{Value, json};

fn cursor(value: &Value) -> gleaner_sdk::Cursor {
    value.as_object().unwrap().clone()
}

/// An author's code.
type Code = fn(&mut gleaner_sdk::Collect<'_>) -> Result<(), Stop>;

#[test]
fn mutable_state_deletion() {
    let said = Script::new(start()).run(|run| {
        assert_eq!(run.emitter().tombstone("notes", "n1")?, Emitted::Sent);
        Ok(())
    });
    let record = said.check().of("RECORD")[0];
    assert_eq!((&record["key"], &record["op"], record.get("data")), (&json!("n1"), &json!("delete"), None));
    assert_eq!(said.done()["status"], "succeeded");
}

#[test]
fn append_only_streams() {
    let said = Script::new(start()).run(|run| {
        let _: Emitted = run.emitter().tombstone("events", "e1")?;
        Ok(())
    });
    assert_eq!(said.check().of("RECORD").len(), 0);
    let message = said.done()["error"]["message"].as_str().unwrap();
    assert!(message.contains("append_only") && message.contains("events"), "{message}");
}

#[test]
fn a_record_that_does_not_fit_is_counted_reported_and_not_collected() {
    let said = Script::new(start()).run(|run| {
        let emitter = run.emitter();
        assert_eq!(emitter.record("notes", "n1", &json!({"id": 1, "text": "good"}))?, Emitted::Sent);
        assert_eq!(emitter.record("notes", "n2", &json!({"id": "my diary"}))?, Emitted::Rejected);
        let tags = json!({"id": 3, "tags": {"me@example.test": "my diary"}});
        assert_eq!(emitter.record("notes", "n3", &tags)?, Emitted::Rejected);
        assert_eq!(emitter.record("notes", "", &json!({"id": 4}))?, Emitted::Rejected);
        assert_eq!(emitter.record("notes", "n5", &json!([1]))?, Emitted::Rejected);
        assert_eq!(emitter.record("notes", "n6", &f64::NAN)?, Emitted::Rejected, "NaN is null, and null no object");
        assert_eq!((emitter.counts().sent, emitter.counts().rejected), (1, 5));
        Ok(())
    });
    assert_eq!(said.check().of("RECORD").len(), 1);
    let skips = said.of("SKIP_RESULT");
    assert_eq!(skips.len(), 5);
    assert_eq!((&skips[0]["stream"], &skips[0]["resource_ids"]), (&json!("notes"), &json!(["n2"])));
    assert_eq!(
        (&skips[0]["reason"], &skips[0]["diagnostics"]["pointer"]),
        (&json!("record_schema_mismatch"), &json!("/id"))
    );
    assert_eq!(skips[1]["diagnostics"]["pointer"], "/tags/*", "a name that is data is not shown");
    let text = skips.iter().map(ToString::to_string).collect::<String>();
    assert!(!text.contains("diary") && !text.contains("example.test"), "{text}");
    assert_eq!(said.done()["records_emitted"], 1);
}

#[test]
fn many_records_that_do_not_fit_are_all_counted_and_not_all_told() {
    let said = Script::new(start()).run(|run| {
        for key in 0..1000 {
            let _: Emitted = run.emitter().record("notes", key.to_string(), &json!({}))?;
        }
        Ok(())
    });
    let skips = said.check().of("SKIP_RESULT");
    assert_eq!(skips.len(), 101);
    assert!(skips[100]["message"].as_str().unwrap().contains("900 more"), "{}", skips[100]);
}

#[test]
fn a_record_that_no_line_can_hold_is_reported_and_does_not_end_the_run() {
    let said = Script::new(start()).run(|run| {
        let long = json!({"id": 1, "text": "x".repeat(16 * 1024 * 1024)});
        assert_eq!(run.emitter().record("notes", "n1", &long)?, Emitted::Rejected);
        assert_eq!(run.emitter().record("notes", "n2", &json!({"id": 2}))?, Emitted::Sent);
        Ok(())
    });
    assert_eq!(said.check().of("SKIP_RESULT")[0]["reason"], "record_too_long");
    assert_eq!(said.done()["status"], "succeeded");
}

#[test]
fn scope_is_applied_for_the_author() {
    let mut start = start();
    let range = json!({"since": "2031-01-01", "until": "2031-02-01"});
    start["scope"]["streams"] =
        json!([{"name": "notes", "resources": ["n1", "n2", "n3"], "fields": ["text"], "time_range": range}]);
    let said = Script::new(start).run(|run| {
        let emitter = run.emitter();
        let note = |at: &str| json!({"id": 1, "text": "x", "tags": {}, "at": at});
        assert_eq!(emitter.record("notes", "n1", &note("2031-01-05T00:00:00Z"))?, Emitted::Sent);
        assert_eq!(emitter.record("notes", "n2", &note("2031-02-01T00:00:00Z"))?, Emitted::OutOfScope);
        assert_eq!(emitter.record("notes", "n4", &note("2031-01-05T00:00:00Z"))?, Emitted::OutOfScope);
        assert_eq!(emitter.record("notes", "n3", &note("soon"))?, Emitted::Sent);
        assert_eq!(emitter.tombstone("notes", "n4")?, Emitted::OutOfScope);
        // A stream that nobody asked for: nothing of it is said, and that is no mistake.
        assert_eq!(emitter.record("events", "e", &json!({}))?, Emitted::OutOfScope);
        emitter.slice("events", &cursor(&json!({"at": 1})))?;
        emitter.gap(DetailGap { stream: "events".to_owned(), ..DetailGap::default() })?;
        assert!(emitter.wants("notes", "n1") && !emitter.wants("notes", "n4") && !emitter.wants_stream("events"));
        Ok(())
    });
    assert_eq!(said.check().types(), ["RECORD", "RECORD", "DONE"]);
    assert_eq!(said.lines[0]["data"], json!({"id": 1, "text": "x", "at": "2031-01-05T00:00:00Z"}));
    assert_eq!(said.lines[1]["data"]["at"], "soon", "a time that cannot be read loses no record");
}

#[test]
fn a_stream_that_the_manifest_does_not_have_cannot_be_named() {
    let tries: [Code; 4] = [
        |run| run.emitter().record("nots", "k", &json!({})).map(drop),
        |run| run.emitter().slice("_pacing", &gleaner_sdk::Cursor::new()),
        |run| run.emitter().stage("_pacing", &gleaner_sdk::Cursor::new()),
        |run| run.emitter().gap(DetailGap { stream: "nots".to_owned(), ..DetailGap::default() }),
    ];
    for attempt in tries {
        let said = Script::new(start()).run(attempt);
        assert_eq!(said.check().types(), ["DONE"]);
        let message = said.done()["error"]["message"].as_str().unwrap();
        assert!(message.contains("declares no stream"), "{message}");
    }
}

#[test]
fn the_connections_own_credential_leaves_in_nothing_that_is_kept() {
    let secret = "t-secret-1";
    let script = || {
        let script = Script { manifest: manifest_with_auth(), ..Script::new(start()) };
        script.set("NOTES_USER", "somebody").set("NOTES_TOKEN", secret)
    };
    let said = script().run(|run| {
        let body = json!({"id": 1, "text": format!("Bearer {secret}")});
        assert_eq!(run.emitter().record("notes", "n1", &body)?, Emitted::Rejected);
        assert_eq!(run.emitter().record("notes", secret, &json!({"id": 1}))?, Emitted::Rejected);
        Err(Stop::failed(format!("refused: {secret}")))
    });
    assert_eq!(said.check().of("SKIP_RESULT")[0]["reason"], "record_holds_credential");
    assert!(!format!("{:?}", said.lines).contains(secret), "{:?}", said.lines);
    let locator = || RawJson::new(format!(r#"{{"url":"https://x.test?key={secret}"}}"#)).ok();
    let key = || Some(GapKey::Text("n".to_owned()));
    let stream = || "notes".to_owned();
    let said = script().run(|run| {
        let gap = DetailGap { stream: stream(), record_key: key(), detail_locator: locator(), ..DetailGap::default() };
        run.emitter().gap(gap)
    });
    assert_eq!(said.check().types(), ["DONE"]);
    let said = script().run(|run| run.emitter().slice("notes", &cursor(&json!({"next": secret}))));
    assert_eq!(said.check().types(), ["DONE"]);
}

#[test]
fn a_page_is_a_slice_and_what_comes_with_it_belongs_to_it() {
    let mut start = start();
    start["state"] = json!({"notes": {"page": 7}});
    let said = Script::new(start).run(|run| {
        let left = run.pages("notes", |at| {
            Ok(match at.and_then(|at| at["page"].as_u64()).unwrap() {
                7 => {
                    Page::then(json!({"page": 8})).record("n1", &json!({"id": 1})).record_of("events", "e", &json!({}))
                }
                8 => Page::last(json!({"page": 9})).tombstone("n0").record("n2", &json!({"id": 2})),
                page => panic!("page {page} was never asked for"),
            })
        })?;
        assert_eq!(left, gleaner_sdk::Left::Finished);
        Ok(())
    });
    assert_eq!(said.check().types(), ["RECORD", "RECORD", "STATE", "RECORD", "RECORD", "STATE", "DONE"]);
    for (line, page) in [(2, 8), (5, 9)] {
        assert_eq!(said.lines[line]["cursor"], json!({"page": page}));
        assert_eq!((&said.lines[line]["slice"], &said.lines[line]["stream"]), (&json!(true), &json!("notes")));
    }
}

#[test]
fn a_list_that_does_not_go_on_ends_the_run() {
    let said = Script::new(start()).run(|run| run.pages("notes", |_| Ok(Page::then(json!({"page": 1})))).map(drop));
    assert_eq!(said.of("STATE").len(), 1);
    assert!(said.check().done()["error"]["message"].as_str().unwrap().contains("makes no progress"));
}
