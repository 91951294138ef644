//! `gleaner runs`: the last runs of a connection, the newest first.

use crate::args::collect::OfConnectionArgs;
use crate::dates;
use crate::error::CliError;
use crate::home::Home;
use crate::output::{Output, Tone, visible};
use gleaner_store::RunSummary;
use serde_json::{Value, json};
use std::process::ExitCode;

pub(crate) fn run(args: &OfConnectionArgs, out: &mut Output) -> Result<ExitCode, CliError> {
    let reader = Home::find(&args.home)?.reader()?;
    let runs = reader.runs(&args.connection, args.limit as usize)?;
    if !args.json {
        let head = format!("{:<24} {:<20} {:>9} {:>8} {:>6}  {}", "run", "began", "took", "records", "gaps", "ended");
        out.line(&out.paint(Tone::Quiet, &head))?;
    }
    for run in &runs {
        let line = if args.json { as_json(run).to_string() } else { as_text(run) };
        out.line(&line)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn as_text(run: &RunSummary) -> String {
    let took = run.ended_at.map_or_else(|| "goes on".to_owned(), |ended| dates::span(ended.since(run.started_at)));
    let reason = run.reason.map_or("", gleaner_protocol::TerminalReason::code);
    let detail = run.violation.as_ref().or(run.error_message.as_ref()).map(|text| format!(": {}", visible(text)));
    format!(
        "{:<24} {:<20} {took:>9} {:>8} {:>6}  {reason}{}",
        visible(&run.run_id),
        dates::rfc3339(run.started_at),
        run.counts.collected,
        run.counts.gaps,
        detail.unwrap_or_default()
    )
}

fn as_json(run: &RunSummary) -> Value {
    let list = |text: &Option<String>| text.as_ref().and_then(|text| serde_json::from_str::<Value>(text).ok());
    json!({
        "run_id": run.run_id, "track": run.track, "started_at": dates::rfc3339(run.started_at),
        "ended_at": run.ended_at.map(dates::rfc3339), "reason": run.reason.map(|reason| reason.code()),
        "violation": run.violation, "error_code": run.error_code, "error_message": run.error_message,
        "records_accepted": run.counts.collected, "records_deleted": run.counts.deleted,
        "records_rejected": run.counts.rejected, "records_unchanged": run.unchanged, "gaps": run.counts.gaps,
        "recovered": run.counts.recovered, "slices": run.slices, "committed": list(&run.committed),
        "withheld": list(&run.withheld), "collection_rate": list(&run.collection_rate),
        "provider_budget": list(&run.provider_budget),
    })
}
