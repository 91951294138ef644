//! One record, and every version of it that was stored, also its deletion.

use super::error_page::{PageProblem, show};
use super::frame::{Frame, Part};
use super::json_text::pretty;
use super::outside::{Outside, href, href_with};
use super::words::When;
use crate::problem::Problem;
use crate::server::app_state::Shared;
use crate::server::extract::{UrlPath, UrlQuery};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use gleaner_app::Look;
use gleaner_app::dates;
use gleaner_engine::WallTime;
use gleaner_store::{Reader, StoredRecord};
use serde::Deserialize;

/// Versions of one page.
const VERSIONS_SHOWN: usize = 20;

#[derive(Template)]
#[template(path = "record.html")]
struct RecordPage {
    frame: Frame,
    connection: Outside,
    stream: Outside,
    stream_href: String,
    key: Outside,
    versions: Vec<VersionView>,
    older: Option<String>,
    is_first: bool,
}

struct VersionView {
    seq: u64,
    is_deleted: bool,
    is_present: bool,
    stored: When,
    emitted: Option<Outside>,
    body: Option<Outside>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordWanted {
    key: String,
    /// Versions before this one.
    before: Option<u64>,
}

pub(crate) async fn page(
    State(state): Shared,
    UrlPath((connection, stream)): UrlPath<(String, String)>,
    UrlQuery(wanted): UrlQuery<RecordWanted>,
) -> Result<Response, PageProblem> {
    let page = state.reading.ask(move |reader| gather(reader, &connection, &stream, &wanted)).await?;
    show(&page)
}

fn gather(reader: &Reader, name: &str, stream: &str, wanted: &RecordWanted) -> Result<RecordPage, Problem> {
    let now = dates::now();
    let key = wanted.key.as_str();
    let present = reader.record(name, stream, key)?;
    let present =
        present.ok_or_else(|| Problem::not_found("there is no such record", "the page of its stream lists them"))?;
    let versions = reader.history(name, stream, key, wanted.before, VERSIONS_SHOWN)?;
    let oldest = versions.last().filter(|_| versions.len() == VERSIONS_SHOWN).map(|version| version.seq.to_string());
    let address = |before: &str| href_with(&["data", name, stream, "record"], &[("key", key), ("before", before)]);
    let here = href_with(&["data", name, stream, "record"], &[("key", key)]);
    Ok(RecordPage {
        frame: Frame::new(format!("{key} in {stream}"), Part::Data, here, Look::new(reader)?.waiting.len()),
        connection: Outside::new(name),
        stream: Outside::new(stream),
        stream_href: href(&["data", name, stream]),
        key: Outside::new(key),
        versions: versions.iter().map(|version| VersionView::of(version, present.seq, now)).collect(),
        older: oldest.map(|oldest| address(&oldest)),
        is_first: wanted.before.is_none(),
    })
}

impl VersionView {
    fn of(version: &StoredRecord, present: u64, now: WallTime) -> Self {
        Self {
            seq: version.seq,
            is_deleted: version.deleted,
            is_present: version.seq == present,
            stored: When::new(version.stored_at, now),
            emitted: version.emitted_at.as_deref().map(|text| Outside::short(text, 80)),
            body: version.body.as_deref().map(pretty),
        }
    }
}
