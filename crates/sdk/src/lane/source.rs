//! The author's interface of a lane: a list page and a detail.

use super::place::Timestamp;
use crate::emit::new_record::{Body, NewRecord};
use crate::fetch_error::FetchError;
use gleaner_protocol::{RawJson, RecordKey};
use serde::Serialize;

/// A provider with a list and a detail per item. Both functions block; the lane decides what is requested, in which
/// order and how often.
pub trait Source: Sync {
    /// One page of the list, newest first, ties in any order.
    ///
    /// # Errors
    ///
    /// Why it could not be fetched.
    fn list(&self, at: &ListAt) -> Result<ListPage, FetchError>;

    /// The records of one item; an empty result is valid.
    ///
    /// # Errors
    ///
    /// Why it could not be fetched. The author decides about a deleted item (404, 410): a tombstone in the detail, or
    /// the error, which becomes a gap.
    fn detail(&self, target: &Target) -> Result<Detail, FetchError>;
}

/// Two functions as a source.
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

/// The requested page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListAt {
    /// Items of this time and older. A provider that cannot filter by time may ignore it: the lane drops newer ones.
    pub at_or_older_than: Option<Timestamp>,
    /// The page token of the previous page; `None` for the first.
    pub page: Option<String>,
}

/// One page of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListPage {
    /// The items, newest first.
    pub items: Vec<ListItem>,
    /// The provider's token for the next page; `None` at the end. It must not be an item count: after a deletion a
    /// count would skip an item.
    pub next: Option<String>,
    /// Number of items after this page, if the provider reports it. For people.
    pub left: Option<u64>,
}

/// One item of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListItem {
    /// Its key. Never empty.
    pub key: String,
    /// The sort time of the list: its last change.
    pub timestamp: Timestamp,
    pub(super) version: Option<String>,
    pub(super) record: Option<Body>,
    pub(super) locator: Option<RawJson<'static>>,
}

impl ListItem {
    /// An item with key and time only.
    pub fn new(key: impl Into<String>, timestamp: impl Into<Timestamp>) -> Self {
        Self { key: key.into(), timestamp: timestamp.into(), version: None, record: None, locator: None }
    }

    /// Adds the record of the list stream.
    #[must_use]
    pub fn record<T: Serialize + ?Sized>(mut self, data: &T) -> Self {
        self.record = Some(Body::of(data));
        self
    }

    /// Adds a locator for its detail, if the key alone is not enough. It is returned byte for byte.
    #[must_use]
    pub fn locator(mut self, locator: RawJson<'static>) -> Self {
        self.locator = Some(locator);
        self
    }

    /// Adds a version that changes with the item, if the list has one and times are coarse: an edit count, a hash. It
    /// must not change without the item.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = Some(version.into());
        self
    }

    /// Approximate memory.
    pub(super) fn bytes(&self) -> usize {
        let record = self.record.as_ref().map_or(0, Body::len);
        let locator = self.locator.as_ref().map_or(0, |locator| locator.as_str().len());
        let version = self.version.as_ref().map_or(0, String::len);
        // Its key is stored twice while it is held, and its container has a size.
        size_of::<Self>() + 2 * self.key.len() + self.timestamp.as_str().len() + version + record + locator
    }
}

/// Target of a detail fetch: a listed item, or a gap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The item's key.
    pub key: String,
    /// The item's locator, byte for byte. A gap written by the runtime has none.
    pub locator: Option<RawJson<'static>>,
}

/// The records of one item.
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

    /// Adds a deletion of a record of this stream.
    pub fn tombstone_of<'k>(self, stream: &str, key: impl Into<RecordKey<'k>>) -> Self {
        self.with(Some(stream), key.into(), Body::Deleted)
    }

    fn with(mut self, stream: Option<&str>, key: RecordKey<'_>, body: Body) -> Self {
        self.records.push(NewRecord::new(stream, key, body));
        self
    }
}
