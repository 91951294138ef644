//! Everything that is missing of one connection: gaps (retry, ignore with a note, un-ignore), records in quarantine, and
//! what the last run left open.

use super::frame::{Frame, Part};
use super::{address, completeness, escape, json_text, words};
use crate::problem::Problem;
use crate::server::extract::{UrlPath, UrlQuery};
use askama::Template;
use gleaner_app::Look;
use gleaner_store::{GapCause, GapFilter, GapSummary, LeftOpen, Missing, QuarantinedRecord, Reader, StreamCoverage};
use serde::Deserialize;

/// Gaps, and records in quarantine, of one page.
const GAPS_SHOWN: usize = 50;
/// Characters of a key that are shown.
const KEY_CHARS: usize = 200;

#[derive(Template)]
#[template(path = "gap_list.html")]
pub(super) struct GapListPage {
    frame: Frame,
    connection: String,
    streams: Vec<StreamCoverage>,
    /// The one that was chosen; otherwise all.
    stream: Option<String>,
    missing: Missing,
    /// Checkpoints that the last run withheld, and what it skipped.
    left_open: Vec<LeftOpen>,
    /// Why nobody can say that nothing is missing.
    unfinished: Option<String>,
    gaps: Vec<GapSummary>,
    next: Option<String>,
    quarantined: Vec<QuarantinedRecord>,
    quarantined_next: Option<String>,
    first: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GapListWanted {
    stream: Option<String>,
    after: Option<i64>,
    quarantined_after: Option<i64>,
    done: Option<String>,
}

pub(super) fn page(
    reader: &Reader,
    (UrlPath(name), UrlQuery(wanted)): (UrlPath<String>, UrlQuery<GapListWanted>),
) -> Result<GapListPage, Problem> {
    let look = Look::new(reader)?;
    let chosen = wanted.stream.as_deref().filter(|stream| !stream.is_empty());
    let address = |place: Option<(&str, i64)>| {
        let place = place.map(|(of, after)| (of, after.to_string()));
        let place = place.as_ref().map(|(of, after)| (*of, after.as_str()));
        let query = [chosen.map(|stream| ("stream", stream)), place];
        address::href_with(&["connections", &name, "gaps"], &query.into_iter().flatten().collect::<Vec<_>>())
    };
    let filter = GapFilter { stream: chosen, closed_too: false };
    let gaps = |after| reader.gaps(&name, filter, after, GAPS_SHOWN);
    let quarantine = |after| reader.quarantine(&name, chosen, after, GAPS_SHOWN);
    // The second and later pages are of one kind.
    let (gaps, quarantined) = match (wanted.after, wanted.quarantined_after) {
        (None, Some(after)) => (Vec::new(), quarantine(after)?),
        (Some(after), _) => (gaps(after)?, Vec::new()),
        (None, None) => (gaps(0)?, quarantine(0)?),
    };
    let last_gap = gaps.last().filter(|_| gaps.len() == GAPS_SHOWN);
    let last_quarantined = quarantined.last().filter(|_| quarantined.len() == GAPS_SHOWN);
    let here = wanted.after.map(|after| ("after", after));
    let here = here.or_else(|| wanted.quarantined_after.map(|after| ("quarantined_after", after)));
    let streams = reader.coverage(&name)?;
    let shown = streams.iter().filter(|stream| is_shown(stream, chosen));
    let frame = Frame::new(format!("Missing from {name}"), Part::Gaps, address(here), &look);
    Ok(GapListPage {
        frame: frame.after(wanted.done.as_deref()),
        missing: shown.map(Missing::of_stream).fold(Missing::default(), Missing::and),
        left_open: reader.left_open(&name)?,
        unfinished: reader.evidence(&name)?.unfinished(),
        next: last_gap.map(|gap| address(Some(("after", gap.id)))),
        quarantined_next: last_quarantined.map(|record| address(Some(("quarantined_after", record.id)))),
        first: here.is_some().then(|| address(None)),
        stream: chosen.map(str::to_owned),
        connection: name,
        streams,
        gaps,
        quarantined,
    })
}

fn is_shown(stream: &StreamCoverage, chosen: Option<&str>) -> bool {
    chosen.is_none_or(|chosen| stream.summary.name == chosen)
}

impl GapListPage {
    /// The streams to choose from, with how much of each is missing.
    fn incomplete(&self) -> Vec<(&str, u64)> {
        let missing = self.streams.iter().map(|stream| (stream.summary.name.as_str(), stream.missing()));
        missing.filter(|(_, missing)| *missing > 0).collect()
    }

    /// Keys of lists without an outcome: how many of which stream, and the first of them.
    fn unaccounted(&self) -> Vec<(&str, u64, &[String])> {
        let shown = self.streams.iter().filter(|stream| is_shown(stream, self.stream.as_deref()));
        let listed = shown.filter_map(|stream| Some((stream.summary.name.as_str(), stream.listing.as_ref()?)));
        let unaccounted = listed.map(|(name, listing)| (name, listing.unaccounted, listing.waiting.as_slice()));
        unaccounted.filter(|(_, count, _)| *count > 0).collect()
    }
}

/// The state of a gap in a word or two, and its tone.
fn state_words(gap: &GapSummary) -> (&'static str, &'static str) {
    match gap.state.as_str() {
        "in_progress" => ("being fetched", "good"),
        "terminal" => ("given up", "bad"),
        "ignored" => ("ignored", "calm"),
        _ => ("waiting", "calm"),
    }
}

/// Whose doing a gap is.
fn origin_words(cause: &GapCause<'_>) -> &'static str {
    match cause.origin() {
        "source" => "the provider",
        "own_budget" => "a limit of the run",
        "given_up" => "given up",
        "ignored" => "by you",
        _ => "",
    }
}

/// A text, or another one where it is empty.
fn or<'a>(text: &'a str, other: &'a str) -> &'a str {
    if text.is_empty() { other } else { text }
}
