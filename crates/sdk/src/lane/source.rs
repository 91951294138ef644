//! What an author says about a provider: how it lists, and how one detail is fetched.

use super::place::Timestamp;
use crate::emit::new_record::{Body, NewRecord};
use crate::fetch_error::FetchError;
use gleaner_protocol::{RawJson, RecordKey};
use serde::Serialize;

/// A provider with a list and a detail per item. Both functions block; the lane decides what is asked
/// for, in which order and how often.
pub trait Source: Sync {
    /// One page of the list, newest first, ties in any order.
    ///
    /// # Errors
    ///
    /// Why it could not be fetched.
    fn list(&self, at: &ListAt) -> Result<ListPage, FetchError>;

    /// The records that one item stands for; none is an answer, too.
    ///
    /// # Errors
    ///
    /// Why it could not be fetched. An item that is gone (404, 410) is the author's to judge: a tombstone
    /// in the detail, or the error, which becomes a gap.
    fn detail(&self, target: &Target) -> Result<Detail, FetchError>;
}

/// Two functions are a source.
pub(super) struct Functions<L, D> {
    pub(super) list: L,
    pub(super) detail: D,
}

impl<L, D> Source for Functions<L, D>
where
    L: Fn(&ListAt) -> Result<ListPage, FetchError> + Sync,
    D: Fn(&Target) -> Result<Detail, FetchError> + Sync,
{
    fn list(&self, at: &ListAt) -> Result<ListPage, FetchError> {
        (self.list)(at)
    }

    fn detail(&self, target: &Target) -> Result<Detail, FetchError> {
        (self.detail)(target)
    }
}

/// Which page is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListAt {
    /// Items of this time and older. A provider that cannot filter by time may ignore it: what is newer
    /// is left out by the lane.
    pub at_or_older_than: Option<Timestamp>,
    /// The page after the one that gave this token; `None` for the first.
    pub page: Option<String>,
}

/// One page of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListPage {
    /// The items, newest first.
    pub items: Vec<ListItem>,
    /// The provider's own token for the next page; `None` at the end. It must not be a count of items:
    /// when one is deleted, those after it move up, and a count would step over one of them.
    pub next: Option<String>,
    /// How many items come after this page, where the provider tells. For people.
    pub left: Option<u64>,
}

/// One item of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListItem {
    /// What identifies it. Never empty.
    pub key: String,
    /// By what the list is ordered: the time of its last change.
    pub timestamp: Timestamp,
    pub(super) version: Option<String>,
    pub(super) record: Option<Body>,
    pub(super) locator: Option<RawJson<'static>>,
}

impl ListItem {
    /// An item with nothing but its key and its time.
    pub fn new(key: impl Into<String>, timestamp: impl Into<Timestamp>) -> Self {
        Self { key: key.into(), timestamp: timestamp.into(), version: None, record: None, locator: None }
    }

    /// With the record of the list's own stream.
    #[must_use]
    pub fn record<T: Serialize + ?Sized>(mut self, data: &T) -> Self {
        self.record = Some(Body::of(data));
        self
    }

    /// With how its detail is found again, when the key alone does not tell. It comes back byte for byte.
    #[must_use]
    pub fn locator(mut self, locator: RawJson<'static>) -> Self {
        self.locator = Some(locator);
        self
    }

    /// With what changes when it changes, where the list tells it and times are coarse: a count of edits, a
    /// hash. It must not change by itself.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = Some(version.into());
        self
    }

    /// What it holds in memory, roughly.
    pub(super) fn bytes(&self) -> usize {
        let record = self.record.as_ref().map_or(0, Body::len);
        let locator = self.locator.as_ref().map_or(0, |locator| locator.as_str().len());
        let version = self.version.as_ref().map_or(0, String::len);
        // Its key is kept twice while it is held, and what holds it has a size of its own.
        size_of::<Self>() + 2 * self.key.len() + self.timestamp.as_str().len() + version + record + locator
    }
}

/// What detail is wanted: of a listed item, or of a gap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The item's key.
    pub key: String,
    /// What the list said about where it is, byte for byte. A gap that the runtime wrote has none.
    pub locator: Option<RawJson<'static>>,
}

/// The records that one item stands for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "a detail is returned to whoever asked for it"]
pub struct Detail {
    pub(super) records: Vec<NewRecord>,
}

impl Detail {
    /// A detail without records.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a record of the detail stream.
    pub fn record<'k, T: Serialize + ?Sized>(self, key: impl Into<RecordKey<'k>>, data: &T) -> Self {
        self.with(None, key.into(), Body::of(data))
    }

    /// Adds a record of another stream.
    pub fn record_of<'k, T: Serialize + ?Sized>(self, stream: &str, key: impl Into<RecordKey<'k>>, data: &T) -> Self {
        self.with(Some(stream), key.into(), Body::of(data))
    }

    /// Adds the news that a record of this stream was deleted.
    pub fn tombstone_of<'k>(self, stream: &str, key: impl Into<RecordKey<'k>>) -> Self {
        self.with(Some(stream), key.into(), Body::Deleted)
    }

    fn with(mut self, stream: Option<&str>, key: RecordKey<'_>, body: Body) -> Self {
        self.records.push(NewRecord::new(stream, key, body));
        self
    }
}
