//! Records and their history. Bodies go out as they were stored, byte for byte.
//!
//! A key may be any text, also `..` or one with slashes, which programs between here and there take for parts of a path.
//! So a key is in the query.

use super::page::{Page, PageWanted, limit, place, raw};
use crate::date;
use crate::problem::Problem;
use crate::server::extract::{UrlPath, UrlQuery};
use gleaner_store::{Reader, StoredRecord};
use serde::Deserialize;
use serde_json::value::RawValue;

json_object! {
    pub(crate) struct RecordView(record: StoredRecord) {} => {
        key: String = record.key,
        /// Its place in the feed of changes.
        seq: u64 = record.seq,
        deleted: bool = record.deleted,
        emitted_at: Option<String> = record.emitted_at,
        stored_at: String = date::rfc3339(record.stored_at),
        body: Option<Box<RawValue>> = raw(record.body),
    }
}

fn size(record: &StoredRecord) -> usize {
    record.body.as_ref().map_or(0, String::len) + record.key.len()
}

type OfStream<Q> = (UrlPath<(String, String)>, UrlQuery<Q>);

/// The present records of a stream by key, tombstones included.
pub(crate) fn of_stream(
    reader: &Reader,
    (UrlPath((name, stream)), UrlQuery(wanted)): OfStream<PageWanted<String>>,
) -> Result<Page<RecordView, String>, Problem> {
    let limit = limit(wanted.limit)?;
    let records = reader.records(&name, &stream, wanted.after.as_deref(), limit)?;
    Ok(Page::of(records, limit, size, |record| record.key.clone(), RecordView::of))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordWanted {
    key: String,
}

/// The present version of one record.
pub(crate) fn one(
    reader: &Reader,
    (UrlPath((name, stream)), UrlQuery(wanted)): OfStream<RecordWanted>,
) -> Result<RecordView, Problem> {
    reader.record(&name, &stream, &wanted.key)?.map(RecordView::of).ok_or_else(no_record)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HistoryWanted {
    key: String,
    before: Option<u64>,
    limit: Option<usize>,
}

/// The versions of one record, the newest first.
pub(crate) fn history(
    reader: &Reader,
    (UrlPath((name, stream)), UrlQuery(wanted)): OfStream<HistoryWanted>,
) -> Result<Page<RecordView, u64>, Problem> {
    let limit = limit(wanted.limit)?;
    place(wanted.before)?;
    reader.record(&name, &stream, &wanted.key)?.ok_or_else(no_record)?;
    let versions = reader.history(&name, &stream, &wanted.key, wanted.before, limit)?;
    Ok(Page::of(versions, limit, size, |version| version.seq, RecordView::of))
}

fn no_record() -> Problem {
    Problem::not_found("there is no record with this key", "the list of the stream's records has its keys")
}
