//! Tower layer that governs every request of a `tower` stack.
//!
//! Why the wait is in `call` and not in `poll_ready`, as in tower's own rate limit: readiness is polled before there
//! is a request, so it cannot know the request's limits, cannot be taken back when the caller drops a ready service,
//! and does not cover retries. A wait there would be a second gate beside the one that retries need. So `poll_ready`
//! only polls the inner service, and the single wait is inside [`SendGovernor::run`]. Never reads a body.

use crate::adapter::{CallOptions, CallReport, Copies, GovernedBy, TimedOut, failure_of, outcome_of_failure};
use crate::call_limits::CallLimits;
use crate::governors::{Governors, KeyError, Settings};
use crate::key::Key;
use crate::refusal::Refused;
use crate::retry::Failure;
use crate::send_governor::SendGovernor;
use crate::transport::Transport;
use gleaner_governor::{Classifier, Outcome, Verdict, WallTime};
use http::{Request, Response};
use std::error::Error;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tower_layer::Layer;
use tower_service::Service;

/// A `tower` layer that finds the provider's rate limit and stays just under it.
///
/// ```
/// use bytes::Bytes;
/// use gleaner_http::{CallReport, GovernedLayer};
/// use http::{Request, Response};
/// use std::convert::Infallible;
/// use tower::{ServiceBuilder, ServiceExt as _, service_fn};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // In a program this is the client of hyper-util, or whatever else sends.
/// let provider = service_fn(|_: Request<Bytes>| async { Ok::<_, Infallible>(Response::new(Bytes::from("hello"))) });
/// let service = ServiceBuilder::new().layer(GovernedLayer::new("example")).service(provider);
///
/// let response = service.oneshot(Request::new(Bytes::new())).await?;
/// let report = response.extensions().get::<CallReport>().ok_or("no report")?;
/// assert_eq!((response.status().as_u16(), report.attempts), (200, 1));
/// # Ok(())
/// # }
/// ```
///
/// The provider's last answer comes back as a response, also a final 429; [`CallReport`] in its extensions has the
/// number of sends, the wait, and the reason why it was not retried. A request that was not sent is
/// [`GovernedError::Refused`].
///
/// # Position in a stack
///
/// Every attempt calls the layers *below* this one. A layer that signs requests belongs there. A layer that retries
/// or limits rates does not: its retries would bypass the governor, and its wait would be a second one. A second
/// `GovernedLayer` on the same path is refused with [`Refusal::GovernedTwice`](crate::Refusal::GovernedTwice),
/// whatever its name.
///
/// # Bodies
///
/// A request can be retried when its body can be copied: [`CloneBody`] does it for all `Clone` bodies (`Full<Bytes>`,
/// `Empty`, `Bytes`, `String`, `()`). For other bodies [`bodies`](Self::bodies) takes a function from `&B` to
/// `Option<B>`, or [`SendOnce`] for none; a request without a copy is sent once.
///
/// # Limits per request
///
/// A [`CallLimits`] in a request's extensions replaces the layer's.
#[derive(Clone, Debug)]
pub struct GovernedLayer<R = CloneBody> {
    governor: Result<SendGovernor, KeyError>,
    options: CallOptions,
    bodies: R,
}

impl GovernedLayer {
    /// Governs all requests as requests to `provider`, shared with all users of that name in this process.
    ///
    /// If the key limit is reached, requests fail with [`GovernedError::Key`].
    #[must_use]
    pub fn new(provider: &str) -> Self {
        Self::of(Governors::global().known_or(&Key::new(provider), &Settings::default()))
    }

    /// Governs all requests by `governor`.
    #[must_use]
    pub fn with(governor: SendGovernor) -> Self {
        Self::of(Ok(governor))
    }

    fn of(governor: Result<SendGovernor, KeyError>) -> Self {
        Self { governor, options: CallOptions::default(), bodies: CloneBody }
    }
}

impl<R> GovernedLayer<R> {
    /// Sets the limits on waits and attempts.
    #[must_use]
    pub fn call_limits(mut self, call_limits: CallLimits) -> Self {
        self.options.call_limits = call_limits;
        self
    }

    /// Sets the classifier of answers; it sees status and headers, not the body.
    #[must_use]
    pub fn classifier(mut self, classifier: impl Classifier + Send + Sync + 'static) -> Self {
        self.options.classifier = Arc::new(classifier);
        self
    }

    /// Sets the function that copies a body for the next attempt.
    #[must_use]
    pub fn bodies<N>(self, bodies: N) -> GovernedLayer<N> {
        GovernedLayer { governor: self.governor, options: self.options, bodies }
    }
}

/// Copies a body for a retry. Functions from `&B` to `Option<B>` implement it.
pub trait RepeatBody<B> {
    /// A copy of the body; `None` when it cannot be copied.
    fn repeat(&self, body: &B) -> Option<B>;
}

/// Copies bodies that are `Clone`.
#[derive(Clone, Copy, Debug, Default)]
pub struct CloneBody;

impl<B: Clone> RepeatBody<B> for CloneBody {
    fn repeat(&self, body: &B) -> Option<B> {
        Some(body.clone())
    }
}

/// Copies no body, so nothing is retried. For streams.
#[derive(Clone, Copy, Debug, Default)]
pub struct SendOnce;

impl<B> RepeatBody<B> for SendOnce {
    fn repeat(&self, _body: &B) -> Option<B> {
        None
    }
}

impl<B, F: Fn(&B) -> Option<B>> RepeatBody<B> for F {
    fn repeat(&self, body: &B) -> Option<B> {
        self(body)
    }
}

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GovernedError {
    /// We did not send it, or did not retry it.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The key limit of this process is reached.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The last attempt timed out.
    #[error(transparent)]
    TimedOut(#[from] TimedOut),
    /// The inner service failed; its own error is inside, for `downcast_ref`.
    #[error("the service failed")]
    Service(#[source] BoxError),
}

/// Tower's `BoxError`: the layers of a stack fail with different types.
type BoxError = Box<dyn Error + Send + Sync>;

impl GovernedError {
    /// The error of the inner service. An error of another governed layer passes unchanged.
    fn of_service(error: impl Into<BoxError>) -> Self {
        match error.into().downcast::<Self>() {
            Ok(governed) => *governed,
            Err(error) => Self::Service(error),
        }
    }
}

impl<S, R: Clone> Layer<S> for GovernedLayer<R> {
    type Service = Governed<S, R>;

    fn layer(&self, inner: S) -> Governed<S, R> {
        Governed { inner, layer: self.clone() }
    }
}

/// A service whose every send is governed; created by [`GovernedLayer`].
#[derive(Clone, Debug)]
pub struct Governed<S, R = CloneBody> {
    inner: S,
    layer: GovernedLayer<R>,
}

impl<S, R, B, A> Service<Request<B>> for Governed<S, R>
where
    S: Service<Request<B>, Response = Response<A>, Error: Into<BoxError>, Future: Send> + Clone + Send + 'static,
    R: RepeatBody<B> + Clone + Send + 'static,
    B: Send + 'static,
    A: Send + 'static,
{
    type Response = Response<A>;
    type Error = GovernedError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<A>, GovernedError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), GovernedError>> {
        self.inner.poll_ready(cx).map_err(GovernedError::of_service)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // The service that was polled ready must be called; its clone was not polled.
        let clone = self.inner.clone();
        let ready = std::mem::replace(&mut self.inner, clone);
        Box::pin(self.layer.clone().govern(ready, request))
    }
}

impl<R> GovernedLayer<R> {
    async fn govern<S, B, A>(self, ready: S, mut request: Request<B>) -> Result<Response<A>, GovernedError>
    where
        S: Service<Request<B>, Response = Response<A>, Error: Into<BoxError>, Future: Send> + Send,
        R: RepeatBody<B> + Send,
        B: Send,
        A: Send,
    {
        let governor = self.governor?;
        GovernedBy::refuse_second(request.extensions(), &governor)?;
        let call_limits = self.options.limits_of(request.extensions());
        request.extensions_mut().insert(GovernedBy::new(&governor));
        let method = request.method().clone();
        let mut sending = Sending {
            copies: Copies::new(request, method, &call_limits),
            service: ready,
            is_ready: true,
            bodies: self.bodies,
            options: self.options,
        };
        let finished = governor.run(&call_limits, &mut sending).await?;
        let report = CallReport::from_finished(&finished);
        let mut response = finished.result?;
        response.extensions_mut().insert(report);
        Ok(response)
    }
}

/// One request on its way through the inner service.
struct Sending<S, B, R> {
    copies: Copies<Request<B>>,
    service: S,
    /// The service is ready and has not been called since.
    is_ready: bool,
    bodies: R,
    options: CallOptions,
}

impl<S, B, A, R> Transport for Sending<S, B, R>
where
    S: Service<Request<B>, Response = Response<A>, Error: Into<BoxError>, Future: Send> + Send,
    R: RepeatBody<B> + Send,
    B: Send,
    A: Send,
{
    type Answer = Response<A>;
    type Failure = GovernedError;

    async fn send(&mut self) -> Result<Response<A>, GovernedError> {
        if !self.is_ready {
            poll_fn(|cx| self.service.poll_ready(cx)).await.map_err(GovernedError::of_service)?;
        }
        let request = self.copies.take(|request| copy(request, &self.bodies));
        let request = request.ok_or_else(|| GovernedError::Service(BODY_GONE.into()))?;
        self.is_ready = false;
        self.service.call(request).await.map_err(GovernedError::of_service)
    }

    fn timed_out(&self, limit: Duration) -> GovernedError {
        TimedOut { after: limit }.into()
    }

    fn classify(&self, result: Result<&Response<A>, &GovernedError>, wall_now: WallTime) -> Outcome {
        match result {
            Ok(answer) => self.options.outcome_of_answer(answer.status(), answer.headers(), wall_now),
            Err(GovernedError::Service(error)) => outcome_of_failure(&**error),
            Err(GovernedError::TimedOut(_)) => gleaner_governor::network_error(),
            // Another governor's decision says nothing about the provider.
            Err(GovernedError::Refused(_) | GovernedError::Key(_)) => Outcome::bare(Verdict::Permanent),
        }
    }

    fn may_repeat(&self, result: Result<&Response<A>, &GovernedError>, outcome: &Outcome) -> bool {
        match result {
            Ok(answer) => self.copies.may_repeat_after(answer.status(), outcome),
            Err(GovernedError::Service(error)) => self.copies.may_repeat_without_answer(failure_of(&**error)),
            Err(_) => self.copies.may_repeat_without_answer(Failure::Lost),
        }
    }
}

/// [`Copies`] makes this impossible: a second attempt without a copy.
const BODY_GONE: &str = "the request cannot be sent again: its body is gone";

fn copy<B>(request: &Request<B>, bodies: &impl RepeatBody<B>) -> Option<Request<B>> {
    let body = bodies.repeat(request.body())?;
    let mut copy = Request::new(body);
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.version_mut() = request.version();
    *copy.headers_mut() = request.headers().clone();
    *copy.extensions_mut() = request.extensions().clone();
    Some(copy)
}
