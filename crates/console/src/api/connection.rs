//! One connection with everything that its owner asks about: health, coverage, pace, schedule, what comes next.

use super::connections::ConnectionStatus;
use super::coverage::StreamView;
use super::interactions::QuestionView;
use super::page::raw;
use super::schedule::ScheduleView;
use crate::date;
use crate::problem::Problem;
use crate::server::extract::UrlPath;
use gleaner_app::{ConnectionView, CoveredStream, Look};
use gleaner_engine::{Rest, WallTime};
use gleaner_protocol::Waiting;
use gleaner_store::Reader;
use serde::Serialize;
use serde_json::value::RawValue;

json_object! {
    pub(crate) struct WholeView(view: ConnectionView, streams: Vec<CoveredStream>) {
        let outlook = view.outlook();
        let (evidence, manifest) = (&view.evidence, view.manifest.as_deref());
        let rate = evidence.rate.as_ref().and_then(|rate| serde_json::to_string(rate).ok());
    } => {
        #[serde(flatten)]
        few: ConnectionStatus = ConnectionStatus::of(&view, &outlook),
        display_name: Option<String> = manifest.map(|manifest| manifest.display_name.clone()),
        connector_version: Option<String> = manifest.map(|manifest| manifest.version.clone()),
        streams: Vec<StreamView> = streams.into_iter().map(StreamView::of).collect(),
        schedule: ScheduleView = ScheduleView::of(&outlook),
        rest: Option<RestView> = rest(view.rest),
        /// The last report about the pace; absent when there is none, and never zero instead.
        collection_rate: Option<Box<RawValue>> = raw(rate),
        circuit: Option<&'static str> = evidence.circuit.as_ref().map(|budget| budget.circuit.state.code()),
        /// What its run waits for now; absent when it waits for nothing.
        waiting: Option<WaitingView> = view.waits().map(|(waiting, until)| WaitingView::of(waiting, until)),
        questions: Vec<QuestionView> = view.questions.into_iter().map(QuestionView::of).collect(),
        /// What connectors ask for that blocks nothing.
        help: Vec<String> = view.help.into_iter().map(|help| help.message).collect(),
    }
}

json_object! {
    struct WaitingView(waiting: &Waiting, until: WallTime) {} => {
        until: String = date::rfc3339(until),
        /// A code; those that Gleaner knows are in docs/protocol.md.
        code: String = waiting.reason.clone(),
        sentence: String = waiting.sentence(&date::rfc3339(until)),
    }
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
    Ok(WholeView::of(view, look.coverage(reader, &name)?))
}

fn rest(rest: Rest) -> Option<RestView> {
    let (until, why, cycles) = match rest {
        Rest::No => return None,
        Rest::Until { until, why, cycles } => (Some(until), why, cycles),
        Rest::NeedsAttention { why, cycles } => (None, why, cycles),
    };
    Some(RestView { until: until.map(date::rfc3339), code: why.code(), sentence: why.wording().what, cycles })
}
