//! The owner's actions. Each changes something, so none is a GET; each says what was done or why not.
//!
//! An answer to a question passes through here. It is not stored, not logged, and in no error.

use super::schedule::ScheduleWish;
use super::sign_in::NothingMore;
use crate::problem::Problem;
use crate::server::extract::{JsonBody, UrlPath};
use gleaner_app::{App, Reply, Stop};
use gleaner_protocol::RawJson;
use gleaner_store::GapsMeant;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Something about a connection; most have no more to say.
type OfConnection<B = NothingMore> = (UrlPath<String>, JsonBody<B>);
/// The same about one of its gaps.
type OfGap<B = NothingMore> = (UrlPath<(String, String)>, JsonBody<B>);

/// A run as soon as it can be.
pub(crate) fn run(app: &App, (UrlPath(name), _): OfConnection) -> Result<(), Problem> {
    Ok(app.run_now(&name)?)
}

/// Holds a connection back.
pub(crate) fn pause(app: &App, (UrlPath(name), _): OfConnection) -> Result<(), Problem> {
    Ok(app.pause(&name)?)
}

/// Lets it go on.
pub(crate) fn resume(app: &App, (UrlPath(name), _): OfConnection) -> Result<(), Problem> {
    app.resume(&name, None)?;
    Ok(())
}

/// Sets when a connection runs.
pub(crate) fn schedule(app: &App, (UrlPath(name), JsonBody(wish)): OfConnection<ScheduleWish>) -> Result<(), Problem> {
    Ok(app.set_schedule(&name, &wish.into())?)
}

/// Lets a gap be tried again.
pub(crate) fn retry_gap(app: &App, (UrlPath((name, gap)), _): OfGap) -> Result<(), Problem> {
    Ok(app.retry_gap(&name, &gap)?)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RetryWish {
    stream: Option<String>,
    reason: Option<String>,
}

/// Lets all gaps be tried again that fit.
pub(crate) fn retry_gaps(app: &App, (UrlPath(name), JsonBody(wish)): OfConnection<RetryWish>) -> Result<u64, Problem> {
    let meant = GapsMeant { stream: wish.stream.as_deref(), reason: wish.reason.as_deref() };
    Ok(app.retry_gaps(&name, meant)?)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CancelWish {
    #[serde(default)]
    at_once: bool,
}

/// Stops a run.
pub(crate) fn cancel(app: &App, (UrlPath(run_id), JsonBody(wish)): OfConnection<CancelWish>) -> Result<(), Problem> {
    app.cancel_run(&run_id, if wish.at_once { Stop::Now } else { Stop::InOrder })?;
    Ok(())
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoteGiven {
    note: String,
}

/// Does without a gap, and says why.
pub(crate) fn ignore_gap(app: &App, (UrlPath((name, gap)), JsonBody(given)): OfGap<NoteGiven>) -> Result<(), Problem> {
    Ok(app.ignore_gap(&name, &gap, &given.note)?)
}

/// Wants a gap after all.
pub(crate) fn take_back_gap(app: &App, UrlPath((name, gap)): UrlPath<(String, String)>) -> Result<(), Problem> {
    Ok(app.take_back_gap(&name, &gap)?)
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
pub(crate) fn answer(
    app: &App,
    (UrlPath(id), JsonBody(given)): (UrlPath<i64>, JsonBody<AnswerGiven>),
) -> Result<(), Problem> {
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
    Ok(app.answer(id, answer)?)
}
