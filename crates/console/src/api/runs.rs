//! Runs and what was said during them.

use super::page::{Page, PageWanted, limit, place, raw};
use crate::date;
use crate::problem::Problem;
use crate::server::extract::{UrlPath, UrlQuery};
use gleaner_app::Look;
use gleaner_engine::Counts;
use gleaner_store::{Reader, RunSummary, StoreError, TracedEvent};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// One run.
#[derive(Debug, Serialize)]
pub(crate) struct RunView {
    run_id: String,
    connection: String,
    track: String,
    started_at: String,
    ended_at: Option<String>,
    /// `running`, `ended`, or `interrupted`: it has no end on record, and nobody is at work on it.
    state: &'static str,
    reason: Option<&'static str>,
    /// The end of it in a sentence.
    sentence: Option<String>,
    /// How its process ended, as `exit code 1` or `signal 9, SIGKILL`.
    exit: Option<String>,
    /// The last lines of the connector's stderr, if the run did not succeed.
    stderr: Option<String>,
    violation: Option<String>,
    error_code: Option<String>,
    error_message: Option<String>,
    pressure: Option<&'static str>,
    counts: CountsView,
    slices: u64,
    committed: Option<Box<RawValue>>,
    withheld: Option<Box<RawValue>>,
    shortfalls: Option<Box<RawValue>>,
    skipped: Option<Box<RawValue>>,
    warnings: Option<Box<RawValue>>,
    collection_rate: Option<Box<RawValue>>,
    provider_budget: Option<Box<RawValue>>,
    events_dropped: u64,
}

#[derive(Debug, Serialize)]
struct CountsView {
    seen: u64,
    /// New, changed and unchanged together.
    collected: u64,
    /// Absent where an older program ran it and did not tell new from changed.
    new: Option<u64>,
    changed: Option<u64>,
    deleted: u64,
    rejected: u64,
    times_unreadable: u64,
    gaps: u64,
    recovered: u64,
    unaccounted: u64,
    unchanged: u64,
    repeated: u64,
}

impl RunView {
    pub(crate) fn of(connection: &str, run: RunSummary, is_at_work: bool) -> Self {
        let Counts {
            seen,
            new,
            changed,
            unchanged,
            deleted,
            rejected,
            gaps,
            recovered,
            unaccounted,
            times_unreadable,
            confirmed: _,
        } = run.counts;
        let known = |count: u64| Some(count).filter(|_| run.tells_new_from_changed);
        let (collected, new, changed, repeated) = (run.counts.collected(), known(new), known(changed), run.repeated);
        let sentence = run.ended().map(|ended| match ended.reason.is_success() {
            true => ended.cause(),
            false => format!("{}. {}", ended.cause().trim_end_matches('.'), ended.next()),
        });
        Self {
            connection: connection.to_owned(),
            state: run.state(is_at_work),
            track: run.track,
            started_at: date::rfc3339(run.started_at),
            ended_at: run.ended_at.map(date::rfc3339),
            reason: run.reason.map(|reason| reason.code()),
            sentence,
            exit: run.exit.map(|exit| exit.to_string()),
            stderr: run.stderr,
            violation: run.violation,
            error_code: run.error_code,
            error_message: run.error_message,
            pressure: run.pressure.map(|pressure| pressure.code()),
            counts: CountsView {
                seen,
                collected,
                new,
                changed,
                deleted,
                rejected,
                times_unreadable,
                gaps,
                recovered,
                unaccounted,
                unchanged,
                repeated,
            },
            slices: run.slices,
            committed: raw(run.committed),
            withheld: raw(run.withheld),
            shortfalls: raw(run.shortfalls),
            skipped: raw(run.skipped),
            warnings: raw(run.warnings),
            collection_rate: raw(run.collection_rate),
            provider_budget: raw(run.provider_budget),
            events_dropped: run.events_dropped,
            run_id: run.run_id,
        }
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct EventView {
    id: i64,
    at: String,
    kind: String,
    message: Option<Box<RawValue>>,
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
    let show = |event: TracedEvent| EventView {
        id: event.id,
        at: date::rfc3339(event.at),
        kind: event.kind,
        message: raw(Some(event.message)),
    };
    Ok(Page::of(events, limit, |event| event.message.len(), |event| event.id, show))
}

fn no_run() -> Problem {
    Problem::not_found("there is no run with this name", "/api/v1/connections/NAME/runs lists them")
}
