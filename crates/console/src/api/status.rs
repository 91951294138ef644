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
    let views = look.views(reader)?;
    let sum = |of: fn(&ConnectionView) -> u64| views.iter().map(of).sum();
    let (mut grades, mut needs_you) = (BTreeMap::new(), Vec::new());
    for view in &views {
        // A manifest that is no longer valid is something that only the owner can mend.
        let grade = view.health.as_ref().map_or(Grade::NeedsOwner, |health| health.grade);
        *grades.entry(grade.code()).or_default() += 1;
        needs_you.extend((grade == Grade::NeedsOwner).then(|| view.name().to_owned()));
    }
    Ok(StatusView {
        version: env!("CARGO_PKG_VERSION"),
        now: date::rfc3339(look.now),
        started_at,
        connections: views.len(),
        grades,
        needs_you,
        running: views.iter().filter(|view| view.holder.is_some()).count(),
        paused: views.iter().filter(|view| view.evidence.summary.state == ConnectionState::Paused).count(),
        questions_open: look.waiting.len(),
        records: sum(|view| view.evidence.summary.totals.records),
        missing: sum(|view| view.evidence.missing.total()),
        quarantined: sum(|view| view.evidence.summary.totals.quarantined),
        gaps_open: sum(|view| view.evidence.summary.totals.gaps_open()),
        gaps_ignored: sum(|view| view.evidence.summary.totals.gaps_ignored),
    })
}
