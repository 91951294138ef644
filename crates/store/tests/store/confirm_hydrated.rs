//! A key that a coverage report calls hydrated counts only if the store has something for it.

use crate::world::{Home, Sitting, Terms, delete, done, drive, ingest_command, record, record_raw, slice_state, state};
use gleaner_engine::{Misfit, RunOutcome, Validate};
use gleaner_protocol::RawJson;
use gleaner_store::{GapFilter, Listing};

/// Messages report about conversations, as chatgpt's do, and declare no parents.
const MANIFEST: &str = r#"{"connector_id":"x","connector_key":"x","version":"1","streams":[
    {"name":"conversations","semantics":"mutable_state"},
    {"name":"messages","semantics":"mutable_state"}]}"#;

/// Bodies with a member `bad` do not fit.
#[derive(Debug)]
struct NoBad;

impl Validate for NoBad {
    fn check(&self, _: &str, body: &RawJson<'_>) -> Result<(), Misfit> {
        if body.as_str().contains("bad") {
            Err(Misfit { pointer: "/bad".to_owned(), ..Misfit::default() })
        } else {
            Ok(())
        }
    }
}

/// A report about these keys, all hydrated, with more fields.
fn hydrated(keys: &str) -> String {
    report(&format!(r#""required_keys":[{keys}],"hydrated_keys":[{keys}]"#))
}

fn report(lists: &str) -> String {
    format!(
        "{{\"type\":\"DETAIL_COVERAGE\",\"stream\":\"messages\",\"state_stream\":\"conversations\",{lists},\"reference_only\":true}}\n"
    )
}

fn message(key: &str, conversation: &str) -> String {
    record("messages", key, &format!(r#"{{"conversation_id":{conversation}}}"#))
}

fn conversation(key: &str) -> String {
    record("conversations", key, &format!(r#"{{"id":"{key}"}}"#))
}

fn run(home: &Home, records: u64, lines: &[String]) -> RunOutcome {
    let terms = Terms { validator: Box::new(NoBad), ..Terms::default() };
    let mut sitting = Sitting::begin_with(home.open(), "c", MANIFEST, terms);
    sitting.feed(lines.concat().as_bytes()).unwrap();
    sitting.feed((state("conversations", r#"{"page":1}"#) + &done(records)).as_bytes()).unwrap();
    let outcome = sitting.end().unwrap();
    assert_eq!(outcome.violation, None);
    home.assert_whole();
    outcome
}

fn listing(home: &Home) -> Listing {
    home.reader().coverage("c").unwrap().pop().unwrap().listing.unwrap()
}

/// Whether the checkpoint was committed, and what it waits for.
fn after(home: &Home, records: u64, lines: &[String]) -> (bool, Vec<String>) {
    let outcome = run(home, records, lines);
    assert_eq!(outcome.withheld.is_empty(), home.cursor("conversations").is_some());
    (home.cursor("conversations").is_some(), listing(home).waiting)
}

fn strings(keys: &[&str]) -> Vec<String> {
    keys.iter().map(|&key| key.to_owned()).collect()
}

#[test]
fn a_key_that_was_never_sent_withholds_the_checkpoint_and_is_named() {
    let home = Home::new();
    let lines = [message("m1", r#""a""#), hydrated(r#""b","a","c""#)];
    assert_eq!(after(&home, 1, &lines), (false, strings(&["b", "c"])));
    let listing = listing(&home);
    assert_eq!((listing.required, listing.hydrated, listing.unconfirmed, listing.unaccounted), (3, 1, 2, 2));
}

#[test]
fn a_key_is_confirmed_by_key_by_field_by_a_deletion_and_by_what_an_earlier_run_stored() {
    let home = Home::new();
    run(&home, 2, &[message("old", "7"), message("m0", r#""f""#)]);
    let composite = record_raw("messages", r#"["x", "y"]"#, "{}");
    let lines = [message("k", "8"), delete("messages", "gone"), composite, message("m0", r#""f""#)];
    let keys = r#""k","8",7,"old","gone",["x","y"],"f""#;
    assert_eq!(after(&home, 4, &[lines.concat(), hydrated(keys)]), (true, vec![]));
    assert_eq!((listing(&home).hydrated, listing(&home).empty), (7, 0));
}

#[test]
fn a_record_in_quarantine_counts_as_quarantined() {
    let home = Home::new();
    let bad = record("messages", "q", r#"{"bad":1,"conversation_id":"other"}"#);
    assert_eq!(after(&home, 1, &[bad, hydrated(r#""q","other""#)]), (true, vec![]), "by key and by field");
    assert_eq!((listing(&home).hydrated, listing(&home).unaccounted), (0, 0));
    let home = Home::new();
    let bad = record("messages", "q", r#"{"bad":1}"#);
    assert_eq!(after(&home, 1, &[bad, hydrated(r#""q""#)]), (true, vec![]));
    assert_eq!((listing(&home).hydrated, listing(&home).unaccounted), (0, 0));
}

#[test]
fn a_key_that_only_the_list_has_is_empty_where_keys_differ_and_missing_where_they_are_shared() {
    let home = Home::new();
    let lines = [conversation("a"), conversation("b"), message("m1", r#""a""#), hydrated(r#""a","b""#)];
    assert_eq!(after(&home, 3, &lines), (true, vec![]));
    assert_eq!((listing(&home).hydrated, listing(&home).empty), (1, 1));
    let home = Home::new();
    let lines = [conversation("a"), conversation("b"), message("a", "0"), hydrated(r#""a","b""#)];
    assert_eq!(after(&home, 3, &lines), (false, strings(&["b"])), "each has a record under its own key");
    let home = Home::new();
    let lines = [conversation("a"), hydrated(r#""a""#)];
    assert_eq!(after(&home, 1, &lines), (false, strings(&["a"])), "nothing at all was sent");
}

#[test]
fn a_durable_gap_accounts_for_a_key_whatever_list_it_is_in() {
    let gap = |key: &str| {
        format!(
            "{{\"type\":\"DETAIL_GAP\",\"stream\":\"messages\",\"record_key\":\"{key}\",\"reason\":\"retry_exhausted\",\"reference_only\":true}}\n"
        )
    };
    let home = Home::new();
    let lists = r#""required_keys":["a","b","c"],"hydrated_keys":["a"],"gap_keys":["b"]"#;
    let lines = [gap("a"), gap("b"), gap("c"), report(lists)];
    assert_eq!(after(&home, 0, &lines), (true, vec![]));
    assert_eq!((listing(&home).hydrated, listing(&home).gaps), (0, 3));
}

#[test]
fn a_key_that_was_never_sent_under_a_committed_slice_becomes_a_gap() {
    let home = Home::new();
    run(&home, 0, &[slice_state("conversations", r#"{"page":0}"#), hydrated(r#""a""#)]);
    let gaps = home.reader().gaps("c", GapFilter::default(), 0, 9).unwrap();
    let found = gaps.iter().map(|gap| (gap.record_key.as_deref(), gap.reason.as_deref())).collect::<Vec<_>>();
    assert_eq!(found, [(Some("a"), Some("unaccounted"))]);
    assert_eq!((listing(&home).unconfirmed, listing(&home).waiting), (0, vec![]), "it is a gap now");
}

#[test]
fn a_hundred_thousand_keys_are_confirmed_by_a_field_in_one_pass_and_in_bounded_memory() {
    let home = Home::new();
    let keys = if crate::world::full_size() { 1_000_000 } else { 50_000 };
    let driven = drive(ingest_command(&home), |pipe| {
        for n in 0..keys {
            pipe.write_all(record("details", &format!("m{n}"), &format!(r#"{{"of":"{n:020}"}}"#)).as_bytes())?;
        }
        pipe.write_all(state("items", r#"{"page":1}"#).as_bytes())?;
        pipe.write_all(br#"{"type":"DETAIL_COVERAGE","stream":"details","state_stream":"items","required_keys":["#)?;
        for list in ["", r#"],"hydrated_keys":["#] {
            pipe.write_all(list.as_bytes())?;
            for n in 0..keys {
                write!(pipe, "{}\"{n:020}\"", if n == 0 { "" } else { "," })?;
            }
        }
        pipe.write_all(b"],\"reference_only\":true}\n")?;
        pipe.write_all(done(keys).as_bytes())
    });
    assert!(driven.success, "{}", driven.stderr);
    assert!((1..100 * 1024).contains(&driven.peak_kib), "{} KiB", driven.peak_kib);
    println!("{keys} keys by field, peak {} KiB", driven.peak_kib);
    assert_eq!(home.cursor("items").as_deref(), Some(r#"{"page":1}"#));
}
