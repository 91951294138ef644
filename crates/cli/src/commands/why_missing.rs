//! What of a connection is missing, in a few lines: whose doing it is, and how much of it.

use crate::commands::why::Line;
use crate::error::CliError;
use crate::gap_reason::Cause;
use crate::output::visible;
use gleaner_store::{Evidence, Reader};
use serde_json::json;
use std::collections::BTreeMap;

/// Codes that are named in one line.
const CODES_SHOWN: usize = 3;

/// Who keeps it from us, and how that is said. What the service does comes first.
const ORIGINS: [(&str, &str); 5] = [
    ("source", "because the provider rate-limited us"),
    ("own_budget", "deferred by the limits of a run; nothing failed"),
    ("other", "failed so far; retried by later runs"),
    ("given_up", "were given up"),
    ("ignored", "ignored, as you said"),
];

pub(super) fn lines(reader: &Reader, evidence: &Evidence) -> Result<Vec<Line>, CliError> {
    let summary = &evidence.summary;
    let streams = reader.coverage(&summary.name)?;
    let mut by_origin = BTreeMap::<&str, BTreeMap<&str, u64>>::new();
    for count in streams.iter().flat_map(|stream| &stream.gaps) {
        let cause = Cause::of_count(count);
        *by_origin.entry(cause.origin()).or_default().entry(cause.code()).or_default() += count.count;
    }
    let mut lines = Vec::new();
    for (origin, words) in ORIGINS {
        let Some(codes) = by_origin.get(origin) else { continue };
        let total = codes.values().sum::<u64>();
        let text = format!("{total} {words} ({}).", named(codes));
        lines.push(Line::new("missing", text, json!({"code": origin, "count": total, "reasons": codes})));
    }
    if summary.totals.quarantined > 0 {
        let records = summary.totals.quarantined;
        let text = format!("{records} do not fit their schema (in quarantine).");
        lines.push(Line::new("missing", text, json!({"code": "quarantined", "count": records})));
    }
    let listings = || streams.iter().filter_map(|stream| stream.listing.as_ref());
    let unconfirmed = listings().map(|listing| listing.unconfirmed).sum::<u64>();
    if unconfirmed > 0 {
        let text = format!("{unconfirmed} were reported as collected, and nothing was stored for them.");
        let keys = listings().flat_map(|listing| &listing.waiting).collect::<Vec<_>>();
        lines.push(Line::new("missing", text, json!({"code": "unconfirmed", "count": unconfirmed, "keys": keys})));
    }
    let unaccounted = listings().map(|listing| listing.unaccounted).sum::<u64>().saturating_sub(unconfirmed);
    if unaccounted > 0 {
        let text = format!("{unaccounted} were listed, without an outcome.");
        lines.push(Line::new("missing", text, json!({"code": "unaccounted", "count": unaccounted})));
    }
    let skips = evidence.last_run.as_ref().map_or(0, |run| run.skips_told().0);
    if skips > 0 {
        let text = format!("The last run skipped something ({skips}); `gleaner gaps` says what.");
        lines.push(Line::new("missing", text, json!({"code": "skipped", "count": skips})));
    }
    if lines.is_empty() {
        let text = "Nothing that is known of.".to_owned();
        lines.push(Line::new("missing", text, json!({"code": "nothing", "count": 0})));
    }
    let empty = summary.totals.gaps_empty;
    if empty > 0 {
        let text = format!("{empty} gaps closed as empty: only another stream has their key.");
        lines.push(Line::new("missing", text, json!({"code": "empty", "count": empty})));
    }
    Ok(lines)
}

/// The codes with most first.
fn named(codes: &BTreeMap<&str, u64>) -> String {
    let mut codes = codes.iter().collect::<Vec<_>>();
    codes.sort_by_key(|&(code, count)| (std::cmp::Reverse(*count), *code));
    let more = codes.len().saturating_sub(CODES_SHOWN);
    let shown = codes.iter().take(CODES_SHOWN).map(|(code, count)| format!("{} {count}", visible(code)));
    let more = (more > 0).then(|| format!("{more} more"));
    shown.chain(more).collect::<Vec<_>>().join(", ")
}
