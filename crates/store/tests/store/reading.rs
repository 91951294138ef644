//! What people and programs see: views for any SQLite program, history, the feed of changes, counters
//! that need no counting, and traces with a bound; also while somebody writes.
//!
//! The views are read by the plain `sqlite3` program. These tests never write by other means than the
//! store's own.

#![allow(clippy::disallowed_methods, reason = "tests know what time it is, and wait")]

use crate::world::{
    Home, MANIFEST, Sitting, Terms, coverage, delete, done, drive, gap, ingest_command, lease, now, parse, progress,
    record, slice_state, state,
};
use gleaner_engine::{Misfit, Validate};
use gleaner_protocol::{RawJson, Scope, StreamScope, TerminalReason, TimeRange};
use gleaner_store::{GapFilter, Reader, StoreError};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// What the `sqlite3` program answers.
fn sqlite3(home: &Home, sql: &str) -> String {
    let output = Command::new("sqlite3").arg("-readonly").arg(home.path()).arg(sql).output().expect("sqlite3 starts");
    assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text").trim_end().to_owned()
}

#[test]
fn another_program_reads_the_views_in_the_middle_of_a_run() {
    let home = Home::new();
    let mut sitting = Sitting::begin(home.open(), "c", MANIFEST);
    let body = r#"{"id":7,"name":"it's \"odd\"","more":1}"#;
    sitting.feed((record("items", "7", body) + &slice_state("items", "{}")).as_bytes()).expect("works");
    // Not durable yet, so nobody sees it.
    sitting.feed(record("items", "8", "{}").as_bytes()).expect("works");
    assert_eq!(sqlite3(&home, r#"SELECT key, id, name, data FROM "c.items""#), format!("7|7|it's \"odd\"|{body}"));
    let columns = sqlite3(&home, "SELECT group_concat(name) FROM pragma_table_info('c.items')");
    assert_eq!(columns, "key,id,name,data,emitted_at,stored_at,seq");
    sitting.feed((delete("items", "7") + &slice_state("items", "{}")).as_bytes()).expect("works");
    assert_eq!(sqlite3(&home, r#"SELECT key FROM "c.items""#), "8", "a deleted record is not shown");
}

fn manifest_of(streams: &[(&str, &str)]) -> String {
    let stream = |(name, properties): &(&str, &str)| {
        let name = serde_json::to_string(name).expect("a text");
        format!(
            "{{\"name\":{name},\"semantics\":\"mutable_state\",\"primary_key\":\"id\",\
             \"schema\":{{\"type\":\"object\",\"properties\":{{{properties}}}}}}}"
        )
    };
    let streams = streams.iter().map(stream).collect::<Vec<_>>().join(",");
    format!("{{\"connector_id\":\"x\",\"connector_key\":\"x\",\"version\":\"1\",\"streams\":[{streams}]}}")
}

fn record_in(stream: &str, key: &str, data: &str) -> String {
    let quoted = serde_json::to_string(stream).expect("a text");
    record("STREAM", key, data).replace("\"STREAM\"", &quoted)
}

#[test]
fn any_name_of_a_stream_or_property_has_a_view_and_a_column() {
    let weird = "\"a\\\"b\":{},\"x'); DROP TABLE records; --\":{},\"KEY\":{},\"Name\":{},\"name\":{},\"\":{},\
                 \"back\\\\slash\":{},\"n\\u0000l\":{},\"\\u00e9\":{},\"$.x[0]\":{},\"%\":{}";
    let names = ["it's", "a\"b", "'; DROP TABLE records; --", "Mail", "mail", "records", "sqlite_x", "%s", "\u{1f980}"];
    let streams = names.iter().map(|&name| (name, weird)).collect::<Vec<_>>();
    let home = Home::new();
    let body = r#"{"a\"b":1,"x'); DROP TABLE records; --":2,"KEY":3,"Name":4,"name":5,"back\\slash":6,"é":7,"$.x[0]":8,"%":9}"#;
    let lines = names.iter().map(|name| record_in(name, "k", body)).collect::<String>() + &done(names.len() as u64);
    for connection in ["sqlite_c", "records", "a.b\"'"] {
        let outcome = home.run_of(connection, &manifest_of(&streams), lines.as_bytes());
        assert_eq!(outcome.violation, None);
        let summaries = home.reader().streams(connection).expect("readable");
        assert_eq!(summaries.len(), names.len());
        for summary in summaries {
            let view = summary.view_name.expect("a view").replace('"', "\"\"");
            let column = |name: &str| sqlite3(&home, &format!("SELECT \"{name}\" FROM \"{view}\""));
            let found =
                ["a\"\"b", "x'); DROP TABLE records; --", "Name", "back\\slash", "é", "$.x[0]", "%"].map(column);
            assert_eq!(found, ["1", "2", "4", "6", "7", "8", "9"], "{view}");
            assert_eq!(column("key"), "k", "our own column wins");
            let ours = |name: &str| home.sql::<i64>(&format!("SELECT \"{name}\" FROM \"{view}\""));
            assert_eq!(["a\"\"b", "back\\slash"].map(ours), [1, 6], "{view}");
        }
    }
    home.assert_whole();
}

#[test]
fn a_changed_schema_makes_new_columns_and_keeps_every_record() {
    let home = Home::new();
    let first = manifest_of(&[("s", "\"a\":{}"), ("gone", "\"a\":{}")]);
    home.run_of("c", &first, (record("s", "1", r#"{"a":1,"b":2}"#) + &record("gone", "g", "{}") + &done(2)).as_bytes());
    let second = manifest_of(&[("s", "\"b\":{},\"c\":{}")]);
    home.run_of("c", &second, (record("s", "2", r#"{"b":3}"#) + &done(1)).as_bytes());
    assert_eq!(sqlite3(&home, r#"SELECT key, b, c FROM "c.s" ORDER BY key"#), "1|2|\n2|3|");
    // A stream that is no longer declared keeps its records and its view.
    assert_eq!(sqlite3(&home, r#"SELECT key FROM "c.gone""#), "g");
    let declared = home.reader().streams("c").expect("readable").into_iter().map(|stream| stream.declared);
    assert_eq!(declared.collect::<Vec<_>>(), [true, false]);
    assert_eq!(home.body("gone", "g").as_deref(), Some("{}"));
    home.assert_whole();
}

#[test]
fn records_that_are_identified_by_other_fields_now_are_refused_with_what_to_do() {
    let home = Home::new();
    home.run(&(record("items", "1", "{}") + &done(1)));
    let changed = MANIFEST.replacen("\"primary_key\":\"id\"", "\"primary_key\":[\"id\",\"day\"]", 1);
    let before = home.dump();
    let mut store = home.open();
    let error = store.register("c", &changed, &parse(&changed), now().wall).expect_err("refused");
    assert!(matches!(&error, StoreError::PrimaryKeyChanged { stream, records: 1, .. } if stream == "items"), "{error}");
    assert!(error.to_string().contains("under another name, or purge"), "{error}");
    assert_eq!(before, home.dump());
    // Without records nothing can be stored twice.
    store.register("new", MANIFEST, &parse(MANIFEST), now().wall).expect("new");
    store.register("new", &changed, &parse(&changed), now().wall).expect("nothing is stored yet");
}

#[test]
fn history_has_the_newest_version_first() {
    let home = Home::new();
    for version in 0..5 {
        home.run(&(record("items", "k", &format!("{{\"v\":{version}}}")) + &done(1)));
    }
    home.run(&(delete("items", "k") + &done(1)));
    let history = home.reader().history("c", "items", "k", None, 100).expect("readable");
    let bodies = history.iter().map(|version| version.body.as_deref()).collect::<Vec<_>>();
    let expected =
        [None, Some("{\"v\":4}"), Some("{\"v\":3}"), Some("{\"v\":2}"), Some("{\"v\":1}"), Some("{\"v\":0}")];
    assert_eq!(bodies, expected);
    assert!(history[0].deleted && history.is_sorted_by(|newer, older| newer.seq > older.seq));
    assert_eq!(home.reader().history("c", "items", "k", None, 2).expect("readable"), history[..2]);
}

/// Follows the feed until `done` is set and nothing more comes.
fn follow(reader: &Reader, done: &AtomicBool) -> Vec<(u64, String)> {
    let (mut seen, mut since) = (Vec::new(), 0);
    loop {
        let last_look = done.load(Ordering::SeqCst);
        let page = reader.changes(since, 37).expect("readable");
        since = page.last().map_or(since, |change| change.record.seq);
        seen.extend(page.iter().map(|change| (change.record.seq, change.record.key.clone())));
        if page.is_empty() && last_look {
            return seen;
        }
    }
}

#[test]
fn a_follower_of_the_feed_misses_nothing_while_two_write() {
    let home = Home::new();
    drop(home.open());
    let done_writing = Arc::new(AtomicBool::new(false));
    let writer = |name: &'static str| {
        let store = home.open();
        std::thread::spawn(move || {
            let mut sitting = Sitting::begin(store, name, MANIFEST);
            for slice in 0..30 {
                let lines = (0..20).map(|n| record("items", &format!("{name}{slice}.{n}"), "{}")).collect::<String>();
                sitting.feed((lines + &slice_state("items", "{}")).as_bytes()).expect("works");
            }
            sitting.feed(done(600).as_bytes()).expect("works");
            sitting.end().expect("works");
        })
    };
    let (reader, flag) = (home.reader(), Arc::clone(&done_writing));
    let follower = std::thread::spawn(move || follow(&reader, &flag));
    for thread in [writer("a"), writer("b")] {
        thread.join().expect("a thread");
    }
    done_writing.store(true, Ordering::SeqCst);
    let seen = follower.join().expect("a thread");
    assert_eq!(seen.len(), 1200);
    assert!(seen.iter().map(|(seq, _)| *seq).eq(1..=1200), "in order, without holes");
    let of = |name: &str| seen.iter().filter(|(_, key)| key.starts_with(name)).count();
    assert_eq!((of("a"), of("b")), (600, 600));
}

/// Rejects bodies that say so.
#[derive(Debug)]
struct NotBad;

impl Validate for NotBad {
    fn check(&self, _stream: &str, body: &RawJson<'_>) -> Result<(), Misfit> {
        if body.as_str().contains("bad") {
            Err(Misfit { pointer: "/x".to_owned(), reason: "it is bad".to_owned() })
        } else {
            Ok(())
        }
    }
}

fn run_checked(home: &Home, lines: &str) {
    let terms = Terms { validator: Box::new(NotBad), ..Terms::default() };
    let mut sitting = Sitting::begin_with(home.open(), "c", MANIFEST, terms);
    sitting.feed(lines.as_bytes()).expect("works");
    sitting.end().expect("works");
}

#[test]
fn a_record_leaves_quarantine_when_a_good_one_comes() {
    let home = Home::new();
    let bad = |key: &str, n: u8| record("items", key, &format!("{{\"x\":\"bad{n}\"}}"));
    run_checked(&home, &(bad("a", 1) + &bad("b", 1) + &bad("a", 2) + &done(3)));
    let quarantine = home.reader().quarantine("c", None, 0, 9).expect("readable");
    let found = quarantine.iter().map(|record| (record.key.as_str(), record.body.as_deref(), record.pointer.as_str()));
    let expected = [("b", Some(r#"{"x":"bad1"}"#), "/x"), ("a", Some(r#"{"x":"bad2"}"#), "/x")];
    assert_eq!(found.collect::<Vec<_>>(), expected);
    assert_eq!(home.body("items", "a"), None);
    run_checked(&home, &(record("items", "a", "{}") + &done(1)));
    let left = home.reader().quarantine("c", None, 0, 9).expect("readable");
    assert_eq!(left.iter().map(|record| record.key.as_str()).collect::<Vec<_>>(), ["b"]);
    assert_eq!(home.reader().streams("c").expect("readable")[0].quarantined, 1);
    home.assert_whole();
}

#[test]
fn counters_are_what_a_count_would_find_after_many_mixed_changes() {
    let home = Home::new();
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..12 {
        let (mut lines, mut records) = (String::new(), 0);
        for _ in 0..random.usize(1..150) {
            let key = format!("k{}", random.u8(0..40));
            records += 1;
            match random.u8(0..6) {
                0 => lines.push_str(&delete("items", &key)),
                1 => lines.push_str(&record("items", &key, "{\"x\":\"bad\"}")),
                2 => {
                    lines.push_str(&gap("details", &key));
                    records -= 1;
                }
                _ => lines.push_str(&record("items", &key, &format!("{{\"v\":{}}}", random.u8(0..3)))),
            }
            if random.u8(0..20) == 0 {
                lines.push_str(&slice_state("items", "{}"));
            }
        }
        run_checked(&home, &(lines + &done(records)));
        home.assert_whole();
    }
    let totals = &home.reader().connections().expect("readable")[0].totals;
    assert!(totals.records > 0 && totals.tombstones > 0 && totals.quarantined > 0 && totals.gaps_pending > 0);
    let counted = home.sql::<i64>("SELECT count(*) FROM versions");
    assert_eq!(totals.versions, u64::try_from(counted).expect("a count"));
}

#[test]
fn counters_follow_a_gap_from_waiting_to_work_to_recovery() {
    let home = Home::new();
    home.run(&((0..9).map(|n| gap("details", &n.to_string())).collect::<String>() + &done(0)));
    let mut sitting = Sitting::begin(home.open(), "c", MANIFEST);
    let ask = "{\"type\":\"DETAIL_GAPS_PAGE_REQUEST\",\"request_id\":\"p\",\"streams\":[\"details\"],\"reference_only\":true}\n";
    sitting.feed(ask.as_bytes()).expect("works");
    let counts = || {
        let totals = home.reader().connections().expect("readable")[0].totals.clone();
        (totals.gaps_pending, totals.gaps_in_progress, totals.gaps_recovered)
    };
    assert_eq!(counts(), (0, 9, 0));
    home.assert_whole();
    let first = home.reader().gaps("c", GapFilter::default(), 0, 4).expect("readable");
    for gap in &first {
        let recovered = format!(
            "{{\"type\":\"DETAIL_GAP_RECOVERED\",\"stream\":\"details\",\"gap_id\":\"{}\",\"reference_only\":true}}\n",
            gap.gap_id
        );
        let key = gap.record_key.as_deref().expect("a key");
        sitting.feed((record("details", key, "{}") + &recovered).as_bytes()).expect("works");
    }
    sitting.feed(done(4).as_bytes()).expect("works");
    assert_eq!(sitting.end().expect("works").violation, None);
    assert_eq!(counts(), (5, 0, 4), "those that were not recovered wait again");
    home.assert_whole();
}

#[test]
fn reading_counters_costs_the_same_however_many_records_there_are() {
    let home = Home::new();
    let driven = drive(ingest_command(&home), |pipe| {
        (0..60_000).try_for_each(|n| pipe.write_all(record("log", &n.to_string(), "{}").as_bytes()))?;
        pipe.write_all(done(60_000).as_bytes())
    });
    assert!(driven.success, "{}", driven.stderr);
    let reader = home.reader();
    let began = Instant::now();
    for _ in 0..100 {
        assert_eq!(reader.connections().expect("readable")[0].totals.records, 60_000);
        assert_eq!(reader.streams("c").expect("readable")[1].records, 60_000);
    }
    let counters = began.elapsed() / 200;
    let began = Instant::now();
    assert_eq!(home.sql::<i64>("SELECT count(*) FROM records JOIN versions USING (seq)"), 60_000);
    let count = began.elapsed();
    assert!(counters * 5 < count, "{counters:?} for the counters, {count:?} to count");
}

#[test]
fn runs_are_read_back_with_how_they_ended() {
    let home = Home::new();
    home.run(&(record("items", "1", "{}") + &coverage(&[], &[], &[]) + &state("items", r#"{"page":1}"#) + &done(1)));
    home.run("garbage\n");
    let runs = home.reader().runs("c", 9).expect("readable");
    let reasons = runs.iter().map(|run| run.reason).collect::<Vec<_>>();
    assert_eq!(reasons, [Some(TerminalReason::ProtocolViolation), Some(TerminalReason::Succeeded)]);
    assert_eq!(runs[1].committed.as_deref(), Some(r#"[["items",1]]"#));
    assert_eq!((runs[1].counts.seen, runs[1].counts.collected(), runs[1].slices), (1, 1, 2));
    assert_eq!(runs[0].violation.as_deref(), Some("bad_json at line 1, byte 0"));
    assert!(runs[1].started_at <= runs[1].ended_at.expect("an end"));
    assert_eq!(home.reader().run(&runs[1].run_id).expect("readable").as_ref(), Some(&runs[1]));
    assert_eq!(home.reader().last_success("c").expect("readable"), runs[1].ended_at);
}

#[test]
fn questions_are_read_back_while_they_wait() {
    let home = Home::new();
    let mut sitting = Sitting::begin(home.open(), "c", MANIFEST);
    let asked = "{\"type\":\"INTERACTION\",\"request_id\":\"q\",\"kind\":\"otp\",\"message\":\"The code?\"}\n";
    sitting.feed(asked.as_bytes()).expect("works");
    let open = home.reader().open_questions().expect("readable");
    assert_eq!(open.len(), 1);
    let question = (open[0].connection.as_str(), open[0].request_id.as_str(), open[0].message.as_str());
    assert_eq!((question, open[0].kind.as_str()), (("c", "q", "The code?"), "otp"));
    assert!(home.reader().connections().expect("readable")[0].question_open);
    drop(sitting);
    // The next run finds the one before interrupted, and nobody waits for the answer any more.
    home.execute("UPDATE leases SET process_started = process_started + 1");
    drop(Sitting::begin(home.open(), "c", MANIFEST));
    assert_eq!(home.reader().open_questions().expect("readable"), []);
}

#[test]
fn a_trace_has_a_bound_and_the_one_skip_outlives_the_flood() {
    let home = Home::new();
    let lines = 100_000;
    let skip = "{\"type\":\"SKIP_RESULT\",\"stream\":\"items\",\"reason\":\"not_available\",\"message\":\"no\"}\n";
    let driven = drive(ingest_command(&home), |pipe| {
        pipe.write_all(skip.as_bytes())?;
        (0..lines).try_for_each(|n| pipe.write_all(progress(&format!("p{n}")).as_bytes()))?;
        pipe.write_all(done(0).as_bytes())
    });
    assert!(driven.success, "{}", driven.stderr);
    let run = &home.reader().runs("c", 1).expect("readable")[0];
    let kept = u64::try_from(home.sql::<i64>("SELECT count(*) FROM events")).expect("a count");
    assert!((2000..=2502).contains(&kept), "{kept}");
    assert_eq!(kept + run.events_dropped, lines + 1, "what was dropped was counted");
    let first = &home.reader().events(&run.run_id, 0, 1).expect("readable")[0];
    assert_eq!(first.kind, "skip");
    let newest = home.sql::<String>("SELECT message FROM events ORDER BY id DESC LIMIT 1");
    assert!(newest.contains(&format!("\"p{}\"", lines - 1)), "{newest}");
    drop(lease(&mut home.open(), "c"));
}

#[test]
fn a_store_of_an_older_version_is_not_called_a_foreign_file() {
    let home = Home::new();
    home.run(&done(0));
    home.execute("PRAGMA user_version = 0");
    let error = Reader::open(&home.path()).expect_err("it has to be brought up to date");
    assert!(matches!(error, StoreError::OlderSchema { found: 0, .. }), "{error}");
    // One that a process is about to make.
    let new = home.at("new.db");
    std::fs::write(&new, "").expect("a file");
    let error = Reader::open(&new).expect_err("there is nothing in it");
    assert!(error.to_string().contains("start a run"), "{error}");
}

/// Point 2 of issue 18: such records went to quarantine, and the cursor was committed past them.
#[test]
fn a_record_whose_time_cannot_be_read_is_stored_counted_and_listed_until_a_version_with_a_time_comes() {
    let home = Home::new();
    let manifest =
        MANIFEST.replacen("\"primary_key\":\"id\"", "\"primary_key\":\"id\",\"consent_time_field\":\"at\"", 1);
    let run = |lines: String| {
        let time_range = Some(TimeRange { since: Some("2031-01-01".to_owned()), until: None });
        let items = StreamScope { time_range, ..StreamScope::all_of("items") };
        let terms = Terms { scope: Some(Scope::new(vec![items]).expect("a scope")), ..Terms::default() };
        let mut sitting = Sitting::begin_with(home.open(), "c", &manifest, terms);
        sitting.feed(lines.as_bytes()).expect("the store works");
        sitting.end().expect("the store works")
    };
    let times = ["1926201600", "1926201600000", "\"2031-01-15\"", "\"2031-01-15T00:00:00\"", "null", "\"soon\"", "{}"];
    let body = |time: &str| format!("{{\"at\":{time}}}");
    let all = times.iter().enumerate().map(|(at, time)| record("items", &at.to_string(), &body(time)));
    let lines = all.chain([delete("items", "gone")]).collect::<String>();
    let count = times.len() as u64 + 1;
    for again in [false, true] {
        let outcome = run(format!("{lines}{}{}", slice_state("items", "{\"to\":9}"), done(count)));
        assert_eq!((outcome.reason, outcome.counts.rejected), (TerminalReason::Succeeded, 0), "again {again}");
        // The second time the deletion is unchanged, too.
        assert_eq!((outcome.counts.collected(), outcome.counts.times_unreadable), (7 + u64::from(again), 3));
        assert_eq!(home.sql::<i64>("SELECT count(*) FROM quarantine"), 0);
    }
    let reader = home.reader();
    let listed = |reader: &Reader, after: u64| {
        let page = reader.records_without_time("c", "items", after, 2).expect("readable");
        page.iter().map(|record| (record.seq, record.key.clone())).collect::<Vec<_>>()
    };
    let first = listed(&reader, 0);
    assert_eq!(first.iter().map(|(_, key)| key.as_str()).collect::<Vec<_>>(), ["4", "5"]);
    assert_eq!(listed(&reader, first[1].0)[0].1, "6");
    assert_eq!(reader.coverage("c").expect("readable")[0].times_unreadable, 3);
    assert_eq!(reader.runs("c", 1).expect("readable")[0].counts.times_unreadable, 3);
    run(format!("{}{}", record("items", "4", &body("\"2031-01-16\"")), done(1)));
    assert_eq!(listed(&home.reader(), 0)[0].1, "5", "the new version has a time");
    home.assert_whole();
    let mut store = home.open();
    let leases = lease(&mut store, "c");
    store.purge("c", &leases).expect("forgotten");
    assert_eq!(home.sql::<i64>("SELECT count(*) FROM unreadable_times"), 0);
}
