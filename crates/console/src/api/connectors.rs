//! Connectors that can be added, trying one, and adding it. Credentials come in here and never go out.

use crate::problem::Problem;
use crate::server::app_state::Shared;
use crate::server::extract::{JsonBody, UrlPath};
use crate::server::job_queue::Job;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use gleaner_app::{AddRequest, Added, ConnectorForm, Faulty};
use http::StatusCode;
use http::header::LOCATION;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Serialize)]
struct Connectors {
    items: Vec<ConnectorForm>,
    left_out: Vec<LeftOut>,
}

#[derive(Serialize)]
struct LeftOut {
    file: String,
    what: String,
}

/// What can be added.
pub(crate) async fn all(State(state): Shared) -> Result<Response, Problem> {
    let (items, faulty) = state.act(|app| Ok((app.connector_forms(), app.catalog().faulty))).await?;
    let left_out = |one: &Faulty| LeftOut { file: one.file.display().to_string(), what: one.cause().to_owned() };
    state.responder.json(&Connectors { items, left_out: faulty.iter().map(left_out).collect() })
}

/// Not `Debug`: it has secrets.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckWish {
    #[serde(default)]
    name: String,
    #[serde(default)]
    settings: BTreeMap<String, String>,
    #[serde(default)]
    credentials: BTreeMap<String, String>,
}

#[derive(Serialize)]
struct Found {
    verdict: &'static str,
    message: String,
    hint: &'static str,
}

/// Tries a connection, and keeps nothing.
pub(crate) async fn check(
    State(state): Shared,
    UrlPath(connector): UrlPath<String>,
    JsonBody(CheckWish { name, settings, credentials }): JsonBody<CheckWish>,
) -> Result<Response, Problem> {
    let wish = AddRequest { connector, name, settings, credentials };
    let verdict = state.do_job(Job::Try, move |app| app.try_request(&wish)).await?;
    state.responder.json(&Found { verdict: verdict.word(), message: verdict.sentence(), hint: verdict.advice() })
}

/// Not `Debug`: it has secrets.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AddWish {
    connector: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    settings: BTreeMap<String, String>,
    #[serde(default)]
    credentials: BTreeMap<String, String>,
    /// Without being tried first.
    #[serde(default)]
    unchecked: bool,
}

#[derive(Serialize)]
struct AddedView<'a> {
    name: &'a str,
}

/// Adds a connection.
pub(crate) async fn add(
    State(state): Shared,
    JsonBody(AddWish { connector, name, settings, credentials, unchecked }): JsonBody<AddWish>,
) -> Result<Response, Problem> {
    let wish = AddRequest { connector, name, settings, credentials };
    let outcome = state.do_job(Job::Try, move |app| app.add_requested(&wish, unchecked)).await?;
    match outcome {
        Added::Yes(name) => {
            let place = crate::pages::href(&["api", "v1", "connections", &name]);
            let mut response = state.responder.json(&AddedView { name: &name })?;
            *response.status_mut() = StatusCode::CREATED;
            Ok((([(LOCATION, place)]), response).into_response())
        }
        Added::No(verdict) => {
            let message = format!("it was not added. {}", verdict.sentence());
            Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "check_failed", message, verdict.advice()))
        }
    }
}
