//! Path of one request through the sidecar: check, read the body, wait for a turn, send, answer.
//!
//! The order matters. Refusals come before anything is read; the body is read before the turn, so that only the
//! upstream's time is spent in flight; and when the caller disconnects, hyper drops this future, which releases slot,
//! bytes and permit.

use crate::body::{AnswerBody, Budget, Payload};
use crate::connect::UpstreamClient;
use crate::extract::{Entry, RequestCheck};
use crate::forward::{Forward, caller_stopped};
use crate::respond::{ATTEMPTS, REASON, Reply, whole_seconds};
use crate::upstream::Upstream;
use crate::{hygiene, inspect, links, max_wait};
use gleaner_http::{CallLimits, End, Finished, Governors, Refused, Repeatable, SendGovernor, Settings};
use http::header::{self, HeaderMap, HeaderValue};
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// Maximum of concurrent requests, from head to the last byte of the answer. More than may wait by default, and with
/// heads of some kilobytes still below 100 MB.
pub(super) const REQUESTS_MAX: usize = 16_384;
/// Longest time of an attempt with a streamed body: it lasts as long as the upload, which ends when the caller is
/// silent. An hour is 4 GB at 10 Mbit/s.
const STREAMED_ATTEMPT_TIMEOUT: Duration = Duration::from_secs(3600);
/// Retry-After during a shutdown: time for a restart.
const RESTART: Duration = Duration::from_secs(5);
/// Retry-After when all slots are taken.
const PLACE_FREE: Duration = Duration::from_secs(1);

/// State shared by all connections of a sidecar.
#[derive(Debug)]
pub(crate) struct Sidecar {
    pub(super) upstream: Upstream,
    pub(super) listen: SocketAddr,
    pub(super) client: UpstreamClient,
    pub(super) governors: Governors,
    pub(super) settings: Settings,
    pub(super) call_limits: CallLimits,
    /// The only governor, unless there is one per `Authorization`.
    pub(super) governor: Option<SendGovernor>,
    pub(super) budget: Arc<Budget>,
    pub(super) places: Arc<Semaphore>,
    pub(super) connections: AtomicUsize,
    pub(super) started: Instant,
    pub(super) is_stopping: watch::Receiver<bool>,
}

impl Sidecar {
    /// Answers one request.
    pub(crate) async fn answer(&self, request: Request<Incoming>) -> Response<AnswerBody> {
        match self.exchange(request).await {
            Ok(answer) => answer,
            Err(reply) => {
                tracing::debug!(status = reply.status.as_u16(), reason = reply.reason, "answered by the sidecar");
                reply.into_response()
            }
        }
    }

    async fn exchange(&self, request: Request<Incoming>) -> Result<Response<AnswerBody>, Reply> {
        let entry = RequestCheck::new(self.listen).check(&request)?;
        if let Some(page) = inspect::page(entry.target.path()) {
            return inspect::show(self, request.method(), page);
        }
        let place = Arc::clone(&self.places).try_acquire_owned().map_err(|_full| too_many_inside())?;
        let max_wait = max_wait::read(request.headers())?.or(self.call_limits.max_wait);
        let governor = self.governor_for(request.headers())?;

        let (head, body) = request.into_parts();
        let payload = Payload::receive(body, &self.budget).await.map_err(|error| caller_stopped(&error.to_string()))?;
        let mut call_limits = CallLimits { max_wait, ..self.call_limits };
        if !payload.is_kept() {
            call_limits.attempt_timeout = STREAMED_ATTEMPT_TIMEOUT;
        }
        let is_out = AtomicBool::new(false);
        let mut forward = self.forward(&entry, head, payload, &is_out)?;
        let finished = Box::pin(self.run(&governor, &call_limits, &mut forward)).await?;
        self.pass_on(finished, &entry, place)
    }

    fn forward<'a>(
        &'a self,
        entry: &Entry,
        mut head: http::request::Parts,
        payload: Payload,
        is_out: &'a AtomicBool,
    ) -> Result<Forward<'a>, Reply> {
        hygiene::clean_request(&mut head.headers);
        let uri = self.upstream.target(&entry.target).map_err(|error| {
            let error = format!("the path and --upstream do not make a valid URL: {error}");
            Reply::new(StatusCode::BAD_REQUEST, "bad_path", error, "shorten the path")
        })?;
        let repeatable = Repeatable::new(&head.method, payload.is_kept());
        Ok(Forward {
            client: &self.client,
            method: head.method,
            uri,
            headers: head.headers,
            payload,
            repeatable,
            is_out,
        })
    }

    /// Runs the request until its answer is final. When the sidecar stops, requests in flight may end and waiting
    /// ones are refused.
    async fn run<'a>(
        &self,
        governor: &SendGovernor,
        call_limits: &CallLimits,
        forward: &mut Forward<'a>,
    ) -> Result<Finished<Forward<'a>>, Reply> {
        let is_out = forward.is_out;
        let mut run = pin!(governor.run(call_limits, forward));
        let mut stop = self.is_stopping.clone();
        let mut stopping = pin!(stop.wait_for(|&is_stopping| is_stopping));
        let mut is_stopping = false;
        poll_fn(|context| {
            if let Poll::Ready(result) = run.as_mut().poll(context) {
                return Poll::Ready(result.map_err(|refused: Refused| Reply::from(refused)));
            }
            is_stopping = is_stopping || stopping.as_mut().poll(context).is_ready();
            if is_stopping && !is_out.load(Ordering::Relaxed) {
                return Poll::Ready(Err(shutting_down()));
            }
            Poll::Pending
        })
        .await
    }

    /// The upstream's answer, or the reply that replaces it.
    fn pass_on(
        &self,
        finished: Finished<Forward<'_>>,
        entry: &Entry,
        place: OwnedSemaphorePermit,
    ) -> Result<Response<AnswerBody>, Reply> {
        let (attempts, waited_ms) = (finished.attempts, finished.waited.as_millis());
        let (reason, retry_in) = why_not_again(&finished.end);
        let answer = match finished.result {
            Ok(answer) => answer,
            Err(trouble) => return Err(trouble.reply().retry_in(retry_in).attempts(attempts)),
        };
        if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
            let error = "the upstream switched to another protocol without a request";
            return Err(Reply::new(StatusCode::BAD_GATEWAY, "not_forwarded", error, "check --upstream"));
        }
        tracing::debug!(status = answer.status().as_u16(), attempts, waited_ms, reason, "answered by the upstream");
        let (mut head, body) = answer.into_parts();
        hygiene::clean_answer(&mut head.headers);
        links::rewrite(&mut head.headers, &self.upstream, &format!("http://{}", entry.own_name));
        if let Some(reason) = reason {
            head.headers.insert(REASON, HeaderValue::from_static(reason));
            head.headers.insert(ATTEMPTS, attempts.into());
        }
        // Adds a Retry-After if the upstream sent none.
        if let Some(wait) = retry_in.filter(|_| !head.headers.contains_key(header::RETRY_AFTER)) {
            head.headers.insert(header::RETRY_AFTER, whole_seconds(wait).into());
        }
        // Each side has its own HTTP version.
        head.version = http::Version::default();
        Ok(Response::from_parts(head, AnswerBody::passed(body, place)))
    }

    /// The governor for the request's key.
    fn governor_for(&self, headers: &HeaderMap) -> Result<SendGovernor, Reply> {
        if let Some(governor) = &self.governor {
            return Ok(governor.clone());
        }
        // Several values are one credential; none can contain a line feed.
        let values: Vec<&[u8]> = headers.get_all(header::AUTHORIZATION).iter().map(HeaderValue::as_bytes).collect();
        let credential = (!values.is_empty()).then(|| values.join(&b'\n'));
        let key = self.governors.key(self.upstream.provider(), credential.as_deref());
        self.governors.governor(&key, &self.settings).map_err(|error| {
            let hint = "restart without --per-authorization if all of them share one limit";
            Reply::new(StatusCode::SERVICE_UNAVAILABLE, "too_many_keys", error.to_string(), hint)
                .retry_in(Some(PLACE_FREE))
        })
    }

    /// Number of current requests.
    pub(super) fn requests(&self) -> usize {
        REQUESTS_MAX - self.places.available_permits()
    }
}

/// Why a failed request was not retried, and when a retry makes sense.
fn why_not_again(end: &End) -> (Option<&'static str>, Option<Duration>) {
    match *end {
        End::Done => (None, None),
        End::Deferred { reason, retry_in } => (Some(reason.as_str()), retry_in),
        End::Pressure { reason, retry_in } => (Some(reason.as_str()), retry_in),
        End::TooLate(retry_in) => (Some("max_wait"), Some(retry_in)),
    }
}

fn too_many_inside() -> Reply {
    let error = format!("request limit reached: the sidecar handles {REQUESTS_MAX} requests");
    let hint = "send fewer requests at a time";
    Reply::new(StatusCode::SERVICE_UNAVAILABLE, "sidecar_full", error, hint).retry_in(Some(PLACE_FREE))
}

fn shutting_down() -> Reply {
    let error = "the sidecar is shutting down; this request was not sent, or not retried";
    let hint = "send it again after the restart";
    Reply::new(StatusCode::SERVICE_UNAVAILABLE, "shutting_down", error, hint).retry_in(Some(RESTART))
}
