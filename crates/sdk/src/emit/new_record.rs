//! A record on its way from an author's function to the emitter.

use crate::emit::{Emitted, Emitter};
use crate::stop::Stop;
use gleaner_protocol::{RawJson, RecordKey};
use serde::Serialize;

/// One record of an author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewRecord {
    /// `None` for the requested stream.
    stream: Option<String>,
    key: RecordKey<'static>,
    body: Body,
}

/// Content of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    Written(RawJson<'static>),
    /// It could not be serialized as JSON. It is rejected like an invalid one.
    Unwritable,
    Deleted,
}

impl NewRecord {
    pub(crate) fn new(stream: Option<&str>, key: RecordKey<'_>, body: Body) -> Self {
        Self { stream: stream.map(ToOwned::to_owned), key: key.into_owned(), body }
    }

    /// Sends it; `stream` is the requested one.
    pub(crate) fn send(self, emitter: &mut Emitter<'_>, stream: &str) -> Result<Emitted, Stop> {
        self.body.send(emitter, self.stream.as_deref().unwrap_or(stream), self.key)
    }
}

impl Body {
    pub(crate) fn of<T: Serialize + ?Sized>(data: &T) -> Self {
        let text = serde_json::to_string(data).ok();
        text.and_then(|text| RawJson::new(text).ok()).map_or(Self::Unwritable, Self::Written)
    }

    pub(crate) fn len(&self) -> usize {
        if let Self::Written(body) = self { body.as_str().len() } else { 0 }
    }

    pub(crate) fn send<'k>(
        self,
        emitter: &mut Emitter<'_>,
        stream: &str,
        key: impl Into<RecordKey<'k>>,
    ) -> Result<Emitted, Stop> {
        match self {
            Self::Written(body) => emitter.record_as_written(stream, key, body),
            Self::Unwritable => emitter.reject_unwritable(stream, &key.into()),
            Self::Deleted => emitter.tombstone(stream, key),
        }
    }
}
