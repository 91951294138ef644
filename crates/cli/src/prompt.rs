//! Asking the owner on the terminal, without showing what is typed.
//!
//! A question waits in a thread of its own, so that the run goes on being watched. What is typed goes to
//! the connector and nowhere else: no history, no log, no screen.

use crate::output::visible;
use gleaner_protocol::{Answer, Interaction, InteractionKind, InteractionResponse, InteractionStatus, RawJson};
use gleaner_runtime::Control;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use serde_json::{Map, Value};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, IsTerminal, Write};
use std::sync::Mutex;
use std::sync::mpsc::Sender;
use std::thread;

/// How the terminal was before it was told to hide what is typed, as long as it does.
static HIDDEN: Mutex<Option<(File, Termios)>> = Mutex::new(None);

/// Gives the terminal back: a question may be over while somebody is still asked for the answer.
pub(crate) fn show_again() {
    let hidden = HIDDEN.lock().ok().and_then(|mut hidden| hidden.take());
    if let Some((mut terminal, shown)) = hidden {
        // A terminal that is gone needs nothing.
        let _restored = tcsetattr(&terminal, OptionalActions::Now, &shown);
        let _ended = writeln!(terminal);
    }
}

/// Asks, and sends the answer.
pub(crate) fn ask(question: Interaction, orders: Sender<Control>) {
    thread::spawn(move || {
        let answer = read_answer(&question).unwrap_or(None);
        let (status, data) = match answer {
            Some(data) => (InteractionStatus::Success, Some(Answer::new(data))),
            // Nothing typed, or no terminal: the owner declines.
            None => (InteractionStatus::Cancelled, None),
        };
        let response = InteractionResponse { request_id: question.request_id, status, data };
        // A run that is over needs no answer.
        drop(orders.send(Control::Answer(response)));
    });
}

/// Asks for one value that is not shown; `None` without a terminal, or when nothing is typed.
pub(crate) fn secret(name: &str) -> Option<String> {
    // Whoever starts us from a script does not want to be asked.
    if !io::stdin().is_terminal() {
        return None;
    }
    let mut terminal = OpenOptions::new().read(true).write(true).open("/dev/tty").ok()?;
    read_hidden(&mut terminal, name).ok().flatten()
}

fn read_answer(question: &Interaction) -> io::Result<Option<RawJson<'static>>> {
    let mut terminal = OpenOptions::new().read(true).write(true).open("/dev/tty")?;
    writeln!(terminal, "\n{}", visible(&question.message))?;
    let mut answer = Map::new();
    for field in fields(question) {
        let Some(value) = read_hidden(&mut terminal, &field)? else { return Ok(None) };
        answer.insert(field, Value::String(value));
    }
    Ok(RawJson::new(Value::Object(answer).to_string()).ok())
}

/// What is asked for: the properties of the schema, or what questions of this kind need.
fn fields(question: &Interaction) -> Vec<String> {
    let members = question.schema.as_ref().and_then(RawJson::members).unwrap_or_default();
    let properties = members.iter().find(|(name, _)| name == "properties").and_then(|(_, value)| value.members());
    let named = properties.unwrap_or_default().into_iter().map(|(name, _)| name.into_owned()).collect::<Vec<_>>();
    if !named.is_empty() {
        return named;
    }
    let usual: &[&str] = match question.kind {
        InteractionKind::Otp => &["code"],
        InteractionKind::Credentials => &["username", "password"],
        InteractionKind::ManualAction | InteractionKind::MissingCredentials => &["done"],
    };
    usual.iter().map(|&name| name.to_owned()).collect()
}

/// One line that is not shown; `None` when it is empty.
fn read_hidden(terminal: &mut File, field: &str) -> io::Result<Option<String>> {
    write!(terminal, "{} (not shown, empty to decline): ", visible(field))?;
    terminal.flush()?;
    let shown = tcgetattr(&*terminal)?;
    let mut hidden = shown.clone();
    hidden.local_modes.remove(LocalModes::ECHO);
    if let Ok(mut kept) = HIDDEN.lock() {
        *kept = Some((terminal.try_clone()?, shown));
    }
    tcsetattr(&*terminal, OptionalActions::Flush, &hidden)?;
    let mut line = String::new();
    let read = BufReader::new(&*terminal).read_line(&mut line);
    show_again();
    read?;
    let line = line.trim_end_matches(['\n', '\r']).to_owned();
    Ok((!line.is_empty()).then_some(line))
}
