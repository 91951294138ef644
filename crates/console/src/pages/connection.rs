//! One connection: what it needs, how fast it goes and why not faster, its streams, runs and schedule.

use super::error_page::{PageProblem, show};
use super::frame::{Frame, Part};
use super::outside::{Outside, href, href_with};
use super::overview::tone;
use super::rate::{RateReadout, circuit_words, waiting_words};
use super::rate_chart::{BackoffLine, backoffs};
use super::words::{Due, When, number, percent, person_date, span};
use crate::problem::Problem;
use crate::server::app_state::Shared;
use crate::server::extract::{UrlPath, UrlQuery};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use gleaner_app::{ConnectionView, CoveredStream, Look, Outlook};
use gleaner_engine::{Finding, Grade, WallTime};
use gleaner_protocol::{RefreshPolicy, TerminalReason};
use gleaner_store::{ConnectionState, OwnerSchedule, Reader, RunSummary, Share};
use serde::Deserialize;
use std::time::Duration;

/// Runs of one page.
const RUNS_SHOWN: usize = 20;
/// Back-offs in the table under the chart.
const BACKOFFS_SHOWN: usize = 20;

#[derive(Template)]
#[template(path = "connection.html")]
struct ConnectionPage {
    frame: Frame,
    name: Outside,
    href: String,
    connector: Outside,
    grade: &'static str,
    tone: &'static str,
    state: Doing,
    findings: Vec<Said>,
    help: Vec<Outside>,
    questions: usize,
    rate: Option<RateReadout>,
    /// What the run waits for now.
    waiting: Option<String>,
    circuit: Option<String>,
    backoffs: Vec<BackoffLine>,
    streams: Vec<StreamLine>,
    next: NextLine,
    schedule: ScheduleFields,
    recommended: String,
    runs: Vec<RunLine>,
    older: Option<String>,
}

/// Whether it may run, and does.
struct Doing {
    is_running: bool,
    is_paused: bool,
    is_collected: bool,
    run_href: Option<String>,
    since: Option<When>,
}

struct Said {
    tone: &'static str,
    grade: &'static str,
    text: Outside,
}

struct StreamLine {
    name: Outside,
    href: String,
    gaps_href: String,
    is_declared: bool,
    records: String,
    deleted: u64,
    missing: u64,
    share: Option<u64>,
    percent: String,
    why: Option<&'static str>,
    changed: Option<When>,
}

struct NextLine {
    at: Option<Due>,
    sentence: Outside,
    cadence: Outside,
    /// Why what the owner set is not heeded.
    fault: Option<Outside>,
}

/// What stands in the form.
struct ScheduleFields {
    mode: String,
    every_minutes: String,
    cron: Outside,
    quiet: Outside,
    zone: Outside,
}

/// One run in the list.
pub(crate) struct RunLine {
    pub(crate) href: String,
    pub(crate) started: When,
    pub(crate) lasted: String,
    pub(crate) reason: &'static str,
    pub(crate) tone: &'static str,
    pub(crate) records: String,
    pub(crate) gaps: u64,
    pub(crate) recovered: u64,
    pub(crate) track: Outside,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConnectionWanted {
    /// What was just done.
    done: Option<String>,
    /// Runs before this one.
    runs_before: Option<String>,
}

pub(crate) async fn page(
    State(state): Shared,
    UrlPath(name): UrlPath<String>,
    UrlQuery(wanted): UrlQuery<ConnectionWanted>,
) -> Result<Response, PageProblem> {
    let page = state.reading.ask(move |reader| gather(reader, &name, &wanted)).await?;
    show(&page)
}

fn gather(reader: &Reader, name: &str, wanted: &ConnectionWanted) -> Result<ConnectionPage, Problem> {
    let mut look = Look::new(reader)?;
    let view = ConnectionView::load(reader, &mut look, name)?;
    let now = look.now;
    let here = href(&["connections", name]);
    let manifest = view.manifest.as_deref();
    let evidence = &view.evidence;
    let (runs, older) = runs(reader, name, wanted.runs_before.as_deref(), (view.holder.is_some(), now))?;
    let streams = look.coverage(reader, name)?;
    let grade = view.health.as_ref().map(|health| health.grade);
    let outlook = view.outlook();
    Ok(ConnectionPage {
        frame: Frame::new(name, Part::Overview, here.clone(), look.waiting.len()).after(wanted.done.as_deref()),
        name: Outside::new(name),
        href: here,
        connector: connector(&view),
        grade: grade.map_or("not collected", Grade::words),
        tone: tone(grade),
        state: state(&view, now),
        findings: findings(&view),
        help: view.help.iter().map(|help| Outside::new(&help.message)).collect(),
        questions: view.questions.len(),
        rate: RateReadout::of(evidence),
        waiting: waiting_words(&view),
        circuit: evidence.circuit.as_ref().and_then(circuit_words),
        backoffs: backoffs(reader, name, BACKOFFS_SHOWN)?,
        streams: streams.iter().map(|stream| StreamLine::of(name, stream, now)).collect(),
        next: NextLine::of(&outlook, now),
        schedule: ScheduleFields::of(outlook.set),
        recommended: recommended(manifest.and_then(|manifest| manifest.refresh_policy.as_ref())),
        runs,
        older,
    })
}

fn connector(view: &ConnectionView) -> Outside {
    let id = &view.evidence.summary.connector_id;
    Outside::new(match &view.manifest {
        Some(manifest) if manifest.display_name.is_empty() => format!("{id}, version {}", manifest.version),
        Some(manifest) => format!("{} ({id}, version {})", manifest.display_name, manifest.version),
        None => id.clone(),
    })
}

fn state(view: &ConnectionView, now: WallTime) -> Doing {
    let evidence = &view.evidence;
    let is_running = view.holder.is_some();
    let open_run = evidence.open_run.as_ref().filter(|_| is_running);
    Doing {
        is_running,
        is_paused: evidence.summary.state == ConnectionState::Paused,
        is_collected: matches!(evidence.summary.state, ConnectionState::Active | ConnectionState::Paused),
        run_href: open_run.map(|run| href(&["runs", &run.run_id])),
        since: open_run.map(|run| When::new(run.started_at, now)),
    }
}

/// What is worth saying, but for the question, which has a link of its own.
fn findings(view: &ConnectionView) -> Vec<Said> {
    let findings = view.health.iter().flat_map(|health| &health.findings);
    let said = |finding: &Finding| Said {
        tone: tone(Some(finding.grade())),
        grade: finding.grade().words(),
        text: Outside::new(view.evidence.sentence(finding, person_date)),
    };
    findings.filter(|finding| **finding != Finding::QuestionOpen).map(said).collect()
}

fn recommended(policy: Option<&RefreshPolicy>) -> String {
    let Some(policy) = policy else { return "The connector recommends nothing.".to_owned() };
    let every =
        policy.recommended_interval_seconds.map(|every| format!(", every {}", span(Duration::from_secs(every))));
    let stale = policy
        .maximum_staleness_seconds
        .map(|max| format!("; older than {} is too old", span(Duration::from_secs(max))));
    let (every, stale) = (every.unwrap_or_default(), stale.unwrap_or_default());
    format!("The connector recommends: {}{every}{stale}.", policy.recommended_mode.code())
}

impl NextLine {
    fn of(outlook: &Outlook, now: WallTime) -> Self {
        Self {
            at: outlook.at().map(|at| Due::new(at, now)),
            sentence: Outside::new(outlook.why()),
            cadence: Outside::new(outlook.cadence()),
            fault: outlook.setting_fault.clone().map(Outside::new),
        }
    }
}

impl ScheduleFields {
    fn of(wish: OwnerSchedule) -> Self {
        let minutes = |every: Duration| every.as_secs().div_ceil(60).to_string();
        Self {
            mode: wish.mode.unwrap_or_default(),
            every_minutes: wish.every.map(minutes).unwrap_or_default(),
            cron: Outside::new(wish.cron.unwrap_or_default()),
            quiet: Outside::new(wish.quiet.unwrap_or_default()),
            zone: Outside::new(wish.zone.unwrap_or_default()),
        }
    }
}

impl StreamLine {
    fn of(connection: &str, stream: &CoveredStream, now: WallTime) -> Self {
        let summary = &stream.coverage.summary;
        let (share, why) = match stream.share() {
            Share::Known(share) => (Some(share), None),
            Share::Unknown(why) => (None, Some(why.sentence())),
        };
        Self {
            href: href(&["data", connection, &summary.name]),
            gaps_href: href_with(&["connections", connection, "gaps"], &[("stream", &summary.name)]),
            is_declared: summary.declared,
            records: number(summary.records),
            deleted: summary.tombstones,
            missing: stream.coverage.missing(),
            share,
            percent: share.map_or_else(|| "unknown".to_owned(), percent),
            why,
            changed: summary.last_stored_at.map(|at| When::new(at, now)),
            name: Outside::new(&summary.name),
        }
    }
}

fn runs(
    reader: &Reader,
    name: &str,
    before: Option<&str>,
    (is_at_work, now): (bool, WallTime),
) -> Result<(Vec<RunLine>, Option<String>), Problem> {
    let runs = match before {
        Some(before) => reader.runs_before(name, before, RUNS_SHOWN)?,
        None => reader.runs(name, RUNS_SHOWN)?,
    };
    let last = runs.last().filter(|_| runs.len() == RUNS_SHOWN);
    let older = last.map(|run| href_with(&["connections", name], &[("runs_before", &run.run_id)]));
    Ok((runs.iter().map(|run| RunLine::of(run, is_at_work, now)).collect(), older))
}

impl RunLine {
    fn of(run: &RunSummary, is_at_work: bool, now: WallTime) -> Self {
        Self {
            href: href(&["runs", &run.run_id]),
            started: When::new(run.started_at, now),
            lasted: lasted(run, is_at_work, now),
            reason: ending(run, is_at_work),
            tone: ending_tone(run, is_at_work),
            records: run.records_words(),
            gaps: run.counts.gaps,
            recovered: run.counts.recovered,
            track: Outside::new(run.track.replace('_', " ")),
        }
    }
}

/// How long a run took, or goes on. When one that was interrupted stopped is not on record.
pub(crate) fn lasted(run: &RunSummary, is_at_work: bool, now: WallTime) -> String {
    match run.ended_at.or_else(|| is_at_work.then_some(now)) {
        Some(until) => span(until.since(run.started_at)),
        None => "unknown".to_owned(),
    }
}

/// How a run ended, in a word or two. One without an end on record is running if somebody is at work on its connection.
pub(crate) fn ending(run: &RunSummary, is_at_work: bool) -> &'static str {
    match (run.reason, run.ended_at) {
        (_, None) if is_at_work => "running",
        (_, None) => "interrupted",
        (Some(TerminalReason::Succeeded), _) => "succeeded",
        (Some(TerminalReason::Cancelled), _) => "cancelled",
        (Some(TerminalReason::BudgetReached), _) => "stopped at its budget",
        (Some(TerminalReason::SourceCooldown), _) => "rate-limited",
        (Some(TerminalReason::Interrupted | TerminalReason::Superseded), _) => "interrupted",
        (Some(TerminalReason::ConnectorCrashed), _) => "crashed",
        (Some(_), _) => "failed",
        (None, Some(_)) => "unknown",
    }
}

/// A stop that was planned is no failure, and has no colour of one.
pub(crate) fn ending_tone(run: &RunSummary, is_at_work: bool) -> &'static str {
    match run.reason {
        None if run.ended_at.is_none() => {
            if is_at_work {
                "good"
            } else {
                "wait"
            }
        }
        Some(TerminalReason::Succeeded) => "good",
        Some(TerminalReason::BudgetReached | TerminalReason::Cancelled) | None => "calm",
        Some(TerminalReason::SourceCooldown | TerminalReason::Interrupted | TerminalReason::Superseded) => "wait",
        Some(_) => "bad",
    }
}
