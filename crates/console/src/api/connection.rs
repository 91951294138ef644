//! One connection with everything that its owner asks about: health, coverage, pace, schedule, what comes next.

use super::connections::ConnectionStatus;
use super::coverage::{self, StreamView};
use super::interactions::QuestionView;
use super::page::raw;
use super::schedule::ScheduleView;
use crate::date;
use crate::problem::Problem;
use crate::server::extract::UrlPath;
use gleaner_app::{ConnectionView, Look};
use gleaner_engine::{Rest, WallTime};
use gleaner_protocol::Waiting;
use gleaner_store::Reader;
use serde::Serialize;
use serde_json::value::RawValue;

#[derive(Debug, Serialize)]
pub(crate) struct WholeView {
    #[serde(flatten)]
    few: ConnectionStatus,
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
pub(crate) fn one(reader: &Reader, UrlPath(name): UrlPath<String>) -> Result<WholeView, Problem> {
    let mut look = Look::new(reader)?;
    let view = ConnectionView::load(reader, &mut look, &name)?;
    let (outlook, evidence, manifest) = (view.outlook(), &view.evidence, view.manifest.as_deref());
    let rate = evidence.rate.as_ref().and_then(|rate| serde_json::to_string(rate).ok());
    Ok(WholeView {
        few: ConnectionStatus::of(&view, &outlook),
        display_name: manifest.map(|manifest| manifest.display_name.clone()),
        connector_version: manifest.map(|manifest| manifest.version.clone()),
        streams: look.coverage(reader, &name)?.into_iter().map(coverage::of_stream).collect(),
        schedule: ScheduleView::of(&outlook),
        rest: rest(view.rest),
        collection_rate: raw(rate),
        circuit: evidence.circuit.as_ref().map(|budget| budget.circuit.state.code()),
        waiting: view.waits().map(|(waiting, until)| waits_for(waiting, until)),
        questions: view.questions.into_iter().map(QuestionView::of).collect(),
        help: view.help.into_iter().map(|help| help.message).collect(),
    })
}

fn waits_for(waiting: &Waiting, until: WallTime) -> WaitingView {
    let until = date::rfc3339(until);
    WaitingView { sentence: waiting.sentence(&until), code: waiting.reason.clone(), until }
}

fn rest(rest: Rest) -> Option<RestView> {
    let (until, why, cycles) = match rest {
        Rest::No => return None,
        Rest::Until { until, why, cycles } => (Some(until), why, cycles),
        Rest::NeedsAttention { why, cycles } => (None, why, cycles),
    };
    Some(RestView { until: until.map(date::rfc3339), code: why.code(), sentence: why.wording().what, cycles })
}
