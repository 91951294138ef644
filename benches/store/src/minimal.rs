//! The smallest program that keeps the same lines: what a store costs is measured against it.
//!
//! Reads lines, parses the envelope, inserts stream, key and body with a prepared statement, a
//! thousand rows per transaction, with the settings of the store. It checks nothing, counts nothing,
//! has no history, and cannot go on after a crash. `minimal STORE [keyed]`: with `keyed` a record can
//! be found by its key, without it the table is a heap.

use rusqlite::Connection;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::io::BufRead;

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    stream: Cow<'a, str>,
    #[serde(borrow, default)]
    key: Cow<'a, str>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = std::env::args().skip(1).collect::<Vec<_>>();
    let connection = Connection::open(&arguments[0])?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "secure_delete", "ON")?;
    connection.pragma_update(None, "cache_size", -8192)?;
    connection.pragma_update(None, "journal_size_limit", 16 * 1024 * 1024)?;
    let key = if arguments.len() > 1 { ", PRIMARY KEY (stream, key)" } else { "" };
    connection.execute_batch(&format!("CREATE TABLE records (stream TEXT, key TEXT, body TEXT{key})"))?;
    let mut insert = connection.prepare("INSERT INTO records VALUES (?1, ?2, ?3)")?;
    let mut input = std::io::BufReader::with_capacity(64 * 1024, std::io::stdin().lock());
    let mut line = Vec::new();
    let mut rows = 0_u64;
    connection.execute_batch("BEGIN IMMEDIATE")?;
    while input.read_until(b'\n', &mut line)? > 0 {
        let envelope = serde_json::from_slice::<Envelope<'_>>(&line)?;
        if envelope.kind == "RECORD" {
            insert.execute((&envelope.stream, &envelope.key, envelope.data.map(RawValue::get)))?;
            rows += 1;
            if rows % 1000 == 0 {
                connection.execute_batch("COMMIT; BEGIN IMMEDIATE")?;
            }
        }
        line.clear();
    }
    connection.execute_batch("COMMIT")?;
    Ok(())
}
