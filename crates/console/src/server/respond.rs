//! Answers in JSON, and a bound on what all long ones hold together.
//!
//! A page of records may have megabytes, and whoever asked may read slowly. So a long answer has a place among few
//! until its last byte is taken; when there is none, the next is told to come back.

use crate::problem::Problem;
use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http_body::{Body as HttpBody, Frame, SizeHint};
use serde::Serialize;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// From here on an answer is long.
const LONG_BYTES: usize = 256 * 1024;
/// Long answers at a time. Each has at most a page of records: 4 MiB, or one record of 16 MiB.
const LONG_MAX: usize = 4;

/// The places of long answers.
#[derive(Clone, Debug)]
pub(crate) struct Responder(Arc<Semaphore>);

impl Responder {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(LONG_MAX)))
    }

    pub(crate) fn json(&self, value: &impl Serialize) -> Result<Response, Problem> {
        let bytes = serde_json::to_vec(value);
        let bytes = bytes.map_err(|error| Problem::internal(format!("the answer cannot be written: {error}")))?;
        let body = if bytes.len() < LONG_BYTES {
            Body::from(bytes)
        } else {
            let place = Arc::clone(&self.0).try_acquire_owned();
            let place = place.map_err(|_| Problem::busy("too many long answers are on their way"))?;
            Body::new(Long { bytes: Some(Bytes::from(bytes)), _place: place })
        };
        Ok(([(CONTENT_TYPE, "application/json")], body).into_response())
    }
}

struct Long {
    bytes: Option<Bytes>,
    _place: OwnedSemaphorePermit,
}

/// In pieces, because hyper gives a piece away as soon as it has it.
const PIECE_BYTES: usize = 64 * 1024;

impl HttpBody for Long {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(bytes) = self.bytes.as_mut() else { return Poll::Ready(None) };
        let piece = bytes.split_to(bytes.len().min(PIECE_BYTES));
        if bytes.is_empty() {
            self.bytes = None;
        }
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.as_ref().map_or(0, Bytes::len) as u64)
    }
}
