//! Writes a recording during a run.
//!
//! A line is completed and scrubbed before it is written, in one write: a killed run leaves a recording that is valid
//! up to its last complete line. A full disk ends the recording, not the run. A file with content is never
//! overwritten.

use super::recording::{
    BODY_BYTES_MAX, EXCHANGES_MAX, Exchange, FILE_BYTES_MAX, Message, Outcome, exchange_line, full_line, header_line,
};
use super::scrub::Scrubber;
use gleaner_base::clock::unix_millis;
use gleaner_base::date::rfc3339_millis;
use gleaner_http::client::{Asked, NoReply, Recorder, Reply};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::Duration;
use xxhash_rust::xxh3::xxh3_128;

/// 64 KiB of a request body are kept. A larger one is an upload, and its hash identifies it.
const REQUEST_BODY_BYTES_MAX: usize = 64 << 10;
/// Request headers without information.
const DULL_REQUEST_HEADERS: [&str; 3] = ["user-agent", "accept-encoding", "content-length"];
/// Answer headers about the connection, or about the length before decoding and scrubbing.
const DULL_REPLY_HEADERS: [&str; 4] = ["connection", "keep-alive", "transfer-encoding", "content-length"];

/// A recording that is being written.
#[derive(Debug)]
pub(crate) struct ToFile {
    scrubber: RwLock<Scrubber>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// `None` once writing has stopped.
    file: Option<File>,
    bytes: u64,
    exchanges: usize,
    trouble: Option<String>,
}

impl ToFile {
    /// Begins a recording in a new or empty file, readable by its owner only.
    pub(crate) fn create(path: &Path, connector: &str, at: &str) -> io::Result<Self> {
        let mut file = gleaner_base::private::options().append(true).create(true).open(path)?;
        if file.metadata()?.len() > 0 {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the file is not empty"));
        }
        let header = header_line(connector, at);
        file.write_all(header.as_bytes())?;
        let state = State { file: Some(file), bytes: header.len() as u64, exchanges: 0, trouble: None };
        Ok(Self { scrubber: RwLock::default(), state: Mutex::new(state) })
    }

    /// Keeps these out of the recording.
    pub(crate) fn keep_secret(&self, secrets: &[String]) {
        *self.scrubber.write().unwrap_or_else(PoisonError::into_inner) = Scrubber::new(secrets);
    }

    /// Why writing has stopped, if so.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).trouble.clone()
    }

    /// The line of an exchange, without secrets.
    fn line(&self, asked: &Asked, came: Result<&Reply, NoReply>, took: Duration) -> String {
        let scrubber = self.scrubber.read().unwrap_or_else(PoisonError::into_inner);
        // First the request, whose names reveal secrets that the answer may echo; then again, for those that the
        // answer reveals.
        drop(scrubber.request(asked));
        let outcome = match came {
            Ok(reply) => answered(scrubber.reply(reply)),
            Err(no_reply) => Outcome::NoAnswer(no_reply),
        };
        // The date is for people, so it is the machine's, whatever clock the run uses.
        let began = unix_millis().saturating_sub(millis(took));
        let mut exchange = Exchange {
            line: 0,
            at: Some(rfc3339_millis(began)),
            took_ms: Some(millis(took)),
            ..requested(scrubber.request(asked), outcome)
        };
        let line = exchange_line(&exchange);
        if !scrubber.finds_in(&line) {
            return line;
        }
        // A secret in a form that only shows in the line, such as bytes in base64.
        exchange.request = Message::default();
        exchange.url = scrubber.text(exchange.url.split('?').next().unwrap_or_default());
        if let Outcome::Answered { message, body_end, .. } = &mut exchange.outcome {
            *message = Message::default();
            *body_end = None;
        }
        let line = exchange_line(&exchange);
        if scrubber.finds_in(&line) { String::new() } else { line }
    }
}

impl Recorder for ToFile {
    fn body_bytes_max(&self) -> usize {
        BODY_BYTES_MAX
    }

    fn record(&self, asked: &Asked, came: Result<&Reply, NoReply>, took: Duration) {
        let line = self.line(asked, came, took);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.write(&line);
    }
}

impl State {
    fn write(&mut self, line: &str) {
        let Some(file) = &mut self.file else { return };
        let end = full_line();
        let is_full =
            self.exchanges >= EXCHANGES_MAX || self.bytes + line.len() as u64 + end.len() as u64 > FILE_BYTES_MAX;
        let written = file.write_all(if is_full { end.as_bytes() } else { line.as_bytes() });
        self.bytes += line.len() as u64;
        self.exchanges += 1;
        match written {
            Ok(()) if !is_full => {}
            Ok(()) => {
                self.file = None;
                let most = format!("{EXCHANGES_MAX} exchanges or {} MiB", FILE_BYTES_MAX >> 20);
                self.trouble = Some(format!("the recording is full: its limit is {most}; later exchanges are missing"));
            }
            Err(error) => {
                self.file = None;
                self.trouble = Some(format!("the recording ends early: it cannot be written: {error}"));
            }
        }
    }
}

fn answered(reply: Reply) -> Outcome {
    let Reply { status, mut headers, body, body_end } = reply;
    headers.retain(|(name, _)| !DULL_REPLY_HEADERS.contains(&name.as_str()));
    Outcome::Answered { status, message: Message { headers, body, body_hash: None }, body_end: Some(body_end) }
}

fn requested(asked: Asked, outcome: Outcome) -> Exchange {
    let Asked { method, url, mut headers, body } = asked;
    let is_dull =
        |name: &str, value: &str| DULL_REQUEST_HEADERS.contains(&name) || (name == "accept" && value == "*/*");
    headers.retain(|(name, value)| !is_dull(name, value));
    let (body, body_hash) = kept_body(body);
    let request = Message { headers, body, body_hash };
    Exchange { line: 0, at: None, took_ms: None, method, url, request, outcome }
}

/// The body of a request, or its hash if it is long.
pub(super) fn kept_body(body: Vec<u8>) -> (Vec<u8>, Option<String>) {
    if body.len() <= REQUEST_BODY_BYTES_MAX {
        return (body, None);
    }
    let hash = format!("xxh3:{:032x}", xxh3_128(&body));
    (Vec::new(), Some(hash))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::recording::Recording;
    use super::*;
    use gleaner_http::client::BodyEnd;

    fn asked(body: &[u8]) -> Asked {
        let headers = [("accept", "*/*"), ("user-agent", "x"), ("x-mine", "y")];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        Asked { method: "POST".to_owned(), url: "https://a.example/".to_owned(), headers, body: body.to_vec() }
    }

    fn reply(body: Vec<u8>) -> Reply {
        Reply { status: 200, headers: Vec::new(), body, body_end: BodyEnd::Complete }
    }

    fn recorder(folder: &tempfile::TempDir) -> (ToFile, std::path::PathBuf) {
        let path = folder.path().join("exchanges.jsonl");
        (ToFile::create(&path, "notes", "2031-01-01T00:00:00Z").unwrap(), path)
    }

    #[test]
    fn only_its_owner_can_look_into_a_recording_and_nothing_is_written_over() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (recorder, path) = recorder(&folder);
        recorder.record(&asked(b""), Ok(&reply(b"x".to_vec())), Duration::from_millis(5));
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let before = std::fs::read(&path).unwrap();
        assert_eq!(ToFile::create(&path, "notes", "").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&path).unwrap(), before);
        let exchange = Recording::read(&path).unwrap().exchanges.remove(0);
        assert_eq!((exchange.took_ms, exchange.line), (Some(5), 2));
        assert_eq!(exchange.request.headers, [("x-mine".to_owned(), "y".to_owned())], "the others say nothing");
    }

    #[test]
    fn a_long_request_is_kept_as_its_hash() {
        let folder = tempfile::tempdir().unwrap();
        let (recorder, path) = recorder(&folder);
        let long = vec![b'x'; REQUEST_BODY_BYTES_MAX + 1];
        recorder.record(&asked(&long), Err(NoReply::Lost), Duration::ZERO);
        recorder.record(&asked(&long[1..]), Err(NoReply::Lost), Duration::ZERO);
        let exchanges = Recording::read(&path).unwrap().exchanges;
        assert!(exchanges[0].request.body.is_empty() && exchanges[0].request.body_hash.is_some());
        assert_eq!((exchanges[1].request.body.len(), &exchanges[1].request.body_hash), (long.len() - 1, &None));
    }

    #[test]
    fn a_secret_that_shows_only_in_the_line_takes_its_exchange_along() {
        let folder = tempfile::tempdir().unwrap();
        let (recorder, path) = recorder(&folder);
        recorder.keep_secret(&["c4n4ry-token".to_owned()]);
        // The base64 form of these bytes contains the secret, the bytes do not.
        let bytes = super::super::recording::decode_base64("/w//c4n4rytoken4").unwrap();
        recorder.keep_secret(&["c4n4rytoken4".to_owned()]);
        recorder.record(&asked(b""), Ok(&reply(bytes)), Duration::ZERO);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains("c4n4ry") && text.contains(r#""body_end":"withheld""#), "{text}");
    }

    #[test]
    fn a_recording_that_is_full_says_so_and_stays_readable() {
        let folder = tempfile::tempdir().unwrap();
        let (recorder, path) = recorder(&folder);
        recorder.record(&asked(b""), Ok(&reply(vec![b'x'; 1000])), Duration::ZERO);
        // Not through the scrubber, which takes its time for so much.
        let line =
            std::fs::read_to_string(&path).unwrap().lines().last().unwrap().replace("xxx", &"x".repeat(10_000)) + "\n";
        let lines = FILE_BYTES_MAX as usize / line.len();
        for _ in 0..lines + 10 {
            recorder.state.lock().unwrap().write(&line);
        }
        assert!(recorder.trouble().unwrap().starts_with("the recording is full"));
        let file = tempfile::tempfile().unwrap();
        let mut many = State { file: Some(file), bytes: 0, exchanges: EXCHANGES_MAX, trouble: None };
        many.write("one more\n");
        assert!(many.file.is_none() && many.trouble.is_some(), "it is full by their number, too");
        let recording = Recording::read(&path).unwrap();
        assert_eq!((recording.exchanges.len(), recording.is_full), (lines + 1, true));
    }
}
