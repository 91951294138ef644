//! What is known and not here, and why.

use super::page::{Page, limit, place, raw};
use crate::date;
use crate::problem::Problem;
use crate::server::extract::{UrlPath, UrlQuery};
use gleaner_store::{GapCause, GapFilter, GapSummary, Ignored, Reader};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

#[derive(Debug, Serialize)]
pub(crate) struct GapView {
    gap_id: String,
    stream: String,
    parent_stream: Option<String>,
    record_key: Option<String>,
    state: String,
    /// Whose doing it is.
    origin: &'static str,
    reason: Option<String>,
    terminal_reason: Option<String>,
    run_cap: bool,
    /// Why, in words; what comes next, in words.
    message: Option<&'static str>,
    next: Option<&'static str>,
    http_status: Option<u16>,
    attempts: u32,
    since: String,
    not_before: Option<String>,
    last_error: Option<Box<RawValue>>,
    locator: Option<Box<RawValue>>,
    /// What the owner wrote when they did without it.
    ignored: Option<IgnoredView>,
}

#[derive(Debug, Serialize)]
struct IgnoredView {
    note: String,
    at: String,
}

impl GapView {
    fn of(gap: GapSummary) -> Self {
        let cause = GapCause::of(&gap);
        let (origin, wording) = (cause.origin(), cause.wording());
        Self {
            origin,
            message: wording.map(|wording| wording.what),
            next: wording.map(|wording| wording.next),
            since: date::rfc3339(gap.since),
            not_before: gap.not_before.map(date::rfc3339),
            gap_id: gap.gap_id,
            stream: gap.stream,
            parent_stream: gap.parent_stream,
            record_key: gap.record_key,
            state: gap.state,
            reason: gap.reason,
            terminal_reason: gap.terminal_reason,
            run_cap: gap.run_cap,
            http_status: gap.http_status,
            attempts: gap.attempts,
            last_error: raw(gap.last_error),
            locator: raw(gap.locator),
            ignored: gap.ignored.map(|Ignored { note, at }| IgnoredView { note, at: date::rfc3339(at) }),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GapsWanted {
    stream: Option<String>,
    #[serde(default)]
    recovered: bool,
    after: Option<u64>,
    limit: Option<usize>,
}

/// The gaps of a connection, in the order in which they were found.
pub(crate) fn of_connection(
    reader: &Reader,
    (UrlPath(name), UrlQuery(wanted)): (UrlPath<String>, UrlQuery<GapsWanted>),
) -> Result<Page<GapView, i64>, Problem> {
    let (limit, after) = (limit(wanted.limit)?, place(wanted.after)?);
    let filter = GapFilter { stream: wanted.stream.as_deref(), closed_too: wanted.recovered };
    let gaps = reader.gaps(&name, filter, after, limit)?;
    let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let size = |gap: &GapSummary| length(&gap.locator) + length(&gap.last_error);
    Ok(Page::of(gaps, limit, size, |gap| gap.id, GapView::of))
}
