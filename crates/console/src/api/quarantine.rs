//! Records that do not fit their schema.

use super::page::{Page, PageWanted, limit, place, raw};
use crate::date;
use crate::problem::Problem;
use crate::server::extract::{UrlPath, UrlQuery};
use gleaner_store::{QuarantinedRecord, Reader};
use serde_json::value::RawValue;

json_object! {
    pub(crate) struct QuarantinedView(record: QuarantinedRecord) {} => {
        stream: String = record.stream,
        key: String = record.key,
        /// The JSON pointer of the fault; empty for the whole record.
        pointer: String = record.pointer,
        /// The rule of the schema that it breaks; empty where nobody noted it.
        reason: String = record.reason,
        stored_at: String = date::rfc3339(record.stored_at),
        body: Option<Box<RawValue>> = raw(record.body),
    }
}

/// The records of a connection that do not fit their schema, in the order in which they came.
pub(crate) fn of_connection(
    reader: &Reader,
    (UrlPath(name), UrlQuery(wanted)): (UrlPath<String>, UrlQuery<PageWanted<u64>>),
) -> Result<Page<QuarantinedView, i64>, Problem> {
    let (limit, after) = (limit(wanted.limit)?, place(wanted.after)?);
    let records = reader.quarantine(&name, None, after, limit)?;
    let size = |record: &QuarantinedRecord| record.body.as_ref().map_or(0, String::len) + record.key.len();
    Ok(Page::of(records, limit, size, |record| record.id, QuarantinedView::of))
}
