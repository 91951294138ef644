//! Records as files: what is in them, what they are called, what becomes of formulas, and of readers that go away.

use crate::world::{World, collect};
use std::io::Read as _;
use std::time::{Duration, Instant};

#[test]
fn a_stream_and_a_connection_come_as_lines_with_each_record_as_it_was_stored() {
    let world = World::new();
    let reply = world.get("/api/v1/connections/notes/streams/items/export");
    assert_eq!(reply.header("content-type"), Some("application/x-ndjson"));
    assert_eq!(reply.header("content-disposition"), Some("attachment; filename=\"notes.items.jsonl\""));
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    let text = reply.text();
    assert!(text.contains("\"n\":12345678901234567890"), "numbers as they were written: {text}");
    let keys = |text: &str| text.lines().filter(|line| line.contains("\"key\":")).count();
    let records = world.json("/api/v1/connections/notes/streams/items/records?limit=500");
    let there =
        records["items"].as_array().expect("records").iter().filter(|record| record["deleted"] == false).count();
    assert_eq!(keys(text), there);
    let with_deleted = world.get("/api/v1/connections/notes/streams/items/export?tombstones=true");
    assert!(keys(with_deleted.text()) > there && with_deleted.text().contains("\"deleted\":true"));
    let whole = world.get("/api/v1/connections/notes/export");
    assert!(whole.text().contains("\"stream\":\"items\"") && whole.text().contains("\"stream\":\"details\""));
    let strange = world.get("/api/v1/connections/a%2Fb%20%26%3F%C3%BC/export");
    assert_eq!(strange.header("content-disposition"), Some("attachment; filename=\"a_b____.jsonl\""));
    assert_eq!(strange.body, b"");
}

#[test]
fn what_cannot_be_exported_is_refused_before_a_file_begins() {
    let world = World::new();
    for (path, status) in [
        ("/api/v1/connections/none/export", 404),
        ("/api/v1/connections/none/streams/items/export", 404),
        ("/api/v1/connections/notes/streams/none/export", 404),
        ("/api/v1/connections/notes/export?format=csv", 422),
        ("/api/v1/connections/notes/streams/items/export?format=xls", 400),
        ("/api/v1/connections/notes/streams/items/export?all=1", 400),
    ] {
        let reply = world.get(path);
        assert_eq!(reply.status, status, "{path}: {}", reply.text());
        assert_eq!(reply.header("content-disposition"), None, "{path}");
    }
}

fn line(key: &str, title: &str) -> String {
    let data = serde_json::json!({"id": key, "n": title});
    let record = serde_json::json!({"type": "RECORD", "stream": "items", "key": key, "data": data,
        "emitted_at": "2031-01-01T00:00:00Z"});
    format!("{record}\n")
}

#[test]
fn a_table_computes_nothing_in_a_spreadsheet() {
    let world = World::new();
    let texts = ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "plain, \"quoted\"\nand broken", "-5"];
    let keys = texts.iter().enumerate().map(|(n, text)| line(&format!("=k{n}"), text)).collect::<String>();
    let done = format!("{{\"type\":\"DONE\",\"status\":\"succeeded\",\"records_emitted\":{}}}\n", texts.len());
    collect(world.root(), "sheets", &(keys + &done));
    let reply = world.get("/api/v1/connections/sheets/streams/items/export?format=csv");
    assert_eq!(reply.header("content-disposition"), Some("attachment; filename=\"sheets.items.csv\""));
    let text = reply.text();
    assert!(text.starts_with("\"key\",\"seq\",\"emitted_at\""), "{text}");
    assert!(text.contains("\"'=k0\"") && text.contains("\"plain, \"\"quoted\"\"\nand broken\""), "{text}");
    for begin in ["\"=", "\"+", "\"@", "\"\t", "\"-1+"] {
        assert!(!text.contains(&format!(",{begin}")) && !text.contains(&format!("\n{begin}")), "{begin}: {text}");
    }
}

/// Whoever stops reading gives its place back; nobody gets more than two at once.
#[test]
fn a_reader_that_goes_away_ends_its_download() {
    let world = World::new();
    let long = "x".repeat(100_000);
    let records = (0..200).map(|n| line(&format!("{n:04}"), &long)).collect::<String>();
    collect(
        world.root(),
        "long",
        &(records + "{\"type\":\"DONE\",\"status\":\"succeeded\",\"records_emitted\":200}\n"),
    );
    let path = "/api/v1/connections/long/streams/items/export";
    let began = |_| {
        let mut socket = world.request("GET", path).open(world.address);
        let mut some = [0; 1000];
        assert!(socket.read(&mut some).expect("an answer") > 0 && some.starts_with(b"HTTP/1.1 200"));
        socket
    };
    let readers = (0..2).map(began).collect::<Vec<_>>();
    let third = world.get(path);
    assert_eq!((third.status, third.json()["error"]["code"].as_str()), (503, Some("busy")));
    drop(readers);
    let limit = Instant::now() + Duration::from_secs(20);
    let whole = loop {
        let reply = world.get(path);
        if reply.status == 200 {
            break reply;
        }
        assert!(Instant::now() < limit, "the places are not given back");
        std::thread::sleep(Duration::from_millis(50));
    };
    assert_eq!(whole.text().lines().count(), 200);
}

#[test]
fn connectors_can_be_listed_and_no_request_says_which_program_runs() {
    let world = World::new();
    for path in ["/api/v1/connectors", "/api/v1/doctor"] {
        assert_eq!(world.get(path).status, 200, "{path}");
    }
    assert_eq!(world.act("POST", "/api/v1/connectors/nobody/check", "{}").status, 404);
    assert_eq!(world.act("POST", "/api/v1/connections", r#"{"connector":"nobody"}"#).status, 404);
    assert_eq!(world.act("POST", "/api/v1/connections", r#"{"connector":"ical","command":["sh"]}"#).status, 400);
}
