//! A body with a limit on its silence.
//!
//! Not a limit on the whole: a download may take hours as long as data arrives. A timer exists only while nothing
//! arrives. This waits for a body, never before a send.

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::future::Pending;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Timeout, timeout};

/// Why a body does not end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    /// The sender is connected and silent.
    #[error("no data of the body for {} s", .0.as_secs())]
    Silent(Duration),
    /// The sender is gone, or sends an invalid body.
    #[error("the body broke off")]
    Broken(#[from] hyper::Error),
}

/// A body with the longest allowed silence.
#[derive(Debug)]
pub(crate) struct Bounded<B> {
    body: B,
    limit: Duration,
    silence: Option<Pin<Box<Timeout<Pending<()>>>>>,
}

impl<B> Bounded<B> {
    pub(crate) const fn new(body: B, limit: Duration) -> Self {
        Self { body, limit, silence: None }
    }
}

impl<B: Body<Data = Bytes, Error = hyper::Error> + Unpin> Body for Bounded<B> {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = self.get_mut();
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) {
            this.silence = None;
            return Poll::Ready(frame.map(|frame| frame.map_err(BodyError::Broken)));
        }
        let silence = this.silence.get_or_insert_with(|| Box::pin(timeout(this.limit, std::future::pending())));
        let _elapsed = ready!(silence.as_mut().poll(context));
        Poll::Ready(Some(Err(BodyError::Silent(this.limit))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt as _;

    /// A body that says a word every ten seconds, so often.
    struct Slow {
        left: u32,
        next: Option<Pin<Box<Timeout<Pending<()>>>>>,
    }

    impl Body for Slow {
        type Data = Bytes;
        type Error = hyper::Error;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
            let pause = Duration::from_secs(10);
            let next = self.next.get_or_insert_with(|| Box::pin(timeout(pause, std::future::pending())));
            let _elapsed = ready!(next.as_mut().poll(context));
            (self.next, self.left) = (None, self.left.saturating_sub(1));
            Poll::Ready((self.left > 0).then(|| Ok(Frame::data(Bytes::from_static(b"word")))))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_body_goes_on_and_a_silent_one_ends() {
        let slow = Bounded::new(Slow { left: 100, next: None }, Duration::from_secs(11));
        assert_eq!(slow.collect().await.unwrap().to_bytes().len(), 99 * 4);
        let silent = Bounded::new(Slow { left: 100, next: None }, Duration::from_secs(9));
        assert!(matches!(silent.collect().await, Err(BodyError::Silent(_))));
    }
}
