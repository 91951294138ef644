//! A connector that sends nonsense, too much, too late or twice: each fault gets its name, what was
//! accepted before it is kept, and memory has a bound.
//!
//! Everything goes through the real decoder, engine and store; where memory is measured, through a
//! process of its own. These tests never look at how a fault is found, only at what is durable after
//! it and what a person is told.

#![allow(clippy::disallowed_methods, clippy::print_stdout, reason = "tests know the time, wait, and show figures")]

use crate::world::{
    Home, MANIFEST, Sitting, Terms, coverage, delete, done, drive, full_size, gap, ingest_command, now, record,
    record_raw, slice_state, state,
};
use gleaner_engine::RunOutcome;
use gleaner_protocol::{Limits, Scope, StreamScope, TerminalReason, ViolationCode};
use gleaner_store::{GapFilter, Settled};
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What a driver has before it is fed anything, with room for another machine's libraries. In KiB.
const BASE_KIB: u64 = 24 * 1024;

/// A slice that is whole, so that every test can see that it stays.
fn good_slice() -> String {
    record("items", "good", r#"{"id":"good"}"#) + &slice_state("items", r#"{"page":1}"#)
}

/// Feeds a bad line after a good slice, and sees to it that nothing else happened.
fn refuse(bad: &[u8]) -> (Home, RunOutcome) {
    let home = Home::new();
    let lines = [good_slice().as_bytes(), bad, done(9).as_bytes()].concat();
    let outcome = home.run_bytes(&lines);
    assert_eq!(outcome.reason, TerminalReason::ProtocolViolation);
    assert_eq!(home.body("items", "good").as_deref(), Some(r#"{"id":"good"}"#), "what came before is kept");
    assert_eq!(home.cursor("items").as_deref(), Some(r#"{"page":1}"#));
    home.assert_whole();
    (home, outcome)
}

/// The code of the fault and the byte at which it is.
fn fault(bad: &[u8]) -> (ViolationCode, u64) {
    let (_, outcome) = refuse(bad);
    let violation = outcome.violation.expect("a violation");
    let position = violation.position.expect("a place");
    assert_eq!(position.line, 3, "the third line is the bad one");
    (violation.code, position.offset)
}

fn stored(data: &str) -> Option<String> {
    let home = Home::new();
    let outcome = home.run(&(record("items", "n", data) + &done(1)));
    assert_eq!(outcome.reason, TerminalReason::Succeeded, "{:?}", outcome.violation);
    home.body("items", "n")
}

#[test]
fn f20_a_last_line_without_its_line_feed_is_never_a_message_and_what_came_before_stays() {
    let home = Home::new();
    let cut = good_slice() + record("items", "cut", "{}").trim_end();
    let outcome = home.run(&cut);
    let violation = outcome.violation.expect("a violation");
    assert_eq!((outcome.reason, violation.code), (TerminalReason::ProtocolViolation, ViolationCode::IncompleteLine));
    assert_eq!(violation.stream.as_deref(), Some("items"));
    assert_eq!(home.cursor("items").as_deref(), Some(r#"{"page":1}"#));
    assert!(home.body("items", "good").is_some());
    assert_eq!(home.body("items", "cut"), None);
    home.assert_whole();
}

#[test]
fn f21_a_gigabyte_in_one_line_ends_at_the_limit_in_twice_the_limit_of_memory() {
    let home = Home::new();
    let block = vec![b'x'; 1 << 20];
    let driven = drive(ingest_command(&home), |pipe| {
        pipe.write_all(good_slice().as_bytes())?;
        pipe.write_all(br#"{"type":"RECORD","stream":"items","key":"big","data":{"x":""#)?;
        (0..1024).try_for_each(|_| pipe.write_all(&block))
    });
    let said = format!("line_too_long at line 3, byte {}", Limits::LINE_BYTES_MAX);
    assert!(driven.stderr.contains(&said), "{}", driven.stderr);
    let limit = 2 * Limits::LINE_BYTES_MAX as u64 / 1024 + BASE_KIB;
    assert!((1..limit).contains(&driven.peak_kib), "{} KiB", driven.peak_kib);
    println!("f21: peak {} KiB", driven.peak_kib);
    assert_eq!(home.cursor("items").as_deref(), Some(r#"{"page":1}"#));
    home.assert_whole();
}

#[test]
fn f21_a_line_may_be_as_long_as_the_limit_and_not_one_byte_longer() {
    let around = record("items", "long", r#"{"x":""}"#).trim_end().len();
    for (length, code) in [(-1, None), (0, None), (1, Some(ViolationCode::LineTooLong))] {
        let text = "y".repeat(Limits::LINE_BYTES_MAX.strict_add_signed(length) - around);
        let data = format!("{{\"x\":\"{text}\"}}");
        let home = Home::new();
        let outcome = home.run(&(record("items", "long", &data) + &done(1)));
        assert_eq!(outcome.violation.map(|violation| violation.code), code, "{length}");
        let body = home.body("items", "long");
        assert!(if code.is_none() { body.as_deref() == Some(&data) } else { body.is_none() }, "{length}");
    }
}

#[test]
fn f22_what_is_not_utf_8_is_refused_with_its_byte_and_never_repeated() {
    let line = |bytes: &[u8]| [br#"{"type":"RECORD","stream":"items","key":""#, bytes, b"SECRET\"}\n"].concat();
    let at = br#"{"type":"RECORD","stream":"items","key":""#.len() as u64;
    let cases: [(&[u8], ViolationCode); 5] = [
        (b"\xff", ViolationCode::InvalidUtf8),
        (b"\xc0\x80", ViolationCode::InvalidUtf8),
        (b"\xed\xa0\x80", ViolationCode::InvalidUtf8),
        (b"\xf4\x90\x80\x80", ViolationCode::InvalidUtf8),
        (b"\0", ViolationCode::NulByte),
    ];
    for (bytes, code) in cases {
        let (home, outcome) = refuse(&line(bytes));
        let violation = outcome.violation.expect("a violation");
        assert_eq!((violation.code, violation.position.map(|place| place.offset)), (code, Some(at)), "{bytes:?}");
        let kept = home.sql::<String>("SELECT violation FROM runs");
        assert!(kept.contains(code.code()) && !kept.contains("SECRET"), "{kept}");
        assert!(!violation.to_string().contains("SECRET"));
        let raw = std::fs::read(home.path()).expect("a file");
        assert!(!raw.windows(6).any(|window| window == b"SECRET"), "nothing of the line is in the store");
    }
    assert_eq!(fault(b"\xef\xbb\xbf{\"type\":\"DONE\"}\n"), (ViolationCode::BadJson, 0), "a byte order mark");
}

#[test]
fn f22_escaped_nul_and_half_characters_in_data_are_stored_byte_for_byte() {
    for data in [r#"{"x":"\u0000"}"#, r#"{"x":"\ud800"}"#, r#"{"\udfff":"\uDBFF\ud800"}"#, "{\"x\":\"\u{feff}\"}"] {
        assert_eq!(stored(data).as_deref(), Some(data));
    }
    // In a key it could not be found again.
    let bad = record_raw("items", r#""\ud800""#, "{}");
    assert_eq!(fault(bad.as_bytes()).0, ViolationCode::LoneSurrogate);
}

#[test]
fn f23_what_is_not_json_is_refused_and_says_where() {
    let cases: [(&[u8], ViolationCode, u64); 6] = [
        (b"garbage\n", ViolationCode::BadJson, 0),
        (b"{\"type\":NaN}\n", ViolationCode::BadJson, 8),
        (b"{\"type\":\"DONE\"}}\n", ViolationCode::BadJson, 15),
        (b"{\"type\":\"DONE\",}\n", ViolationCode::BadJson, 15),
        (b"{\"type\":01}\n", ViolationCode::BadJson, 9),
        (b"[]\n", ViolationCode::NotAnObject, 0),
    ];
    for (bad, code, offset) in cases {
        assert_eq!(fault(bad), (code, offset), "{}", String::from_utf8_lossy(bad));
    }
    let data = format!("{{\"x\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(fault(record("items", "deep", &data).as_bytes()).0, ViolationCode::TooDeep);
}

#[test]
fn f23_numbers_of_any_size_are_kept_as_they_were_written() {
    let data = r#"{"a":1e400,"b":9223372036854775808,"c":-0,"d":0.1000000000000000055511151231257827,"e":1E+2}"#;
    assert_eq!(stored(data).as_deref(), Some(data));
}

#[test]
fn f23_an_object_with_a_million_keys_is_stored_and_one_with_more_than_can_be_checked_is_refused() {
    let object = |keys: u32| {
        let members = (0..keys).map(|n| format!("\"{n:x}\":0")).collect::<Vec<_>>().join(",");
        format!("{{{members}}}")
    };
    let data = object(1_000_000);
    assert_eq!(stored(&data).as_deref(), Some(data.as_str()));
    assert_eq!(fault(record("items", "many", &object((1 << 20) + 1)).as_bytes()).0, ViolationCode::TooManyKeys);
}

#[test]
fn f24_an_object_with_the_same_key_twice_is_refused_at_any_depth_and_however_it_is_written() {
    for data in [r#"{"a":1,"a":1}"#, r#"{"x":[{"a":1,"b":2,"a":3}]}"#, r#"{"a":1,"\u0061":2}"#] {
        assert_eq!(fault(record("items", "k", data).as_bytes()).0, ViolationCode::DuplicateKey, "{data}");
    }
    let outside = br#"{"type":"RECORD","stream":"items","stream":"log","key":"k","op":"delete"}"#;
    assert_eq!(fault(&[outside, &b"\n"[..]].concat()).0, ViolationCode::DuplicateKey);
}

#[test]
fn f25_the_same_record_twice_in_one_slice_is_stored_once() {
    let home = Home::new();
    let twice = record("items", "k", r#"{"v":1}"#).repeat(2);
    home.run(&(twice + &done(2)));
    let run = &home.reader().runs("c", 1).expect("runs")[0];
    assert_eq!((run.counts.unchanged, run.repeated, run.counts.collected()), (1, 0, 2));
    assert_eq!(home.reader().history("c", "items", "k", None, 9).expect("history").len(), 1);
    home.assert_whole();
}

#[test]
fn f25_of_two_different_records_under_one_key_the_last_counts_and_both_are_kept() {
    let home = Home::new();
    home.run(&(record("items", "k", r#"{"v":1}"#) + &record("items", "k", r#"{"v":2}"#) + &done(2)));
    let run = &home.reader().runs("c", 1).expect("runs")[0];
    assert_eq!((run.counts.unchanged, run.repeated, run.slices), (0, 1, 1));
    assert_eq!(home.body("items", "k").as_deref(), Some(r#"{"v":2}"#));
    let stream = &home.reader().streams("c").expect("streams")[0];
    assert_eq!((stream.records, stream.versions), (1, 2));
    home.assert_whole();
}

#[test]
fn f26_a_key_outside_of_the_grant_is_refused_by_stream_and_key() {
    let home = Home::new();
    let only = StreamScope { name: "items".to_owned(), resources: vec!["a".to_owned()], ..StreamScope::default() };
    let terms = Terms { scope: Some(Scope::new(vec![only]).expect("a scope")), ..Terms::default() };
    let mut sitting = Sitting::begin_with(home.open(), "c", MANIFEST, terms);
    sitting.feed((record("items", "a", "{}") + &record("items", "b", "{}")).as_bytes()).expect("works");
    let violation = sitting.end().expect("works").violation.expect("a violation").to_string();
    assert_eq!(violation, r#"key_out_of_resources at line 2, byte 0, field key, stream "items", key "b""#);
    assert!(home.body("items", "a").is_some());
    assert_eq!(home.body("items", "b"), None);
}

#[test]
fn f26_records_cursors_and_gaps_of_an_undeclared_stream_are_refused_by_its_name() {
    for line in [record("other", "k", "{}"), state("other", "{}"), slice_state("other", "{}"), gap("other", "k")] {
        let (_, outcome) = refuse(line.as_bytes());
        let violation = outcome.violation.expect("a violation").to_string();
        assert!(violation.starts_with("stream_out_of_scope at line 3"), "{violation}");
        assert!(violation.contains(r#"stream "other""#), "{violation}");
    }
}

#[test]
fn f27_a_cursor_before_its_records_counts_only_if_the_run_succeeds() {
    let home = Home::new();
    let early = state("items", r#"{"page":5}"#) + &record("items", "late", "{}");
    let outcome = home.run(&(early.clone() + "{\"cut"));
    assert_eq!(home.cursor("items"), None);
    assert_eq!(outcome.withheld.len(), 1, "{:?}", outcome.withheld);
    assert!(home.body("items", "late").is_some(), "what was accepted is kept");
    home.run(&(early + &coverage(&[], &[], &[]) + &done(1)));
    assert_eq!(home.cursor("items").as_deref(), Some(r#"{"page":5}"#));
    home.assert_whole();
}

#[test]
fn f27_a_cursor_that_goes_backwards_is_the_connectors_business_and_commits_go_forward() {
    let home = Home::new();
    let back = slice_state("log", r#"{"page":9}"#) + &slice_state("log", r#"{"page":2}"#);
    home.run(&(back + &record("log", "k", "{}") + &state("log", r#"{"page":1}"#) + &done(1)));
    assert_eq!(home.cursor("log").as_deref(), Some(r#"{"page":1}"#), "the last one counts");
    assert_eq!(home.sql::<String>("SELECT group_concat(seq) FROM commits ORDER BY id"), "1,2,3");
    home.assert_whole();
}

#[test]
fn f28_a_missing_or_short_account_withholds_the_checkpoint_and_says_so() {
    let lines = record("details", "a", "{}") + &state("items", r#"{"page":2}"#);
    for account in [String::new(), coverage(&["a", "b"], &["a"], &[]), coverage(&["a"], &[], &["a"])] {
        let home = Home::new();
        let outcome = home.run(&(lines.clone() + &account + &done(1)));
        assert_eq!(outcome.reason, TerminalReason::Succeeded);
        assert_eq!(home.cursor("items"), None);
        let run = &home.reader().runs("c", 1).expect("runs")[0];
        assert_eq!(run.withheld.as_deref(), Some(r#"[["items","coverage_shortfall"]]"#));
        assert!(home.body("details", "a").is_some());
        home.assert_whole();
    }
}

#[test]
fn f28_a_key_that_nothing_accounts_for_under_a_committed_slice_becomes_a_gap() {
    let home = Home::new();
    let lines = record("details", "a", "{}") + &slice_state("items", r#"{"page":1}"#);
    let lines = lines + &coverage(&["a", "b"], &["a"], &[]);
    home.run(&(lines + &state("items", r#"{"page":2}"#) + &done(1)));
    assert_eq!(home.cursor("items").as_deref(), Some(r#"{"page":1}"#), "no further than the slice");
    assert_eq!(home.reader().runs("c", 1).expect("runs")[0].counts.unaccounted, 1);
    let gaps = home.reader().gaps("c", GapFilter::default(), 0, 9).expect("gaps");
    let found = gaps.iter().map(|gap| (gap.record_key.as_deref(), gap.reason.as_deref())).collect::<Vec<_>>();
    assert_eq!(found, [(Some("b"), Some("unaccounted"))]);
    home.assert_whole();
}

#[test]
fn f28_an_account_that_contradicts_itself_is_refused() {
    let cases = [
        (coverage(&["a", "a"], &["a"], &[]), ViolationCode::CoverageDuplicateKey),
        (coverage(&["a"], &["a"], &["a"]), ViolationCode::CoverageOverlap),
        (coverage(&["a"], &["a", "b"], &[]), ViolationCode::CoverageKeyNotRequired),
        (coverage(&["a"], &["a"], &[]).repeat(2), ViolationCode::CoverageRepeated),
    ];
    for (account, code) in cases {
        let home = Home::new();
        let outcome = home.run(&(state("items", "{}") + &account + &done(0)));
        let violation = outcome.violation.expect("a violation");
        assert_eq!((violation.code, violation.stream.as_deref()), (code, Some("details")));
        assert_eq!(home.cursor("items"), None);
        assert!(!outcome.withheld.is_empty());
    }
}

#[test]
fn f28_a_million_keys_in_one_account_are_counted_in_bounded_memory() {
    let home = Home::new();
    let keys = if full_size() { 1_000_000 } else { 100_000 };
    let driven = drive(ingest_command(&home), |pipe| {
        pipe.write_all(state("items", r#"{"page":1}"#).as_bytes())?;
        pipe.write_all(br#"{"type":"DETAIL_COVERAGE","stream":"details","state_stream":"items","required_keys":["#)?;
        for list in ["", r#"],"hydrated_keys":["#] {
            pipe.write_all(list.as_bytes())?;
            for n in 0..keys {
                write!(pipe, "{}\"{n:020}\"", if n == 0 { "" } else { "," })?;
            }
        }
        pipe.write_all(b"],\"gap_keys\":[],\"reference_only\":true}\n")?;
        pipe.write_all(done(0).as_bytes())
    });
    assert!(driven.success, "{}", driven.stderr);
    assert!((1..100 * 1024).contains(&driven.peak_kib), "{} KiB", driven.peak_kib);
    println!("f28: {keys} keys, peak {} KiB", driven.peak_kib);
    assert_eq!(home.cursor("items"), None, "nothing was sent");
    let details = home.reader().coverage("c").expect("readable").into_iter().find(|of| of.summary.name == "details");
    let listing = details.and_then(|details| details.listing).expect("a report");
    assert_eq!((listing.unconfirmed, listing.waiting.len()), (keys, 100), "some are named, all are counted");
    assert_eq!(listing.waiting[0], "00000000000000000000");
}

#[test]
fn f29_a_deletion_where_nothing_is_ever_deleted_is_refused_and_one_of_an_unknown_record_is_kept() {
    let (home, outcome) = refuse(delete("log", "k").as_bytes());
    let violation = outcome.violation.expect("a violation");
    assert_eq!((violation.code, violation.key.as_deref()), (ViolationCode::DeleteOnAppendOnly, Some("k")));
    home.run(&(delete("items", "never seen") + &done(1)));
    let kept = home.reader().record("c", "items", "never seen").expect("readable").expect("a tombstone");
    assert!(kept.deleted && kept.body.is_none());
    assert_eq!(home.reader().streams("c").expect("streams")[0].tombstones, 1);
    home.assert_whole();
}

#[test]
fn f30_keys_are_opaque_and_distinct_ones_stay_distinct() {
    let long = "k".repeat(1_000_000);
    let keys = [
        "../../x",
        "a",
        "\u{1f980}",
        "\u{e9}",
        "e\u{301}",
        "__proto__",
        "'; DROP TABLE records; --",
        "%",
        "A",
        " a",
        "NULL",
        "1",
        "1.0",
        long.as_str(),
    ];
    let home = Home::new();
    let body = |at: usize| format!("{{\"n\":{at}}}");
    let lines = keys.iter().enumerate().map(|(at, key)| record("items", key, &body(at))).collect::<String>();
    home.run(&(lines + &done(keys.len() as u64)));
    for (at, key) in keys.iter().enumerate() {
        assert_eq!(home.body("items", key), Some(body(at)), "{:?}", &key[..key.len().min(20)]);
    }
    assert_eq!(home.reader().streams("c").expect("streams")[0].records, keys.len() as u64);
    let listed = home.reader().records("c", "items", None, 100).expect("records");
    assert_eq!(listed.len(), keys.len());
    home.assert_whole();
    assert_eq!(fault(record("items", "", "{}").as_bytes()).0, ViolationCode::MalformedField, "no key at all");
}

#[test]
fn f31_a_flood_of_gaps_is_kept_in_bounded_memory() {
    let home = Home::new();
    let gaps = if full_size() { 1_000_000 } else { 100_000 };
    let driven = drive(ingest_command(&home), |pipe| {
        (0..gaps).try_for_each(|n| pipe.write_all(gap("details", &n.to_string()).as_bytes()))?;
        pipe.write_all(done(0).as_bytes())
    });
    assert!(driven.success, "{}", driven.stderr);
    assert!((1..2 * BASE_KIB).contains(&driven.peak_kib), "{} KiB", driven.peak_kib);
    println!("f31: {gaps} gaps, peak {} KiB", driven.peak_kib);
    assert_eq!(home.reader().connections().expect("connections")[0].totals.gaps_pending, gaps);
}

#[test]
fn f32_of_two_answers_to_one_question_the_first_counts_and_the_second_is_told() {
    let home = Home::new();
    let mut sitting = Sitting::begin(home.open(), "c", MANIFEST);
    for round in 0..20 {
        let asked = format!(
            "{{\"type\":\"INTERACTION\",\"request_id\":\"q{round}\",\"kind\":\"otp\",\"message\":\"code?\"}}\n"
        );
        let mut question = Sitting::begin(home.open(), &format!("c{round}"), MANIFEST);
        question.feed(asked.as_bytes()).expect("works");
        let id = *question.questions.first().expect("a question");
        let answer = |mut store: gleaner_store::Store| {
            std::thread::spawn(move || store.settle_question(id, Settled::Answered, now().wall).expect("works"))
        };
        let both = [home.open(), home.open()].map(answer).map(|thread| thread.join().expect("a thread"));
        assert_eq!(both.iter().filter(|&&first| first).count(), 1, "{both:?}");
        assert_eq!(home.reader().open_question(id).expect("readable"), None);
        assert!(!sitting.store.settle_question(id, Settled::Cancelled, now().wall).expect("works"), "too late");
    }
}

/// Holds the write lock for a while; returns once it has it.
fn lock_for(path: PathBuf, hold: Duration) -> JoinHandle<()> {
    let (sender, locked) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        let lock = rusqlite::Connection::open(path).expect("a database");
        lock.busy_timeout(Duration::from_secs(5)).expect("a setting");
        lock.execute_batch("BEGIN IMMEDIATE").expect("the lock");
        sender.send(()).expect("somebody waits");
        std::thread::sleep(hold);
        lock.execute_batch("ROLLBACK").expect("given back");
    });
    locked.recv().expect("it is locked");
    thread
}

#[test]
fn f33_the_end_of_a_run_waits_for_a_long_lock_because_the_rest_is_armed_with_it() {
    let home = Home::new();
    let mut sitting = Sitting::begin(home.open(), "c", MANIFEST);
    let pushed_back = "{\"type\":\"DETAIL_GAP\",\"stream\":\"details\",\"record_key\":\"k\",\"reason\":\"rate_limited\",\
                       \"detail_locator\":{},\"reference_only\":true}\n";
    sitting.feed((pushed_back.to_owned() + &done(0)).as_bytes()).expect("the store works");
    // Longer than one wait for the lock.
    let lock = lock_for(home.path(), Duration::from_secs(12));
    sitting.end().expect("it waits again");
    lock.join().expect("a thread");
    assert!(home.reader().cooldown("c").expect("readable").is_some(), "the service pushed back");
}

#[test]
fn f33_a_store_that_is_locked_for_a_while_slows_the_connector_down_and_loses_nothing() {
    let home = Home::new();
    drop(home.open());
    let hold = Duration::from_secs(if full_size() { 8 } else { 2 });
    let body = format!("{{\"p\":\"{}\"}}", "p".repeat(1000));
    let (mut blocked, records, mut lock) = (Duration::ZERO, 10_000, None);
    let driven = drive(ingest_command(&home), |pipe| {
        for n in 0..records {
            if n == 1000 {
                lock = Some(lock_for(home.path(), hold));
            }
            let began = Instant::now();
            pipe.write_all(record("log", &n.to_string(), &body).as_bytes())?;
            blocked = blocked.max(began.elapsed());
        }
        pipe.write_all(done(records).as_bytes())
    });
    lock.expect("it was locked").join().expect("a thread");
    assert!(driven.success, "{}", driven.stderr);
    assert_eq!(driven.saved(), records);
    assert_eq!(home.reader().connections().expect("connections")[0].totals.records, records);
    assert!(blocked > hold / 2, "the connector had to wait: {blocked:?}");
    assert!((1..2 * BASE_KIB).contains(&driven.peak_kib), "{} KiB", driven.peak_kib);
    println!("f33: waited {blocked:?}, peak {} KiB", driven.peak_kib);
    home.assert_whole();
}

#[test]
fn a_gap_of_another_record_under_the_id_of_a_served_one_is_kept_beside_it() {
    let home = Home::new();
    home.run(&(gap("details", "backlog") + &done(0)));
    let id = home.reader().gaps("c", GapFilter::default(), 0, 10).expect("readable")[0].gap_id.clone();
    let request = "{\"type\":\"DETAIL_GAPS_PAGE_REQUEST\",\"request_id\":\"p\",\"reference_only\":true}\n";
    let again = |key: &str| gap("details", key).replace("\"reason\"", &format!("\"gap_id\":\"{id}\",\"reason\""));
    // Two of the records that the backlog stood for, and the backlog itself.
    home.run(&(request.to_owned() + &again("1") + &again("2") + &again("backlog") + &done(0)));
    let keys = home.reader().gaps("c", GapFilter::default(), 0, 10).expect("readable");
    let keys = keys.into_iter().filter_map(|gap| gap.record_key).collect::<Vec<_>>();
    assert_eq!(keys, ["backlog", "1", "2"]);
    home.assert_whole();
}
