//! Runs and what was said during them.

use super::page::{Page, PageWanted, limit, place, raw};
use crate::date;
use crate::problem::Problem;
use crate::server::extract::{UrlPath, UrlQuery};
use gleaner_app::Look;
use gleaner_store::{Reader, RunSummary, StoreError, TracedEvent};
use serde::Deserialize;
use serde_json::value::RawValue;

json_object! {
    /// One run.
    pub(crate) struct RunView(connection: &str, run: RunSummary, is_at_work: bool) {
        let sentence = run.ended().map(|ended| match ended.reason.is_success() {
            true => ended.cause(),
            false => format!("{}. {}", ended.cause().trim_end_matches('.'), ended.next()),
        });
        let (state, counts) = (run.state(is_at_work), CountsView::of(&run));
    } => {
        run_id: String = run.run_id,
        connection: String = connection.to_owned(),
        track: String = run.track,
        started_at: String = date::rfc3339(run.started_at),
        ended_at: Option<String> = run.ended_at.map(date::rfc3339),
        /// `running`, `ended`, or `interrupted`: it has no end on record, and nobody is at work on it.
        state: &'static str = state,
        reason: Option<&'static str> = run.reason.map(|reason| reason.code()),
        /// The end of it in a sentence.
        sentence: Option<String> = sentence,
        /// How its process ended, as `exit code 1` or `signal 9, SIGKILL`.
        exit: Option<String> = run.exit.map(|exit| exit.to_string()),
        /// The last lines of the connector's stderr, if the run did not succeed.
        stderr: Option<String> = run.stderr,
        violation: Option<String> = run.violation,
        error_code: Option<String> = run.error_code,
        error_message: Option<String> = run.error_message,
        pressure: Option<&'static str> = run.pressure.map(|pressure| pressure.code()),
        counts: CountsView = counts,
        slices: u64 = run.slices,
        committed: Option<Box<RawValue>> = raw(run.committed),
        withheld: Option<Box<RawValue>> = raw(run.withheld),
        shortfalls: Option<Box<RawValue>> = raw(run.shortfalls),
        skipped: Option<Box<RawValue>> = raw(run.skipped),
        warnings: Option<Box<RawValue>> = raw(run.warnings),
        collection_rate: Option<Box<RawValue>> = raw(run.collection_rate),
        provider_budget: Option<Box<RawValue>> = raw(run.provider_budget),
        events_dropped: u64 = run.events_dropped,
    }
}

json_object! {
    struct CountsView(run: &RunSummary) {
        let counts = &run.counts;
        let known = |count: u64| Some(count).filter(|_| run.tells_new_from_changed);
    } => {
        seen: u64 = counts.seen,
        /// New, changed and unchanged together.
        collected: u64 = counts.collected(),
        /// Absent where an older program ran it and did not tell new from changed.
        new: Option<u64> = known(counts.new),
        changed: Option<u64> = known(counts.changed),
        deleted: u64 = counts.deleted,
        rejected: u64 = counts.rejected,
        times_unreadable: u64 = counts.times_unreadable,
        gaps: u64 = counts.gaps,
        recovered: u64 = counts.recovered,
        unaccounted: u64 = counts.unaccounted,
        unchanged: u64 = counts.unchanged,
        repeated: u64 = run.repeated,
    }
}

json_object! {
    pub(crate) struct EventView(event: TracedEvent) {} => {
        id: i64 = event.id,
        at: String = date::rfc3339(event.at),
        kind: String = event.kind,
        message: Option<Box<RawValue>> = raw(Some(event.message)),
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunsWanted {
    before: Option<String>,
    limit: Option<usize>,
}

/// The runs of a connection, the newest first.
pub(crate) fn of_connection(
    reader: &Reader,
    (UrlPath(name), UrlQuery(wanted)): (UrlPath<String>, UrlQuery<RunsWanted>),
) -> Result<Page<RunView, String>, Problem> {
    let limit = limit(wanted.limit)?;
    let mut runs = page_of_runs(reader, &name, wanted.before.as_deref(), limit)?;
    reader.add_slice_commits(&name, &mut runs)?;
    let is_at_work = Look::new(reader)?.is_running(reader, &name)?;
    Ok(Page::of(runs, limit, |_| 0, |run| run.run_id.clone(), |run| RunView::of(&name, run, is_at_work)))
}

/// The runs of a connection before one of them, or the last ones.
pub(crate) fn page_of_runs(
    reader: &Reader,
    name: &str,
    before: Option<&str>,
    limit: usize,
) -> Result<Vec<RunSummary>, StoreError> {
    match before {
        Some(before) => reader.runs_before(name, before, limit),
        None => reader.runs(name, limit),
    }
}

/// One run.
pub(crate) fn one(reader: &Reader, UrlPath(run_id): UrlPath<String>) -> Result<RunView, Problem> {
    let (mut run, connection) = run_and_connection(reader, &run_id)?;
    reader.add_slice_commits(&connection, std::slice::from_mut(&mut run))?;
    Ok(RunView::of(&connection, run, Look::new(reader)?.is_running(reader, &connection)?))
}

/// A run, and whose it is.
pub(crate) fn run_and_connection(reader: &Reader, run_id: &str) -> Result<(RunSummary, String), Problem> {
    reader.run(run_id)?.zip(reader.connection_of_run(run_id)?).ok_or_else(no_run)
}

/// What was said during a run, in order.
pub(crate) fn events(
    reader: &Reader,
    (UrlPath(run_id), UrlQuery(wanted)): (UrlPath<String>, UrlQuery<PageWanted<u64>>),
) -> Result<Page<EventView, i64>, Problem> {
    let (limit, after) = (limit(wanted.limit)?, place(wanted.after)?);
    reader.run(&run_id)?.ok_or_else(no_run)?;
    let events = reader.events(&run_id, after, limit)?;
    Ok(Page::of(events, limit, |event| event.message.len(), |event| event.id, EventView::of))
}

fn no_run() -> Problem {
    Problem::not_found("there is no run with this name", "/api/v1/connections/NAME/runs lists them")
}
