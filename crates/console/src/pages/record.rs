//! One record, and every version of it that was stored, also its deletion.

use super::frame::{Frame, Part};
use super::{address, escape, json_text};
use crate::problem::Problem;
use crate::server::extract::{UrlPath, UrlQuery};
use askama::Template;
use gleaner_app::Look;
use gleaner_store::{Reader, StoredRecord};
use serde::Deserialize;

/// Versions of one page.
const VERSIONS_SHOWN: usize = 20;

#[derive(Template)]
#[template(path = "record.html")]
pub(super) struct RecordPage {
    frame: Frame,
    connection: String,
    stream: String,
    key: String,
    versions: Vec<StoredRecord>,
    /// The number of the version that holds.
    present: u64,
    older: Option<String>,
    is_first: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RecordWanted {
    key: String,
    /// Versions before this one.
    before: Option<u64>,
}

pub(super) fn page(
    reader: &Reader,
    (UrlPath((name, stream)), UrlQuery(RecordWanted { key, before })): (
        UrlPath<(String, String)>,
        UrlQuery<RecordWanted>,
    ),
) -> Result<RecordPage, Problem> {
    let present = reader.record(&name, &stream, &key)?;
    let present =
        present.ok_or_else(|| Problem::not_found("there is no such record", "the page of its stream lists them"))?;
    let versions = reader.history(&name, &stream, &key, before, VERSIONS_SHOWN)?;
    let oldest = versions.last().filter(|_| versions.len() == VERSIONS_SHOWN).map(|version| version.seq.to_string());
    let parts = ["data", &name, &stream, "record"];
    let here = address::record(&name, &stream, &key);
    Ok(RecordPage {
        frame: Frame::new(format!("{key} in {stream}"), Part::Data, here, &Look::new(reader)?),
        older: oldest.map(|oldest| address::href_with(&parts, &[("key", &key), ("before", &oldest)])),
        versions,
        present: present.seq,
        is_first: before.is_none(),
        connection: name,
        stream,
        key,
    })
}
