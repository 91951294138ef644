//! The Python template as a program that collects from a model provider: its process, and the HTTP server that it asks.
//!
//! The server numbers every change of the provider, so that its list is a feed: oldest first, each change once.

use crate::provider::{self, Entry, Provider};
use gleaner_protocol::RuntimeMessage;
use gleaner_sdk::lane::{ListAt, Source, Target};
use gleaner_sdk::{FetchError, FetchErrorKind, Wire};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::Instant;

pub(crate) const STREAMS: [&str; 2] = ["items", "others"];
pub(crate) const MANIFEST: &str = r#"{"connector_id":"model","connector_key":"model","version":"1","streams":[
    {"name":"items","semantics":"mutable_state","primary_key":"id","selection":{"resources":true},
     "schema":{"type":"object","required":["id"],"properties":{"id":{"type":"string"},"v":{"type":"integer"}}}},
    {"name":"others","semantics":"mutable_state","primary_key":"id","selection":{"resources":true},
     "schema":{"type":"object","required":["id"],"properties":{"id":{"type":"string"},"v":{"type":"integer"}}}}]}"#;

/// The places of a list: the provider's entry when it was last looked at, and the number of that change.
#[derive(Default)]
struct Places {
    last: u64,
    known: BTreeMap<String, (Entry, u64)>,
}

/// One stream of the provider.
pub(crate) struct Feed {
    pub(crate) provider: Provider,
    places: Mutex<Places>,
    page: usize,
    /// Of a thousand details so many do not fit their schema.
    pub(crate) odd: AtomicU64,
    /// The requests of these numbers are answered with 429.
    pub(crate) refused: Mutex<Range<usize>>,
    /// Retry-After of every 429, in seconds.
    pub(crate) retry_after: AtomicU64,
    /// When requests came.
    pub(crate) came: Mutex<Vec<Instant>>,
}

impl Feed {
    pub(crate) fn new(provider: Provider, page: usize) -> Self {
        let (odd, refused, retry_after, came) = Default::default();
        Self { provider, places: Mutex::default(), page, odd, refused, retry_after, came }
    }

    /// Every item with the number of its last change.
    pub(crate) fn places(&self) -> BTreeMap<String, (Entry, u64)> {
        let items = self.provider.items();
        let mut places = self.places.lock().unwrap();
        places.known.retain(|key, _| items.contains_key(key));
        let changed =
            items.into_iter().filter(|(key, entry)| places.known.get(key).is_none_or(|(old, _)| old != entry));
        let mut changed = changed.collect::<Vec<_>>();
        changed.sort_by_key(|(_, entry)| entry.at);
        for (key, entry) in changed {
            places.last += 1;
            let place = places.last;
            places.known.insert(key, (entry, place));
        }
        places.known.clone()
    }

    fn answer(&self, path: &str, query: &str) -> Result<Value, FetchError> {
        let mut came = self.came.lock().unwrap();
        came.push(Instant::now());
        if self.refused.lock().unwrap().contains(&(came.len() - 1)) {
            return Err(FetchError::of_status(429));
        }
        if path.is_empty() {
            self.provider.list(&ListAt { at_or_older_than: None, page: None })?;
            let after = query.trim_start_matches("after=").parse::<u64>().unwrap();
            let mut later = self.places().into_iter().map(|(key, (_, place))| (place, key)).collect::<Vec<_>>();
            later.retain(|(place, _)| *place > after);
            later.sort_unstable();
            let items = later.iter().take(self.page).map(|(place, key)| json!([key, place])).collect::<Vec<_>>();
            return Ok(json!({"items": items, "more": later.len() > self.page}));
        }
        let _detail = self.provider.detail(&Target { key: path.to_owned(), locator: None })?;
        // A tombstone, unless it is there.
        let Some(entry) = self.provider.items().get(path).copied() else { return Ok(Value::Null) };
        let mut body = provider::body(path, entry);
        if self.odd.load(Ordering::Relaxed) > self.provider.random(1000) {
            body["v"] = json!("many");
        }
        Ok(body)
    }
}

/// A server on this machine; it ends with this value.
pub(crate) struct Server {
    pub(crate) url: String,
    pub(crate) feeds: Arc<[Feed; 2]>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn start(feeds: [Feed; 2]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (feeds, ends) = (Arc::new(feeds), Arc::new(AtomicBool::new(false)));
        let (of_thread, has_ended) = (Arc::clone(&feeds), Arc::clone(&ends));
        let thread = std::thread::spawn(move || {
            for connection in listener.incoming() {
                if has_ended.load(Ordering::Relaxed) {
                    return;
                }
                // A connector that was killed does not read its answer.
                connection.map(|connection| drop(serve(connection, of_thread.as_slice()))).unwrap();
            }
        });
        Self { url: format!("http://{address}"), feeds, ends, thread: Some(thread) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        drop(TcpStream::connect(self.url.trim_start_matches("http://")));
        drop(self.thread.take().map(JoinHandle::join));
    }
}

fn serve(mut connection: TcpStream, feeds: &[Feed]) -> std::io::Result<()> {
    let mut lines = BufReader::new(connection.try_clone()?).lines();
    let Some(request) = lines.next().transpose()? else { return Ok(()) };
    while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    let target = request.split(' ').nth(1).unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut words = path.trim_start_matches('/').splitn(2, '/');
    let stream = words.next().unwrap_or_default();
    let feed = &feeds[STREAMS.iter().position(|name| *name == stream).unwrap()];
    let (status, more, body) = match feed.answer(words.next().unwrap_or_default(), query) {
        Ok(body) => (200, String::new(), body.to_string()),
        Err(error) if error.http_status == Some(429) => {
            let wait = feed.retry_after.load(Ordering::Relaxed);
            (429, format!("Retry-After: {wait}\r\n"), String::new())
        }
        Err(error) => (status_of(&error), String::new(), String::new()),
    };
    let length = body.len();
    write!(connection, "HTTP/1.1 {status} X\r\n{more}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}")
}

/// The answer of a provider without a governor before it.
fn status_of(error: &FetchError) -> u16 {
    error.http_status.unwrap_or(match error.kind {
        FetchErrorKind::Pressure(_) => 429,
        FetchErrorKind::Temporary => 500,
        _ => 503,
    })
}

/// The template in a folder of its own.
pub(crate) struct Template {
    folder: tempfile::TempDir,
}

impl Template {
    /// Whatever `change` makes of its `gleaner.py`.
    pub(crate) fn new(change: impl FnOnce(String) -> String) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        put("gleaner.py", &change(include_str!("../../../cli/templates/python/gleaner.py").to_owned()));
        put("exchanges.py", include_str!("../../../cli/templates/python/exchanges.py"));
        put("connector.py", include_str!("connector.py"));
        put("manifest.json", MANIFEST);
        Self { folder }
    }

    /// Output of a program that may use the template.
    pub(crate) fn evaluate(&self, program: &str) -> String {
        let output =
            Command::new(python()).args(["-S", "-c", program]).current_dir(self.folder.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Starts it and lets it speak until it ends, or until it is killed because nobody listens any more. Every whole line
    /// of both sides is kept.
    pub(crate) fn run(&self, wire: &mut dyn Wire, url: &str, caps: &[(&str, u64)], lines: &mut Vec<Value>) -> i32 {
        let mut command = Command::new(python());
        command.args(["-S", "-E", "connector.py"]).current_dir(self.folder.path());
        command.env_clear().env("MODEL_URL", url).stdin(Stdio::piped()).stdout(Stdio::piped());
        for (name, value) in caps {
            command.env(name, value.to_string());
        }
        let mut child = command.spawn().unwrap();
        let code = speak(wire, &mut child, lines);
        if code.is_none() {
            child.kill().unwrap();
        }
        let status = child.wait().unwrap();
        status.code().unwrap_or(-1)
    }
}

/// The interpreter itself: what is found on the PATH may be a script that looks for it, slowly.
fn python() -> &'static str {
    static PYTHON: OnceLock<String> = OnceLock::new();
    PYTHON.get_or_init(|| {
        let output = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    })
}

/// `None` when the wire was cut.
fn speak(wire: &mut dyn Wire, child: &mut Child, lines: &mut Vec<Value>) -> Option<()> {
    let mut input = child.stdin.take();
    let output = BufReader::new(child.stdout.take().unwrap());
    hand_over(wire, input.as_mut()?, lines);
    for line in output.split(b'\n') {
        let mut line = line.unwrap();
        lines.push(serde_json::from_slice(&line).unwrap());
        line.push(b'\n');
        wire.write(&line).ok()?;
        if lines.last().is_some_and(|line| line["type"] == "DONE") {
            input = None;
        } else if let Some(input) = &mut input {
            hand_over(wire, input, lines);
        }
    }
    Some(())
}

/// Messages of the runtime since.
fn hand_over(wire: &mut dyn Wire, input: &mut impl Write, lines: &mut Vec<Value>) {
    while let Some(message) = wire.read().unwrap() {
        let mut line = Vec::new();
        RuntimeMessage::encode(&message, &mut line);
        lines.push(serde_json::from_slice(&line).unwrap());
        input.write_all(&line).unwrap();
        input.flush().unwrap();
    }
}
