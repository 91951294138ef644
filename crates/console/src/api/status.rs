//! Everything in one look: does anything need the owner, is anything at work, how much is missing.

use crate::date;
use crate::problem::Problem;
use crate::server::app_state::Shared;
use axum::extract::State;
use axum::response::Response;
use gleaner_app::{ConnectionView, Look};
use gleaner_engine::Grade;
use gleaner_store::{ConnectionState, Reader};
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Debug, Serialize)]
struct StatusView {
    version: &'static str,
    now: String,
    started_at: String,
    connections: usize,
    /// How many have which grade.
    grades: BTreeMap<&'static str, usize>,
    /// Those that only the owner can help, by name.
    needs_you: Vec<String>,
    running: usize,
    paused: usize,
    questions_open: usize,
    records: u64,
    /// Everything that is known of and not stored.
    missing: u64,
    quarantined: u64,
    gaps_open: u64,
    gaps_ignored: u64,
}

/// The status.
pub(crate) async fn status(State(state): Shared) -> Result<Response, Problem> {
    let started_at = date::rfc3339(state.started_at);
    let status = state.reading.ask(move |reader| gather(reader, started_at));
    state.responder.json(&status.await?)
}

fn gather(reader: &Reader, started_at: String) -> Result<StatusView, Problem> {
    let mut look = Look::new(reader)?;
    let mut status = StatusView {
        version: env!("CARGO_PKG_VERSION"),
        now: date::rfc3339(look.now),
        started_at,
        connections: 0,
        grades: BTreeMap::new(),
        needs_you: Vec::new(),
        running: 0,
        paused: 0,
        questions_open: look.waiting.len(),
        records: 0,
        missing: 0,
        quarantined: 0,
        gaps_open: 0,
        gaps_ignored: 0,
    };
    for connection in reader.connections()? {
        if !matches!(connection.state, ConnectionState::Active | ConnectionState::Paused) {
            continue;
        }
        let view = ConnectionView::load(reader, &mut look, &connection.name)?;
        status.connections += 1;
        status.running += usize::from(view.holder.is_some());
        status.paused += usize::from(connection.state == ConnectionState::Paused);
        status.records += connection.totals.records;
        status.missing += view.evidence.missing.total();
        status.quarantined += connection.totals.quarantined;
        status.gaps_open += connection.totals.gaps_open();
        status.gaps_ignored += connection.totals.gaps_ignored;
        // A manifest that is no longer valid is something that only the owner can mend.
        let grade = view.health.map_or(Grade::NeedsOwner, |health| health.grade);
        *status.grades.entry(grade.code()).or_default() += 1;
        status.needs_you.extend((grade == Grade::NeedsOwner).then_some(connection.name));
    }
    Ok(status)
}
