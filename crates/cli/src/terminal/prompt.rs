//! Asking the owner on the terminal, without showing what is typed.
//!
//! A question waits in a thread of its own, so that the run goes on being watched; it is taken back when
//! somebody else answers, or when the run ends. What is typed goes to the connector and nowhere else: no
//! history, no log, no screen. The terminal is left as it was found, also after Ctrl-C.

use super::output::report_to_stderr;
use gleaner_app::usual_fields;
use gleaner_base::outside::{self, one_line};
use gleaner_protocol::{Answer, Interaction, InteractionKind, InteractionResponse, InteractionStatus, RawJson};
use gleaner_runtime::Control;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, getpid, kill_process};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, tcgetattr, tcsetattr};
use serde_json::{Map, Value};
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread::{self, JoinHandle};

/// How often it is looked whether a question was taken back.
const POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// The longest line that a terminal gives.
const LINE_BYTES: usize = 4096;

/// A question on the terminal. Dropping it takes it back.
#[derive(Debug)]
pub(crate) struct Prompt {
    closed: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Prompt {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Relaxed);
        // Until the terminal is as it was.
        drop(self.thread.take().map(JoinHandle::join));
    }
}

/// Asks, and sends the answer. `variables` are what to ask for where the question does not say.
pub(crate) fn ask(question: Interaction, variables: &[String], orders: Sender<Control>) -> Prompt {
    let closed = Arc::new(AtomicBool::new(false));
    let is_closed = Arc::clone(&closed);
    let fields = fields(question.kind, question.schema.as_ref(), variables);
    let (request_id, sender) = (question.request_id.clone(), orders.clone());
    let thread = thread::Builder::new().name("prompt".to_owned()).spawn(move || {
        // Without a terminal the owner declines.
        let typed = read_answer(&question.message, &fields, &is_closed).unwrap_or(Typed::Declined);
        let (status, data) = match typed {
            Typed::Answer(data) => (InteractionStatus::Success, Some(Answer::new(data))),
            Typed::Declined => (InteractionStatus::Cancelled, None),
            Typed::TakenBack => return,
        };
        let response = InteractionResponse { request_id: question.request_id, status, data };
        // A run that is over needs no answer.
        drop(orders.send(Control::Answer(response)));
    });
    if thread.is_err() {
        // Nobody can type an answer.
        let response = InteractionResponse { request_id, status: InteractionStatus::Cancelled, data: None };
        drop(sender.send(Control::Answer(response)));
    }
    Prompt { closed, thread: thread.ok() }
}

/// What came of a question.
#[derive(Debug)]
pub(crate) enum Typed {
    Answer(RawJson<'static>),
    Declined,
    /// Nobody waits for it any more.
    TakenBack,
}

/// Asks for an answer here and now; `None` without a terminal.
pub(crate) fn answer(message: &str, fields: &[String]) -> Option<Typed> {
    if !io::stdin().is_terminal() {
        return None;
    }
    read_answer(message, fields, &AtomicBool::new(false)).ok()
}

/// Asks for one value that is not shown; `None` without a terminal, or when nothing is typed.
pub(crate) fn secret(name: &str) -> Option<String> {
    // Whoever starts us from a script does not want to be asked.
    if !io::stdin().is_terminal() {
        return None;
    }
    let mut terminal = open().ok()?;
    let line = read_hidden(&mut terminal, name, &AtomicBool::new(false)).ok().flatten()?;
    (!line.is_empty()).then_some(line)
}

/// Says where the key of new credentials is.
pub(crate) fn say_where(key_place: Option<&str>) {
    if let Some(place) = key_place {
        report_to_stderr(&format!("stored encrypted under the data root; {place}"));
    }
}

/// Asks whether something is meant; `None` without a terminal.
pub(crate) fn confirm(question: &str, word: &str) -> Option<bool> {
    if !io::stdin().is_terminal() {
        return None;
    }
    let mut terminal = open().ok()?;
    write!(terminal, "{} Type {} to go on: ", one_line(question), one_line(word)).ok()?;
    let line = read_line(&mut terminal, &AtomicBool::new(false)).ok().flatten()?;
    Some(line == word)
}

fn open() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open("/dev/tty")
}

fn read_answer(message: &str, fields: &[String], closed: &AtomicBool) -> io::Result<Typed> {
    let mut terminal = open()?;
    writeln!(terminal, "\n{}", outside::lines(message))?;
    let mut answer = Map::new();
    if fields.is_empty() {
        write!(terminal, "Press Enter when that is done, or type no to decline: ")?;
        match read_line(&mut terminal, closed)?.as_deref() {
            None => return Ok(Typed::TakenBack),
            Some("") => answer.insert("done".to_owned(), Value::Bool(true)),
            Some(_) => return Ok(Typed::Declined),
        };
    }
    for field in fields {
        match read_hidden(&mut terminal, field, closed)? {
            None => return Ok(Typed::TakenBack),
            Some(value) if value.is_empty() => return Ok(Typed::Declined),
            Some(value) => answer.insert(field.clone(), Value::String(value)),
        };
    }
    // Written by a serializer, so it can be read.
    Ok(RawJson::new(Value::Object(answer).to_string()).map_or(Typed::Declined, Typed::Answer))
}

/// What is asked for: the properties of the schema, or what questions of this kind need. Nothing means that
/// something is to be done, and no value is wanted.
pub(crate) fn fields(kind: InteractionKind, schema: Option<&RawJson<'_>>, variables: &[String]) -> Vec<String> {
    let members = schema.and_then(RawJson::members).unwrap_or_default();
    let properties = members.iter().find(|(name, _)| name == "properties").and_then(|(_, value)| value.members());
    let named = properties.unwrap_or_default().into_iter().map(|(name, _)| name.into_owned()).collect::<Vec<_>>();
    if named.is_empty() { usual_fields(kind, variables.to_vec()) } else { named }
}

/// One line that is not shown; `None` when it was taken back.
fn read_hidden(terminal: &mut File, field: &str, closed: &AtomicBool) -> io::Result<Option<String>> {
    write!(terminal, "{} (not shown, empty to decline): ", one_line(field))?;
    let shown = tcgetattr(&*terminal)?;
    let mut hidden = shown.clone();
    // Ctrl-C ends the line here instead of us, so that the terminal is put right before it counts.
    hidden.local_modes.remove(LocalModes::ECHO | LocalModes::ISIG);
    let interrupt = shown.special_codes[SpecialCodeIndex::VINTR];
    hidden.special_codes[SpecialCodeIndex::VEOL] = interrupt;
    tcsetattr(&*terminal, OptionalActions::Flush, &hidden)?;
    let read = read_line(terminal, closed);
    tcsetattr(&*terminal, OptionalActions::Now, &shown)?;
    writeln!(terminal)?;
    let line = read?;
    if line.as_ref().is_some_and(|line| line.as_bytes().last() == Some(&interrupt)) {
        let _pressed = kill_process(getpid(), Signal::INT);
        return Ok(None);
    }
    Ok(line)
}

/// One line without its end; `None` when it was taken back.
fn read_line(terminal: &mut File, closed: &AtomicBool) -> io::Result<Option<String>> {
    loop {
        if closed.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let mut waits = [PollFd::new(&*terminal, PollFlags::IN)];
        match poll(&mut waits, Some(&POLL_INTERVAL)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => break,
            Err(error) => return Err(error.into()),
        }
    }
    let mut line = [0; LINE_BYTES];
    let read = terminal.read(&mut line)?;
    let line = String::from_utf8_lossy(&line[..read]);
    Ok(Some(line.trim_end_matches(['\n', '\r']).to_owned()))
}
