//! `gleaner answer`: the questions that wait for the owner, and the way to answer one.
//!
//! An answer goes through the run's socket to the connector. It is in no file, no log and no list of
//! arguments; with `--remember` the credentials in it are also stored, encrypted.

use crate::args::manage::AnswerArgs;
use crate::error::CliError;
use crate::terminal::output::{Output, Tone, report_to_stderr};
use crate::terminal::prompt::{self, Typed};
use gleaner_app::{App, Reply, dates};
use gleaner_base::outside::one_line;
use gleaner_protocol::{InteractionKind, RawJson};
use gleaner_store::OpenQuestion;
use serde_json::{Value, json};
use std::io::Read;

/// The longest answer: a form with a few long secrets, and below what a run listens to.
const ANSWER_BYTES_MAX: u64 = 128 * 1024;

pub(crate) fn run(args: &AnswerArgs, out: &mut Output) -> Result<(), CliError> {
    let app = args.home.app()?;
    match args.id {
        Some(id) => answer(args, &app, id, out)?,
        None => list(args, &app, out)?,
    }
    Ok(())
}

fn list(args: &AnswerArgs, app: &App, out: &mut Output) -> Result<(), CliError> {
    let waiting = app.questions()?;
    if waiting.is_empty() && !args.json {
        out.line("no question waits for you")?;
    }
    for question in &waiting {
        let line = if args.json { as_json(question).to_string() } else { as_text(question, out) };
        out.line(&line)?;
    }
    Ok(())
}

fn as_text(question: &OpenQuestion, out: &Output) -> String {
    let name = out.paint(Tone::Strong, &one_line(&question.connection));
    let kind = question.kind.replace('_', " ");
    let (id, left, message) = (question.id, time_left(question), one_line(&question.message));
    format!("{id}  {name}  {}{left}\n    {message}\n    gleaner answer {id}", one_line(&kind))
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

fn answer(args: &AnswerArgs, app: &App, id: i64, out: &mut Output) -> Result<(), CliError> {
    let question = app.question(id)?;
    let data = if args.decline { None } else { read(args, app, &question)? };
    app.answer(id, data.clone().map_or(Reply::Declined, Reply::Given))?;
    let what = if data.is_some() { "answered" } else { "declined" };
    out.line(&format!("question {id} is {what}; the run of {} continues", one_line(&question.connection)))?;
    if let Some(data) = data.filter(|_| args.remember) {
        let (stored, place) = app.remember_answer(&question.connection, &data)?;
        report_to_stderr(&one_line(&match stored.is_empty() {
            true => "nothing was stored: no field of the answer is a credential of the connector's manifest".to_owned(),
            false => format!("stored {} encrypted under the data root; {place}", stored.join(", ")),
        }));
    }
    Ok(())
}

/// The answer, from standard input or the terminal; nothing when the owner declines.
fn read(args: &AnswerArgs, app: &App, question: &OpenQuestion) -> Result<Option<RawJson<'static>>, CliError> {
    if args.stdin {
        return read_stdin().map(Some);
    }
    let schema = question.schema.clone().and_then(|schema| RawJson::new(schema).ok());
    let kind = InteractionKind::from_code(&question.kind).unwrap_or(InteractionKind::ManualAction);
    let variables = app.missing_credentials(&question.connection)?;
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
