//! Records in quarantine: counted as missing everywhere alike, listed with place and reason, and judged again when the
//! connector or its schema changes.

use crate::collect::{Shop, last_line};
use crate::support::Answer;
use serde_json::Value;
use std::fs;

/// Order 1 fits, order 9 has a text where the schema wants a number, and order 7 is a gap.
const FIRST: &str = r#"
say(type="DETAIL_GAP", reference_only=True, status="pending", stream="orders", record_key="7", reason="not_found")
say(type="RECORD", stream="orders", key="9", data={"id": "nine"}, emitted_at="2031-01-01T00:00:00Z")
record(1); slice(10); done(2); end()"#;

fn shop(test: &str) -> Shop {
    let shop = Shop::new(test);
    assert_eq!(shop.run(FIRST, &[]).code, 3);
    shop
}

fn edit_manifest(shop: &Shop, from: &str, to: &str) {
    let path = shop.root.join("manifest.json");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(path, text.replace(from, to)).unwrap();
}

fn json(answer: &Answer) -> Value {
    serde_json::from_str(answer.stdout.lines().next().unwrap()).unwrap()
}

#[test]
fn every_command_counts_the_same_records_as_missing() {
    let shop = shop("missing-is-one-thing");
    let end = last_line(&shop.run("done(0); end()", &["--json"]));
    assert_eq!((&end["missing"], &end["quarantined"], &end["gaps_open"]), (&2.into(), &1.into(), &1.into()), "{end}");
    let coverage = json(&shop.gleaner(&["coverage", "shop", "--json"]));
    let status = json(&shop.gleaner(&["status", "--json"]));
    assert_eq!((&coverage["missing"], &status["missing"]), (&2.into(), &2.into()), "{coverage} {status}");
    let gaps = shop.gleaner(&["gaps", "shop"]).stdout;
    assert!(gaps.contains("2 of 2 shown"), "{gaps}");
    assert!(gaps.contains("does not fit its schema at /id: it is not of type \"integer\""), "{gaps}");
    let text = shop.gleaner(&["status"]).stdout;
    assert!(text.contains("2 missing (1 failed, will be retried; 1 in quarantine"), "{text}");
    // An ignored gap is still missing.
    let first = shop.gleaner(&["gaps", "shop", "--json"]).stdout;
    let gap: Value = serde_json::from_str(first.lines().next().unwrap()).unwrap();
    let ignored = shop.gleaner(&["gaps", "ignore", gap["gap_id"].as_str().unwrap(), "--note", "not worth it"]);
    assert_eq!(ignored.code, 0, "{ignored:?}");
    assert_eq!(json(&shop.gleaner(&["status", "--json"]))["missing"], 2);
    assert_eq!(json(&shop.gleaner(&["coverage", "shop", "--json"]))["missing"], 2);
}

#[test]
fn a_record_is_stored_when_the_schema_changes_so_that_it_fits() {
    let shop = shop("quarantine-schema");
    // Nothing changed: nothing is judged again, and the cursor stays.
    let same = shop.run("assert start['state'] == {'orders': {'next': 10}}; done(0); end()", &["--json"]);
    assert_eq!(last_line(&same)["left_quarantine"], 0, "{same:?}");
    edit_manifest(&shop, r#""id":{"type":"integer"}"#, r#""id":{"type":["integer","string"]}"#);
    let wider = shop.run("assert start['state'] == {'orders': {'next': 10}}; done(0); end()", &[]);
    assert!(wider.stdout.contains("1 record left quarantine: it fits the schema now"), "{wider:?}");
    let records = shop.gleaner(&["records", "orders", "--json"]).stdout;
    assert!(records.contains(r#"{"key":"9","data":{"id": "nine"},"deleted":false}"#), "{records}");
    let status = json(&shop.gleaner(&["status", "--json"]));
    assert_eq!((&status["records"], &status["quarantined"], &status["missing"]), (&2.into(), &0.into(), &1.into()));
    assert_eq!(shop.gleaner(&["verify"]).code, 0);
}

#[test]
fn another_version_of_the_connector_is_asked_for_the_record_again_once() {
    let shop = shop("quarantine-version");
    edit_manifest(&shop, r#""version":"1""#, r#""version":"2""#);
    // Killed before it sends anything: the next run asks all the same.
    let killed = shop.run("assert not start['state']; os.kill(os.getpid(), 9)", &[]);
    assert_ne!(killed.code, 0);
    let fixed = shop.run("assert not start['state']; record(1); record(9); slice(10); done(2); end()", &["--json"]);
    assert_eq!((fixed.code, &last_line(&fixed)["quarantined"]), (3, &0.into()), "{fixed:?}");
    let records = shop.gleaner(&["records", "orders", "--json"]).stdout;
    assert!(records.contains(r#"{"key":"9","data":{"id": 9}"#), "{records}");
    let after = shop.run("assert start['state'] == {'orders': {'next': 10}}; done(0); end()", &[]);
    assert_eq!(after.code, 3, "only the gap is left: {after:?}");
}

#[test]
fn a_record_that_no_version_repairs_makes_each_version_list_once() {
    let shop = shop("quarantine-stays");
    edit_manifest(&shop, r#""version":"1""#, r#""version":"2""#);
    let again = FIRST.replace("say(type=\"DETAIL_GAP\"", "assert not start['state']; say(type=\"DETAIL_GAP\"");
    assert_eq!(shop.run(&again, &[]).code, 3);
    let third = shop.run("assert start['state'] == {'orders': {'next': 10}}; done(0); end()", &["--json"]);
    assert_eq!((third.code, &last_line(&third)["quarantined"]), (3, &1.into()), "{third:?}");
}

#[test]
fn a_gap_whose_record_left_quarantine_is_served_at_once_and_is_missing_once() {
    let shop = Shop::new("quarantine-gap");
    let gap = "say(type='DETAIL_GAP', reference_only=True, status='pending', stream='orders', record_key='9', \
               reason='temporary_unavailable'); done(0); end()";
    assert_eq!(shop.run(gap, &[]).code, 3);
    let recover = "gap, = start['detail_gaps']\n\
        say(type='RECORD', stream='orders', key='9', data={'id': 'nine'}, emitted_at='2031-01-01T00:00:00Z')\n\
        say(type='DETAIL_GAP_RECOVERED', reference_only=True, stream='orders', gap_id=gap['gap_id'], lease_id=gap['lease_id'])\n\
        done(1); end()";
    assert_eq!(shop.run(recover, &[]).code, 3);
    let status = json(&shop.gleaner(&["status", "--json"]));
    assert_eq!((&status["quarantined"], &status["missing"]), (&1.into(), &1.into()), "{status}");
    let gaps = shop.gleaner(&["gaps", "shop"]).stdout;
    assert!(gaps.contains("1 of 1 shown"), "{gaps}");
    edit_manifest(&shop, r#""id":{"type":"integer"}"#, r#""id":{"type":["integer","string"]}"#);
    let released = shop.run(recover, &[]);
    assert_eq!(released.code, 0, "{released:?}");
    assert_eq!(shop.gleaner(&["gaps", "shop"]).stdout, "nothing is missing\n");
}
