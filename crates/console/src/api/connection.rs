//! One connection with everything that its owner asks about: health, coverage, pace, schedule, what comes next.

use super::connections::ConnectionView;
use super::coverage::{self, StreamView};
use super::interactions::QuestionView;
use super::page::raw;
use super::schedule::ScheduleView;
use crate::asking::Place;
use crate::date;
use crate::inside::Inside;
use crate::problem::Problem;
use crate::standing::{self, Standing};
use axum::extract::State;
use axum::response::Response;
use gleaner_app::outlook;
use gleaner_engine::{Cooldown, CooldownPolicy, Rest};
use gleaner_store::Reader;
use serde::Serialize;
use serde_json::value::RawValue;
use std::sync::Arc;

#[derive(Debug, Serialize)]
struct WholeView {
    #[serde(flatten)]
    few: ConnectionView,
    display_name: Option<String>,
    connector_version: Option<String>,
    streams: Vec<StreamView>,
    schedule: ScheduleView,
    rest: Option<RestView>,
    /// The last report about the pace; absent when there is none, and never zero instead.
    collection_rate: Option<Box<RawValue>>,
    circuit: Option<&'static str>,
    /// What its run waits for now; absent when it waits for nothing.
    waiting: Option<WaitingView>,
    questions: Vec<QuestionView>,
    /// What connectors ask for that blocks nothing.
    help: Vec<String>,
}

#[derive(Debug, Serialize)]
struct WaitingView {
    until: String,
    /// A code; those that Gleaner knows are in docs/protocol.md.
    code: String,
    sentence: String,
}

#[derive(Debug, Serialize)]
struct RestView {
    /// Absent when it rested so often that the owner should look.
    until: Option<String>,
    code: &'static str,
    sentence: &'static str,
    cycles: u32,
}

/// One connection.
pub(crate) async fn one(State(inside): State<Arc<Inside>>, Place(name): Place<String>) -> Result<Response, Problem> {
    inside.giving.json(&inside.reading.ask(move |reader| gather(reader, &name)).await?)
}

fn gather(reader: &Reader, name: &str) -> Result<WholeView, Problem> {
    let mut waiting = standing::waiting(reader)?;
    waiting.retain(|question| question.connection == name);
    let standing = Standing::of(reader, name, &waiting)?;
    let manifest = standing.manifest.as_ref();
    let evidence = &standing.evidence;
    let rate = evidence.rate.as_ref().and_then(|rate| serde_json::to_string(rate).ok());
    let outlook = outlook(reader, name, date::now())?;
    let help = reader.open_help(name, date::now())?;
    Ok(WholeView {
        few: ConnectionView::of(&standing, &outlook),
        display_name: manifest.map(|manifest| manifest.display_name.clone()),
        connector_version: manifest.map(|manifest| manifest.version.clone()),
        streams: coverage::streams(manifest, reader.coverage(name)?),
        schedule: ScheduleView::of(&outlook),
        rest: rest(&standing),
        collection_rate: raw(rate),
        circuit: evidence.circuit.as_ref().map(|budget| budget.circuit.state.code()),
        waiting: waits_for(&standing),
        questions: waiting.into_iter().map(QuestionView::of).collect(),
        help: help.into_iter().map(|help| help.message).collect(),
    })
}

/// What the run waits for. A run whose process is gone waits for nothing.
fn waits_for(standing: &Standing) -> Option<WaitingView> {
    let (waiting, until) = standing.evidence.waiting_at(date::now()).filter(|_| standing.holder.is_some())?;
    let until = date::rfc3339(until);
    Some(WaitingView { sentence: waiting.sentence(&until), code: waiting.reason.clone(), until })
}

fn rest(standing: &Standing) -> Option<RestView> {
    let policy = standing.manifest.as_ref().and_then(|manifest| manifest.refresh_policy.as_ref());
    let policy = CooldownPolicy::of(None, policy);
    let (until, why, cycles) = match Cooldown::answer(standing.evidence.cooldown.as_ref(), date::now(), policy) {
        Rest::No => return None,
        Rest::Until { until, why, cycles } => (Some(until), why, cycles),
        Rest::NeedsAttention { why, cycles } => (None, why, cycles),
    };
    Some(RestView { until: until.map(date::rfc3339), code: why.code(), sentence: why.wording().what, cycles })
}
