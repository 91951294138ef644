//! Records and their history. Bodies go out as they were stored, byte for byte.
//!
//! A key may be any text, also `..` or one with slashes, which programs between here and there take for parts of a path.
//! So a key is in the query.

use super::page::{Page, limit, place, raw};
use crate::date;
use crate::problem::Problem;
use crate::server::app_state::Shared;
use crate::server::extract::{UrlPath, UrlQuery};
use axum::extract::State;
use axum::response::Response;
use gleaner_store::StoredRecord;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

#[derive(Serialize)]
struct RecordView {
    key: String,
    /// Its place in the feed of changes.
    seq: u64,
    deleted: bool,
    emitted_at: Option<String>,
    stored_at: String,
    body: Option<Box<RawValue>>,
}

impl RecordView {
    fn of(record: StoredRecord) -> Self {
        Self {
            key: record.key,
            seq: record.seq,
            deleted: record.deleted,
            emitted_at: record.emitted_at,
            stored_at: date::rfc3339(record.stored_at),
            body: raw(record.body),
        }
    }
}

fn size(record: &StoredRecord) -> usize {
    record.body.as_ref().map_or(0, String::len) + record.key.len()
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordsWanted {
    after: Option<String>,
    limit: Option<usize>,
}

/// The present records of a stream by key, tombstones included.
pub(crate) async fn of_stream(
    State(state): Shared,
    UrlPath((name, stream)): UrlPath<(String, String)>,
    UrlQuery(wanted): UrlQuery<RecordsWanted>,
) -> Result<Response, Problem> {
    let limit = limit(wanted.limit)?;
    let page = state.reading.ask(move |reader| {
        let records = reader.records(&name, &stream, wanted.after.as_deref(), limit)?;
        Ok(Page::of(records, limit, size, |record| record.key.clone(), RecordView::of))
    });
    state.responder.json(&page.await?)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordWanted {
    key: String,
}

/// The present version of one record.
pub(crate) async fn one(
    State(state): Shared,
    UrlPath((name, stream)): UrlPath<(String, String)>,
    UrlQuery(RecordWanted { key }): UrlQuery<RecordWanted>,
) -> Result<Response, Problem> {
    let record = state.reading.ask(move |reader| {
        let found = reader.record(&name, &stream, &key)?;
        found.map(RecordView::of).ok_or_else(no_record)
    });
    state.responder.json(&record.await?)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HistoryWanted {
    key: String,
    before: Option<u64>,
    limit: Option<usize>,
}

/// The versions of one record, the newest first.
pub(crate) async fn history(
    State(state): Shared,
    UrlPath((name, stream)): UrlPath<(String, String)>,
    UrlQuery(wanted): UrlQuery<HistoryWanted>,
) -> Result<Response, Problem> {
    let limit = limit(wanted.limit)?;
    place(wanted.before)?;
    let page = state.reading.ask(move |reader| {
        reader.record(&name, &stream, &wanted.key)?.ok_or_else(no_record)?;
        let versions = reader.history(&name, &stream, &wanted.key, wanted.before, limit)?;
        Ok(Page::of(versions, limit, size, |version| version.seq, RecordView::of))
    });
    state.responder.json(&page.await?)
}

fn no_record() -> Problem {
    Problem::not_found("there is no record with this key", "the list of the stream's records has its keys")
}
