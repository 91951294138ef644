//! A provider of notes on loopback, as the connector of the demonstration knows it. It writes down every request
//! when it comes, and answers as a test wants.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Another answer than the usual one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reply {
    /// Zero for what it would be anyway.
    pub(crate) status: u16,
    /// A whole header, for example `retry-after: 5`.
    pub(crate) header: Option<&'static str>,
    /// How long it takes.
    pub(crate) after: Duration,
    /// The note that is sent.
    pub(crate) body: Option<Value>,
}

impl Reply {
    pub(crate) fn status(status: u16) -> Self {
        Self { status, ..Self::default() }
    }
}

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) at: Instant,
    /// The note that it was for; `None` for a page of the list.
    pub(crate) note: Option<String>,
    /// How it was answered.
    pub(crate) status: u16,
}

/// What is answered to a request for this note, of which so many requests came before. `None` is the usual answer.
pub(crate) type Rule = Box<dyn FnMut(Option<&str>, &[Asked]) -> Option<Reply> + Send>;

#[derive(Clone)]
pub(crate) struct NotesProvider {
    pub(crate) url: String,
    shared: Arc<Mutex<Shared>>,
}

struct Shared {
    /// Oldest first, with their times.
    notes: Vec<(String, String)>,
    page: usize,
    asked: Vec<Asked>,
    rule: Rule,
}

impl NotesProvider {
    /// With so many notes, which are called `n0000` and so on, a minute apart.
    pub(crate) fn start(count: usize) -> Self {
        Self::of((0..count).map(|number| format!("n{number:04}")), 20)
    }

    /// With these notes, the oldest first, so many on a page.
    pub(crate) fn of(keys: impl Iterator<Item = String>, page: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let notes = keys.enumerate().map(|(number, key)| (key, written_at(number))).collect();
        let shared = Shared { notes, page, asked: Vec::new(), rule: Box::new(|_, _| None) };
        let provider = Self { url, shared: Arc::new(Mutex::new(shared)) };
        let serving = provider.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let serving = serving.clone();
                thread::spawn(move || serving.serve(&stream));
            }
        });
        provider
    }

    /// Answers like this from now on.
    pub(crate) fn rule(&self, rule: impl FnMut(Option<&str>, &[Asked]) -> Option<Reply> + Send + 'static) {
        self.shared.lock().unwrap().rule = Box::new(rule);
    }

    /// Answers as usual from now on.
    pub(crate) fn heal(&self) {
        self.rule(|_, _| None);
    }

    /// A note is written.
    pub(crate) fn write_another(&self) {
        let notes = &mut self.shared.lock().unwrap().notes;
        let number = notes.len();
        notes.push((format!("n{number:04}"), written_at(number)));
    }

    /// The names of all notes, the oldest first.
    pub(crate) fn keys(&self) -> Vec<String> {
        self.shared.lock().unwrap().notes.iter().map(|(key, _)| key.clone()).collect()
    }

    /// Every request so far, in its order.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.shared.lock().unwrap().asked.clone()
    }

    /// How often each note was sent.
    pub(crate) fn sent(&self) -> BTreeMap<String, usize> {
        let mut sent = BTreeMap::new();
        for asked in self.asked().into_iter().filter(|asked| asked.status == 200) {
            if let Some(note) = asked.note {
                *sent.entry(note).or_default() += 1;
            }
        }
        sent
    }

    fn serve(&self, stream: &TcpStream) {
        stream.set_nodelay(true).unwrap();
        let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
        // One request after the other, as long as the caller keeps the connection.
        while let Some(first) = lines.next() {
            while lines.next().is_some_and(|line| !line.is_empty()) {}
            let target = first.split(' ').nth(1).unwrap_or_default().replace("%3A", ":");
            let (reply, body) = self.answer(&target);
            thread::sleep(reply.after);
            let header = reply.header.map(|header| format!("{header}\r\n")).unwrap_or_default();
            let head = format!("HTTP/1.1 {} .\r\n{header}content-length: {}\r\n\r\n", reply.status, body.len());
            if (&*stream).write_all(format!("{head}{body}").as_bytes()).is_err() {
                return;
            }
        }
    }

    fn answer(&self, target: &str) -> (Reply, String) {
        let mut shared = self.shared.lock().unwrap();
        let Shared { notes, page, asked, rule } = &mut *shared;
        let note = target.strip_prefix("/notes/");
        let usual = match note {
            None => Some(list(notes, *page, target)),
            Some(note) => notes
                .iter()
                .find(|(key, _)| key == note)
                .map(|(key, written_at)| json!({"id": key, "title": "A note", "written_at": written_at})),
        };
        let mut reply = rule(note, asked).unwrap_or_default();
        if reply.status == 0 {
            reply.status = if usual.is_some() { 200 } else { 404 };
        }
        asked.push(Asked { at: Instant::now(), note: note.map(ToOwned::to_owned), status: reply.status });
        let body = reply.body.take().or(usual).unwrap_or_default().to_string();
        (reply, body)
    }
}

/// A page of the list, the newest first.
fn list(notes: &[(String, String)], page: usize, target: &str) -> Value {
    let given = |name: &str| {
        let query = target.split_once('?').map_or("", |(_, query)| query);
        query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=').map(ToOwned::to_owned))
    };
    let (until, after) = (given("until"), given("after"));
    let first = after.map_or(notes.len(), |after| notes.iter().position(|(key, _)| *key == after).unwrap());
    let asked = notes[..first].iter().rev().filter(|(_, at)| until.as_ref().is_none_or(|until| at <= until));
    let shown = asked.take(page).map(|(key, at)| json!({"id": key, "written_at": at})).collect::<Vec<_>>();
    let next = shown.last().filter(|last| last["id"] != notes[0].0.as_str()).map(|last| last["id"].clone());
    json!({"notes": shown, "next": next})
}

fn written_at(number: usize) -> String {
    format!("2021-01-{:02}T{:02}:{:02}:00Z", number / 1440 + 1, number / 60 % 24, number % 60)
}
