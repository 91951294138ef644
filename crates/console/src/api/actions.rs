//! The owner's actions. Each changes something, so none is a GET; each says what was done or why not.
//!
//! An answer to a question passes through here. It is not stored, not logged, and in no error.

use super::runs::no_run;
use super::schedule::ScheduleWish;
use super::sign_in::NothingMore;
use crate::asking::{Place, Told};
use crate::inside::Inside;
use crate::problem::Problem;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use gleaner_app::{Reply, Stop};
use gleaner_protocol::RawJson;
use gleaner_store::GapsMeant;
use http::StatusCode;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::sync::Arc;

/// It is noted, and happens as soon as it can.
fn accepted() -> Response {
    StatusCode::ACCEPTED.into_response()
}

/// It is done.
fn done() -> Response {
    StatusCode::NO_CONTENT.into_response()
}

/// A run as soon as it can be.
pub(crate) async fn run(
    State(inside): State<Arc<Inside>>,
    Place(name): Place<String>,
    _: Told<NothingMore>,
) -> Result<Response, Problem> {
    inside.act(move |actions| actions.run_now(&name)).await.map(|()| accepted())
}

/// Holds a connection back.
pub(crate) async fn pause(
    State(inside): State<Arc<Inside>>,
    Place(name): Place<String>,
    _: Told<NothingMore>,
) -> Result<Response, Problem> {
    inside.act(move |actions| actions.pause(&name)).await.map(|()| done())
}

/// Lets it go on.
pub(crate) async fn resume(
    State(inside): State<Arc<Inside>>,
    Place(name): Place<String>,
    _: Told<NothingMore>,
) -> Result<Response, Problem> {
    inside.act(move |actions| actions.resume(&name)).await.map(|()| done())
}

/// Sets when a connection runs.
pub(crate) async fn schedule(
    State(inside): State<Arc<Inside>>,
    Place(name): Place<String>,
    Told(wish): Told<ScheduleWish>,
) -> Result<Response, Problem> {
    inside.act(move |actions| actions.set_schedule(&name, &wish.into())).await.map(|()| done())
}

/// Lets a gap be tried again.
pub(crate) async fn retry_gap(
    State(inside): State<Arc<Inside>>,
    Place((name, gap_id)): Place<(String, String)>,
    _: Told<NothingMore>,
) -> Result<Response, Problem> {
    inside.act(move |actions| actions.retry_gap(&name, &gap_id)).await.map(|()| accepted())
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RetryWish {
    stream: Option<String>,
    reason: Option<String>,
}

/// Lets all gaps be tried again that fit.
pub(crate) async fn retry_gaps(
    State(inside): State<Arc<Inside>>,
    Place(name): Place<String>,
    Told(RetryWish { stream, reason }): Told<RetryWish>,
) -> Result<Response, Problem> {
    inside
        .act(move |actions| {
            let meant = GapsMeant { stream: stream.as_deref(), reason: reason.as_deref() };
            actions.retry_gaps(&name, meant)
        })
        .await
        .map(|_| accepted())
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CancelWish {
    #[serde(default)]
    at_once: bool,
}

/// Stops a run.
pub(crate) async fn cancel(
    State(inside): State<Arc<Inside>>,
    Place(run_id): Place<String>,
    Told(CancelWish { at_once }): Told<CancelWish>,
) -> Result<Response, Problem> {
    let found = inside.reading.ask(move |reader| {
        let run = reader.run(&run_id)?.ok_or_else(no_run)?;
        let connection = reader.connection_of_run(&run_id)?.ok_or_else(no_run)?;
        // A later run of the same connection is not what was meant.
        if run.ended_at.is_some() {
            let message = "this run has ended already";
            return Err(Problem::new(StatusCode::CONFLICT, "not_now", message, "nothing is to be done"));
        }
        Ok(connection)
    });
    let (connection, how) = (found.await?, if at_once { Stop::Now } else { Stop::InOrder });
    inside.act(move |actions| actions.cancel(&connection, how)).await.map(|()| accepted())
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoteGiven {
    note: String,
}

/// Does without a gap, and says why.
pub(crate) async fn ignore_gap(
    State(inside): State<Arc<Inside>>,
    Place((name, gap)): Place<(String, String)>,
    Told(NoteGiven { note }): Told<NoteGiven>,
) -> Result<Response, Problem> {
    inside.act(move |actions| actions.ignore_gap(&name, &gap, &note)).await.map(|()| done())
}

/// Wants a gap after all.
pub(crate) async fn take_back_gap(
    State(inside): State<Arc<Inside>>,
    Place((name, gap)): Place<(String, String)>,
) -> Result<Response, Problem> {
    inside.act(move |actions| actions.take_back_gap(&name, &gap)).await.map(|()| accepted())
}

/// Not `Debug`: it is a secret.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AnswerGiven {
    #[serde(default)]
    data: Option<Box<RawValue>>,
    #[serde(default)]
    declined: bool,
}

/// Answers a question, or declines to.
pub(crate) async fn answer(
    State(inside): State<Arc<Inside>>,
    Place(id): Place<i64>,
    Told(given): Told<AnswerGiven>,
) -> Result<Response, Problem> {
    let wrong = || Problem::bad_request("either data is an object, or declined is true", "send one of the two");
    let answer = match (given.data, given.declined) {
        (Some(data), false) => {
            // Minified by nobody: the connector gets what was typed.
            let is_object = data.get().starts_with('{');
            let raw = RawJson::new(data.get().to_owned()).ok().filter(|_| is_object);
            Reply::Given(raw.ok_or_else(wrong)?)
        }
        (None, true) => Reply::Declined,
        (Some(_), true) | (None, false) => return Err(wrong()),
    };
    inside.act(move |actions| actions.answer(id, answer)).await.map(|()| done())
}
