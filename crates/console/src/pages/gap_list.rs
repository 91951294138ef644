//! The gaps of one connection, one by one: try it again, do without it and say why, or take that back.

use super::error_page::{PageProblem, show};
use super::frame::{Frame, Part};
use super::gaps::WordsView;
use super::json_text::pretty;
use super::outside::{Outside, href, href_with};
use super::words::{When, number};
use crate::asking::{Place, Wanted};
use crate::date;
use crate::inside::Inside;
use crate::problem::Problem;
use crate::standing;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use gleaner_engine::WallTime;
use gleaner_store::{GapCause, GapFilter, GapSummary, Reader, StreamSummary};
use serde::Deserialize;
use std::sync::Arc;

/// Gaps of one page.
const GAPS_SHOWN: usize = 50;

#[derive(Template)]
#[template(path = "gap_list.html")]
struct GapListPage {
    frame: Frame,
    connection: Outside,
    connection_href: String,
    /// The streams to choose from, the chosen one first said.
    streams: Vec<Choice>,
    stream: Option<Outside>,
    total: String,
    ignored: Option<String>,
    gaps: Vec<GapView>,
    next: Option<String>,
    first: Option<String>,
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
    done: Option<String>,
}

pub(crate) async fn page(
    State(inside): State<Arc<Inside>>,
    Place(name): Place<String>,
    Wanted(wanted): Wanted<GapListWanted>,
) -> Result<Response, PageProblem> {
    let page = inside.reading.ask(move |reader| gather(reader, &name, &wanted)).await?;
    show(&page)
}

fn gather(reader: &Reader, name: &str, wanted: &GapListWanted) -> Result<GapListPage, Problem> {
    let now = date::now();
    let waiting = standing::waiting(reader)?;
    let chosen = wanted.stream.as_deref().filter(|stream| !stream.is_empty());
    let after = wanted.after.unwrap_or(0);
    let filter = GapFilter { stream: chosen, closed_too: false };
    let gaps = reader.gaps(name, filter, after, GAPS_SHOWN)?;
    let address = |after: Option<i64>| {
        let after = after.map(|after| after.to_string());
        let query = [chosen.map(|stream| ("stream", stream)), after.as_deref().map(|after| ("after", after))];
        href_with(&["connections", name, "gaps"], &query.into_iter().flatten().collect::<Vec<_>>())
    };
    let next = gaps.last().filter(|_| gaps.len() == GAPS_SHOWN).map(|gap| address(Some(gap.id)));
    let (streams, total, ignored) = choices(reader, name, chosen)?;
    let frame = Frame::new(format!("Gaps of {name}"), Part::Gaps, address(wanted.after), waiting.len());
    Ok(GapListPage {
        frame: frame.after(wanted.done.as_deref()),
        connection: Outside::new(name),
        connection_href: href(&["connections", name]),
        streams,
        stream: chosen.map(Outside::new),
        total: number(total),
        ignored: (ignored > 0).then(|| number(ignored)),
        gaps: gaps.iter().map(|gap| GapView::of(name, gap, now)).collect(),
        next,
        first: wanted.after.is_some().then(|| address(None)),
    })
}

/// The streams to choose from, and how many gaps are open and ignored.
fn choices(reader: &Reader, name: &str, chosen: Option<&str>) -> Result<(Vec<Choice>, u64, u64), Problem> {
    let streams = reader.streams(name)?;
    let total = streams.iter().map(StreamSummary::gaps_open).sum::<u64>();
    let ignored = streams.iter().map(|stream| stream.gaps_ignored).sum::<u64>();
    let all = Choice {
        name: Outside::new("all streams"),
        href: href(&["connections", name, "gaps"]),
        is_chosen: chosen.is_none(),
        count: number(total + ignored),
    };
    let with_gaps = streams.iter().filter(|stream| stream.gaps_missing() > 0);
    let choice = |stream: &StreamSummary| Choice {
        name: Outside::new(&stream.name),
        href: href_with(&["connections", name, "gaps"], &[("stream", &stream.name)]),
        is_chosen: chosen == Some(&stream.name),
        count: number(stream.gaps_missing()),
    };
    Ok((std::iter::once(all).chain(with_gaps.map(choice)).collect(), total, ignored))
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
            "in_progress" => ("being tried", "good"),
            "terminal" => ("given up", "bad"),
            "ignored" => ("ignored", "calm"),
            _ => ("waits", "calm"),
        };
        let origin = match cause.origin() {
            "source" => "the service",
            "own_budget" => "your own budget",
            "given_up" => "given up",
            "ignored" => "by you",
            _ => "",
        };
        Self {
            stream: Outside::new(&gap.stream),
            key: gap.record_key.as_ref().map(|key| Outside::short(key, 200)),
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
