//! What is known and not here, and why.

use super::page::{Page, limit, place, raw};
use crate::date;
use crate::problem::Problem;
use crate::server::extract::{UrlPath, UrlQuery};
use gleaner_store::{GapCause, GapFilter, GapSummary, Ignored, Reader};
use serde::Deserialize;
use serde_json::value::RawValue;

json_object! {
    pub(crate) struct GapView(gap: GapSummary) {
        let cause = GapCause::of(&gap);
        let (origin, wording) = (cause.origin(), cause.wording());
    } => {
        gap_id: String = gap.gap_id,
        stream: String = gap.stream,
        parent_stream: Option<String> = gap.parent_stream,
        record_key: Option<String> = gap.record_key,
        state: String = gap.state,
        /// Whose doing it is.
        origin: &'static str = origin,
        reason: Option<String> = gap.reason,
        terminal_reason: Option<String> = gap.terminal_reason,
        run_cap: bool = gap.run_cap,
        /// Why, in words; what comes next, in words.
        message: Option<&'static str> = wording.map(|wording| wording.what),
        next: Option<&'static str> = wording.map(|wording| wording.next),
        http_status: Option<u16> = gap.http_status,
        attempts: u32 = gap.attempts,
        since: String = date::rfc3339(gap.since),
        not_before: Option<String> = gap.not_before.map(date::rfc3339),
        last_error: Option<Box<RawValue>> = raw(gap.last_error),
        locator: Option<Box<RawValue>> = raw(gap.locator),
        /// What the owner wrote when they did without it.
        ignored: Option<IgnoredView> = gap.ignored.map(IgnoredView::of),
    }
}

json_object! {
    struct IgnoredView(ignored: Ignored) {} => {
        note: String = ignored.note,
        at: String = date::rfc3339(ignored.at),
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
