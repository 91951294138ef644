//! What a run is asked for, as its connector hears it; and that catching up and going on never touch.

use crate::place::{Place, last_line};
use serde_json::{Value, json};

/// Two streams with a time, so that a range means something.
const MANIFEST: &str = r#"{"connector_id":"shop","connector_key":"shop","version":"1","display_name":"Shop","streams":[
    {"name":"orders","semantics":"mutable_state","primary_key":"id","consent_time_field":"at"},
    {"name":"bills","semantics":"mutable_state","primary_key":"id","consent_time_field":"at"}]}"#;

/// Keeps its START, sends what it is told to, and commits this cursor.
fn script(records: &str, cursor: &str) -> String {
    format!(
        r#"
open("start", "w").write(json.dumps(start))
def item(stream, key, at): say(type="RECORD", stream=stream, key=key, data={{"id": key, "at": at}}, emitted_at="2031-01-01T00:00:00Z")
items = {records}
for one in items: item(*one)
say(type="STATE", stream="orders", cursor={{"at": "{cursor}"}}, slice=True)
done(len(items)); end()"#
    )
}

struct Shop(Place);

impl Shop {
    fn new() -> Self {
        let place = Place::new();
        place.write("manifest.json", MANIFEST);
        Self(place)
    }

    /// Runs, and returns the START that the connector got.
    fn start_of(&self, options: &[&str], records: &str, cursor: &str) -> Value {
        let answer = self.0.run(&script(records, cursor), options);
        assert_eq!(answer.code, 0, "{answer:?}");
        serde_json::from_str(&self.0.read("start")).unwrap()
    }

    fn plain(&self, options: &[&str], cursor: &str) -> Value {
        self.start_of(options, "[]", cursor)
    }
}

fn streams(start: &Value) -> Vec<&str> {
    start["scope"]["streams"].as_array().unwrap().iter().map(|stream| stream["name"].as_str().unwrap()).collect()
}

#[test]
fn catching_up_and_going_on_have_bookmarks_of_their_own() {
    let shop = Shop::new();
    let first = shop.plain(&[], "steady-1");
    assert_eq!((&first["collection_mode"], &first["state"]), (&json!("incremental"), &Value::Null));
    assert_eq!(first["scope"]["streams"], json!([{"name": "orders"}, {"name": "bills"}]));
    // Behind the first run, and from its own beginning.
    let caught = shop.plain(&["--catch-up"], "old-1");
    assert_eq!((&caught["collection_mode"], &caught["state"]), (&json!("incremental"), &Value::Null));
    let until = caught["scope"]["streams"][0]["time_range"]["until"].as_str().unwrap().to_owned();
    let began = last_line(&shop.0.gleaner(&["runs", "shop", "--json"]).stdout)["started_at"].clone();
    assert_eq!(until, began, "up to where the first run began");
    // Each goes on with what it saved itself.
    assert_eq!(shop.plain(&[], "steady-2")["state"], json!({"orders": {"at": "steady-1"}}));
    let caught = shop.plain(&["--catch-up"], "old-2");
    assert_eq!(caught["state"], json!({"orders": {"at": "old-1"}}));
    assert_eq!(caught["scope"]["streams"][0]["time_range"]["until"], until, "the line between them does not move");
    assert_eq!(shop.plain(&[], "steady-3")["state"], json!({"orders": {"at": "steady-2"}}));
    assert_eq!(shop.plain(&["--catch-up"], "old-3")["state"], json!({"orders": {"at": "old-2"}}));
    let tracks = shop.0.gleaner(&["runs", "shop", "--json"]).stdout;
    let tracks = tracks.lines().map(|line| last_line(line)["track"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(tracks, ["catch_up", "steady", "catch_up", "steady", "catch_up", "steady"]);
    assert_eq!(shop.0.gleaner(&["verify"]).code, 0);
}

#[test]
fn a_record_of_today_does_not_belong_into_catching_up() {
    let shop = Shop::new();
    shop.plain(&[], "steady-1");
    let answer = shop.0.run(&script(r#"[("orders", "1", "2999-01-01T00:00:00Z")]"#, "old"), &["--catch-up", "--json"]);
    assert_eq!((answer.code, &last_line(&answer.stdout)["reason"]), (1, &json!("protocol_violation")), "{answer:?}");
    shop.start_of(&["--catch-up"], r#"[("orders", "1", "2001-01-01T00:00:00Z")]"#, "old-1");
    assert_eq!(shop.plain(&[], "x")["state"], json!({"orders": {"at": "steady-1"}}));
}

#[test]
fn from_the_beginning_hears_of_no_cursor_and_sets_the_steady_one() {
    let shop = Shop::new();
    shop.plain(&[], "steady-1");
    shop.plain(&["--catch-up"], "old-1");
    let start = shop.plain(&["--full-refresh"], "steady-2");
    assert_eq!((&start["collection_mode"], &start["state"]), (&json!("full_refresh"), &Value::Null));
    assert_eq!(shop.plain(&[], "steady-3")["state"], json!({"orders": {"at": "steady-2"}}));
    assert_eq!(shop.plain(&["--catch-up"], "old-2")["state"], json!({"orders": {"at": "old-1"}}), "left alone");
    let both = shop.0.run("done(0); end()", &["--full-refresh", "--catch-up"]);
    assert_eq!(both.code, 2, "{both:?}");
}

#[test]
fn only_what_is_new_enough_is_asked_for_and_taken() {
    let shop = Shop::new();
    let new = r#"[("orders", "1", "2030-06-01T00:00:00Z"), ("bills", "1", "2031-01-01T00:00:00Z")]"#;
    let start = shop.start_of(&["--since", "2030-06-01"], new, "a");
    assert_eq!(start["scope"]["streams"][0]["time_range"], json!({"since": "2030-06-01"}));
    assert_eq!(start["scope"]["streams"][1]["time_range"], json!({"since": "2030-06-01"}));
    let old = shop.0.run(&script(r#"[("orders", "2", "2030-05-31T23:59:59Z")]"#, "b"), &["--since", "2030-06-01"]);
    assert_eq!(old.code, 1, "{old:?}");
    assert!(old.stdout.contains("time_out_of_range") && old.stdout.contains(r#"stream "orders", key "2""#), "{old:?}");
    let nonsense = shop.0.run(&script("[]", "c"), &["--since", "yesterday"]);
    assert!(nonsense.code == 2 && nonsense.stderr.contains("yesterday"), "{nonsense:?}");
}

#[test]
fn only_the_streams_that_are_named_are_asked_for_and_only_their_cursors_told() {
    let shop = Shop::new();
    shop.plain(&[], "steady-1");
    let bills = shop.0.run(
        "open('start', 'w').write(json.dumps(start)); say(type='STATE', stream='bills', cursor={'at': 'b'}, slice=True); done(0); end()",
        &["--stream", "bills"],
    );
    assert_eq!(bills.code, 0, "{bills:?}");
    let start = serde_json::from_str(&shop.0.read("start")).unwrap();
    assert_eq!((streams(&start), &start["state"]), (vec!["bills"], &Value::Null));
    let both = shop.plain(&["--stream", "orders,bills"], "steady-2");
    // Bills had no cursor of their own, so they may have been found by the list of orders: that run had a track of its own.
    assert_eq!(both["state"], json!({"orders": {"at": "steady-1"}}));
    assert_eq!(streams(&shop.plain(&["--stream", "orders"], "x")), ["orders"]);
    let outside = shop.0.run(&script(r#"[("bills", "1", "2031-01-01T00:00:00Z")]"#, "y"), &["--stream", "orders"]);
    assert!(outside.code == 1 && outside.stdout.contains("stream_out_of_scope"), "{outside:?}");
}

#[test]
fn only_the_records_that_are_named_are_asked_for() {
    let shop = Shop::new();
    let named = r#"[("orders", "1", "2031-01-01T00:00:00Z"), ("orders", "2", "2031-01-01T00:00:00Z"), ("bills", "9", "2031-01-01T00:00:00Z")]"#;
    let start = shop.start_of(&["--resource", "orders=1", "--resource", "orders=2"], named, "a");
    let expected = json!([{"name": "orders", "resources": ["1", "2"]}, {"name": "bills"}]);
    assert_eq!(start["scope"]["streams"], expected, "the other stream is not filtered");
    let wrong = shop.0.run("done(0); end()", &["--resource", "order=1"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("order=1"), "{wrong:?}");
}
