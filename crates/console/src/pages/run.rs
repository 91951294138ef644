//! One run: how it goes or how it ended in one sentence, what it did, and what was said, the newest first.

use super::connection::{ending, ending_tone, lasted};
use super::frame::{Frame, Part};
use super::trace::{TraceLine, lines};
use super::words::{pace, span};
use super::{address, words};
use crate::api::runs::run_and_connection;
use crate::problem::Problem;
use crate::server::extract::{UrlPath, UrlQuery};
use askama::Template;
use gleaner_app::Look;
use gleaner_engine::WallTime;
use gleaner_protocol::CollectionRate;
use gleaner_store::{Reader, RunSummary};
use serde::Deserialize;

/// Events of one page.
const EVENTS_SHOWN: usize = 100;

#[derive(Template)]
#[template(path = "run.html")]
pub(super) struct RunPage {
    frame: Frame,
    connection: String,
    run: RunSummary,
    is_running: bool,
    ending: &'static str,
    tone: &'static str,
    /// How it goes or ended, in one sentence.
    cause: String,
    /// What to do next, if anything.
    next: &'static str,
    /// Absent where nobody knows when it stopped.
    lasted: Option<String>,
    figures: Vec<(&'static str, u64)>,
    pace: Option<String>,
    committed: Vec<String>,
    withheld: Vec<(String, String)>,
    /// What else the run left open, and what its connector is warned about.
    told: Vec<(&'static str, String)>,
    trace: Vec<TraceLine>,
    older: Option<String>,
    is_first_page: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunWanted {
    done: Option<String>,
    /// Events before this one.
    before: Option<i64>,
}

pub(super) fn page(
    reader: &Reader,
    (UrlPath(run_id), UrlQuery(wanted)): (UrlPath<String>, UrlQuery<RunWanted>),
) -> Result<RunPage, Problem> {
    let look = Look::new(reader)?;
    let now = look.now;
    let (run, connection) = run_and_connection(reader, &run_id)?;
    let is_running = run.ended_at.is_none() && look.is_running(reader, &connection)?;
    let events = reader.last_events(&run_id, None, wanted.before, EVENTS_SHOWN)?;
    let oldest = events.last().filter(|_| events.len() == EVENTS_SHOWN).map(|event| event.id.to_string());
    let before = |event: String| address::href_with(&["runs", &run_id], &[("before", &event)]);
    let here = wanted.before.map_or_else(|| address::run(&run_id), |event| before(event.to_string()));
    let (cause, next) = cause(&run, is_running, now);
    let title = format!("Run of {connection}");
    Ok(RunPage {
        frame: Frame::new(title, Part::Overview, here, &look).after(wanted.done.as_deref()),
        connection,
        is_running,
        ending: ending(&run, is_running),
        tone: ending_tone(&run, is_running),
        cause,
        next,
        lasted: (is_running || run.ended_at.is_some()).then(|| lasted(&run, is_running, now)),
        figures: figures(&run),
        pace: last_pace(&run),
        committed: reader.committed_streams(&run_id)?,
        withheld: withheld(&run),
        told: told(&run),
        trace: lines(&events),
        older: oldest.map(before),
        is_first_page: wanted.before.is_none(),
        run,
    })
}

/// How it goes or ended, and what to do next.
fn cause(run: &RunSummary, is_running: bool, now: WallTime) -> (String, &'static str) {
    let since = span(now.since(run.started_at));
    match (run.reason, run.ended_at) {
        (_, None) if is_running => (format!("It is at work for {since}."), ""),
        (_, None) => (
            "It was interrupted: its process is gone. The records that it saved stay.".to_owned(),
            "The next run resumes it.",
        ),
        (_, Some(_)) => match run.ended() {
            Some(ended) => (ended.cause(), if ended.reason.is_success() { "" } else { ended.next() }),
            None => ("How it ended is not known.".to_owned(), ""),
        },
    }
}

fn figures(run: &RunSummary) -> Vec<(&'static str, u64)> {
    let counts = &run.counts;
    let new = if run.tells_new_from_changed { "New records" } else { "New or changed records" };
    let always = [
        (new, counts.new),
        ("Slices saved", run.slices),
        ("Gaps reported", counts.gaps),
        ("Gaps closed", counts.recovered),
    ];
    let sometimes = [
        ("Changed records", counts.changed),
        ("Unchanged records", counts.unchanged),
        ("Deleted records", counts.deleted),
        ("In quarantine", counts.rejected),
        ("Time not readable", counts.times_unreadable),
        ("Without an outcome", counts.unaccounted),
        ("Gaps closed as empty", counts.confirmed.empty),
        ("Gaps reported as recovered without a record", counts.confirmed.unconfirmed),
        ("Sent twice", run.repeated),
    ];
    let sometimes = sometimes.into_iter().filter(|(_, count)| *count > 0);
    always.into_iter().chain(sometimes).collect()
}

fn last_pace(run: &RunSummary) -> Option<String> {
    let reported = serde_json::from_str::<CollectionRate>(run.collection_rate.as_deref()?).ok()?;
    Some(pace(&reported))
}

/// Checkpoints that stayed where they were, and why.
fn withheld(run: &RunSummary) -> Vec<(String, String)> {
    let pairs = serde_json::from_str::<Vec<(String, String)>>(run.withheld.as_deref().unwrap_or("[]"));
    let shortfalls = run.shortfalls_told();
    let view = |(stream, why): (String, String)| {
        let short = shortfalls.iter().find(|told| told.stream.as_ref() == Some(&stream));
        let why = short.map_or_else(|| why.replace('_', " "), |told| told.text.clone());
        (stream, why)
    };
    pairs.unwrap_or_default().into_iter().map(view).collect()
}

/// What it skipped so that it is incomplete, and what its connector is warned about.
fn told(run: &RunSummary) -> Vec<(&'static str, String)> {
    let text = |told: gleaner_store::Told| match told.stream {
        Some(stream) => format!("{stream}: {}", told.text),
        None => told.text,
    };
    let skips = run.skips_told().1.into_iter().map(|told| ("Skipped", text(told)));
    let warnings = run.warnings_told().into_iter().map(|told| ("Warning", told.text));
    skips.chain(warnings).collect()
}
