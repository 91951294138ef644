//! `gleaner answer`: the questions that wait for the owner, and the way to answer one.
//!
//! An answer goes through the run's socket to the connector. It is in no file, no log and no list of
//! arguments; with `--remember` the credentials in it are also stored, encrypted.

use crate::args::manage::AnswerArgs;
use crate::connection::stored;
use crate::credentials::Credentials;
use crate::dates;
use crate::error::CliError;
use crate::home::Home;
use crate::output::{Output, Tone, report_to_stderr, visible};
use crate::prompt::{self, Typed};
use gleaner_engine::AnswerTaken;
use gleaner_protocol::{Answer, InteractionKind, InteractionResponse, InteractionStatus, RawJson};
use gleaner_runtime::Control;
use gleaner_store::{HeldBy, Holder, OpenQuestion, Reader, StoreError};
use gleaner_vault::{Secret, Vault};
use serde_json::{Value, json};
use std::io::Read;
use std::process::ExitCode;

/// The longest answer: a form with a few long secrets, and below what a run listens to.
const ANSWER_BYTES_MAX: u64 = 128 * 1024;

pub(crate) fn run(args: &AnswerArgs, out: &mut Output) -> Result<ExitCode, CliError> {
    let home = Home::find(&args.home)?;
    let reader = home.reader()?;
    match args.id {
        Some(id) => answer(args, &home, &reader, id, out),
        None => list(args, &reader, out),
    }
}

/// The questions whose run still waits, each with who waits.
pub(crate) fn waiting(reader: &Reader) -> Result<Vec<(OpenQuestion, HeldBy)>, CliError> {
    let ourselves = Holder::current().map_err(StoreError::Holder)?;
    Ok(reader.waiting_questions(&ourselves, dates::now())?)
}

fn list(args: &AnswerArgs, reader: &Reader, out: &mut Output) -> Result<ExitCode, CliError> {
    let waiting = waiting(reader)?;
    if waiting.is_empty() && !args.json {
        out.line("no question waits for you")?;
    }
    for (question, _) in &waiting {
        let line = if args.json { as_json(question).to_string() } else { as_text(question, out) };
        out.line(&line)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn as_text(question: &OpenQuestion, out: &Output) -> String {
    let name = out.paint(Tone::Strong, &visible(&question.connection));
    let kind = question.kind.replace('_', " ");
    let (id, left, message) = (question.id, time_left(question), visible(&question.message));
    format!("{id}  {name}  {}{left}\n    {message}\n    gleaner answer {id}", visible(&kind))
}

/// `, 118 s left`
pub(crate) fn time_left(question: &OpenQuestion) -> String {
    let left = question.expires_at.map(|end| dates::span(end.since(dates::now())));
    left.map(|left| format!(", {left} left")).unwrap_or_default()
}

pub(crate) fn as_json(question: &OpenQuestion) -> Value {
    let schema = question.schema.as_deref().and_then(|schema| serde_json::from_str::<Value>(schema).ok());
    json!({
        "id": question.id, "connection": question.connection, "run_id": question.run_id, "kind": question.kind,
        "message": question.message, "schema": schema, "asked_at": dates::rfc3339(question.asked_at),
        "expires_at": question.expires_at.map(dates::rfc3339),
    })
}

fn answer(args: &AnswerArgs, home: &Home, reader: &Reader, id: i64, out: &mut Output) -> Result<ExitCode, CliError> {
    let Some((question, holder)) = waiting(reader)?.into_iter().find(|(question, _)| question.id == id) else {
        return Err(too_late(id));
    };
    let data = if args.decline { None } else { read(args, home, &question)? };
    let status = if data.is_some() { InteractionStatus::Success } else { InteractionStatus::Cancelled };
    let response =
        InteractionResponse { request_id: question.request_id.clone(), status, data: data.clone().map(Answer::new) };
    let told = gleaner_runtime::tell(&home.control_folder(), holder.epoch, &Control::Answer(response));
    match told {
        Ok(AnswerTaken::Yes) => {}
        Ok(AnswerTaken::AlreadyAnswered | AnswerTaken::NoSuchQuestion) => return Err(too_late(id)),
        Err(error) => {
            let message = format!("process {}, which asks question {id}, was not told: {error}", holder.pid);
            return Err(CliError::Failed { message, hint: "`gleaner answer` lists what still waits".to_owned() });
        }
    }
    let what = if data.is_some() { "answered" } else { "declined" };
    out.line(&format!("question {id} is {what}; {} goes on", visible(&question.connection)))?;
    if let Some(data) = data.filter(|_| args.remember) {
        remember(home, &question.connection, &data)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn too_late(id: i64) -> CliError {
    CliError::Failed {
        message: format!("question {id} does not wait: it was answered, its time is over, or its run has ended"),
        hint: "`gleaner answer` lists what waits".to_owned(),
    }
}

/// The answer, from standard input or the terminal; nothing when the owner declines.
fn read(args: &AnswerArgs, home: &Home, question: &OpenQuestion) -> Result<Option<RawJson<'static>>, CliError> {
    if args.stdin {
        return read_stdin().map(Some);
    }
    let schema = question.schema.clone().and_then(|schema| RawJson::new(schema).ok());
    let kind = InteractionKind::from_code(&question.kind).unwrap_or(InteractionKind::ManualAction);
    let (_, manifest, _) = stored(home, &question.connection)?;
    let variables = Credentials::find(&manifest, home, &question.connection)?.missing_names();
    match prompt::answer(&question.message, &prompt::fields(kind, schema.as_ref(), &variables)) {
        Some(Typed::Answer(data)) => Ok(Some(data)),
        Some(Typed::Declined | Typed::TakenBack) => Ok(None),
        None => {
            let hint = format!("pipe a JSON object into: gleaner answer {} --stdin", question.id);
            Err(CliError::usage("there is no terminal to ask on", hint))
        }
    }
}

fn read_stdin() -> Result<RawJson<'static>, CliError> {
    let mut text = String::new();
    let wrong = |what: &str| CliError::usage(format!("standard input {what}"), "give a JSON object, a key per field");
    // One byte more than is allowed shows that there is more.
    let read = std::io::stdin().lock().take(ANSWER_BYTES_MAX + 1).read_to_string(&mut text);
    if read.is_err() || text.len() as u64 > ANSWER_BYTES_MAX {
        return Err(wrong("is no text, or too long"));
    }
    let value = serde_json::from_str::<Value>(&text).ok().filter(Value::is_object);
    let raw = value.and_then(|value| RawJson::new(value.to_string()).ok());
    raw.ok_or_else(|| wrong("is no JSON object"))
}

/// Stores what the connector signs in with. What is valid once, or is no credential, is not stored.
fn remember(home: &Home, connection: &str, data: &RawJson<'_>) -> Result<(), CliError> {
    let (_, manifest, _) = stored(home, connection)?;
    let credentials = manifest.auth.unwrap_or_default();
    let vault = Vault::open(home.root())?;
    let mut stored = Vec::new();
    for (name, value) in data.members().unwrap_or_default() {
        if let Some(text) = value.text().filter(|_| credentials.names().any(|known| known == name)) {
            vault.set(connection, &name, Secret::new(text.into_owned()))?;
            stored.push(name.into_owned());
        }
    }
    let line = if stored.is_empty() {
        "nothing was stored: no field of the answer is a credential of the connector's manifest".to_owned()
    } else {
        format!("stored {} encrypted under the data root; {}", stored.join(", "), vault.key_place())
    };
    report_to_stderr(&visible(&line));
    Ok(())
}
