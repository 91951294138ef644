//! Everything in one look: does anything need the owner, is anything at work, how much is missing.

use crate::date;
use crate::problem::Problem;
use crate::server::app_state::Shared;
use axum::extract::State;
use axum::response::Response;
use gleaner_app::{ConnectionView, Look};
use gleaner_engine::Grade;
use gleaner_store::ConnectionState;
use std::collections::BTreeMap;

json_object! {
    struct StatusView(look: &Look, views: &[ConnectionView], started_at: String) {
        let sum = |of: fn(&ConnectionView) -> u64| views.iter().map(of).sum();
        let (mut grades, mut needs_you) = (BTreeMap::new(), Vec::new());
        for view in views {
            // A manifest that is no longer valid is something that only the owner can mend.
            let grade = view.health.as_ref().map_or(Grade::NeedsOwner, |health| health.grade);
            *grades.entry(grade.code()).or_default() += 1;
            needs_you.extend((grade == Grade::NeedsOwner).then(|| view.name().to_owned()));
        }
    } => {
        version: &'static str = env!("CARGO_PKG_VERSION"),
        now: String = date::rfc3339(look.now),
        started_at: String = started_at,
        connections: usize = views.len(),
        /// How many have which grade.
        grades: BTreeMap<&'static str, usize> = grades,
        /// Those that only the owner can help, by name.
        needs_you: Vec<String> = needs_you,
        running: usize = views.iter().filter(|view| view.holder.is_some()).count(),
        paused: usize = views.iter().filter(|view| view.evidence.summary.state == ConnectionState::Paused).count(),
        questions_open: usize = look.waiting.len(),
        records: u64 = sum(|view| view.evidence.summary.totals.records),
        /// Everything that is known of and not stored.
        missing: u64 = sum(|view| view.evidence.missing.total()),
        quarantined: u64 = sum(|view| view.evidence.summary.totals.quarantined),
        gaps_open: u64 = sum(|view| view.evidence.summary.totals.gaps_open()),
        gaps_ignored: u64 = sum(|view| view.evidence.summary.totals.gaps_ignored),
    }
}

/// The status.
pub(crate) async fn status(State(state): Shared) -> Result<Response, Problem> {
    let started_at = date::rfc3339(state.started_at);
    let status = state.reading.ask(move |reader| {
        let mut look = Look::new(reader)?;
        let views = look.views(reader)?;
        Ok(StatusView::of(&look, &views, started_at))
    });
    state.responder.json(&status.await?)
}
