//! Bodies on their way through: kept when they are small enough to be sent again, streamed when not.
//!
//! A request's body is read before its turn, up to [`KEPT_MAX`], so that a slow uploader waits for itself
//! and never holds a place that the provider counts. What all of them hold together is bounded by a
//! [`Budget`]; beyond it a request passes once and is not repeated. Answers are never held, only passed.

use crate::stalled_body::{BodyError, Bounded};
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;

/// Longest body that is kept to be sent again: what APIs take as a document, and less than they take as a
/// file.
pub(crate) const KEPT_MAX: usize = 1024 * 1024;
/// What all kept bodies may hold together: 64 of the longest, and thousands of usual ones.
const BUDGET: usize = 64 * 1024 * 1024;
/// Longest silence of a caller within its body; nobody pauses longer who is still there.
pub(crate) const UPLOAD_SILENCE: Duration = Duration::from_secs(30);
/// Longest silence of an upstream within its answer: models that think and reports that are put together
/// send nothing for minutes, and a connection that is gone is noticed by keep-alive long before.
const DOWNLOAD_SILENCE: Duration = Duration::from_secs(300);

/// The body of a request before its turn.
#[derive(Debug)]
pub(crate) enum Payload {
    /// All of it is here.
    Kept(Kept),
    /// The beginning is here; it can be sent once.
    Once(Option<Upload>),
}

/// A whole body that can be sent as often as it takes.
#[derive(Debug)]
pub(crate) struct Kept {
    data: Bytes,
    trailers: Option<HeaderMap>,
    /// Given back when nobody needs the body any more.
    _share: Share,
}

impl Payload {
    /// Reads the body, as far as it may be kept.
    pub(crate) async fn receive(body: Incoming, budget: &Arc<Budget>) -> Result<Self, BodyError> {
        let mut share = Share { budget: Arc::clone(budget), size: 0 };
        let mut body = Bounded::new(body, UPLOAD_SILENCE);
        let mut data = BytesMut::new();
        let mut trailers = None;
        while let Some(frame) = body.frame().await {
            match frame?.into_data() {
                Ok(chunk) => {
                    let is_kept = data.len() + chunk.len() <= KEPT_MAX && share.grow(chunk.len());
                    data.extend_from_slice(&chunk);
                    if !is_kept {
                        let (first, rest) = (Some(data.freeze()), Some(body));
                        return Ok(Self::Once(Some(Upload { first, rest, trailers: None, _share: Some(share) })));
                    }
                }
                Err(frame) => trailers = frame.into_trailers().ok(),
            }
        }
        Ok(Self::Kept(Kept { data: data.freeze(), trailers, _share: share }))
    }

    pub(crate) const fn is_kept(&self) -> bool {
        matches!(self, Self::Kept(_))
    }

    /// The body for one send; `None` when it has been sent and was not kept.
    pub(crate) fn upload(&mut self) -> Option<Upload> {
        match self {
            Self::Kept(kept) => {
                let first = Some(kept.data.clone()).filter(|data| !data.is_empty());
                Some(Upload { first, rest: None, trailers: kept.trailers.clone(), _share: None })
            }
            Self::Once(upload) => upload.take(),
        }
    }
}

/// Bytes that may still be kept.
#[derive(Debug)]
pub(crate) struct Budget {
    left: AtomicUsize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { left: AtomicUsize::new(BUDGET) }
    }
}

/// What one body has taken of the budget; given back on drop.
#[derive(Debug)]
struct Share {
    budget: Arc<Budget>,
    size: usize,
}

impl Share {
    /// Takes `more`, or says that there is no more.
    fn grow(&mut self, more: usize) -> bool {
        let take = |left: usize| left.checked_sub(more);
        let is_taken = self.budget.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok();
        self.size += if is_taken { more } else { 0 };
        is_taken
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.left.fetch_add(self.size, Ordering::Relaxed);
    }
}

/// A body that is being sent: what was read before its turn, and then the rest.
#[derive(Debug)]
pub(crate) struct Upload {
    first: Option<Bytes>,
    rest: Option<Bounded<Incoming>>,
    trailers: Option<HeaderMap>,
    _share: Option<Share>,
}

impl Body for Upload {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let upload = self.get_mut();
        if let Some(first) = upload.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        if let Some(rest) = &mut upload.rest {
            return Pin::new(rest).poll_frame(context);
        }
        Poll::Ready(upload.trailers.take().map(|trailers| Ok(Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        let is_rest_over = self.rest.as_ref().is_none_or(Body::is_end_stream);
        self.first.is_none() && is_rest_over && self.trailers.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let first = self.first.as_ref().map_or(0, Bytes::len) as u64;
        let rest = self.rest.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint);
        let mut all = SizeHint::new();
        all.set_lower(first.saturating_add(rest.lower()));
        // With a known length HTTP/1 has no place for trailers.
        if let Some(upper) = rest.upper().filter(|_| self.trailers.is_none()) {
            all.set_upper(first.saturating_add(upper));
        }
        all
    }
}

/// The body of an answer: our own, or what the upstream sends.
#[derive(Debug)]
pub(crate) enum AnswerBody {
    Own(Option<Bytes>),
    /// With the place that the request has among all that are inside; it is given up at the end.
    Passed {
        body: Bounded<Incoming>,
        _place: OwnedSemaphorePermit,
    },
}

impl AnswerBody {
    pub(crate) fn own(text: Bytes) -> Self {
        Self::Own(Some(text).filter(|text| !text.is_empty()))
    }

    pub(crate) fn passed(body: Incoming, place: OwnedSemaphorePermit) -> Self {
        Self::Passed { body: Bounded::new(body, DOWNLOAD_SILENCE), _place: place }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self.get_mut() {
            Self::Own(text) => Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
            Self::Passed { body, .. } => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Own(text) => text.is_none(),
            Self::Passed { body, .. } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Own(text) => SizeHint::with_exact(text.as_ref().map_or(0, Bytes::len) as u64),
            Self::Passed { body, .. } => body.size_hint(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_of_the_budget_comes_back() {
        let budget = Arc::new(Budget { left: AtomicUsize::new(10) });
        let mut one = Share { budget: Arc::clone(&budget), size: 0 };
        let mut other = Share { budget: Arc::clone(&budget), size: 0 };
        assert!(one.grow(4) && one.grow(4) && !other.grow(3) && other.grow(2));
        drop(one);
        assert!(other.grow(8) && !other.grow(1));
        drop(other);
        assert_eq!(budget.left.load(Ordering::Relaxed), 10);
    }
}
