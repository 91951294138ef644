//! Bodies passing through: kept when small enough to be sent again, streamed otherwise.
//!
//! A request's body is read before its turn, up to [`KEPT_MAX`], so that a slow upload never holds an in-flight slot.
//! A [`Budget`] limits all kept bodies together; beyond it a request is streamed and not retried. Answers are always
//! streamed.

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

/// Longest body that is kept for a retry: the size of an API document, less than a file.
pub(crate) const KEPT_MAX: usize = 1024 * 1024;
/// Limit on all kept bodies together: 64 of the longest, and thousands of usual ones.
const BUDGET: usize = 64 * 1024 * 1024;
/// Longest silence of a caller within its body.
pub(crate) const UPLOAD_SILENCE: Duration = Duration::from_secs(30);
/// Longest silence of an upstream within its answer: language models and reports send nothing for minutes, and
/// keep-alive notices a dead connection long before.
const DOWNLOAD_SILENCE: Duration = Duration::from_secs(300);

/// The body of a request before its turn.
#[derive(Debug)]
pub(crate) enum Payload {
    /// The whole body.
    Kept(Kept),
    /// The beginning of the body; it can be sent once.
    Once(Option<Upload>),
}

/// A whole body that can be sent any number of times.
#[derive(Debug)]
pub(crate) struct Kept {
    data: Bytes,
    trailers: Option<HeaderMap>,
    /// Returned when the body is no longer needed.
    _share: Share,
}

impl Payload {
    /// Reads the body, up to the limit.
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

    /// The body for one send; `None` when it was streamed already.
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

/// Share of one body in the budget; returned on drop.
#[derive(Debug)]
struct Share {
    budget: Arc<Budget>,
    size: usize,
}

impl Share {
    /// Takes `more`; false when the budget is exhausted.
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

/// A body being sent: the part read before its turn, then the rest.
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
        // With a known length HTTP/1 cannot send trailers.
        if let Some(upper) = rest.upper().filter(|_| self.trailers.is_none()) {
            all.set_upper(first.saturating_add(upper));
        }
        all
    }
}

/// The body of an answer: our own, or the upstream's.
#[derive(Debug)]
pub(crate) enum AnswerBody {
    Own(Option<Bytes>),
    /// With the request's slot, which is released at the end.
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
