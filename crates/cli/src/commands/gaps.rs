//! `gleaner gaps`: what is known and not here, and why; and the records that do not fit their schema.

use crate::args::collect::OfConnectionArgs;
use crate::dates;
use crate::error::CliError;
use crate::home::Home;
use crate::output::{Output, Tone, visible};
use gleaner_protocol::{AbsenceReason, ErrorClass, GapReason, Wording};
use gleaner_store::{GapFilter, GapSummary, PAGE_ROWS_MAX, QuarantinedRecord};
use serde_json::{Value, json};
use std::process::ExitCode;

pub(crate) fn run(args: &OfConnectionArgs, out: &mut Output) -> Result<ExitCode, CliError> {
    let reader = Home::find(&args.home)?.reader()?;
    let mut left = args.limit as usize;
    let (mut after, mut shown) = (0, 0_u64);
    while left > 0 {
        let page = reader.gaps(&args.connection, GapFilter::default(), after, left.min(PAGE_ROWS_MAX))?;
        let Some(last) = page.last() else { break };
        (after, left) = (last.id, left - page.len());
        for gap in &page {
            shown += 1;
            out.line(&if args.json { gap_json(gap).to_string() } else { gap_text(gap) })?;
        }
    }
    for record in reader.quarantine(&args.connection, 0, left.max(1))? {
        shown += 1;
        out.line(&if args.json { record_json(&record).to_string() } else { record_text(&record) })?;
    }
    if !args.json {
        let open =
            reader.streams(&args.connection)?.iter().map(|stream| stream.gaps_open() + stream.quarantined).sum::<u64>();
        let line = if open == 0 { "nothing is missing".to_owned() } else { format!("{shown} of {open} shown") };
        out.line(&out.paint(Tone::Quiet, &line))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What a person is told about a gap: a planned stop has words of its own.
fn wording(gap: &GapSummary) -> Option<Wording> {
    if gap.run_cap {
        return Some(ErrorClass::RunCapDeferred.wording());
    }
    let terminal = gap.terminal_reason.as_deref().and_then(AbsenceReason::from_code).map(AbsenceReason::wording);
    terminal.or_else(|| gap.reason.as_deref().and_then(GapReason::from_code).map(GapReason::wording))
}

fn gap_text(gap: &GapSummary) -> String {
    let key = gap.record_key.as_deref().unwrap_or("(a part of the list)");
    let what = wording(gap).map_or("it is missing, and no reason was given", |wording| wording.what);
    let state = if gap.state == "terminal" { "given up" } else { "waits" };
    let tries = if gap.attempts == 1 { "1 try".to_owned() } else { format!("{} tries", gap.attempts) };
    let since = dates::rfc3339(gap.since);
    let not_before = gap.not_before.map(|time| format!(", not before {}", dates::rfc3339(time))).unwrap_or_default();
    format!("{} {}  {state}, {tries}, since {since}{not_before}\n    {what}", visible(&gap.stream), visible(key))
}

fn gap_json(gap: &GapSummary) -> Value {
    let parsed = |text: &Option<String>| text.as_ref().and_then(|text| serde_json::from_str::<Value>(text).ok());
    json!({
        "kind": "gap", "gap_id": gap.gap_id, "stream": gap.stream, "parent_stream": gap.parent_stream,
        "record_key": gap.record_key, "state": gap.state, "reason": gap.reason, "run_cap": gap.run_cap,
        "terminal_reason": gap.terminal_reason, "attempts": gap.attempts, "since": dates::rfc3339(gap.since),
        "not_before": gap.not_before.map(dates::rfc3339), "last_error": parsed(&gap.last_error),
        "message": wording(gap).map(|wording| wording.what),
    })
}

fn record_text(record: &QuarantinedRecord) -> String {
    let pointer = if record.pointer.is_empty() { "the whole of it" } else { &record.pointer };
    format!(
        "{} {}  in quarantine\n    It does not fit its schema: {}",
        visible(&record.stream),
        visible(&record.key),
        visible(pointer)
    )
}

fn record_json(record: &QuarantinedRecord) -> Value {
    json!({
        "kind": "quarantine", "stream": record.stream, "record_key": record.key, "pointer": record.pointer,
        "since": dates::rfc3339(record.stored_at),
    })
}
