//! Records that do not fit their schema.

use super::page::{Page, PageWanted, limit, place, raw};
use crate::date;
use crate::problem::Problem;
use crate::server::extract::{UrlPath, UrlQuery};
use gleaner_store::{QuarantinedRecord, Reader};
use serde::Serialize;
use serde_json::value::RawValue;

#[derive(Serialize)]
pub(crate) struct QuarantinedView {
    stream: String,
    key: String,
    /// The JSON pointer of the fault; empty for the whole record.
    pointer: String,
    /// The rule of the schema that it breaks; empty where nobody noted it.
    reason: String,
    stored_at: String,
    body: Option<Box<RawValue>>,
}

/// The records of a connection that do not fit their schema, in the order in which they came.
pub(crate) fn of_connection(
    reader: &Reader,
    (UrlPath(name), UrlQuery(wanted)): (UrlPath<String>, UrlQuery<PageWanted<u64>>),
) -> Result<Page<QuarantinedView, i64>, Problem> {
    let (limit, after) = (limit(wanted.limit)?, place(wanted.after)?);
    let records = reader.quarantine(&name, None, after, limit)?;
    let size = |record: &QuarantinedRecord| record.body.as_ref().map_or(0, String::len) + record.key.len();
    let show = |record: QuarantinedRecord| QuarantinedView {
        stream: record.stream,
        key: record.key,
        pointer: record.pointer,
        reason: record.reason,
        stored_at: date::rfc3339(record.stored_at),
        body: raw(record.body),
    };
    Ok(Page::of(records, limit, size, |record| record.id, show))
}
