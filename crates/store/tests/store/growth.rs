//! What must not grow: memory with the size of single gaps, and the file with the number of runs.
//!
//! Memory is that of the driver, a process of its own. A bound that is broken here is broken by a
//! factor of ten, not by a few percent.

#![allow(clippy::disallowed_methods, reason = "tests know what time it is, and wait")]

use crate::world::{Home, MANIFEST, Sitting, done, drive, ingest_command, progress};

/// What a driver may need beside what one line holds, in KiB: cache, code, buffers, with room to spare.
const MOST_KIB: u64 = 40 * 1024;
/// Gaps of half a mebibyte each: fifty mebibytes if somebody held them all.
const LARGE_GAPS: usize = 100;
const LARGE: usize = 512 * 1024;

fn feed(home: &Home, lines: impl Iterator<Item = String>) {
    let driven = drive(ingest_command(home), |pipe| {
        for line in lines.chain([done(0)]) {
            pipe.write_all(line.as_bytes())?;
        }
        Ok(())
    });
    assert!(driven.success, "{}", driven.stderr);
    assert!((1..MOST_KIB).contains(&driven.peak_kib), "{} KiB", driven.peak_kib);
}

fn page_request(n: usize) -> String {
    format!("{{\"type\":\"DETAIL_GAPS_PAGE_REQUEST\",\"request_id\":\"p{n}\",\"reference_only\":true}}\n")
}

#[test]
fn gaps_with_large_locators_are_served_and_put_back_without_holding_them_all() {
    let home = Home::new();
    let text = "x".repeat(LARGE);
    let gap = |n: usize| {
        format!(
            "{{\"type\":\"DETAIL_GAP\",\"stream\":\"details\",\"record_key\":\"{n}\",\"reason\":\"rate_limited\",\
             \"detail_locator\":{{\"at\":\"{text}\"}},\"reference_only\":true}}\n"
        )
    };
    feed(&home, (0..LARGE_GAPS).map(gap));
    feed(&home, [page_request(0)].into_iter());
    // Each page has one of them, and at the end of the run all are held.
    feed(&home, (0..LARGE_GAPS).map(page_request));
    assert_eq!(home.reader().streams("c").expect("readable")[2].gaps_pending, LARGE_GAPS as u64);
    home.assert_whole();
}

#[test]
fn gaps_with_large_keys_and_ids_do_not_pile_up_in_an_unfinished_slice() {
    let home = Home::new();
    let text = "x".repeat(LARGE);
    let gap = |n: usize| {
        format!(
            "{{\"type\":\"DETAIL_GAP\",\"stream\":\"details\",\"record_key\":\"{n}{text}\",\"reason\":\"rate_limited\",\
             \"reference_only\":true}}\n"
        )
    };
    feed(&home, (0..LARGE_GAPS).map(gap));
    let recovered = |n: usize| {
        format!(
            "{{\"type\":\"DETAIL_GAP_RECOVERED\",\"stream\":\"details\",\"gap_id\":\"{n}{text}\",\"reference_only\":true}}\n"
        )
    };
    feed(&home, (0..LARGE_GAPS).map(recovered));
    assert_eq!(home.reader().streams("c").expect("readable")[2].gaps_pending, LARGE_GAPS as u64);
}

#[test]
fn the_trace_of_runs_that_are_long_over_is_forgotten_and_the_runs_are_not() {
    let home = Home::new();
    for _ in 0..205 {
        home.run(&(progress("at work") + &done(0)));
    }
    assert_eq!(home.sql::<i64>("SELECT count(*) FROM runs"), 205);
    assert_eq!(home.sql::<i64>("SELECT count(DISTINCT run) FROM events"), 200);
    assert_eq!(home.sql::<i64>("SELECT min(run) FROM events"), 6);
    home.assert_whole();
}

#[test]
fn long_events_do_not_wait_until_there_are_hundreds_of_them() {
    let home = Home::new();
    let mut sitting = Sitting::begin(home.open(), "c", MANIFEST);
    let long = progress(&"x".repeat(60_000));
    for _ in 0..20 {
        sitting.feed(long.as_bytes()).expect("works");
    }
    assert!(home.sql::<i64>("SELECT count(*) FROM events") > 0);
}
