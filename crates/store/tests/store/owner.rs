//! What an owner says about a gap and what stays of it, and what they are answered when they look for something: the end of
//! a run's trace, and records with a word in them.

#![allow(clippy::disallowed_methods, reason = "tests know what time it is, and wait")]

use crate::world::{Home, coverage, delete, done, gap, now, progress, record, state};
use gleaner_engine::{Note, WallTime};
use gleaner_protocol::CoveragePolicy;
use gleaner_store::{
    GapCause, GapFilter, GapSummary, Holder, Ignored, MeantGap, Share, StoreError, StreamSummary, restore,
};

fn gaps(home: &Home) -> Vec<GapSummary> {
    home.reader().gaps("c", GapFilter::default(), 0, 9).expect("readable")
}

fn details(home: &Home) -> StreamSummary {
    home.reader().streams("c").expect("readable").into_iter().find(|stream| stream.name == "details").expect("a stream")
}

fn at(millis: u64) -> WallTime {
    WallTime::from_unix_millis(millis)
}

fn note(text: &str) -> Note {
    Note::new(text).expect("a note")
}

/// Three details of a list, of which one is here and two are gaps.
fn with_two_gaps() -> Home {
    let home = Home::new();
    let listed = coverage(&["a", "b", "c"], &["a"], &["b", "c"]) + &state("items", "{}");
    home.run(&(record("details", "a", "{}") + &gap("details", "b") + &gap("details", "c") + &listed + &done(1)));
    home
}

fn ignore(home: &Home, nth: usize, text: &str) {
    let id = gaps(home)[nth].gap_id.clone();
    assert!(home.open().ignore_gap("c", &id, &note(text), at(7)).expect("writable"));
}

#[test]
fn an_ignored_gap_is_served_to_no_run_survives_its_report_and_is_counted_as_what_it_is() {
    let home = with_two_gaps();
    ignore(&home, 0, "never needed");
    let ignored = Some(Ignored { note: "never needed".to_owned(), at: at(7) });
    for round in 0..3 {
        let shown = &gaps(&home)[0];
        assert_eq!((shown.state.as_str(), &shown.ignored, shown.attempts), ("ignored", &ignored, 0), "round {round}");
        assert_eq!(GapCause::of(shown).origin(), "ignored");
        assert!(GapCause::of(shown).wording().expect("words").next.starts_with("You do without it"), "round {round}");
        let ask = "{\"type\":\"DETAIL_GAPS_PAGE_REQUEST\",\"request_id\":\"p\",\"reference_only\":true}\n";
        let leased = ask.to_owned() + &gap("details", "b") + &done(0);
        home.run(&leased);
    }
    let totals = details(&home);
    assert_eq!((totals.gaps_open(), totals.gaps_ignored, totals.gaps_missing()), (1, 1, 2));
    let streams = home.reader().coverage("c").expect("readable");
    let stream = streams.iter().find(|stream| stream.summary.name == "details").expect("a stream");
    assert_eq!((stream.missing(), stream.share(CoveragePolicy::Collect)), (2, Share::Known(3333)), "not complete");
    assert!(stream.gaps.iter().any(|count| count.state == "ignored" && count.count == 1));
    home.assert_whole();
}

/// Later runs write what they leave into the same row: ignored, it would swallow records that nobody tries.
#[test]
fn what_stands_for_many_records_cannot_be_ignored() {
    for (key, locator, is_single) in [
        (r#""record_key":"gleaner:backlog","#, r#""detail_locator":{"kind":"backlog"},"#, false),
        (r#""record_key":"gleaner:rest-of-stream","#, "", false),
        (r#""record_key":"theirs","#, r#""detail_locator":{"watermark":7},"#, false),
        ("", r#""detail_locator":{"page":7},"#, false),
        (r#""record_key":"one","#, r#""detail_locator":{"page":7},"#, true),
    ] {
        let home = Home::new();
        let said = format!(
            r#"{{"type":"DETAIL_GAP","stream":"details",{key}{locator}"reason":"temporary_unavailable","status":"pending","reference_only":true}}"#
        );
        home.run(&(said.clone() + "\n" + &done(0)));
        let gap = gaps(&home).remove(0);
        assert_eq!(gap.can_be_ignored(), is_single, "{said}");
        let refused = home.open().ignore_gap("c", &gap.gap_id, &note("x"), at(7));
        assert_eq!(matches!(refused, Err(StoreError::StandsForMany(_))), !is_single, "{said}: {refused:?}");
        assert_eq!(gaps(&home)[0].state == "ignored", is_single, "{said}");
    }
}

#[test]
fn an_ignored_gap_can_be_taken_back_or_tried_again_and_what_is_not_there_is_said() {
    let home = with_two_gaps();
    let id = gaps(&home)[0].gap_id.clone();
    let mut store = home.open();
    assert!(!store.take_back_gap("c", &id).expect("writable"), "it was not ignored");
    assert!(store.ignore_gap("c", &id, &note("one"), at(7)).expect("writable"));
    assert!(store.ignore_gap("c", &id, &note("two"), at(9)).expect("writable"), "another note");
    assert_eq!(gaps(&home)[0].ignored, Some(Ignored { note: "two".to_owned(), at: at(7) }));
    assert!(store.take_back_gap("c", &id).expect("writable"));
    assert_eq!((gaps(&home)[0].state.as_str(), &gaps(&home)[0].ignored), ("pending", &None));
    assert!(store.ignore_gap("c", &id, &note("one"), at(7)).expect("writable"));
    assert!(store.retry_gap("c", &id).expect("writable"), "a try takes it back");
    assert_eq!(gaps(&home)[0].state, "pending");
    for wrong in ["", "no id", &"0".repeat(32), &id[..31]] {
        assert!(!store.ignore_gap("c", wrong, &note("x"), at(7)).expect("writable"), "{wrong}");
    }
    home.run_of("d", crate::world::MANIFEST, done(0).as_bytes());
    assert!(!store.ignore_gap("d", &id, &note("x"), at(7)).expect("writable"), "it is somebody else's");
    assert!(matches!(store.ignore_gap("e", &id, &note("x"), at(7)), Err(StoreError::UnknownConnection(_))));
    assert_eq!(details(&home).gaps_ignored, 0);
    home.assert_whole();
}

#[test]
fn a_note_is_part_of_backups_and_verify_notices_one_that_somebody_changed() {
    let home = with_two_gaps();
    ignore(&home, 1, "kept");
    let copy = home.at("copy");
    home.reader().backup(&copy, None, |_, _, _| {}).expect("a backup");
    let id = gaps(&home)[1].gap_id.clone();
    assert!(home.open().take_back_gap("c", &id).expect("writable"));
    let holder = Holder::current().expect("a process");
    restore(&copy, &home.path(), &holder, now().wall, "stamp", |_, _, _| {}).expect("restored");
    assert_eq!(gaps(&home)[1].ignored.as_ref().map(|ignored| ignored.note.as_str()), Some("kept"));
    home.assert_whole();
    let broken = [
        ("UPDATE gaps SET ignored_note = 'another' WHERE state = 'ignored'", "its hash differs"),
        ("UPDATE gaps SET ignored_at = 8 WHERE state = 'ignored'", "its hash differs"),
        ("UPDATE gaps SET ignored_note = 'x', ignored_at = 1 WHERE state = 'pending'", "has a note and is not ignored"),
        ("UPDATE gaps SET ignored_note = NULL WHERE state = 'ignored'", "ignored without a note"),
        ("UPDATE streams SET gaps_ignored = 5", "gaps_ignored says 5"),
    ];
    for (sql, says) in broken {
        let holder = Holder::current().expect("a process");
        restore(&copy, &home.path(), &holder, now().wall, "stamp", |_, _, _| {}).expect("restored");
        home.execute(sql);
        let damage = home.reader().verify(|_, _| {}).expect("readable");
        assert!(damage.iter().any(|damage| damage.to_string().contains(says)), "{sql}: {damage:?}");
    }
}

#[test]
fn a_gap_is_meant_by_the_beginning_of_its_id() {
    let home = with_two_gaps();
    let [first, second] = [0, 1].map(|nth| gaps(&home)[nth].gap_id.clone());
    let reader = home.reader();
    let meant = |beginning: &str| reader.meant_gap(beginning).expect("readable");
    let one = |gap_id: &str| MeantGap::One { connection: "c".to_owned(), gap_id: gap_id.to_owned() };
    for length in [5, 8, 31, 32] {
        assert_eq!(meant(&first[..length]), one(&first), "{length} digits");
    }
    assert_eq!(meant(&second.to_uppercase()[..9]), one(&second));
    for none in ["", "abc", "wxyz", "%", &format!("{first}0"), "ffffffffff"] {
        assert_eq!(meant(none), MeantGap::None, "{none}");
    }
    home.execute(&format!(
        "INSERT INTO gaps (identity, connection, stream, grant_id, record_key_is_number, state, attempts, run_cap, since,
         due, run, hash) SELECT x'{}00', connection, stream, 'g', 0, 'pending', 0, 0, 0, 0, run, 0 FROM gaps LIMIT 1",
        &first[..30]
    ));
    assert_eq!(meant(&first[..8]), MeantGap::Several);
}

#[test]
fn the_last_events_come_newest_first_of_one_kind_and_before_a_place() {
    let home = Home::new();
    let said = (0..7).map(|n| progress(&format!("step {n}"))).collect::<String>();
    let skip = "{\"type\":\"SKIP_RESULT\",\"stream\":\"items\",\"reason\":\"r\"}\n";
    home.run(&(said + skip + &progress("last") + &done(0)));
    home.run(&(progress("of another run") + &done(0)));
    let reader = home.reader();
    let run = reader.runs("c", 2).expect("readable")[1].run_id.clone();
    let all = reader.last_events(&run, None, None, 100).expect("readable");
    assert!(all.windows(2).all(|pair| pair[0].id > pair[1].id), "newest first");
    assert!(all.iter().all(|event| !event.message.contains("of another run")));
    assert_eq!(all.iter().filter(|event| event.message.contains("step")).count(), 7);
    let kind = |text: &str| all.iter().find(|event| event.message.contains(text)).expect("said").kind.clone();
    let progress = reader.last_events(&run, Some(&kind("last")), None, 3).expect("readable");
    let texts = ["last", "step 6", "step 5"];
    assert!(progress.len() == 3 && progress.iter().zip(texts).all(|(event, text)| event.message.contains(text)));
    let older = reader.last_events(&run, Some(&kind("last")), Some(progress[2].id), 100).expect("readable");
    assert!(older.len() == 5 && older[0].message.contains("step 4"), "{older:?}");
    assert_eq!(reader.last_events("nobody", None, None, 9).expect("readable"), []);
    assert_eq!(reader.last_events(&run, Some("none"), None, 9).expect("readable"), []);
}

#[test]
fn a_search_goes_through_a_stream_by_key_and_goes_on_where_it_stopped() {
    let home = Home::new();
    let body = |n: u32| if n % 10 == 3 { r#"{"name":"the Word, 100%_"}"# } else { r#"{"name":"other"}"# };
    let lines = (0..100).map(|n| record("items", &format!("k{n:02}"), body(n))).collect::<String>();
    home.run(&(lines + &record("log", "k03", r#"{"name":"the Word"}"#) + &delete("items", "k13") + &done(102)));
    let reader = home.reader();
    let keys = |text: &str, after: Option<&str>, limit: usize| {
        let found = reader.search("c", "items", text, after, limit).expect("readable");
        let keys = found.records.iter().map(|record| record.key.clone()).collect::<Vec<_>>();
        (keys.join(" "), found.goes_on_after, found.looked_at)
    };
    let rest = "k03 k23 k33 k43 k53 k63 k73 k83 k93".to_owned();
    assert_eq!(keys("Word", None, 50), (rest, None, 100), "what is deleted has no word in it");
    assert_eq!(keys("Word", None, 3), ("k03 k23 k33".to_owned(), Some("k33".to_owned()), 34));
    assert_eq!(keys("Word", Some("k33"), 2), ("k43 k53".to_owned(), Some("k53".to_owned()), 20));
    assert_eq!(keys("k1", None, 50).0, "k10 k11 k12 k13 k14 k15 k16 k17 k18 k19", "keys too, also of what is deleted");
    assert_eq!(keys("100%_", None, 50).0.len(), keys("Word", None, 50).0.len(), "letters and not patterns");
    assert_eq!(keys("wORD", None, 50), keys("Word", None, 50), "in either case");
    for none in ["W_rd", "%", "zebra", "name"] {
        let expected = if none == "%" { keys("Word", None, 50).0 } else { String::new() };
        assert_eq!(keys(none, None, 50).0, expected, "{none}");
    }
    assert!(matches!(reader.search("c", "none", "x", None, 9), Err(StoreError::UnknownStream { .. })));
}

#[test]
fn a_search_finds_text_however_it_is_escaped_and_in_either_case() {
    let home = Home::new();
    let bodies = [("Oslo-1", r#"{"city":"Krak\u00f3w"}"#), ("k2", r#"{"city":"KRAK\u00D3W","n":17}"#)];
    let lines = bodies.iter().map(|(key, body)| record("items", key, body)).collect::<String>();
    home.run(&(lines + &done(2)));
    let reader = home.reader();
    let count = |text: &str| reader.search("c", "items", text, None, 9).expect("readable").records.len();
    let found = ["Kraków", "kraków", "oslo", "17", "city", "u00f3"].map(count);
    assert_eq!(found, [2, 2, 1, 1, 0, 0]);
}

/// A question that was interrupted is no defect of ours: its asker went away.
#[test]
fn an_interrupted_question_says_so() {
    let home = Home::new();
    home.run(&(record("items", "a", "{}") + &done(1)));
    home.execute(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50100)
         INSERT INTO versions (seq, stream, key, body, deleted, stored_at, run, hash)
         SELECT 100 + i, (SELECT id FROM streams WHERE name = 'log'), printf('k%06d', i), '{}', 0, 0, 1, 0 FROM n;
         INSERT INTO records SELECT stream, key, seq FROM versions WHERE seq > 100;",
    );
    let reader = home.reader();
    let interrupter = reader.interrupter();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let error = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(std::sync::atomic::Ordering::SeqCst) {
                interrupter.interrupt();
                std::thread::yield_now();
            }
        });
        let error = reader.search("c", "log", "nowhere", None, 9).expect_err("it is interrupted all the time");
        is_over.store(true, std::sync::atomic::Ordering::SeqCst);
        error
    });
    assert!(matches!(error, StoreError::Interrupted), "{error}");
}

#[test]
fn a_search_looks_at_so_many_records_and_says_where_it_goes_on() {
    let home = Home::new();
    home.run(&(record("items", "a", "{}") + &done(1)));
    home.execute(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50100)
         INSERT INTO versions (seq, stream, key, body, deleted, stored_at, run, hash)
         SELECT 100 + i, (SELECT id FROM streams WHERE name = 'log'), printf('k%06d', i), '{}', 0, 0, 1, 0 FROM n;
         INSERT INTO records SELECT stream, key, seq FROM versions WHERE seq > 100;",
    );
    let found = home.reader().search("c", "log", "nowhere", None, 9).expect("readable");
    assert_eq!((found.looked_at, found.goes_on_after.as_deref()), (50_000, Some("k050000")));
    let found = home.reader().search("c", "log", "nowhere", Some("k050000"), 9).expect("readable");
    assert_eq!((found.looked_at, found.goes_on_after), (100, None));
}
