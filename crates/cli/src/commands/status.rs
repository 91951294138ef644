//! `gleaner status`: every connection in a line, the ones that need somebody first.

use crate::args::collect::PrintArgs;
use crate::commands::answer;
use crate::commands::schedule::{self, next_text};
use crate::error::CliError;
use crate::terminal::output::{Output, Tone, counted};
use crate::terminal::run_view::{counts_json, merge};
use gleaner_app::{ConnectionView, Overview, dates};
use gleaner_base::outside::one_line;
use gleaner_engine::{Finding, Grade};
use gleaner_store::{ConnectionState, ConnectionSummary, HeldBy};
use serde_json::json;

pub(crate) fn run(args: &PrintArgs, out: &mut Output) -> Result<(), CliError> {
    let Overview { mut views, gone, service } = args.home.app()?.overview(None)?;
    views.sort_by_key(|view| std::cmp::Reverse(view.health.as_ref().map(|health| health.grade)));
    if views.is_empty() && gone.is_empty() && !args.json {
        out.line("nothing is connected yet; add a connector with `gleaner add`")?;
    }
    for view in &views {
        if args.json { print_json(view, out)? } else { print(view, service.is_some(), out)? }
    }
    for connection in &gone {
        if args.json { print_gone_json(connection, out)? } else { print_gone(connection, out)? }
    }
    Ok(())
}

/// What is no longer collected, in a line.
fn print_gone(connection: &ConnectionSummary, out: &mut Output) -> Result<(), CliError> {
    let name = one_line(&connection.name);
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

fn print(view: &ConnectionView, is_served: bool, out: &mut Output) -> Result<(), CliError> {
    let summary = &view.evidence.summary;
    let grade = view.health.as_ref().map_or("manifest is not valid", |health| health.grade.words());
    let bad = view.health.as_ref().is_none_or(|health| health.grade >= Grade::Degraded);
    let paused = if summary.state == ConnectionState::Paused { ", paused" } else { "" };
    let name = out.paint(Tone::Strong, &one_line(&summary.name));
    let grade = out.paint(if bad { Tone::Bad } else { Tone::Plain }, grade);
    let running = if view.holder.is_some() { ", running" } else { "" };
    out.line(&format!("{name}  {grade}{running}{paused}"))?;
    let totals = &summary.totals;
    let mut facts = vec![counted(totals.records, "record", "records")];
    facts.extend((totals.tombstones > 0).then(|| format!("{} deleted", totals.tombstones)));
    let missing = &view.evidence.missing;
    if missing.total() > 0 {
        let causes = missing.causes().map(|(_, count, words)| format!("{count} {words}")).collect::<Vec<_>>();
        facts.push(format!("{} missing ({})", missing.total(), causes.join("; ")));
    }
    let is_newest = view.evidence.open_run.is_none();
    if let Some(run) = view.evidence.last_run.as_ref().filter(|_| is_newest)
        && let Some(ended) = run.ended_at
    {
        let reason = run.reason.map_or("unknown", gleaner_protocol::TerminalReason::code);
        facts.push(format!("last run {reason} {} ago", dates::span(dates::now().since(ended))));
    }
    out.line(&format!("  {}", facts.join(", ")))?;
    for text in open_run(view) {
        out.line(&format!("  {text}"))?;
    }
    if let Some((waiting, until)) = view.waits() {
        out.line(&format!("  {}", waiting.sentence(&dates::until(until))))?;
    }
    for question in &view.questions {
        let (id, left, message) = (question.id, answer::time_left(question), one_line(&question.message));
        out.line(&format!("  question {id}{left}: {message}\n    answer with: gleaner answer {id}"))?;
    }
    for help in &view.help {
        out.line(&format!("  asks for help: {}", one_line(&help.message)))?;
    }
    if is_served {
        out.line(&format!("  next: {}", next_text(&view.outlook(), dates::now())))?;
    }
    // An open question is there with its text.
    let findings = view.health.iter().flat_map(|health| &health.findings);
    for finding in findings.filter(|finding| **finding != Finding::QuestionOpen) {
        let sentence = one_line(&view.evidence.sentence(finding, dates::rfc3339));
        out.line(&out.paint(Tone::Quiet, &format!("  {sentence}")))?;
    }
    Ok(())
}

/// The run that has no end on record: it goes on, or its process is gone.
fn open_run(view: &ConnectionView) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(HeldBy { pid, since, .. }) = view.holder {
        lines.push(format!("process {pid} works on it since {}", dates::rfc3339(since)));
    }
    if let Some(run) = &view.evidence.open_run {
        let records = run.records_words();
        lines.push(match view.holder {
            Some(_) => format!("records saved by this run so far: {records}"),
            None => format!(
                "the last run was interrupted; records it saved: {records}; `gleaner run {}` resumes it",
                one_line(&view.evidence.summary.name)
            ),
        });
    }
    lines
}

fn print_json(view: &ConnectionView, out: &mut Output) -> Result<(), CliError> {
    let (summary, totals) = (&view.evidence.summary, &view.evidence.summary.totals);
    let run = view.evidence.last_run.as_ref();
    let findings = view.health.iter().flat_map(|health| &health.findings);
    let findings = findings.map(|finding| view.evidence.sentence(finding, dates::rfc3339)).collect::<Vec<_>>();
    let value = json!({
        "connection": summary.name, "connector_id": summary.connector_id,
        "health": view.health.as_ref().map(|health| health.grade.words()), "findings": findings,
        "paused": summary.state == ConnectionState::Paused, "records": totals.records,
        "tombstones": totals.tombstones, "missing": view.evidence.missing.total(), "quarantined": totals.quarantined, "gaps_open": totals.gaps_open(),
        "gaps_ignored": totals.gaps_ignored,
        "last_run": run.map(|run| &run.run_id), "last_reason": run.and_then(|run| run.reason).map(|reason| reason.code()),
        "last_ended_at": run.and_then(|run| run.ended_at).map(dates::rfc3339),
        "open_run": view.evidence.open_run.as_ref().map(|run| {
            let mut value = json!({"run_id": run.run_id, "started_at": dates::rfc3339(run.started_at)});
            merge(&mut value, counts_json(&run.counts));
            value
        }),
        "last_success": view.evidence.last_success.map(dates::rfc3339), "question_open": summary.question_open,
        "state": if summary.state == ConnectionState::Paused { "paused" } else { "active" },
        "running": view.holder.as_ref().map(|by| json!({"pid": by.pid, "since": dates::rfc3339(by.since)})),
        "questions": view.questions.iter().map(answer::as_json).collect::<Vec<_>>(),
        "help": view.help.iter().map(|help| &help.message).collect::<Vec<_>>(),
        "next": schedule::as_json(&view.outlook()),
        "circuit": view.evidence.circuit.as_ref().map(|budget| budget.circuit),
        "waiting": view.waits().map(|(waiting, until)| json!({"reason": waiting.reason, "until": dates::rfc3339(until)})),
    });
    Ok(out.line(&value.to_string())?)
}
