//! Everything that is missing of one connection: gaps (retry, ignore with a note, un-ignore), records in quarantine, and
//! what the last run left open.

use super::error_page::{PageProblem, show};
use super::frame::{Frame, Part};
use super::gaps::WordsView;
use super::json_text::pretty;
use super::outside::{Outside, href, href_with};
use super::share::missing_words;
use super::words::{When, number};
use crate::problem::Problem;
use crate::server::app_state::Shared;
use crate::server::extract::{UrlPath, UrlQuery};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use gleaner_app::Look;
use gleaner_app::dates;
use gleaner_engine::WallTime;
use gleaner_store::{GapCause, GapFilter, GapSummary, Missing, QuarantinedRecord, Reader, StreamCoverage};
use serde::Deserialize;

/// Gaps, and records in quarantine, of one page.
const GAPS_SHOWN: usize = 50;
/// Characters of a key that are shown.
const KEY_CHARS: usize = 200;

#[derive(Template)]
#[template(path = "gap_list.html")]
struct GapListPage {
    frame: Frame,
    connection: Outside,
    connection_href: String,
    /// The streams to choose from, the chosen one first said.
    streams: Vec<Choice>,
    stream: Option<Outside>,
    total: u64,
    words: String,
    /// Checkpoints that the last run withheld, and what it skipped.
    left_open: Vec<Outside>,
    /// Why nobody can say that nothing is missing.
    unfinished: Option<Outside>,
    /// Keys of lists without an outcome.
    unaccounted: Vec<UnaccountedView>,
    gaps: Vec<GapView>,
    next: Option<String>,
    quarantined: Vec<QuarantinedView>,
    quarantined_next: Option<String>,
    first: Option<String>,
}

struct UnaccountedView {
    stream: Outside,
    count: String,
    /// The first of them.
    keys: Vec<Outside>,
}

struct QuarantinedView {
    stream: Outside,
    key: Outside,
    pointer: Outside,
    reason: Outside,
    since: When,
    body: Option<Outside>,
}

struct Choice {
    name: Outside,
    href: String,
    is_chosen: bool,
    count: String,
}

struct GapView {
    stream: Outside,
    key: Option<Outside>,
    state: &'static str,
    tone: &'static str,
    origin: &'static str,
    words: WordsView,
    code: Outside,
    http_status: Option<u16>,
    attempts: u32,
    since: When,
    not_before: Option<When>,
    error: Option<Outside>,
    locator: Option<Outside>,
    retry_href: Option<String>,
    /// Names the form of this gap, so that what is typed into it outlives an update of the page.
    id: String,
    ignore_href: Option<String>,
    ignored: Option<IgnoredView>,
}

/// What the owner wrote, and how it is taken back.
struct IgnoredView {
    note: Outside,
    at: When,
    take_back_href: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GapListWanted {
    stream: Option<String>,
    after: Option<i64>,
    quarantined_after: Option<i64>,
    done: Option<String>,
}

pub(crate) async fn page(
    State(state): Shared,
    UrlPath(name): UrlPath<String>,
    UrlQuery(wanted): UrlQuery<GapListWanted>,
) -> Result<Response, PageProblem> {
    let page = state.reading.ask(move |reader| gather(reader, &name, &wanted)).await?;
    show(&page)
}

fn gather(reader: &Reader, name: &str, wanted: &GapListWanted) -> Result<GapListPage, Problem> {
    let now = dates::now();
    let waiting = Look::new(reader)?.waiting;
    let chosen = wanted.stream.as_deref().filter(|stream| !stream.is_empty());
    let address = |place: Option<(&str, i64)>| {
        let place = place.map(|(of, after)| (of, after.to_string()));
        let place = place.as_ref().map(|(of, after)| (*of, after.as_str()));
        let query = [chosen.map(|stream| ("stream", stream)), place];
        href_with(&["connections", name, "gaps"], &query.into_iter().flatten().collect::<Vec<_>>())
    };
    let filter = GapFilter { stream: chosen, closed_too: false };
    // The second and later pages are of one kind.
    let (gaps, quarantined) = match (wanted.after, wanted.quarantined_after) {
        (None, Some(after)) => (Vec::new(), reader.quarantine(name, chosen, after, GAPS_SHOWN)?),
        (Some(after), _) => (reader.gaps(name, filter, after, GAPS_SHOWN)?, Vec::new()),
        (None, None) => (reader.gaps(name, filter, 0, GAPS_SHOWN)?, reader.quarantine(name, chosen, 0, GAPS_SHOWN)?),
    };
    let last_gap = gaps.last().filter(|_| gaps.len() == GAPS_SHOWN);
    let last_quarantined = quarantined.last().filter(|_| quarantined.len() == GAPS_SHOWN);
    let here = wanted.after.map(|after| ("after", after));
    let here = here.or_else(|| wanted.quarantined_after.map(|after| ("quarantined_after", after)));
    let streams = reader.coverage(name)?;
    let is_shown = |stream: &&StreamCoverage| chosen.is_none_or(|chosen| stream.summary.name == chosen);
    let missing = streams.iter().filter(is_shown).map(Missing::of_stream).fold(Missing::default(), Missing::and);
    let evidence = reader.evidence(name)?;
    let left_open = reader.left_open(name)?;
    let frame = Frame::new(format!("Missing from {name}"), Part::Gaps, address(here), waiting.len());
    Ok(GapListPage {
        frame: frame.after(wanted.done.as_deref()),
        connection: Outside::new(name),
        connection_href: href(&["connections", name]),
        stream: chosen.map(Outside::new),
        total: missing.total(),
        words: missing_words(&missing),
        left_open: left_open.iter().map(|open| Outside::new(open.to_string())).collect(),
        unfinished: evidence.unfinished().map(Outside::new),
        unaccounted: streams.iter().filter(is_shown).filter_map(UnaccountedView::of).collect(),
        gaps: gaps.iter().map(|gap| GapView::of(name, gap, now)).collect(),
        next: last_gap.map(|gap| address(Some(("after", gap.id)))),
        quarantined: quarantined.iter().map(|record| QuarantinedView::of(record, now)).collect(),
        quarantined_next: last_quarantined.map(|record| address(Some(("quarantined_after", record.id)))),
        first: here.is_some().then(|| address(None)),
        streams: choices(&streams, name, chosen),
    })
}

/// The streams to choose from.
fn choices(streams: &[StreamCoverage], name: &str, chosen: Option<&str>) -> Vec<Choice> {
    let all = Choice {
        name: Outside::new("all streams"),
        href: href(&["connections", name, "gaps"]),
        is_chosen: chosen.is_none(),
        count: number(streams.iter().map(StreamCoverage::missing).sum()),
    };
    let incomplete = streams.iter().filter(|stream| stream.missing() > 0);
    let choice = |stream: &StreamCoverage| Choice {
        name: Outside::new(&stream.summary.name),
        href: href_with(&["connections", name, "gaps"], &[("stream", &stream.summary.name)]),
        is_chosen: chosen == Some(&stream.summary.name),
        count: number(stream.missing()),
    };
    std::iter::once(all).chain(incomplete.map(choice)).collect()
}

impl UnaccountedView {
    fn of(stream: &StreamCoverage) -> Option<Self> {
        let listing = stream.listing.as_ref().filter(|listing| listing.unaccounted > 0)?;
        Some(Self {
            stream: Outside::new(&stream.summary.name),
            count: number(listing.unaccounted),
            keys: listing.waiting.iter().map(|key| Outside::short(key, KEY_CHARS)).collect(),
        })
    }
}

impl QuarantinedView {
    fn of(record: &QuarantinedRecord, now: WallTime) -> Self {
        let or = |text: &str, other: &str| Outside::new(if text.is_empty() { other } else { text });
        Self {
            stream: Outside::new(&record.stream),
            key: Outside::short(&record.key, KEY_CHARS),
            pointer: or(&record.pointer, "the whole record"),
            reason: or(&record.reason, "it does not fit"),
            since: When::new(record.stored_at, now),
            body: record.body.as_deref().map(pretty),
        }
    }
}

impl GapView {
    fn of(connection: &str, gap: &GapSummary, now: WallTime) -> Self {
        let cause = GapCause::of(gap);
        let is_at_work = gap.state == "in_progress";
        let to = |what: &str| href(&["connections", connection, "gaps", &gap.gap_id, what]);
        let ignored = gap.ignored.as_ref().map(|ignored| IgnoredView {
            note: Outside::new(&ignored.note),
            at: When::new(ignored.at, now),
            take_back_href: to("take-back"),
        });
        let retry = (!is_at_work && ignored.is_none()).then(|| to("retry"));
        let (state, tone) = match gap.state.as_str() {
            "in_progress" => ("being fetched", "good"),
            "terminal" => ("given up", "bad"),
            "ignored" => ("ignored", "calm"),
            _ => ("waiting", "calm"),
        };
        let origin = match cause.origin() {
            "source" => "the provider",
            "own_budget" => "a limit of the run",
            "given_up" => "given up",
            "ignored" => "by you",
            _ => "",
        };
        Self {
            stream: Outside::new(&gap.stream),
            key: gap.record_key.as_ref().map(|key| Outside::short(key, KEY_CHARS)),
            state,
            tone,
            origin,
            words: WordsView::of(cause.wording()),
            code: Outside::new(cause.code()),
            http_status: gap.http_status,
            attempts: gap.attempts,
            since: When::new(gap.since, now),
            not_before: gap.not_before.filter(|at| *at > now).map(|at| When::new(at, now)),
            error: gap.last_error.as_deref().map(pretty),
            locator: gap.locator.as_deref().map(pretty),
            retry_href: retry,
            id: gap.gap_id.clone(),
            ignore_href: (ignored.is_none() && gap.can_be_ignored()).then(|| to("ignore")),
            ignored,
        }
    }
}
