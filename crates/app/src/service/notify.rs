//! How the owner is told: on the terminal, on the desktop, by a command or a web address of the owner's own.
//!
//! From one thread of its own, so that a web server that does not answer holds nobody up. Each way has a time limit and a
//! few tries; what could not be told is in the log. How much is told is bounded: a hundred connections that fail at once
//! are a few messages and a pointer to `gleaner status`. The web address is the owner's: no redirect is followed, and
//! nothing else is ever asked.

use super::notices::Notice;
use gleaner_http::blocking::Client;
use serde_json::json;
use std::io::{self, IsTerminal, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// How long a command may take.
const COMMAND_MAX: Duration = Duration::from_secs(30);
/// How long a web server may take, tries included.
const WEBHOOK_MAX: Duration = Duration::from_secs(30);
/// How often it is tried.
const WEBHOOK_TRIES: u32 = 3;
/// How often it is looked whether a command has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Messages that wait to be told. More are in the log.
const WAITING_MAX: usize = 64;
/// Messages in an hour.
const PER_HOUR_MAX: usize = 30;
const HOUR: Duration = Duration::from_secs(3600);

/// How the owner wants to be told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Channels {
    /// With `notify-send`, where it is.
    pub desktop: bool,
    /// With a command that `sh` runs; what it is about is in its environment.
    pub command: Option<String>,
    /// With a POST to this address.
    pub webhook: Option<String>,
}

/// Tells the owner.
#[derive(Debug)]
pub(crate) struct Teller(SyncSender<Notice>);

impl Teller {
    pub(crate) fn start(channels: Channels) -> io::Result<Self> {
        let (sender, notices) = sync_channel(WAITING_MAX);
        thread::Builder::new().name("notify".to_owned()).spawn(move || work(&channels, &notices))?;
        Ok(Self(sender))
    }

    /// Never waits.
    pub(crate) fn tell(&self, notice: Notice) {
        let Notice { connection, event, message } = &notice;
        tracing::warn!("{connection:?} needs you ({event}): {message}");
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = self.0.try_send(notice) {
            tracing::warn!("the owner is not told more for now");
        }
    }
}

fn work(channels: &Channels, notices: &Receiver<Notice>) {
    let mut told = Vec::<Instant>::new();
    while let Ok(notice) = notices.recv() {
        told.retain(|at| at.elapsed() < HOUR);
        if told.len() > PER_HOUR_MAX {
            continue;
        }
        told.push(Instant::now());
        let is_last = told.len() > PER_HOUR_MAX;
        let notice = if is_last { and_more() } else { notice };
        on_terminal(&notice);
        if channels.desktop {
            log_failure("the desktop", on_desktop(&notice));
        }
        if let Some(command) = &channels.command {
            log_failure("the command", by_command(command, &notice));
        }
        if let Some(address) = &channels.webhook {
            log_failure("the web address", by_webhook(address, &notice));
        }
    }
}

fn and_more() -> Notice {
    let message = "More connections need you; gleaner status lists them.".to_owned();
    Notice { connection: String::new(), event: "more".to_owned(), message }
}

fn log_failure(what: &str, result: Result<(), String>) {
    if let Err(error) = result {
        tracing::warn!("{what} could not be used to tell the owner: {error}");
    }
}

/// A line with a bell, where somebody looks.
fn on_terminal(notice: &Notice) {
    let mut stderr = io::stderr();
    if stderr.is_terminal() {
        // That nobody reads it is no reason to stop.
        let _shown = writeln!(stderr, "\x07{}: {}", notice.connection.escape_debug(), notice.message);
    }
}

fn on_desktop(notice: &Notice) -> Result<(), String> {
    let title = format!("Gleaner: {}", notice.connection);
    let mut command = Command::new("notify-send");
    // What follows is text, also when it begins like an option.
    command.args(["--app-name=gleaner", "--"]).arg(title).arg(&notice.message);
    match run(command) {
        // Not every machine has a desktop.
        Err(Failure::NotStarted(error)) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(|failure| failure.to_string()),
    }
}

fn by_command(text: &str, notice: &Notice) -> Result<(), String> {
    let mut command = Command::new("sh");
    command.args(["-c", text]);
    command.env("GLEANER_CONNECTION", &notice.connection);
    command.env("GLEANER_EVENT", &notice.event).env("GLEANER_MESSAGE", &notice.message);
    run(command).map_err(|failure| failure.to_string())
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("it was not started: {0}")]
    NotStarted(io::Error),
    #[error("it ended with {0}")]
    Ended(std::process::ExitStatus),
    #[error("it took longer than {} s, and was ended", COMMAND_MAX.as_secs())]
    TooLong,
}

/// Runs a command to its end, or ends it and all that came out of it.
fn run(mut command: Command) -> Result<(), Failure> {
    let null = Stdio::null;
    let mut child =
        command.stdin(null()).stdout(null()).stderr(null()).process_group(0).spawn().map_err(Failure::NotStarted)?;
    let began = Instant::now();
    loop {
        match child.try_wait().map_err(Failure::NotStarted)? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(Failure::Ended(status)),
            None if began.elapsed() > COMMAND_MAX => {
                end(&mut child);
                return Err(Failure::TooLong);
            }
            None => thread::sleep(POLL_INTERVAL),
        }
    }
}

fn end(child: &mut Child) {
    let group = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(group) = group {
        let _told = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    drop(child.wait());
}

fn by_webhook(address: &str, notice: &Notice) -> Result<(), String> {
    // Made when it is needed, and let go of: it has threads and certificates, and is needed a few times a month.
    let client = Client::builder("webhook").max_redirects(0).cookie_store(false).attempts(WEBHOOK_TRIES);
    let client = client.max_decoded_bytes(64 * 1024).build_blocking().map_err(|error| error.to_string())?;
    let body = json!({"connection": notice.connection, "event": notice.event, "message": notice.message});
    let answer = client.post(address).json(&body).deadline(WEBHOOK_MAX).send().map_err(|error| error.to_string())?;
    let status = answer.status();
    if status.is_success() { Ok(()) } else { Err(format!("it answered {}", status.as_u16())) }
}
