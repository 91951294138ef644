//! An answer: its head at once, its body on demand.

use super::error::Error;
use super::shown_url::ShownUrl;
use crate::wire::{Body, BodyError};
use bytes::Bytes;
use futures_util::stream::{Stream, try_unfold};
use gleaner_governor::DeferReason;
use http::{HeaderMap, StatusCode, Version};
use serde::de::DeserializeOwned;
use std::time::Duration;
use url::Url;

/// The answer to a request.
///
/// Its body is decoded and limited, however it is read: [`Error::Body`] reports one that is too large, a
/// decompression bomb, damaged, incomplete or stalled.
pub struct Response<E = ()> {
    pub(crate) answer: Box<Answer>,
    /// URL of the answer.
    pub(crate) url: Url,
    /// Driver; see [`RequestBuilder`](super::RequestBuilder).
    pub(crate) engine: E,
}

/// Parts of an answer. Boxed, because it is large and passed on often.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) version: Version,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
    pub(crate) stats: CallStats,
}

/// Attempts, waits and redirects of a call.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CallStats {
    pub(crate) attempts: u32,
    pub(crate) waited: Duration,
    pub(crate) redirects: u32,
    pub(crate) deferred: Option<DeferReason>,
}

impl<E> Response<E> {
    /// The status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.answer.status
    }

    /// The HTTP version.
    #[must_use]
    pub fn version(&self) -> Version {
        self.answer.version
    }

    /// The headers. `Content-Encoding` and `Content-Length` are absent when the body is decoded here.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        &self.answer.headers
    }

    /// The URL of the answer, after all redirects.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Number of sends, redirects included.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.answer.stats.attempts
    }

    /// Total wait before the sends.
    #[must_use]
    pub fn waited(&self) -> Duration {
        self.answer.stats.waited
    }

    /// Number of redirects followed.
    #[must_use]
    pub fn redirects(&self) -> u32 {
        self.answer.stats.redirects
    }

    /// Our own budget, if that prevented a retry.
    #[must_use]
    pub fn deferred(&self) -> Option<DeferReason> {
        self.answer.stats.deferred
    }

    /// Turns an error status (400 and above) into an error.
    ///
    /// # Errors
    /// The status is an error.
    pub fn error_for_status(self) -> Result<Self, Error> {
        if self.answer.status.is_client_error() || self.answer.status.is_server_error() {
            let (status, deferred) = (self.answer.status, self.deferred());
            return Err(Error::Status { place: self.place(), status, deferred });
        }
        Ok(self)
    }

    pub(crate) fn place(&self) -> ShownUrl {
        ShownUrl::new(&self.url)
    }

    pub(crate) async fn next_chunk(&mut self) -> Result<Option<Bytes>, Error> {
        self.answer.body.chunk().await.map_err(|error| body_error(&self.url, error))
    }

    /// The same answer with another engine, and its former engine.
    pub(crate) fn driven_by<F>(self, engine: F) -> (Response<F>, E) {
        (Response { answer: self.answer, url: self.url, engine }, self.engine)
    }
}

impl Response {
    /// The next piece of the body; `None` at its end.
    ///
    /// # Errors
    /// The body cannot be read further. Every later call fails too.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        self.next_chunk().await
    }

    /// The whole body.
    ///
    /// # Errors
    /// The body cannot be read to its end.
    pub async fn bytes(mut self) -> Result<Bytes, Error> {
        self.answer.body.bytes().await.map_err(|error| body_error(&self.url, error))
    }

    /// The whole body as UTF-8; invalid bytes are replaced. For other character sets use [`bytes`](Self::bytes).
    ///
    /// # Errors
    /// The body cannot be read to its end.
    pub async fn text(self) -> Result<String, Error> {
        let bytes = self.bytes().await?;
        let text = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&bytes);
        Ok(String::from_utf8_lossy(text).into_owned())
    }

    /// The whole body as JSON.
    ///
    /// # Errors
    /// The body cannot be read to its end, or is not the expected JSON. The error gives the position, never the
    /// content.
    pub async fn json<T: DeserializeOwned>(self) -> Result<T, Error> {
        let place = self.place();
        let bytes = self.bytes().await?;
        serde_json::from_slice(&bytes).map_err(|error| Error::json(&place, &error))
    }

    /// The body as a stream of pieces. It ends after an error.
    pub fn bytes_stream(self) -> impl Stream<Item = Result<Bytes, Error>> + Send {
        try_unfold(self, |mut response| async move {
            let piece = response.chunk().await?;
            Ok(piece.map(|piece| (piece, response)))
        })
    }
}

/// Some servers put it before UTF-8 text; it is not part of the text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

fn body_error(url: &Url, BodyError { fault, cause }: BodyError) -> Error {
    Error::Body { place: ShownUrl::new(url), fault, source: cause }
}

// Omits headers and body: they carry tokens and private data.
gleaner_base::debug_only!(Response<E> for E, |it| status = it.answer.status, place = it.place());
