//! One connection: what it needs, how fast it goes and why not faster, its streams, runs and schedule.

use super::frame::{Frame, Part};
use super::overview::tone;
use super::rate_chart::{Report, backoffs};
use super::words::{person_date, span};
use super::{address, rate, words};
use crate::api::runs::page_of_runs;
use crate::problem::Problem;
use crate::server::extract::{UrlPath, UrlQuery};
use askama::Template;
use gleaner_app::{ConnectionView, CoveredStream, Look, Outlook, is_collected};
use gleaner_engine::{Finding, Grade, WallTime};
use gleaner_protocol::{RefreshPolicy, TerminalReason};
use gleaner_store::{ConnectionState, Reader, RunSummary, Share};
use serde::Deserialize;
use std::time::Duration;

/// Runs of one page.
const RUNS_SHOWN: usize = 20;
/// Back-offs in the table under the chart.
const BACKOFFS_SHOWN: usize = 20;

#[derive(Template)]
#[template(path = "connection.html")]
pub(super) struct ConnectionPage {
    frame: Frame,
    name: String,
    href: String,
    connector: String,
    grade: Option<Grade>,
    view: ConnectionView,
    is_running: bool,
    is_paused: bool,
    is_collected: bool,
    findings: Vec<Said>,
    /// What the run waits for now.
    waiting: Option<String>,
    /// Reports of a pace that slowed down.
    backoffs: Vec<Report>,
    streams: Vec<CoveredStream>,
    outlook: Outlook,
    recommended: String,
    runs: Vec<RunSummary>,
    older: Option<String>,
}

struct Said {
    tone: &'static str,
    grade: &'static str,
    text: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ConnectionWanted {
    /// What was just done.
    done: Option<String>,
    /// Runs before this one.
    runs_before: Option<String>,
}

pub(super) fn page(
    reader: &Reader,
    (UrlPath(name), UrlQuery(wanted)): (UrlPath<String>, UrlQuery<ConnectionWanted>),
) -> Result<ConnectionPage, Problem> {
    let mut look = Look::new(reader)?;
    let view = ConnectionView::load(reader, &mut look, &name)?;
    let href = address::connection(&name);
    let runs = page_of_runs(reader, &name, wanted.runs_before.as_deref(), RUNS_SHOWN)?;
    let last = runs.last().filter(|_| runs.len() == RUNS_SHOWN);
    let state = view.evidence.summary.state;
    let policy = view.manifest.as_deref().and_then(|manifest| manifest.refresh_policy.as_ref());
    Ok(ConnectionPage {
        frame: Frame::new(&name, Part::Overview, href.clone(), &look).after(wanted.done.as_deref()),
        href,
        connector: connector(&view),
        grade: view.health.as_ref().map(|health| health.grade),
        is_running: view.holder.is_some(),
        is_paused: state == ConnectionState::Paused,
        is_collected: is_collected(state),
        findings: findings(&view),
        waiting: rate::waiting_words(&view),
        backoffs: backoffs(reader, &name, BACKOFFS_SHOWN)?,
        streams: look.coverage(reader, &name)?,
        outlook: view.outlook(),
        recommended: recommended(policy),
        older: last.map(|run| address::href_with(&["connections", &name], &[("runs_before", &run.run_id)])),
        runs,
        view,
        name,
    })
}

fn connector(view: &ConnectionView) -> String {
    let id = &view.evidence.summary.connector_id;
    match &view.manifest {
        Some(manifest) if manifest.display_name.is_empty() => format!("{id}, version {}", manifest.version),
        Some(manifest) => format!("{} ({id}, version {})", manifest.display_name, manifest.version),
        None => id.clone(),
    }
}

/// What is worth saying, but for the question, which has a link of its own.
fn findings(view: &ConnectionView) -> Vec<Said> {
    let findings = view.health.iter().flat_map(|health| &health.findings);
    let said = |finding: &Finding| Said {
        tone: tone(Some(finding.grade())),
        grade: finding.grade().words(),
        text: view.evidence.sentence(finding, person_date),
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

/// The minutes between two runs, as they stand in the form.
fn minutes(every: &Duration) -> u64 {
    every.as_secs().div_ceil(60)
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
