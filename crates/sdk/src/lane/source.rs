//! What an author says about a provider: how it lists, and how one detail is fetched.

use super::place::Timestamp;
use crate::fetch_error::FetchError;
use gleaner_protocol::RawJson;

/// A provider with a list and a detail per item. Both functions block; the lane decides what is asked
/// for, in which order and how often.
pub trait Source: Sync {
    /// One page of the list, newest first, ties in any order.
    ///
    /// # Errors
    ///
    /// Why it could not be fetched.
    fn list(&self, at: &ListAt) -> Result<Page, FetchError>;

    /// The records that one item stands for; none is an answer, too.
    ///
    /// # Errors
    ///
    /// Why it could not be fetched. An item that is gone (404, 410) is the author's to judge: a tombstone
    /// as a record, or the error, which becomes a gap.
    fn detail(&self, target: &Target) -> Result<Vec<NewRecord>, FetchError>;
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
pub struct Page {
    /// The items, newest first.
    pub items: Vec<Item>,
    /// The provider's own token for the next page; `None` at the end. It must not be a count of items:
    /// when one is deleted, those after it move up, and a count would step over one of them.
    pub next: Option<String>,
    /// How many items come after this page, where the provider tells. For people.
    pub left: Option<u64>,
}

/// One item of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// What identifies it. Never empty.
    pub key: String,
    /// By what the list is ordered: the time of its last change.
    pub timestamp: Timestamp,
    /// What changes when it changes, where the list tells it and times are coarse: a count of edits, a
    /// hash. It must not change by itself.
    pub version: Option<String>,
    /// The record of the list's own stream.
    pub record: Option<RawJson<'static>>,
    /// How its detail is found again, when the key alone does not tell.
    pub locator: Option<RawJson<'static>>,
}

impl Item {
    /// An item with nothing but its key and its time.
    pub fn new(key: impl Into<String>, timestamp: impl Into<Timestamp>) -> Self {
        Self { key: key.into(), timestamp: timestamp.into(), version: None, record: None, locator: None }
    }

    /// What it holds in memory, roughly.
    pub(crate) fn bytes(&self) -> usize {
        let raw = |raw: &Option<RawJson<'_>>| raw.as_ref().map_or(0, |raw| raw.as_str().len());
        let version = self.version.as_ref().map_or(0, String::len);
        self.key.len() + self.timestamp.as_str().len() + version + raw(&self.record) + raw(&self.locator)
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

/// A record that a detail gave, or the news that one is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRecord {
    /// The stream, when it is not the detail stream.
    pub stream: Option<String>,
    /// What identifies it.
    pub key: String,
    /// Its body; `None` says that it was deleted.
    pub data: Option<RawJson<'static>>,
}

impl NewRecord {
    /// A record of the detail stream.
    pub fn new(key: impl Into<String>, data: RawJson<'static>) -> Self {
        Self { stream: None, key: key.into(), data: Some(data) }
    }

    /// The news that a record is gone.
    pub fn deleted(stream: impl Into<String>, key: impl Into<String>) -> Self {
        Self { stream: Some(stream.into()), key: key.into(), data: None }
    }
}
