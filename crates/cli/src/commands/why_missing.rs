//! What of a connection is missing, in a few lines: whose doing it is, and how much of it.

use crate::commands::why::Line;
use gleaner_base::outside::one_line;
use gleaner_store::{Evidence, GapCause, LeftOpen, StreamCoverage};
use serde_json::json;
use std::collections::BTreeMap;

/// Codes that are named in one line.
const CODES_SHOWN: usize = 3;

pub(super) fn lines(streams: &[StreamCoverage], left_open: Vec<LeftOpen>, evidence: &Evidence) -> Vec<Line> {
    let mut by_origin = BTreeMap::<&str, BTreeMap<&str, u64>>::new();
    for count in streams.iter().flat_map(|stream| &stream.gaps) {
        let cause = GapCause::of_count(count);
        *by_origin.entry(cause.origin()).or_default().entry(cause.code()).or_default() += count.count;
    }
    let mut lines = Vec::new();
    for (code, count, words) in evidence.missing.causes() {
        let reasons = by_origin.get(code);
        let named = reasons.map(|codes| format!(" ({})", named(codes))).unwrap_or_default();
        let data = json!({"code": code, "count": count, "reasons": reasons});
        lines.push(Line::new("missing", format!("{count} {words}{named}."), data));
    }
    let listings = || streams.iter().filter_map(|stream| stream.listing.as_ref());
    let unconfirmed = listings().map(|listing| listing.unconfirmed).sum::<u64>();
    if unconfirmed > 0 {
        let text = format!("{unconfirmed} of those were reported as collected, and nothing was stored for them.");
        let keys = listings().flat_map(|listing| &listing.waiting).collect::<Vec<_>>();
        lines.push(Line::new("missing", text, json!({"code": "unconfirmed", "count": unconfirmed, "keys": keys})));
    }
    for open in left_open {
        let facts = json!({"code": open.kind.code(), "stream": open.stream});
        lines.push(Line::new("missing", one_line(&open.to_string()), facts));
    }
    if let Some(why) = evidence.unfinished() {
        let what = if lines.is_empty() { "No gap is on record, but" } else { "More may be missing:" };
        let text = format!("{what} {}.", one_line(&why));
        lines.push(Line::new("missing", text, json!({"code": "unfinished"})));
    }
    if lines.is_empty() {
        let text = "Nothing that is known of.".to_owned();
        lines.push(Line::new("missing", text, json!({"code": "nothing", "count": 0})));
    }
    let empty = evidence.summary.totals.gaps_empty;
    if empty > 0 {
        let text = match empty {
            1 => "1 gap closed as empty: only another stream has its key.".to_owned(),
            _ => format!("{empty} gaps closed as empty: only another stream has their key."),
        };
        lines.push(Line::new("missing", text, json!({"code": "empty", "count": empty})));
    }
    lines
}

/// The codes with most first.
fn named(codes: &BTreeMap<&str, u64>) -> String {
    let mut codes = codes.iter().collect::<Vec<_>>();
    codes.sort_by_key(|&(code, count)| (std::cmp::Reverse(*count), *code));
    let more = codes.len().saturating_sub(CODES_SHOWN);
    let shown = codes.iter().take(CODES_SHOWN).map(|(code, count)| format!("{} {count}", one_line(code)));
    let more = (more > 0).then(|| format!("{more} more"));
    shown.chain(more).collect::<Vec<_>>().join(", ")
}
