//! The connector of the demonstration, as any author would write it with the SDK: a page of a list, newest
//! first, and one note. Slices, gaps, pace and the end are not here, because they are the framework's.

use super::{CONCURRENCY, PAGE, URL};
use gleaner_sdk::lane::{Detail, ListAt, ListItem, ListPage, Target, Timestamp};
use gleaner_sdk::protocol::RecoveryAction;
use gleaner_sdk::{Client, Collect, Connector, FetchError, Stop};
use serde::Deserialize;
use serde_json::Value;

const STREAM: &str = "notes";

#[derive(Debug)]
pub(crate) struct Demo;

impl Connector for Demo {
    fn collect(&self, run: &mut Collect<'_>) -> Result<(), Stop> {
        let url = std::env::var(URL).map_err(|_| {
            let what = format!("{URL} is not set; it is the address of the provider that `gleaner demo` starts");
            Stop::for_good(what, RecoveryAction::ManualActionRequired)
        })?;
        let api = run.client()?;
        // What was not asked for is left out anyway; said here, it is not even fetched.
        let range = run.scope(STREAM).and_then(|asked| asked.time_range.clone()).unwrap_or_default();
        let mut lane = run.lane(STREAM, STREAM).concurrency(CONCURRENCY).slice_of(PAGE as usize);
        if let Some(since) = range.since.and_then(as_listed) {
            lane = lane.since(since);
        }
        if let Some(until) = range.until.and_then(as_listed) {
            lane = lane.until(until);
        }
        let _ = lane.collect(|at| list(&api, &url, at), |note| detail(&api, &url, note))?;
        Ok(())
    }
}

/// A time in the provider's own spelling, or a day. Another spelling cannot be compared with its times.
fn as_listed(time: String) -> Option<Timestamp> {
    let is_whole = time.len() == 20 && time.as_bytes()[10] == b'T' && time.ends_with('Z');
    (is_whole || time.len() == 10).then(|| Timestamp::new(time))
}

#[derive(Deserialize)]
struct List {
    notes: Vec<Listed>,
    next: Option<String>,
}

#[derive(Deserialize)]
struct Listed {
    id: String,
    written_at: String,
}

fn list(api: &Client, url: &str, at: &ListAt) -> Result<ListPage, FetchError> {
    let mut query = Vec::new();
    query.extend(at.at_or_older_than.as_ref().map(|until| ("until", until.as_str())));
    query.extend(at.page.as_deref().map(|after| ("after", after)));
    let list = api.get(format!("{url}/notes")).query(&query).send()?.error_for_status()?.json::<List>()?;
    let items = list.notes.into_iter().map(|note| ListItem::new(note.id, Timestamp::new(note.written_at)));
    Ok(ListPage { items: items.collect(), next: list.next, left: None })
}

fn detail(api: &Client, url: &str, note: &Target) -> Result<Detail, FetchError> {
    let body = api.get(format!("{url}/notes/{}", note.key)).send()?.error_for_status()?.json::<Value>()?;
    Ok(Detail::new().record(note.key.as_str(), &body))
}
