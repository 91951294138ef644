//! A provider with numbered ids, and a connector that fetches them one after the other.

use crate::Fallible;
use crate::drive::{Driven, now};
use gleaner_engine::Exit;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

const MANIFEST: &str = r#"{"connector_id":"ids","connector_key":"ids","version":"1","streams":[
    {"name":"ids","semantics":"mutable_state","primary_key":"id"}]}"#;

struct Options {
    ids: u64,
    slice: u64,
    rate: Option<u64>,
    cursor_first: bool,
}

impl Options {
    fn parse(words: &[&str]) -> Fallible<Self> {
        let mut options = Self { ids: 6000, slice: 100, rate: None, cursor_first: false };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut number = || Ok::<u64, Box<dyn std::error::Error>>(words.next().ok_or("a number")?.parse()?);
            match *word {
                "--ids" => options.ids = number()?,
                "--slice" => options.slice = number()?,
                "--rate" => options.rate = Some(number()?),
                "--cursor-first" => options.cursor_first = true,
                other => return Err(format!("unknown option {other}").into()),
            }
        }
        Ok(options)
    }
}

pub(crate) fn collect(store: &Path, options: &[&str]) -> Fallible<()> {
    let options = Options::parse(options)?;
    let mut driven = Driven::begin(store, MANIFEST)?;
    let from = driven.cursor("ids").and_then(|token| next_of(&token)).unwrap_or(0);
    let began = now().time.as_millis();
    let mut stdout = std::io::stdout();
    for id in from..options.ids {
        if let Some(rate) = options.rate {
            pace(began, (id - from) * 1000 / rate);
        }
        writeln!(stdout, "fetched {id}")?;
        let record = format!(
            r#"{{"type":"RECORD","stream":"ids","key":"{id}","data":{{"id":{id}}},"emitted_at":"2031-01-01T00:00:00Z"}}"#
        );
        driven.feed(format!("{record}\n").as_bytes())?;
        let next = id + 1;
        if next % options.slice == 0 || next == options.ids {
            if options.cursor_first {
                break_the_store(store, next)?;
            }
            let state = format!(r#"{{"type":"STATE","stream":"ids","cursor":{{"next":{next}}},"slice":true}}"#);
            driven.feed(format!("{state}\n").as_bytes())?;
        }
    }
    let count = options.ids.saturating_sub(from);
    driven.feed(format!("{{\"type\":\"DONE\",\"status\":\"succeeded\",\"records_emitted\":{count}}}\n").as_bytes())?;
    driven.end(Exit::Code(0))?;
    println!("done {}", driven.outcome.ok_or("the run did not end")?.reason);
    Ok(())
}

fn next_of(token: &str) -> Option<u64> {
    token.trim_start_matches("{\"next\":").trim_end_matches('}').parse().ok()
}

#[allow(clippy::disallowed_methods, reason = "a provider that answers so many times a second")]
fn pace(began: u64, due_after: u64) {
    let due = began + due_after;
    std::thread::sleep(Duration::from_millis(due.saturating_sub(now().time.as_millis())));
}

/// What the store cannot be made to do through its own door: the cursor is durable before the rows.
fn break_the_store(store: &Path, next: u64) -> Fallible<()> {
    let connection = rusqlite::Connection::open(store)?;
    connection.busy_timeout(Duration::from_secs(10))?;
    let sql = "INSERT INTO cursors (stream, track, token, seq, epoch, run, committed_at) SELECT id, 'steady', ?1, 0, 0, 0, 0 FROM streams
               WHERE true ON CONFLICT DO UPDATE SET token = excluded.token";
    connection.execute(sql, [format!("{{\"next\":{next}}}")])?;
    Ok(())
}
