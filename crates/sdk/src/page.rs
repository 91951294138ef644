//! One page of a stream that goes forward: its records, and where the next one begins.

use crate::emit::{Cursor, Emitted, Emitter};
use crate::stop::Stop;
use gleaner_protocol::{RawJson, RecordKey};
use serde::Serialize;
use serde_json::Value;

/// A page as an author's function returns it.
#[derive(Debug)]
#[must_use = "a page is returned to whoever asked for it"]
pub struct Page {
    items: Vec<Item>,
    pub(crate) cursor: Option<Cursor>,
    pub(crate) is_last: bool,
}

#[derive(Debug)]
struct Item {
    /// `None` for the stream whose page it is.
    stream: Option<String>,
    key: RecordKey<'static>,
    body: Body,
}

#[derive(Debug)]
enum Body {
    Written(RawJson<'static>),
    /// It could not be written as JSON. It is rejected like any that does not fit.
    Unwritable,
    Deleted,
}

impl Page {
    /// A page after which the next one begins at `cursor`, a JSON object.
    pub fn then(cursor: Value) -> Self {
        Self { items: Vec::new(), cursor: object(cursor), is_last: false }
    }

    /// The last page for now. The next run begins at `cursor`, a JSON object.
    pub fn last(cursor: Value) -> Self {
        Self { items: Vec::new(), cursor: object(cursor), is_last: true }
    }

    /// The last page of a stream that every run reads from its beginning.
    pub const fn only() -> Self {
        Self { items: Vec::new(), cursor: None, is_last: true }
    }

    /// Adds a record.
    pub fn record<'k, T: Serialize + ?Sized>(self, key: impl Into<RecordKey<'k>>, data: &T) -> Self {
        self.with(None, key.into(), written(data))
    }

    /// Adds a record of another stream that came with this page.
    pub fn record_of<'k, T: Serialize + ?Sized>(self, stream: &str, key: impl Into<RecordKey<'k>>, data: &T) -> Self {
        self.with(Some(stream), key.into(), written(data))
    }

    /// Adds the news that a record was deleted.
    pub fn tombstone<'k>(self, key: impl Into<RecordKey<'k>>) -> Self {
        self.with(None, key.into(), Body::Deleted)
    }

    fn with(mut self, stream: Option<&str>, key: RecordKey<'_>, body: Body) -> Self {
        self.items.push(Item { stream: stream.map(ToOwned::to_owned), key: key.into_owned(), body });
        self
    }

    /// Sends all of it but the cursor.
    pub(crate) fn send(self, emitter: &mut Emitter<'_>, stream: &str) -> Result<(), Stop> {
        for item in self.items {
            let stream = item.stream.as_deref().unwrap_or(stream);
            let _: Emitted = match item.body {
                Body::Written(body) => emitter.record_as_written(stream, item.key, body)?,
                Body::Unwritable => emitter.reject_unwritable(stream, &item.key)?,
                Body::Deleted => emitter.tombstone(stream, item.key)?,
            };
        }
        Ok(())
    }
}

fn written<T: Serialize + ?Sized>(data: &T) -> Body {
    let text = serde_json::to_string(data).ok();
    text.and_then(|text| RawJson::new(text).ok()).map_or(Body::Unwritable, Body::Written)
}

/// A cursor is an object. Anything else is put into one, so that nothing is lost.
fn object(cursor: Value) -> Option<Cursor> {
    match cursor {
        Value::Object(members) => Some(members),
        Value::Null => None,
        other => Some(Cursor::from_iter([("at".to_owned(), other)])),
    }
}
