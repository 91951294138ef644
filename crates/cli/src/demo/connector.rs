//! `gleaner connector demo`: a small connector, such as anybody could write in any language.
//!
//! It reads START, walks the list from the cursor, fetches each note with four threads through one governed
//! client, and says a slice after each page. What the client learned rides on the cursor, so the next run
//! begins at the pace that this one had found.

use super::{PAGE, URL};
use crate::dates;
use gleaner_http::blocking::Client;
use gleaner_http::{persist_onto, restore_from};
use serde_json::{Map, Value, json};
use std::io::{self, BufRead, Read, Write};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

type Fallible<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Threads that fetch at the same time.
const THREADS: usize = 4;
const STREAM: &str = "notes";
/// How long the last line may take to go out. At most three seconds by the contract, the exit included.
const DRAIN_MAX: Duration = Duration::from_millis(2500);

pub(crate) fn run() -> ExitCode {
    let mut emitted = 0;
    let failed = match collect(&mut emitted) {
        Ok(()) => None,
        Err(error) => Some(json!({"message": error.to_string(), "retryable": true})),
    };
    let status = if failed.is_none() { "succeeded" } else { "failed" };
    let mut done = json!({"type": "DONE", "status": status, "records_emitted": emitted});
    if let Some(error) = &failed {
        done["error"] = error.clone();
    }
    // Whoever does not read us any more will not close our input either.
    if !say_last(done) {
        return ExitCode::FAILURE;
    }
    // The end of the input says that everything is saved.
    let mut rest = Vec::new();
    let waited = io::stdin().read_to_end(&mut rest);
    if failed.is_some() || waited.is_err() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// The last line, and whether it went out. A reader that is slow gets its time, and one that is gone does not hold us.
fn say_last(message: Value) -> bool {
    let (said, is_said) = channel();
    thread::spawn(move || said.send(say(&message).is_ok()));
    is_said.recv_timeout(DRAIN_MAX).unwrap_or(false)
}

fn collect(emitted: &mut u64) -> Fallible<()> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let start = serde_json::from_str::<Value>(&line)?;
    let cursor = start["state"][STREAM].as_object().cloned().unwrap_or_default();
    let url = std::env::var(URL)?;
    let client = Client::new("demo")?;
    if let Some(learned) = restore_from(&cursor) {
        client.governor().restore(&learned);
    }
    let mut from = cursor.get("from").and_then(Value::as_u64).unwrap_or(0);
    loop {
        let list = client.get(format!("{url}/notes/from/{from}")).send()?.error_for_status()?.json::<Value>()?;
        let ids = list["ids"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect::<Vec<_>>();
        if ids.is_empty() {
            return Ok(());
        }
        *emitted += fetch(&client, &url, &ids)?;
        from += PAGE;
        let mut next = Map::from_iter([("from".to_owned(), from.into())]);
        persist_onto(&mut next, STREAM, &[STREAM], client.governor().learned().as_ref())?;
        say(&json!({"type": "STATE", "stream": STREAM, "cursor": next, "slice": true}))?;
    }
}

/// Fetches the notes of one page. What is not there becomes a gap.
fn fetch(client: &Client, url: &str, ids: &[u64]) -> Fallible<u64> {
    let queue = Mutex::new(ids.iter());
    let next = || queue.lock().ok().and_then(|mut queue| queue.next().copied());
    let work = || -> Fallible<u64> {
        let mut emitted = 0;
        while let Some(id) = next() {
            let answer = client.get(format!("{url}/notes/{id}")).send()?;
            if answer.status().as_u16() == 404 {
                say(&json!({
                    "type": "DETAIL_GAP", "reference_only": true, "status": "pending", "stream": STREAM,
                    "record_key": id.to_string(), "reason": "not_found",
                    "last_error": {"class": "http", "http_status": 404},
                }))?;
            } else {
                let data = answer.error_for_status()?.json::<Value>()?;
                let emitted_at = dates::rfc3339(dates::now());
                say(
                    &json!({"type": "RECORD", "stream": STREAM, "key": id.to_string(), "data": data, "emitted_at": emitted_at}),
                )?;
                emitted += 1;
            }
            let rate = client.governor().collection_rate();
            say(&json!({"type": "PROGRESS", "message": format!("note {id}"), "collection_rate": rate}))?;
        }
        Ok(emitted)
    };
    thread::scope(|scope| {
        let threads = (0..THREADS).map(|_| scope.spawn(work)).collect::<Vec<_>>();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err("a thread died".into()))).sum()
    })
}

/// One line, whole.
fn say(message: &Value) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{message}")?;
    out.flush()
}
