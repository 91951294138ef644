//! `gleaner status`: every connection in a line, the ones that need somebody first.

use crate::args::collect::StatusArgs;
use crate::collect_view::{counts_json, merge};
use crate::commands::answer;
use crate::commands::schedule::{self, next_text, serving};
use crate::connection::parse_manifest;
use crate::dates;
use crate::error::CliError;
use crate::home::Home;
use crate::output::{Output, Tone, counted, visible};
use gleaner_app::{Outlook, outlook};
use gleaner_engine::{CooldownPolicy, Finding, Grade, Health, WallTime};
use gleaner_protocol::{Assistance, Waiting};
use gleaner_store::{
    ConnectionState, ConnectionSummary, Evidence, HeldBy, Holder, LeaseOn, OpenQuestion, Reader, StoreError,
};
use serde_json::json;
use std::process::ExitCode;

struct Line {
    evidence: Evidence,
    health: Option<Health>,
    /// The process that works on it now.
    holder: Option<HeldBy>,
    questions: Vec<OpenQuestion>,
    help: Vec<Assistance>,
    outlook: Outlook,
}

impl Line {
    /// What its run waits for now. A run whose process is gone waits for nothing.
    fn waits(&self) -> Option<(&Waiting, WallTime)> {
        self.evidence.waiting_at(dates::now()).filter(|_| self.holder.is_some())
    }
}

pub(crate) fn run(args: &StatusArgs, out: &mut Output) -> Result<ExitCode, CliError> {
    let reader = Home::find(&args.home)?.reader()?;
    let ourselves = Holder::current().map_err(StoreError::Holder)?;
    let mut waiting = answer::waiting(&reader)?;
    let (mut lines, mut gone) = (Vec::new(), Vec::new());
    for connection in reader.connections()? {
        if matches!(connection.state, ConnectionState::Removed | ConnectionState::Purging) {
            gone.push(connection);
            continue;
        }
        let of_this = waiting.extract_if(.., |(question, _)| question.connection == connection.name);
        let questions = of_this.map(|(question, _)| question).collect();
        lines.push(gather(&reader, &connection.name, &ourselves, questions)?);
    }
    let service = serving(&reader)?;
    lines.sort_by_key(|line| std::cmp::Reverse(line.health.as_ref().map(|health| health.grade)));
    if lines.is_empty() && gone.is_empty() && !args.json {
        out.line("nothing is connected yet; add a connector with `gleaner add`")?;
    }
    for line in &lines {
        if args.json { print_json(line, out)? } else { print(line, service.is_some(), out)? }
    }
    for connection in &gone {
        if args.json { print_gone_json(connection, out)? } else { print_gone(connection, out)? }
    }
    Ok(ExitCode::SUCCESS)
}

fn gather(reader: &Reader, name: &str, ourselves: &Holder, questions: Vec<OpenQuestion>) -> Result<Line, CliError> {
    let now = dates::now();
    let mut evidence = reader.evidence(name)?;
    // A question of a run that was killed waits for nobody.
    evidence.summary.question_open = !questions.is_empty();
    // A manifest that an older version accepted may be refused by this one; the rest is still true.
    let manifest = parse_manifest(&reader.manifest_text(name)?).ok();
    let health = manifest.map(|manifest| {
        let policy = CooldownPolicy::of(None, manifest.refresh_policy.as_ref());
        evidence.health(&manifest, policy, now)
    });
    let holder = reader.held_by(LeaseOn::Connection(name), ourselves, now)?;
    let help = reader.open_help(name, now)?;
    let outlook = outlook(reader, name, now)?;
    Ok(Line { evidence, health, holder, questions, help, outlook })
}

/// What is no longer collected, in a line.
fn print_gone(connection: &ConnectionSummary, out: &mut Output) -> Result<(), CliError> {
    let name = visible(&connection.name);
    let what = if connection.state == ConnectionState::Purging {
        format!("being forgotten; `gleaner remove {name} --purge` goes on with it")
    } else {
        format!("removed; {}", counted(connection.totals.records, "record stays", "records stay"))
    };
    Ok(out.line(&out.paint(Tone::Quiet, &format!("{name}  {what}")))?)
}

fn print_gone_json(connection: &ConnectionSummary, out: &mut Output) -> Result<(), CliError> {
    let state = if connection.state == ConnectionState::Purging { "being_forgotten" } else { "removed" };
    let records = connection.totals.records;
    let value = json!({"connection": connection.name, "state": state, "records": records});
    Ok(out.line(&value.to_string())?)
}

fn print(line: &Line, is_served: bool, out: &mut Output) -> Result<(), CliError> {
    let summary = &line.evidence.summary;
    let grade = line.health.as_ref().map_or("manifest is not valid", |health| health.grade.words());
    let bad = line.health.as_ref().is_none_or(|health| health.grade >= Grade::Degraded);
    let paused = if summary.state == ConnectionState::Paused { ", paused" } else { "" };
    let name = out.paint(Tone::Strong, &visible(&summary.name));
    let grade = out.paint(if bad { Tone::Bad } else { Tone::Plain }, grade);
    let running = if line.holder.is_some() { ", running" } else { "" };
    out.line(&format!("{name}  {grade}{running}{paused}"))?;
    let totals = &summary.totals;
    let mut facts = vec![counted(totals.records, "record", "records")];
    facts.extend((totals.tombstones > 0).then(|| format!("{} deleted", totals.tombstones)));
    let missing = &line.evidence.missing;
    if missing.total() > 0 {
        let causes = missing.causes().map(|(_, count, words)| format!("{count} {words}")).collect::<Vec<_>>();
        facts.push(format!("{} missing ({})", missing.total(), causes.join("; ")));
    }
    let is_newest = line.evidence.open_run.is_none();
    if let Some(run) = line.evidence.last_run.as_ref().filter(|_| is_newest)
        && let Some(ended) = run.ended_at
    {
        let reason = run.reason.map_or("unknown", gleaner_protocol::TerminalReason::code);
        facts.push(format!("last run {reason} {} ago", dates::span(dates::now().since(ended))));
    }
    out.line(&format!("  {}", facts.join(", ")))?;
    for text in open_run(line) {
        out.line(&format!("  {text}"))?;
    }
    if let Some((waiting, until)) = line.waits() {
        out.line(&format!("  {}", waiting.sentence(&dates::until(until))))?;
    }
    for question in &line.questions {
        let (id, left, message) = (question.id, answer::time_left(question), visible(&question.message));
        out.line(&format!("  question {id}{left}: {message}\n    answer with: gleaner answer {id}"))?;
    }
    for help in &line.help {
        out.line(&format!("  asks for help: {}", visible(&help.message)))?;
    }
    if is_served {
        out.line(&format!("  next: {}", next_text(&line.outlook, dates::now())))?;
    }
    // An open question is there with its text.
    let findings = line.health.iter().flat_map(|health| &health.findings);
    for finding in findings.filter(|finding| **finding != Finding::QuestionOpen) {
        let sentence = visible(&line.evidence.sentence(finding, dates::rfc3339));
        out.line(&out.paint(Tone::Quiet, &format!("  {sentence}")))?;
    }
    Ok(())
}

/// The run that has no end on record: it goes on, or its process is gone.
fn open_run(line: &Line) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(HeldBy { pid, since, .. }) = line.holder {
        lines.push(format!("process {pid} works on it since {}", dates::rfc3339(since)));
    }
    if let Some(run) = &line.evidence.open_run {
        let records = run.records_words();
        lines.push(match line.holder {
            Some(_) => format!("records saved by this run so far: {records}"),
            None => format!(
                "the last run was interrupted; records it saved: {records}; `gleaner run {}` resumes it",
                visible(&line.evidence.summary.name)
            ),
        });
    }
    lines
}

fn print_json(line: &Line, out: &mut Output) -> Result<(), CliError> {
    let (summary, totals) = (&line.evidence.summary, &line.evidence.summary.totals);
    let run = line.evidence.last_run.as_ref();
    let findings = line.health.iter().flat_map(|health| &health.findings);
    let findings = findings.map(|finding| line.evidence.sentence(finding, dates::rfc3339)).collect::<Vec<_>>();
    let value = json!({
        "connection": summary.name, "connector_id": summary.connector_id,
        "health": line.health.as_ref().map(|health| health.grade.words()), "findings": findings,
        "paused": summary.state == ConnectionState::Paused, "records": totals.records,
        "tombstones": totals.tombstones, "missing": line.evidence.missing.total(), "quarantined": totals.quarantined, "gaps_open": totals.gaps_open(),
        "gaps_ignored": totals.gaps_ignored,
        "last_run": run.map(|run| &run.run_id), "last_reason": run.and_then(|run| run.reason).map(|reason| reason.code()),
        "last_ended_at": run.and_then(|run| run.ended_at).map(dates::rfc3339),
        "open_run": line.evidence.open_run.as_ref().map(|run| {
            let mut value = json!({"run_id": run.run_id, "started_at": dates::rfc3339(run.started_at)});
            merge(&mut value, counts_json(&run.counts));
            value
        }),
        "last_success": line.evidence.last_success.map(dates::rfc3339), "question_open": summary.question_open,
        "state": if summary.state == ConnectionState::Paused { "paused" } else { "active" },
        "running": line.holder.as_ref().map(|by| json!({"pid": by.pid, "since": dates::rfc3339(by.since)})),
        "questions": line.questions.iter().map(answer::as_json).collect::<Vec<_>>(),
        "help": line.help.iter().map(|help| &help.message).collect::<Vec<_>>(),
        "next": schedule::as_json(&line.outlook),
        "circuit": line.evidence.circuit.as_ref().map(|budget| budget.circuit),
        "waiting": line.waits().map(|(waiting, until)| json!({"reason": waiting.reason, "until": dates::rfc3339(until)})),
    });
    Ok(out.line(&value.to_string())?)
}
