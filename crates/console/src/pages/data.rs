//! What was collected: every stream, and the records of one, to leaf through and to search.

use super::error_page::{PageProblem, show};
use super::frame::{Frame, Part};
use super::outside::{Outside, href, href_with};
use super::words::{When, counted, number};
use crate::problem::Problem;
use crate::server::app_state::Shared;
use crate::server::extract::{UrlPath, UrlQuery};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use gleaner_app::Look;
use gleaner_app::dates;
use gleaner_engine::WallTime;
use gleaner_store::{ConnectionState, Reader, StoredRecord};
use serde::Deserialize;

/// Records of one page.
const RECORDS_SHOWN: usize = 50;
/// Of a record, so much is shown in the list.
const PREVIEW_CHARS: usize = 140;
/// The longest text that is searched for.
const SEARCH_CHARS_MAX: usize = 200;

#[derive(Template)]
#[template(path = "data.html")]
struct DataPage {
    frame: Frame,
    connections: Vec<ConnectionView>,
}

struct ConnectionView {
    name: Outside,
    export: String,
    streams: Vec<StreamView>,
}

struct StreamView {
    name: Outside,
    href: String,
    view: Option<Outside>,
    records: String,
    deleted: u64,
    changed: Option<When>,
}

#[derive(Template)]
#[template(path = "stream.html")]
struct StreamPage {
    frame: Frame,
    connection: Outside,
    connection_href: String,
    stream: Outside,
    href: String,
    total: String,
    searched: Option<Outside>,
    /// How far a search came.
    looked: Option<String>,
    records: Vec<RecordLine>,
    next: Option<String>,
    is_first: bool,
    export: String,
}

struct RecordLine {
    key: Outside,
    href: String,
    preview: Outside,
    is_deleted: bool,
    stored: When,
}

pub(crate) async fn page(State(state): Shared) -> Result<Response, PageProblem> {
    show(&state.reading.ask(|reader| gather(reader)).await?)
}

fn gather(reader: &Reader) -> Result<DataPage, Problem> {
    let now = dates::now();
    let frame = Frame::new("Data", Part::Data, href(&["data"]), Look::new(reader)?.waiting.len());
    let mut connections = Vec::new();
    for connection in reader.connections()?.iter().filter(|known| known.state != ConnectionState::Purging) {
        let streams = reader.streams(&connection.name)?.into_iter().map(|stream| StreamView {
            href: href(&["data", &connection.name, &stream.name]),
            view: stream.view_name.map(Outside::new),
            records: number(stream.records),
            deleted: stream.tombstones,
            changed: stream.last_stored_at.map(|at| When::new(at, now)),
            name: Outside::new(stream.name),
        });
        connections.push(ConnectionView {
            name: Outside::new(&connection.name),
            export: href(&["api", "v1", "connections", &connection.name, "export"]),
            streams: streams.collect(),
        });
    }
    Ok(DataPage { frame, connections })
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StreamWanted {
    /// Keys after this one.
    after: Option<String>,
    /// A text to look for.
    q: Option<String>,
}

pub(crate) async fn stream(
    State(state): Shared,
    UrlPath((connection, stream)): UrlPath<(String, String)>,
    UrlQuery(wanted): UrlQuery<StreamWanted>,
) -> Result<Response, PageProblem> {
    let page = state.reading.ask(move |reader| gather_stream(reader, &connection, &stream, &wanted)).await?;
    show(&page)
}

fn gather_stream(reader: &Reader, name: &str, stream: &str, wanted: &StreamWanted) -> Result<StreamPage, Problem> {
    let now = dates::now();
    let searched = wanted.q.as_deref().filter(|text| !text.is_empty());
    if searched.is_some_and(|text| text.chars().count() > SEARCH_CHARS_MAX) {
        return Err(Problem::bad_request("that is too long to search for", "look for a word or two"));
    }
    let after = wanted.after.as_deref();
    let (records, next, looked) = match searched {
        None => {
            let records = reader.records(name, stream, after, RECORDS_SHOWN)?;
            let next = records.last().filter(|_| records.len() == RECORDS_SHOWN).map(|record| record.key.clone());
            (records, next, None)
        }
        Some(text) => {
            let found = reader.search(name, stream, text, after, RECORDS_SHOWN)?;
            let looked =
                format!("{} looked at, {} found", counted(found.looked_at, "record", "records"), found.records.len());
            (found.records, found.goes_on_after, Some(looked))
        }
    };
    let address = |after: Option<&str>| {
        let query = [searched.map(|text| ("q", text)), after.map(|after| ("after", after))];
        href_with(&["data", name, stream], &query.into_iter().flatten().collect::<Vec<_>>())
    };
    let total = reader.streams(name)?.into_iter().find(|known| known.name == stream).map_or(0, |known| known.records);
    let title = format!("{stream} of {name}");
    Ok(StreamPage {
        frame: Frame::new(title, Part::Data, address(after), Look::new(reader)?.waiting.len()),
        connection: Outside::new(name),
        connection_href: href(&["connections", name]),
        stream: Outside::new(stream),
        href: href(&["data", name, stream]),
        total: number(total),
        searched: searched.map(Outside::new),
        looked,
        records: records.iter().map(|record| RecordLine::of(name, stream, record, now)).collect(),
        next: next.map(|key| address(Some(&key))),
        is_first: after.is_none(),
        export: href(&["api", "v1", "connections", name, "streams", stream, "export"]),
    })
}

impl RecordLine {
    fn of(connection: &str, stream: &str, record: &StoredRecord, now: WallTime) -> Self {
        Self {
            href: href_with(&["data", connection, stream, "record"], &[("key", &record.key)]),
            key: Outside::short(&record.key, 80),
            preview: Outside::short(record.body.as_deref().unwrap_or_default(), PREVIEW_CHARS),
            is_deleted: record.deleted,
            stored: When::new(record.stored_at, now),
        }
    }
}
