//! What was collected: every stream, and the records of one, to leaf through and to search.

use super::frame::{Frame, Part};
use super::words::counted;
use super::{address, escape, words};
use crate::problem::Problem;
use crate::server::extract::{UrlPath, UrlQuery};
use askama::Template;
use gleaner_app::Look;
use gleaner_store::{ConnectionState, Reader, StoredRecord, StreamSummary};
use serde::Deserialize;

/// Records of one page.
const RECORDS_SHOWN: usize = 50;
/// Of a record, so much is shown in the list.
const PREVIEW_CHARS: usize = 140;
/// The longest text that is searched for.
const SEARCH_CHARS_MAX: usize = 200;

#[derive(Template)]
#[template(path = "data.html")]
pub(super) struct DataPage {
    frame: Frame,
    connections: Vec<Collected>,
}

struct Collected {
    name: String,
    export: String,
    streams: Vec<StreamSummary>,
}

#[derive(Template)]
#[template(path = "stream.html")]
pub(super) struct StreamPage {
    frame: Frame,
    connection: String,
    stream: String,
    href: String,
    total: u64,
    searched: Option<String>,
    /// How far a search came.
    looked: Option<String>,
    records: Vec<StoredRecord>,
    next: Option<String>,
    is_first: bool,
    export: String,
}

pub(super) fn page(reader: &Reader, (): ()) -> Result<DataPage, Problem> {
    let frame = Frame::new("Data", Part::Data, "/data".to_owned(), &Look::new(reader)?);
    let mut connections = Vec::new();
    for known in reader.connections()?.into_iter().filter(|known| known.state != ConnectionState::Purging) {
        let export = address::href(&["api", "v1", "connections", &known.name, "export"]);
        connections.push(Collected { streams: reader.streams(&known.name)?, name: known.name, export });
    }
    Ok(DataPage { frame, connections })
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StreamWanted {
    /// Keys after this one.
    after: Option<String>,
    /// A text to look for.
    q: Option<String>,
}

pub(super) fn stream(
    reader: &Reader,
    (UrlPath((name, stream)), UrlQuery(wanted)): (UrlPath<(String, String)>, UrlQuery<StreamWanted>),
) -> Result<StreamPage, Problem> {
    let searched = wanted.q.as_deref().filter(|text| !text.is_empty());
    if searched.is_some_and(|text| text.chars().count() > SEARCH_CHARS_MAX) {
        return Err(Problem::bad_request("that is too long to search for", "look for a word or two"));
    }
    let after = wanted.after.as_deref();
    let (records, next, looked) = match searched {
        None => {
            let records = reader.records(&name, &stream, after, RECORDS_SHOWN)?;
            let next = records.last().filter(|_| records.len() == RECORDS_SHOWN).map(|record| record.key.clone());
            (records, next, None)
        }
        Some(text) => {
            let found = reader.search(&name, &stream, text, after, RECORDS_SHOWN)?;
            let looked =
                format!("{} looked at, {} found", counted(found.looked_at, "record", "records"), found.records.len());
            (found.records, found.goes_on_after, Some(looked))
        }
    };
    let address = |after: Option<&str>| {
        let query = [searched.map(|text| ("q", text)), after.map(|after| ("after", after))];
        address::href_with(&["data", &name, &stream], &query.into_iter().flatten().collect::<Vec<_>>())
    };
    let total = reader.streams(&name)?.into_iter().find(|known| known.name == stream).map_or(0, |known| known.records);
    Ok(StreamPage {
        frame: Frame::new(format!("{stream} of {name}"), Part::Data, address(after), &Look::new(reader)?),
        href: address::stream(&name, &stream),
        total,
        searched: searched.map(str::to_owned),
        looked,
        records,
        next: next.map(|key| address(Some(&key))),
        is_first: after.is_none(),
        export: address::href(&["api", "v1", "connections", &name, "streams", &stream, "export"]),
        connection: name,
        stream,
    })
}
