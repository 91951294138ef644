//! `gleaner runs`: the last runs of a connection, the newest first.

use crate::args::collect::OfConnectionArgs;
use crate::error::CliError;
use crate::terminal::output::{Output, Tone};
use crate::terminal::run_view::{counts_json, merge};
use gleaner_app::dates;
use gleaner_base::outside::one_line;
use gleaner_engine::Counts;
use gleaner_protocol::TerminalReason;
use gleaner_store::RunSummary;
use serde_json::{Value, json};

pub(crate) fn run(args: &OfConnectionArgs, out: &mut Output) -> Result<(), CliError> {
    let (runs, is_running) = args.print.home.app()?.runs(&args.connection, args.limit as usize)?;
    if !args.print.json {
        let head = row(["run", "began", "took", "new", "changed", "unchanged", "gaps"].map(str::to_owned), "ended");
        out.line(&out.paint(Tone::Quiet, &head))?;
    }
    for run in &runs {
        let line = if args.print.json { as_json(run, is_running).to_string() } else { as_text(run, is_running) };
        out.line(&line)?;
    }
    Ok(())
}

fn as_text(run: &RunSummary, is_running: bool) -> String {
    let open = if is_running { "goes on" } else { "-" };
    let took = run.ended_at.map_or_else(|| open.to_owned(), |ended| dates::span(ended.since(run.started_at)));
    let reason = match run.reason {
        Some(reason) => reason.code(),
        None if is_running => "",
        // Its process is gone, and the next run will say so.
        None => TerminalReason::Interrupted.code(),
    };
    let ended = run.ended().filter(|ended| !ended.reason.is_success());
    let detail = ended.map(|ended| format!(": {}", one_line(&ended.cause())));
    let Counts { new, changed, unchanged, gaps, .. } = run.counts;
    let known = |count: u64| if run.tells_new_from_changed { count.to_string() } else { "-".to_owned() };
    let (id, began) = (one_line(&run.run_id), dates::rfc3339(run.started_at));
    let figures = [id, began, took, known(new), known(changed), unchanged.to_string(), gaps.to_string()];
    row(figures, &format!("{reason}{}", detail.unwrap_or_default()))
}

fn row([run, began, took, new, changed, unchanged, gaps]: [String; 7], ended: &str) -> String {
    format!("{run:<24} {began:<20} {took:>9} {new:>8} {changed:>8} {unchanged:>9} {gaps:>6}  {ended}")
}

fn as_json(run: &RunSummary, is_running: bool) -> Value {
    let list = |text: &Option<String>| text.as_ref().and_then(|text| serde_json::from_str::<Value>(text).ok());
    let mut value = json!({
        "run_id": run.run_id, "state": run.state(is_running), "track": run.track, "started_at": dates::rfc3339(run.started_at),
        "ended_at": run.ended_at.map(dates::rfc3339), "reason": run.reason.map(|reason| reason.code()),
        "violation": run.violation, "error_code": run.error_code, "error_message": run.error_message,
        "exit": run.exit.map(|exit| exit.to_string()), "stderr": run.stderr,
        "message": run.ended().map(|ended| ended.cause()),
        "gaps": run.counts.gaps, "recovered": run.counts.recovered, "slices": run.slices, "committed": list(&run.committed),
        "withheld": list(&run.withheld), "shortfalls": list(&run.shortfalls), "skipped": list(&run.skipped),
        "warnings": list(&run.warnings), "recovered_empty": run.counts.confirmed.empty,
        "recovered_unconfirmed": run.counts.confirmed.unconfirmed, "collection_rate": list(&run.collection_rate),
        "provider_budget": list(&run.provider_budget),
    });
    merge(&mut value, counts_json(&run.counts));
    if !run.tells_new_from_changed {
        // An older program ran it, and did not tell them apart.
        merge(&mut value, json!({"records_new": null, "records_changed": null}));
    }
    value
}
