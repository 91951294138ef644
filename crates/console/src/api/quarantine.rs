//! Records that do not fit their schema.

use super::page::{Page, limit, place, raw};
use crate::date;
use crate::problem::Problem;
use crate::server::app_state::Shared;
use crate::server::extract::{UrlPath, UrlQuery};
use axum::extract::State;
use axum::response::Response;
use gleaner_store::QuarantinedRecord;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

#[derive(Serialize)]
struct QuarantinedView {
    stream: String,
    key: String,
    /// The JSON pointer of the fault; empty for the whole record.
    pointer: String,
    /// The rule of the schema that it breaks; empty where nobody noted it.
    reason: String,
    stored_at: String,
    body: Option<Box<RawValue>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct QuarantineWanted {
    after: Option<u64>,
    limit: Option<usize>,
}

/// The records of a connection that do not fit their schema, in the order in which they came.
pub(crate) async fn of_connection(
    State(state): Shared,
    UrlPath(name): UrlPath<String>,
    UrlQuery(wanted): UrlQuery<QuarantineWanted>,
) -> Result<Response, Problem> {
    let (limit, after) = (limit(wanted.limit)?, place(wanted.after)?);
    let page = state.reading.ask(move |reader| {
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
    });
    state.responder.json(&page.await?)
}
