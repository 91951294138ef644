//! reqwest middleware that governs every request of a `reqwest-middleware` stack.
//!
//! Why a middleware beside `GovernedClient`: a program with its own stack (tracing, caching, signing) keeps it and
//! adds one line. Never reads a body, never retries a request that might be executed twice, and never follows a
//! redirect: reqwest's own redirects are invisible to it.

use crate::adapter::{CallOptions, CallReport, Copies, GovernedBy, TimedOut, failure_of, outcome_of_failure};
use crate::call_limits::CallLimits;
use crate::governors::{Governors, KeyError, Settings};
use crate::key::Key;
use crate::retry::Failure;
use crate::send_governor::SendGovernor;
use crate::transport::Transport;
use gleaner_governor::{Classifier, Outcome, ResponseView, Verdict, WallTime};
use http::Extensions;
use reqwest::{Request, Response, Url};
use reqwest_middleware::{Error, Middleware, Next};
use std::borrow::Cow;
use std::future::ready;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// A `reqwest-middleware` that finds the provider's rate limit and stays just under it.
///
/// ```
/// use gleaner_http::{CallReport, GovernedMiddleware};
/// use reqwest_middleware::ClientBuilder;
///
/// # fn client() -> Result<(), Box<dyn std::error::Error>> {
/// // Without reqwest's default features a TLS provider has to be installed before this line.
/// let client = ClientBuilder::new(reqwest::Client::new())
///     .with(GovernedMiddleware::new("github"))
///     .build();
/// # let _ = async move {
/// let response = client.get("https://api.github.com/rate_limit").send().await?;
/// let report = response.extensions().get::<CallReport>();
/// println!("{} after {report:?}", response.status());
/// # reqwest_middleware::Result::Ok(())
/// # };
/// # Ok(())
/// # }
/// ```
///
/// The provider's last answer comes back as a response, also a final 429; [`CallReport`] in its extensions has the
/// number of sends, the wait, and the reason why it was not retried. A request that was not sent comes back as
/// [`reqwest_middleware::Error::Middleware`] with a [`Refused`](crate::Refused) in it, for `downcast_ref`.
///
/// # Position in a stack
///
/// Every attempt runs the middlewares added *after* this one. A middleware that signs requests belongs there. One
/// that retries does not: its retries would bypass the governor. A second `GovernedMiddleware` on the same path is
/// refused with [`Refusal::GovernedTwice`](crate::Refusal::GovernedTwice), whatever its name.
///
/// # Limits per request
///
/// A [`CallLimits`] in a request's extensions replaces the middleware's:
/// `client.get(url).with_extension(CallLimits::single_attempt())`.
///
/// # Redirects
///
/// A redirect that reqwest follows is part of the same attempt: it gets no permit of its own and goes to any host.
/// Where the provider redirects a lot, build the client with `redirect(reqwest::redirect::Policy::none())` and
/// request the `Location` through the governed client; `GovernedClient` does this automatically.
#[derive(Clone, Debug)]
pub struct GovernedMiddleware {
    keying: Keying,
    options: CallOptions,
}

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Selects the governor.
#[derive(Clone, Debug)]
enum Keying {
    One(Result<SendGovernor, KeyError>),
    PerHost { governors: Governors, settings: Box<Settings> },
}

impl GovernedMiddleware {
    /// Governs all requests as requests to `provider`, shared with all users of that name in this process.
    ///
    /// If the key limit is reached, requests fail with [`KeyError`].
    #[must_use]
    pub fn new(provider: &str) -> Self {
        Self::keyed(Keying::One(Governors::global().known_or(&Key::new(provider), &Settings::default())))
    }

    /// Governs all requests by `governor`.
    #[must_use]
    pub fn with(governor: SendGovernor) -> Self {
        Self::keyed(Keying::One(Ok(governor)))
    }

    /// One governor per host: a slow host delays only its own callers. A non-default port is part of the host.
    #[must_use]
    pub fn per_host() -> Self {
        Self::per_host_of(Governors::global().clone(), Settings::default())
    }

    /// One governor per host from `governors`, all with `settings`.
    #[must_use]
    pub fn per_host_of(governors: Governors, settings: Settings) -> Self {
        Self::keyed(Keying::PerHost { governors, settings: Box::new(settings) })
    }

    fn keyed(keying: Keying) -> Self {
        Self { keying, options: CallOptions::default() }
    }

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

    fn governor_of(&self, url: &Url) -> Result<Cow<'_, SendGovernor>, KeyError> {
        match &self.keying {
            Keying::One(governor) => governor.as_ref().map(Cow::Borrowed).map_err(Clone::clone),
            // If the host is already governed, its settings win.
            Keying::PerHost { governors, settings } => governors.known_or(&Key::of_host(url), settings).map(Cow::Owned),
        }
    }
}

impl Middleware for GovernedMiddleware {
    // Written by hand instead of `async_trait`, which would keep the request in the future twice; a future of that
    // size costs more to allocate and move than all the work here.
    fn handle<'life0, 'life1, 'life2, 'async_trait>(
        &'life0 self,
        request: Request,
        extensions: &'life1 mut Extensions,
        next: Next<'life2>,
    ) -> BoxFuture<'async_trait, reqwest_middleware::Result<Response>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        'life2: 'async_trait,
        Self: 'async_trait,
    {
        let (governor, call_limits, mut sending) = match self.prepare(request, extensions, next) {
            Ok(prepared) => prepared,
            Err(error) => return Box::pin(ready(Err(error))),
        };
        Box::pin(async move {
            let finished = governor.run(&call_limits, &mut sending).await.map_err(Error::middleware)?;
            let report = CallReport::from_finished(&finished);
            let mut response = finished.result?;
            response.extensions_mut().insert(report);
            Ok(response)
        })
    }
}

impl GovernedMiddleware {
    fn prepare<'a>(
        &'a self,
        request: Request,
        extensions: &'a mut Extensions,
        next: Next<'a>,
    ) -> Result<(Cow<'a, SendGovernor>, CallLimits, Sending<'a>), Error> {
        let governor = self.governor_of(request.url()).map_err(Error::middleware)?;
        GovernedBy::refuse_second(extensions, &governor).map_err(Error::middleware)?;
        let call_limits = self.options.limits_of(extensions);
        let method = request.method().clone();
        let asked = (!method.is_idempotent()).then(|| Box::new(request.url().clone()));
        let extensions = Marked::new(extensions, GovernedBy::new(&governor));
        let copies = Copies::new(request, method, &call_limits);
        Ok((governor, call_limits, Sending { asked, copies, extensions, next, options: &self.options }))
    }
}

/// The extensions of a governed request. The mark is removed when the call ends in any way: the caller may reuse the
/// extensions.
struct Marked<'a>(&'a mut Extensions);

impl<'a> Marked<'a> {
    fn new(extensions: &'a mut Extensions, mark: GovernedBy) -> Self {
        extensions.insert(mark);
        Self(extensions)
    }
}

impl Drop for Marked<'_> {
    fn drop(&mut self) {
        self.0.remove::<GovernedBy>();
    }
}

/// One request on its way through the rest of the stack.
struct Sending<'a> {
    /// Target of a request that must not be executed twice: an answer from another URL proves nothing about it.
    asked: Option<Box<Url>>,
    copies: Copies<Request>,
    extensions: Marked<'a>,
    next: Next<'a>,
    options: &'a CallOptions,
}

impl Transport for Sending<'_> {
    type Answer = Response;
    type Failure = Error;

    async fn send(&mut self) -> Result<Response, Error> {
        let request = self.copies.take(Request::try_clone).ok_or_else(|| Error::middleware(BodyGone))?;
        self.next.clone().run(request, self.extensions.0).await
    }

    fn timed_out(&self, limit: Duration) -> Error {
        Error::middleware(TimedOut { after: limit })
    }

    fn classify(&self, result: Result<&Response, &Error>, wall_now: WallTime) -> Outcome {
        match result {
            Ok(answer) => self.options.outcome_of_answer(answer.status(), answer.headers(), wall_now),
            Err(error) => self.outcome_of_error(error, wall_now),
        }
    }

    fn may_repeat(&self, result: Result<&Response, &Error>, outcome: &Outcome) -> bool {
        match (result, result.err().and_then(Error::status)) {
            // Redirected inside reqwest: the first target has executed it.
            (Ok(answer), _) if self.asked.as_deref().is_some_and(|asked| asked != answer.url()) => false,
            (Ok(answer), _) => self.copies.may_repeat_after(answer.status(), outcome),
            // Neither error tells which target it came from.
            (Err(_), _) if self.asked.is_some() => false,
            (Err(_), Some(status)) => self.copies.may_repeat_after(status, outcome),
            (Err(error), None) => self.copies.may_repeat_without_answer(failure_of_error(error)),
        }
    }
}

impl Sending<'_> {
    fn outcome_of_error(&self, error: &Error, wall_now: WallTime) -> Outcome {
        // A later middleware turned a status into an error. The headers are lost.
        if let Some(status) = error.status() {
            return self.options.classifier.classify(&ResponseView::new(status.as_u16(), &()), wall_now);
        }
        match error {
            Error::Reqwest(error) if error.is_builder() || error.is_redirect() => Outcome::bare(Verdict::Permanent),
            Error::Reqwest(error) => outcome_of_failure(error),
            Error::Middleware(error) if error.is::<TimedOut>() => gleaner_governor::network_error(),
            // An error of another middleware says nothing about the provider.
            Error::Middleware(_) => Outcome::bare(Verdict::Permanent),
        }
    }
}

fn failure_of_error(error: &Error) -> Failure {
    match error {
        Error::Reqwest(error) if error.is_connect() => Failure::NotSent,
        Error::Reqwest(error) => failure_of(error),
        Error::Middleware(_) => Failure::Lost,
    }
}

/// [`Copies`] makes this impossible: a second attempt without a copy.
#[derive(Debug, thiserror::Error)]
#[error("the request cannot be sent again: its body is gone")]
struct BodyGone;
