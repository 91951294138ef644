//! One page of a stream that goes forward: its records, and the cursor of the next page.

use crate::emit::new_record::{Body, NewRecord};
use crate::emit::{Cursor, Emitter};
use crate::stop::Stop;
use gleaner_protocol::RecordKey;
use serde::Serialize;
use serde_json::Value;

/// A page as an author's function returns it.
#[derive(Debug)]
#[must_use = "a page is returned to whoever asked for it"]
pub struct Page {
    records: Vec<NewRecord>,
    pub(crate) cursor: Option<Cursor>,
    pub(crate) is_last: bool,
}

impl Page {
    /// A page followed by another one at `cursor`, a JSON object.
    pub fn then(cursor: Value) -> Self {
        Self { records: Vec::new(), cursor: object(cursor), is_last: false }
    }

    /// The last page for now. The next run starts at `cursor`, a JSON object.
    pub fn last(cursor: Value) -> Self {
        Self { records: Vec::new(), cursor: object(cursor), is_last: true }
    }

    /// The last page of a stream that every run reads from the start.
    pub const fn only() -> Self {
        Self { records: Vec::new(), cursor: None, is_last: true }
    }

    /// Adds a record.
    pub fn record<'k, T: Serialize + ?Sized>(self, key: impl Into<RecordKey<'k>>, data: &T) -> Self {
        self.with(None, key.into(), Body::of(data))
    }

    /// Adds a record of another stream that came with this page.
    pub fn record_of<'k, T: Serialize + ?Sized>(self, stream: &str, key: impl Into<RecordKey<'k>>, data: &T) -> Self {
        self.with(Some(stream), key.into(), Body::of(data))
    }

    /// Adds a deletion of a record.
    pub fn tombstone<'k>(self, key: impl Into<RecordKey<'k>>) -> Self {
        self.with(None, key.into(), Body::Deleted)
    }

    fn with(mut self, stream: Option<&str>, key: RecordKey<'_>, body: Body) -> Self {
        self.records.push(NewRecord::new(stream, key, body));
        self
    }

    /// Sends everything except the cursor.
    pub(crate) fn send(self, emitter: &mut Emitter<'_>, stream: &str) -> Result<(), Stop> {
        self.records.into_iter().try_for_each(|record| record.send(emitter, stream).map(drop))
    }
}

/// A cursor is an object. Anything else is wrapped in one, so that nothing is lost.
fn object(cursor: Value) -> Option<Cursor> {
    match cursor {
        Value::Object(members) => Some(members),
        Value::Null => None,
        other => Some(Cursor::from_iter([("at".to_owned(), other)])),
    }
}
