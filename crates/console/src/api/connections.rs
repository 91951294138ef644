//! All connections, each in a few figures.

use super::health::HealthView;
use super::page::{Page, PageWanted, limit};
use super::schedule::NextView;
use crate::date;
use crate::problem::Problem;
use crate::server::extract::UrlQuery;
use gleaner_app::{ConnectionView, Look, Outlook};
use gleaner_store::{ConnectionState, HeldBy, Reader, RunSummary};

json_object! {
    /// A connection in a few figures.
    pub(crate) struct ConnectionStatus(view: &ConnectionView, outlook: &Outlook) {
        let evidence = &view.evidence;
        let (summary, totals) = (&evidence.summary, &evidence.summary.totals);
        let run_id = || evidence.open_run.as_ref().map(|run| run.run_id.clone());
    } => {
        name: String = summary.name.clone(),
        connector_id: String = summary.connector_id.clone(),
        state: &'static str = state(summary.state),
        created_at: String = date::rfc3339(summary.created_at),
        health: Option<HealthView> = view.health.as_ref().map(|health| HealthView::of(evidence, health)),
        running: Option<RunningView> = view.holder.as_ref().map(|holder| RunningView::of(holder, run_id())),
        question_open: bool = summary.question_open,
        records: u64 = totals.records,
        tombstones: u64 = totals.tombstones,
        /// Everything that is known of and not stored.
        missing: u64 = evidence.missing.total(),
        quarantined: u64 = totals.quarantined,
        gaps_open: u64 = totals.gaps_open(),
        gaps_given_up: u64 = totals.gaps_terminal,
        gaps_ignored: u64 = totals.gaps_ignored,
        last_run: Option<LastRunView> = evidence.last_run.as_ref().map(LastRunView::of),
        last_success: Option<String> = evidence.last_success.map(date::rfc3339),
        next: NextView = NextView::of(outlook),
    }
}

json_object! {
    struct RunningView(holder: &HeldBy, run_id: Option<String>) {} => {
        pid: u32 = holder.pid,
        since: String = date::rfc3339(holder.since),
        /// Absent for the moment in which a run has not begun yet.
        run_id: Option<String> = run_id,
    }
}

json_object! {
    struct LastRunView(run: &RunSummary) {} => {
        run_id: String = run.run_id.clone(),
        reason: Option<&'static str> = run.reason.map(|reason| reason.code()),
        ended_at: Option<String> = run.ended_at.map(date::rfc3339),
    }
}

pub(crate) const fn state(state: ConnectionState) -> &'static str {
    match state {
        ConnectionState::Active => "active",
        ConnectionState::Paused => "paused",
        ConnectionState::Removed => "removed",
        ConnectionState::Purging => "being_forgotten",
    }
}

/// A page of them, by name. Those that are being forgotten are not shown.
pub(crate) fn all(
    reader: &Reader,
    UrlQuery(wanted): UrlQuery<PageWanted<String>>,
) -> Result<Page<ConnectionStatus, String>, Problem> {
    let limit = limit(wanted.limit)?;
    let mut look = Look::new(reader)?;
    let mut names = reader.connections()?;
    names.retain(|connection| connection.state != ConnectionState::Purging);
    let is_after = |name: &String| wanted.after.as_ref().is_none_or(|after| name > after);
    let names = names.into_iter().map(|connection| connection.name).filter(is_after).take(limit);
    let views = names.map(|name| ConnectionView::load(reader, &mut look, &name));
    let views = views.collect::<Result<Vec<_>, _>>()?;
    let name = |view: &ConnectionView| view.name().to_owned();
    Ok(Page::of(views, limit, |_| 0, name, |view| ConnectionStatus::of(&view, &view.outlook())))
}
