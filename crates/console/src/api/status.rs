//! Everything in one look: does anything need the owner, is anything at work, how much is missing.

use crate::date;
use crate::inside::Inside;
use crate::problem::Problem;
use crate::standing::{self, Standing};
use axum::extract::State;
use axum::response::Response;
use gleaner_engine::Grade;
use gleaner_store::{ConnectionState, Reader};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

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
pub(crate) async fn status(State(inside): State<Arc<Inside>>) -> Result<Response, Problem> {
    let started_at = date::rfc3339(inside.started_at);
    let status = inside.reading.ask(move |reader| gather(reader, started_at));
    inside.giving.json(&status.await?)
}

fn gather(reader: &Reader, started_at: String) -> Result<StatusView, Problem> {
    let waiting = standing::waiting(reader)?;
    let mut status = StatusView {
        version: env!("CARGO_PKG_VERSION"),
        now: date::rfc3339(date::now()),
        started_at,
        connections: 0,
        grades: BTreeMap::new(),
        needs_you: Vec::new(),
        running: 0,
        paused: 0,
        questions_open: waiting.len(),
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
        let standing = Standing::of(reader, &connection.name, &waiting)?;
        status.connections += 1;
        status.running += usize::from(standing.holder.is_some());
        status.paused += usize::from(connection.state == ConnectionState::Paused);
        status.records += connection.totals.records;
        status.missing += standing.evidence.missing.total();
        status.quarantined += connection.totals.quarantined;
        status.gaps_open += connection.totals.gaps_open();
        status.gaps_ignored += connection.totals.gaps_ignored;
        // A manifest that is no longer valid is something that only the owner can mend.
        let grade = standing.health.map_or(Grade::NeedsOwner, |health| health.grade);
        *status.grades.entry(grade.code()).or_default() += 1;
        status.needs_you.extend((grade == Grade::NeedsOwner).then_some(connection.name));
    }
    Ok(status)
}
