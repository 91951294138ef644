//! Figures for Prometheus: what the console did, counted as it happens, and how connections stand, looked up when asked.
//!
//! Labels are names of connections and codes of ours, never text of a connector or of a stranger.

use crate::auth::guard::Refusal;
use crate::problem::Problem;
use crate::server::app_state::Shared;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use gleaner_app::{ConnectionView, Look};
use gleaner_store::ConnectionState;
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
        let reason = match refusal {
            Refusal::NotOurName => "not_our_name",
            Refusal::ForeignSite => "foreign_site",
            Refusal::NoOrigin => "no_origin",
            Refusal::NotSignedIn => "not_signed_in",
            Refusal::TooManyGuesses => "too_many_guesses",
        };
        self.refusals.get_or_create(&OfReason { reason }).inc();
    }

    fn register(&self, registry: &mut Registry) {
        registry.register("console_answers", "Answers of the console by status", self.answers.clone());
        registry.register("console_refusals", "Requests that the guard refused", self.refusals.clone());
        registry.register("console_hung_up", "Connections beyond the most at a time", self.hung_up.clone());
    }
}

/// How connections stand.
#[derive(Debug, Default)]
struct Gauges {
    records: Family<OfConnection, Gauge>,
    gaps_open: Family<OfConnection, Gauge>,
    gaps_given_up: Family<OfConnection, Gauge>,
    gaps_ignored: Family<OfConnection, Gauge>,
    quarantined: Family<OfConnection, Gauge>,
    running: Family<OfConnection, Gauge>,
    question_open: Family<OfConnection, Gauge>,
    last_success: Family<OfConnection, Gauge>,
    grade: Family<OfGrade, Gauge>,
}

impl Gauges {
    fn add(&self, view: &ConnectionView) {
        let summary = &view.evidence.summary;
        let of = OfConnection { connection: summary.name.clone() };
        let set = |gauge: &Family<OfConnection, Gauge>, value: u64| {
            gauge.get_or_create(&of).set(i64::try_from(value).unwrap_or(i64::MAX));
        };
        set(&self.records, summary.totals.records);
        set(&self.gaps_open, summary.totals.gaps_open());
        set(&self.gaps_given_up, summary.totals.gaps_terminal);
        set(&self.gaps_ignored, summary.totals.gaps_ignored);
        set(&self.quarantined, summary.totals.quarantined);
        set(&self.running, view.holder.is_some().into());
        set(&self.question_open, summary.question_open.into());
        if let Some(success) = view.evidence.last_success {
            set(&self.last_success, success.as_unix_millis() / 1000);
        }
        if let Some(health) = &view.health {
            let grade = OfGrade { connection: summary.name.clone(), grade: health.grade.code() };
            self.grade.get_or_create(&grade).set(1);
        }
    }

    fn register(&self, registry: &mut Registry) {
        registry.register("records", "Records that are stored", self.records.clone());
        registry.register("gaps_open", "Gaps that are not closed", self.gaps_open.clone());
        registry.register("gaps_given_up", "Gaps that were given up", self.gaps_given_up.clone());
        registry.register("gaps_ignored", "Gaps that the owner does without", self.gaps_ignored.clone());
        registry.register("records_quarantined", "Records that do not fit their schema", self.quarantined.clone());
        registry.register("running", "Whether a process works on it", self.running.clone());
        registry.register("question_open", "Whether a question waits for the owner", self.question_open.clone());
        let help = "When a run last succeeded, in seconds since 1970";
        registry.register("last_success_timestamp_seconds", help, self.last_success.clone());
        registry.register("health", "1 for the grade that a connection has", self.grade.clone());
    }
}

/// All figures, in the text format that Prometheus reads.
pub(crate) async fn metrics(State(state): Shared) -> Result<Response, Problem> {
    let gauges = state.reading.ask(|reader| {
        let (gauges, mut look) = (Gauges::default(), Look::new(reader)?);
        for connection in reader.connections()? {
            if matches!(connection.state, ConnectionState::Active | ConnectionState::Paused) {
                gauges.add(&ConnectionView::load(reader, &mut look, &connection.name)?);
            }
        }
        Ok(gauges)
    });
    let mut registry = Registry::with_prefix("gleaner");
    gauges.await?.register(&mut registry);
    state.figures.register(&mut registry);
    let streams = Gauge::<i64>::default();
    streams.set(i64::try_from(state.events.clients()).unwrap_or(i64::MAX));
    registry.register("console_streams", "Streams of events that are open", streams);
    let mut text = String::new();
    encode(&mut text, &registry).map_err(|_| Problem::internal("the figures cannot be written"))?;
    let format = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(CONTENT_TYPE, format)], text).into_response())
}
