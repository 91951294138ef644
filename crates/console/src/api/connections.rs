//! All connections, each in a few figures.

use super::health::HealthView;
use super::page::{Page, PageWanted, limit};
use super::schedule::NextView;
use crate::date;
use crate::problem::Problem;
use crate::server::extract::UrlQuery;
use gleaner_app::{ConnectionView, Look, Outlook};
use gleaner_store::{ConnectionState, HeldBy, Reader};
use serde::Serialize;

/// A connection in a few figures.
#[derive(Debug, Serialize)]
pub(crate) struct ConnectionStatus {
    name: String,
    connector_id: String,
    state: &'static str,
    created_at: String,
    health: Option<HealthView>,
    running: Option<RunningView>,
    question_open: bool,
    records: u64,
    tombstones: u64,
    /// Everything that is known of and not stored.
    missing: u64,
    quarantined: u64,
    gaps_open: u64,
    gaps_given_up: u64,
    gaps_ignored: u64,
    last_run: Option<LastRunView>,
    last_success: Option<String>,
    next: NextView,
}

#[derive(Debug, Serialize)]
struct RunningView {
    pid: u32,
    since: String,
    /// Absent for the moment in which a run has not begun yet.
    run_id: Option<String>,
}

#[derive(Debug, Serialize)]
struct LastRunView {
    run_id: String,
    reason: Option<&'static str>,
    ended_at: Option<String>,
}

impl ConnectionStatus {
    pub(crate) fn of(view: &ConnectionView, outlook: &Outlook) -> Self {
        let evidence = &view.evidence;
        let (summary, totals) = (&evidence.summary, &evidence.summary.totals);
        let running = |holder: &HeldBy| RunningView {
            pid: holder.pid,
            since: date::rfc3339(holder.since),
            run_id: evidence.open_run.as_ref().map(|run| run.run_id.clone()),
        };
        let last_run = evidence.last_run.as_ref().map(|run| LastRunView {
            run_id: run.run_id.clone(),
            reason: run.reason.map(|reason| reason.code()),
            ended_at: run.ended_at.map(date::rfc3339),
        });
        Self {
            name: summary.name.clone(),
            connector_id: summary.connector_id.clone(),
            state: state(summary.state),
            created_at: date::rfc3339(summary.created_at),
            health: view.health.as_ref().map(|health| HealthView::of(&view.evidence, health)),
            running: view.holder.as_ref().map(running),
            question_open: summary.question_open,
            records: totals.records,
            tombstones: totals.tombstones,
            missing: evidence.missing.total(),
            quarantined: totals.quarantined,
            gaps_open: totals.gaps_open(),
            gaps_given_up: totals.gaps_terminal,
            gaps_ignored: totals.gaps_ignored,
            last_run,
            last_success: evidence.last_success.map(date::rfc3339),
            next: NextView::of(outlook),
        }
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
