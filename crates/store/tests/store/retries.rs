//! Which gaps a run is handed, and when: after a try that failed, after the owner asked for another one, and during a
//! cooldown.

#![allow(clippy::disallowed_methods, reason = "tests know what time it is, and wait")]

use crate::world::{Home, MANIFEST, done, gap, lease, now, parse, start};
use gleaner_engine::{LeaseId, RunId, RunPurpose, Steady, WallTime};
use gleaner_protocol::ServedGap;
use gleaner_store::{GapFilter, GapSummary, GapsMeant, RunAbout};
use std::time::Duration;

fn gaps(home: &Home) -> Vec<GapSummary> {
    home.reader().gaps("c", GapFilter::default(), 0, 99).expect("readable")
}

/// What a run for this purpose is handed at this time, page after page. It ends without a word, as one that was killed.
fn served(home: &Home, name: &str, purpose: RunPurpose, at: WallTime) -> Vec<String> {
    let mut store = home.open();
    let leases = lease(&mut store, "c");
    let about = RunAbout { purpose, ..RunAbout::default() };
    let base = start("c", name, &parse(MANIFEST));
    let start = gleaner_store::RunStart { run_id: RunId::new(name), lease: LeaseId::new(name), about, ..base };
    let session = store.begin_run::<Steady>(start, leases, at).expect("begun");
    let mut keys = Vec::new();
    loop {
        let page = store.lease_gaps_page(&session, &[], 1, at).expect("leased");
        if page.is_empty() {
            store.release(session.leases()).expect("given back");
            keys.sort_unstable();
            return keys;
        }
        let key = |gap: ServedGap| gap.record_key.map(|key| key.as_str().to_owned()).unwrap_or_default();
        keys.extend(page.into_iter().map(key));
    }
}

fn with_reason(key: &str, reason: &str) -> String {
    gap("details", key).replace("temporary_unavailable", reason)
}

/// Point 7 of issue 18: stores of earlier versions have gaps that eight errors of the provider ended.
#[test]
fn a_gap_that_an_earlier_version_gave_up_after_eight_errors_is_tried_again() {
    let home = Home::new();
    home.run(&(gap("details", "lost") + &with_reason("gone", "not_found") + &done(0)));
    home.execute(
        "UPDATE gaps SET state = 'terminal', attempts = 8,
         terminal_reason = CASE reason WHEN 'not_found' THEN 'not_found' ELSE 'quarantined' END;
         UPDATE streams SET gaps_pending = 0, gaps_terminal = 2 WHERE name = 'details'",
    );
    assert_eq!(served(&home, "next", RunPurpose::Full, now().wall), ["lost"]);
    let states = gaps(&home).into_iter().map(|gap| (gap.record_key.unwrap_or_default(), gap.state)).collect::<Vec<_>>();
    assert_eq!(states, [("lost".to_owned(), "in_progress".to_owned()), ("gone".to_owned(), "terminal".to_owned())]);
}

/// A gap with this many tries behind it, which waits for its time.
fn put_off(home: &Home, key: &str, until: WallTime) {
    home.execute(&format!(
        "UPDATE gaps SET attempts = 9, not_before = {} WHERE record_key = '{key}'",
        until.as_unix_millis()
    ));
}

#[test]
fn the_owner_asks_for_another_try_of_a_connection_a_stream_or_a_reason() {
    let home = Home::new();
    let lines = gap("details", "a") + &with_reason("b", "not_found") + &gap("items", "c") + &gap("details", "d");
    home.run(&(lines + &done(0)));
    let later = now().wall + Duration::from_secs(20 * 86_400);
    for key in ["a", "b", "c", "d"] {
        put_off(&home, key, later);
    }
    home.execute(
        "UPDATE gaps SET state = 'terminal', terminal_reason = 'not_found' WHERE record_key = 'b';
         UPDATE streams SET gaps_pending = 2, gaps_terminal = 1 WHERE name = 'details'",
    );
    let ignored = gaps(&home).into_iter().find(|gap| gap.record_key.as_deref() == Some("d")).expect("a gap").gap_id;
    let note = gleaner_engine::Note::new("not wanted").expect("a note");
    assert!(home.open().ignore_gap("c", &ignored, &note, now().wall).expect("writable"));
    assert_eq!(served(&home, "too-early", RunPurpose::Full, now().wall), [""; 0]);
    let retry = |stream, reason| home.open().retry_gaps("c", GapsMeant { stream, reason }).expect("writable");
    assert_eq!(retry(Some("items"), Some("not_found")), 0);
    assert_eq!(retry(None, Some("not_found")), 1);
    assert_eq!(served(&home, "by-reason", RunPurpose::Full, now().wall), ["b"]);
    assert_eq!(retry(Some("items"), None), 1);
    assert_eq!(served(&home, "by-stream", RunPurpose::Full, now().wall), ["b", "c"]);
    assert_eq!(retry(None, None), 1, "a run holds the other two");
    assert_eq!(served(&home, "all", RunPurpose::Full, now().wall), ["a", "b", "c"], "what is ignored stays so");
    assert!(home.open().retry_gaps("c", GapsMeant { stream: Some("nothing"), reason: None }).is_err());
}

/// Point 21 of issue 18.
#[test]
fn during_a_cooldown_no_gap_whose_reason_is_source_pressure_is_handed_out() {
    let home = Home::new();
    let pressed = with_reason("limited", "rate_limited") + &with_reason("busy", "upstream_pressure");
    home.run(&(pressed.clone() + &done(0)));
    let none = [""; 0];
    assert_eq!(served(&home, "nothing-else", RunPurpose::RecoveryOnly, now().wall), none);
    assert!(!home.reader().has_gaps_beside_pressure("c", now().wall).expect("readable"));
    home.run(&(pressed + &gap("details", "other") + &done(0)));
    assert!(home.reader().has_gaps_beside_pressure("c", now().wall).expect("readable"));
    for (name, purpose) in [("recovery", RunPurpose::RecoveryOnly), ("probe", RunPurpose::Probe)] {
        assert_eq!(served(&home, name, purpose, now().wall), ["other"], "{name}");
    }
    assert_eq!(served(&home, "full", RunPurpose::Full, now().wall), ["busy", "limited", "other"]);
    put_off(&home, "other", now().wall + Duration::from_secs(3600));
    assert!(!home.reader().has_gaps_beside_pressure("c", now().wall).expect("readable"), "it is not due");
}
