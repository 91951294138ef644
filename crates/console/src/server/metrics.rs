//! Figures for Prometheus: what the console did, counted as it happens, and how connections stand, looked up when asked.
//!
//! Labels are names of connections and codes of ours, never text of a connector or of a stranger.

use crate::auth::guard::Refusal;
use crate::problem::Problem;
use crate::server::app_state::Shared;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use gleaner_app::{ConnectionView, Look};
use gleaner_store::StreamSummary;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct OfStatus {
    status: u16,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct OfReason {
    reason: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct OfConnection {
    connection: String,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct OfGrade {
    connection: String,
    grade: &'static str,
}

/// What is counted as it happens.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures {
    answers: Family<OfStatus, Counter>,
    refusals: Family<OfReason, Counter>,
    pub(crate) hung_up: Counter,
}

impl Figures {
    pub(crate) fn count_answer(&self, status: StatusCode) {
        self.answers.get_or_create(&OfStatus { status: status.as_u16() }).inc();
    }

    pub(crate) fn count_refusal(&self, refusal: Refusal) {
        self.refusals.get_or_create(&OfReason { reason: refusal.code() }).inc();
    }

    fn register(&self, registry: &mut Registry) {
        registry.register("console_answers", "Answers of the console by status", self.answers.clone());
        registry.register("console_refusals", "Requests that the guard refused", self.refusals.clone());
        registry.register("console_hung_up", "Connections beyond the most at a time", self.hung_up.clone());
    }
}

/// A figure of each connection: its name, what it is, and where it comes from.
type OfEach = (&'static str, &'static str, fn(&ConnectionView) -> Option<u64>);

/// How connections stand.
const GAUGES: [OfEach; 8] = [
    ("records", "Records that are stored", |view| Some(totals(view).records)),
    ("gaps_open", "Gaps that are not closed", |view| Some(totals(view).gaps_open())),
    ("gaps_given_up", "Gaps that were given up", |view| Some(totals(view).gaps_terminal)),
    ("gaps_ignored", "Gaps that the owner does without", |view| Some(totals(view).gaps_ignored)),
    ("records_quarantined", "Records that do not fit their schema", |view| Some(totals(view).quarantined)),
    ("running", "Whether a process works on it", |view| Some(view.holder.is_some().into())),
    ("question_open", "Whether a question waits for the owner", |view| {
        Some(view.evidence.summary.question_open.into())
    }),
    ("last_success_timestamp_seconds", "When a run last succeeded, in seconds since 1970", |view| {
        view.evidence.last_success.map(|success| success.as_unix_millis() / 1000)
    }),
];

const fn totals(view: &ConnectionView) -> &StreamSummary {
    &view.evidence.summary.totals
}

fn register(views: &[ConnectionView], registry: &mut Registry) {
    for (name, help, value) in GAUGES {
        let gauge = Family::<OfConnection, Gauge>::default();
        for (view, value) in views.iter().filter_map(|view| Some((view, value(view)?))) {
            let of = OfConnection { connection: view.name().to_owned() };
            gauge.get_or_create(&of).set(i64::try_from(value).unwrap_or(i64::MAX));
        }
        registry.register(name, help, gauge);
    }
    let grades = Family::<OfGrade, Gauge>::default();
    for (view, health) in views.iter().filter_map(|view| Some((view, view.health.as_ref()?))) {
        let of = OfGrade { connection: view.name().to_owned(), grade: health.grade.code() };
        grades.get_or_create(&of).set(1);
    }
    registry.register("health", "1 for the grade that a connection has", grades);
}

/// All figures, in the text format that Prometheus reads.
pub(crate) async fn metrics(State(state): Shared) -> Result<Response, Problem> {
    let views = state.reading.ask(|reader| Ok(Look::new(reader)?.views(reader)?)).await?;
    let mut registry = Registry::with_prefix("gleaner");
    register(&views, &mut registry);
    state.figures.register(&mut registry);
    let streams = Gauge::<i64>::default();
    streams.set(i64::try_from(state.events.clients()).unwrap_or(i64::MAX));
    registry.register("console_streams", "Streams of events that are open", streams);
    let mut text = String::new();
    encode(&mut text, &registry).map_err(|_| Problem::internal("the figures cannot be written"))?;
    let format = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(CONTENT_TYPE, format)], text).into_response())
}
