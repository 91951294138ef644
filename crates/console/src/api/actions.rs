//! The owner's actions. Each changes something, so none is a GET; each says what was done or why not.
//!
//! An answer to a question passes through here. It is not stored, not logged, and in no error.

use super::schedule::ScheduleWish;
use super::sign_in::NothingMore;
use crate::problem::Problem;
use crate::server::app_state::Shared;
use crate::server::extract::{JsonBody, UrlPath};
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use gleaner_app::{Reply, Stop};
use gleaner_protocol::RawJson;
use gleaner_store::GapsMeant;
use http::StatusCode;
use serde::Deserialize;
use serde_json::value::RawValue;

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
    State(state): Shared,
    UrlPath(name): UrlPath<String>,
    _: JsonBody<NothingMore>,
) -> Result<Response, Problem> {
    state.act(move |app| app.run_now(&name)).await.map(|()| accepted())
}

/// Holds a connection back.
pub(crate) async fn pause(
    State(state): Shared,
    UrlPath(name): UrlPath<String>,
    _: JsonBody<NothingMore>,
) -> Result<Response, Problem> {
    state.act(move |app| app.pause(&name)).await.map(|()| done())
}

/// Lets it go on.
pub(crate) async fn resume(
    State(state): Shared,
    UrlPath(name): UrlPath<String>,
    _: JsonBody<NothingMore>,
) -> Result<Response, Problem> {
    state.act(move |app| app.resume(&name, None)).await.map(|_| done())
}

/// Sets when a connection runs.
pub(crate) async fn schedule(
    State(state): Shared,
    UrlPath(name): UrlPath<String>,
    JsonBody(wish): JsonBody<ScheduleWish>,
) -> Result<Response, Problem> {
    state.act(move |app| app.set_schedule(&name, &wish.into())).await.map(|()| done())
}

/// Lets a gap be tried again.
pub(crate) async fn retry_gap(
    State(state): Shared,
    UrlPath((name, gap_id)): UrlPath<(String, String)>,
    _: JsonBody<NothingMore>,
) -> Result<Response, Problem> {
    state.act(move |app| app.retry_gap(&name, &gap_id)).await.map(|()| accepted())
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RetryWish {
    stream: Option<String>,
    reason: Option<String>,
}

/// Lets all gaps be tried again that fit.
pub(crate) async fn retry_gaps(
    State(state): Shared,
    UrlPath(name): UrlPath<String>,
    JsonBody(RetryWish { stream, reason }): JsonBody<RetryWish>,
) -> Result<Response, Problem> {
    state
        .act(move |app| {
            let meant = GapsMeant { stream: stream.as_deref(), reason: reason.as_deref() };
            app.retry_gaps(&name, meant)
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
    State(state): Shared,
    UrlPath(run_id): UrlPath<String>,
    JsonBody(CancelWish { at_once }): JsonBody<CancelWish>,
) -> Result<Response, Problem> {
    let how = if at_once { Stop::Now } else { Stop::InOrder };
    state.act(move |app| app.cancel_run(&run_id, how)).await.map(|_| accepted())
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoteGiven {
    note: String,
}

/// Does without a gap, and says why.
pub(crate) async fn ignore_gap(
    State(state): Shared,
    UrlPath((name, gap)): UrlPath<(String, String)>,
    JsonBody(NoteGiven { note }): JsonBody<NoteGiven>,
) -> Result<Response, Problem> {
    state.act(move |app| app.ignore_gap(&name, &gap, &note)).await.map(|()| done())
}

/// Wants a gap after all.
pub(crate) async fn take_back_gap(
    State(state): Shared,
    UrlPath((name, gap)): UrlPath<(String, String)>,
) -> Result<Response, Problem> {
    state.act(move |app| app.take_back_gap(&name, &gap)).await.map(|()| accepted())
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
    State(state): Shared,
    UrlPath(id): UrlPath<i64>,
    JsonBody(given): JsonBody<AnswerGiven>,
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
    state.act(move |app| app.answer(id, answer)).await.map(|()| done())
}
