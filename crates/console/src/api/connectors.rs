//! Connectors that can be added, trying one, and adding it. Credentials come in here and never go out.

use crate::asking::{Place, Told};
use crate::inside::Inside;
use crate::problem::Problem;
use crate::turns::Turn;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use gleaner_app::{NotOffered, Offer, OfferedField, Setup, SetupError, Verdict, Wish};
use http::StatusCode;
use http::header::LOCATION;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Serialize)]
struct Connectors {
    items: Vec<Connector>,
    left_out: Vec<LeftOut>,
}

#[derive(Serialize)]
struct Connector {
    connector: String,
    display_name: String,
    version: String,
    needs: String,
    comes_with_the_program: bool,
    streams: Vec<String>,
    settings: Vec<Field>,
    credentials: Vec<Field>,
}

#[derive(Serialize)]
struct Field {
    name: String,
    label: Option<String>,
    description: Option<String>,
}

#[derive(Serialize)]
struct LeftOut {
    file: String,
    what: String,
}

impl From<OfferedField> for Field {
    fn from(OfferedField { name, label, description }: OfferedField) -> Self {
        Self { name, label, description }
    }
}

impl From<Offer> for Connector {
    fn from(offer: Offer) -> Self {
        Self {
            connector: offer.connector,
            display_name: offer.display_name,
            version: offer.version,
            needs: offer.needs,
            comes_with_the_program: offer.is_ours,
            streams: offer.streams,
            settings: offer.settings.into_iter().map(Field::from).collect(),
            credentials: offer.credentials.into_iter().map(Field::from).collect(),
        }
    }
}

/// What can be added.
pub(crate) async fn all(State(inside): State<Arc<Inside>>) -> Result<Response, Problem> {
    let (offers, left_out) = inside.look_up(|setup| setup.offers()).await?;
    let left_out = left_out.into_iter().map(|NotOffered { file, what }| LeftOut { file, what }).collect();
    inside.giving.json(&Connectors { items: offers.into_iter().map(Connector::from).collect(), left_out })
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
    State(inside): State<Arc<Inside>>,
    Place(connector): Place<String>,
    Told(CheckWish { name, settings, credentials }): Told<CheckWish>,
) -> Result<Response, Problem> {
    let wish = Wish { connector, name, settings, credentials };
    let verdict = inside.set_up(Turn::Try, move |setup| setup.check(&wish)).await?;
    inside.giving.json(&Found { verdict: verdict.word(), message: verdict.sentence(), hint: verdict.advice() })
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

/// What came of a wish.
pub(crate) enum Outcome {
    /// It is there, under this name.
    Added(String),
    /// It does not work, and was not added.
    NotAdded(Verdict),
}

/// Tries it, and adds it if it works.
pub(crate) fn add_if_it_works(setup: &dyn Setup, wish: &Wish, unchecked: bool) -> Result<Outcome, SetupError> {
    let verdict = if unchecked { Verdict::Works } else { setup.check(wish)? };
    match verdict {
        Verdict::Works => setup.add(wish).map(Outcome::Added),
        other => Ok(Outcome::NotAdded(other)),
    }
}

#[derive(Serialize)]
struct Added<'a> {
    name: &'a str,
}

/// Adds a connection.
pub(crate) async fn add(
    State(inside): State<Arc<Inside>>,
    Told(AddWish { connector, name, settings, credentials, unchecked }): Told<AddWish>,
) -> Result<Response, Problem> {
    let wish = Wish { connector, name, settings, credentials };
    let outcome = inside.set_up(Turn::Try, move |setup| add_if_it_works(setup, &wish, unchecked)).await?;
    match outcome {
        Outcome::Added(name) => {
            let place = crate::pages::href(&["api", "v1", "connections", &name]);
            let mut response = inside.giving.json(&Added { name: &name })?;
            *response.status_mut() = StatusCode::CREATED;
            Ok((([(LOCATION, place)]), response).into_response())
        }
        Outcome::NotAdded(verdict) => {
            let message = format!("it was not added. {}", verdict.sentence());
            Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "check_failed", message, verdict.advice()))
        }
    }
}
