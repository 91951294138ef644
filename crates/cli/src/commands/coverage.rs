//! `gleaner coverage`: how complete each stream is, and honest where nobody can know.

use crate::args::inspect::CoverageArgs;
use crate::error::CliError;
use crate::terminal::output::{Output, Tone};
use gleaner_app::{CoveredStream, dates};
use gleaner_base::outside::one_line;
use gleaner_protocol::CoveragePolicy;
use gleaner_store::{GapCause, GapCount, Share};
use serde_json::{Value, json};

/// Reasons that are shown below a stream; with `--json` all.
const REASONS_SHOWN: usize = 8;

pub(crate) fn run(args: &CoverageArgs, out: &mut Output) -> Result<(), CliError> {
    let connections = args.home.app()?.coverage(args.connection.as_deref())?;
    if connections.is_empty() && !args.json {
        out.line("nothing is connected yet; add a connector with `gleaner add`")?;
    }
    for (name, streams) in connections {
        if args.json {
            for stream in &streams {
                out.line(&as_json(&name, stream).to_string())?;
            }
        } else {
            print(&name, &streams, out)?;
        }
    }
    Ok(())
}

fn policy(stream: &CoveredStream) -> &'static str {
    stream.policy.map_or("undeclared", CoveragePolicy::code)
}

fn print(name: &str, streams: &[CoveredStream], out: &mut Output) -> Result<(), CliError> {
    out.line(&out.paint(Tone::Strong, &one_line(name)))?;
    let head = row("stream", "policy", ["listed", "stored", "missing", "skipped", "share"].map(str::to_owned));
    out.line(&out.paint(Tone::Quiet, &head))?;
    for stream in streams {
        let coverage = &stream.coverage;
        let listed = coverage.listed().map_or_else(|| "-".to_owned(), |listed| listed.to_string());
        let counts = [coverage.summary.records, coverage.missing(), coverage.skipped()].map(|count| count.to_string());
        let [stored, missing, skipped] = counts;
        let figures = [listed, stored, missing, skipped, percent(stream.share())];
        out.line(&row(&one_line(&coverage.summary.name), policy(stream), figures))?;
        for line in below(stream) {
            out.line(&out.paint(Tone::Quiet, &format!("    {line}")))?;
        }
    }
    Ok(())
}

fn row(stream: &str, policy: &str, [listed, stored, missing, skipped, share]: [String; 5]) -> String {
    format!("  {stream:<18} {policy:<14} {listed:>8} {stored:>8} {missing:>8} {skipped:>8} {share:>8}")
}

/// Hundredths, rounded down: with anything missing never 100.
fn percent(share: Share) -> String {
    match share {
        Share::Known(hundredths) => format!("{}.{:02} %", hundredths / 100, hundredths % 100),
        Share::Unknown(_) => "-".to_owned(),
    }
}

/// Why there is no share, and why what is missing is missing.
fn below(stream: &CoveredStream) -> Vec<String> {
    let coverage = &stream.coverage;
    let mut lines = Vec::new();
    if let Share::Unknown(why) = stream.share() {
        let reason = coverage.skip_open.as_ref();
        let reason = reason.map(|skip| format!(" ({})", one_line(skip.why()))).unwrap_or_default();
        lines.push(format!("{}{reason}", why.sentence()));
    }
    lines.extend(coverage.gaps.iter().take(REASONS_SHOWN).map(gap_line));
    let more = coverage.gaps.len().saturating_sub(REASONS_SHOWN);
    lines.extend((more > 0).then(|| format!("and {more} more reasons")));
    let quarantined = coverage.summary.quarantined;
    lines.extend((quarantined > 0).then(|| format!("{quarantined} do not fit their schema (in quarantine)")));
    let unaccounted = coverage.listing.as_ref().map_or(0, |listing| listing.unaccounted);
    lines.extend((unaccounted > 0).then(|| format!("{unaccounted} were listed, without an outcome")));
    let empty = coverage.summary.gaps_empty;
    lines.extend((empty > 0).then(|| {
        format!("{empty} are empty: the list has them, and no record came; `gleaner gaps` lists them with --recovered")
    }));
    let times = coverage.times_unreadable;
    lines.extend((times > 0).then(|| {
        format!("{times} stored records have a time that could not be read; `gleaner records` lists them with --time-unreadable")
    }));
    lines
}

fn gap_line(gap: &GapCount) -> String {
    let cause = GapCause::of_count(gap);
    let state = match gap.state.as_str() {
        "terminal" => ", given up",
        "in_progress" => ", being fetched",
        "ignored" => ", ignored by you",
        _ => "",
    };
    let part = if gap.part_of_list { " parts of the list" } else { "" };
    format!("{}{part} {}{state}", gap.count, one_line(cause.code()))
}

fn as_json(name: &str, stream: &CoveredStream) -> Value {
    let coverage = &stream.coverage;
    let share = stream.share();
    let (percent, unknown) = match share {
        Share::Known(hundredths) => (Some(hundredths as f64 / 100.0), None),
        Share::Unknown(why) => (None, Some(why.code())),
    };
    let gap = |gap: &GapCount| {
        let cause = GapCause::of_count(gap);
        json!({
            "code": cause.code(), "origin": cause.origin(), "reason": gap.reason, "run_cap": gap.run_cap,
            "terminal_reason": gap.terminal_reason, "state": gap.state, "part_of_list": gap.part_of_list,
            "count": gap.count,
        })
    };
    let listing = coverage.listing.as_ref().map(|listing| {
        json!({
            "run_id": listing.run_id, "at": dates::rfc3339(listing.at), "required": listing.required,
            "hydrated": listing.hydrated, "gaps": listing.gaps, "skipped": listing.skipped,
            "unaccounted": listing.unaccounted, "empty": listing.empty,
        })
    });
    json!({
        "connection": name, "stream": coverage.summary.name, "policy": policy(stream),
        "declared": coverage.summary.declared, "listed": coverage.listed(), "stored": coverage.summary.records,
        "deleted": coverage.summary.tombstones, "missing": coverage.missing(), "skipped": coverage.skipped(),
        "quarantined": coverage.summary.quarantined, "empty": coverage.summary.gaps_empty, "percent": percent, "percent_unknown_because": unknown,
        "gaps": coverage.gaps.iter().map(gap).collect::<Vec<_>>(), "last_listing": listing,
        "skip_open": coverage.skip_open.as_ref().map(|skip| json!({
            "reason": skip.reason, "message": skip.message, "run_id": skip.run_id, "at": dates::rfc3339(skip.at),
        })), "times_unreadable": coverage.times_unreadable,
    })
}
