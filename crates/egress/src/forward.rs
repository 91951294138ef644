//! Sends one request to the upstream, as often as the governor allows, and returns the result.

use crate::body::{Payload, Upload};
use crate::connect::UpstreamClient;
use crate::respond::Reply;
use crate::stalled_body::BodyError;
use gleaner_http::governor::{
    Classifier as _, DefaultClassifier, Outcome, ResponseView, Verdict, WallTime, network_error, untrusted_certificate,
};
use gleaner_http::{Failure, Headers, Repeatable, Transport, cause, causes};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use hyper::body::Incoming;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// One request and its upstream.
pub(crate) struct Forward<'a> {
    pub(crate) client: &'a UpstreamClient,
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) payload: Payload,
    pub(crate) repeatable: Repeatable,
    /// Whether it is in flight or answered, not waiting for its turn.
    pub(crate) is_out: &'a AtomicBool,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// DNS, connection or TLS failed.
    Unreachable(String),
    /// The certificate is not trusted.
    Untrusted(String),
    /// The connection broke before there was an answer.
    Lost(String),
    /// No answer in time.
    TimedOut(Duration),
    /// The caller did not send the rest of its body.
    Caller(String),
}

impl Forward<'_> {
    fn request(&mut self) -> Option<Request<Upload>> {
        let mut request = Request::new(self.payload.upload()?);
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        Some(request)
    }
}

impl Transport for Forward<'_> {
    type Answer = Response<Incoming>;
    type Failure = Trouble;
    /// hyper knows no governors.
    const IS_LAST_HOP: bool = true;

    async fn send(&mut self) -> Result<Response<Incoming>, Trouble> {
        let Some(request) = self.request() else {
            return Err(Trouble::Lost("the body has been sent and was not kept".to_owned()));
        };
        self.is_out.store(true, Ordering::Relaxed);
        self.client.request(request).await.map_err(|error| Trouble::from_error(&error))
    }

    fn timed_out(&self, limit: Duration) -> Trouble {
        Trouble::TimedOut(limit)
    }

    fn classify(&self, result: Result<&Response<Incoming>, &Trouble>, wall_now: WallTime) -> Outcome {
        match result {
            Ok(answer) => {
                let headers = Headers(answer.headers());
                let view = ResponseView::new(answer.status().as_u16(), &headers);
                DefaultClassifier::new().classify(&view, wall_now)
            }
            Err(Trouble::Untrusted(_)) => untrusted_certificate(),
            // Says nothing about the provider; the same caller would fail again.
            Err(Trouble::Caller(_)) => Outcome::bare(Verdict::Permanent),
            Err(Trouble::Unreachable(_) | Trouble::Lost(_) | Trouble::TimedOut(_)) => network_error(),
        }
    }

    fn may_repeat(&self, result: Result<&Response<Incoming>, &Trouble>, outcome: &Outcome) -> bool {
        let may_repeat = match result {
            Ok(answer) => self.repeatable.after_answer(answer.status(), outcome.retry_after.is_some()),
            Err(Trouble::Unreachable(_)) => self.repeatable.after_failure(Failure::NotSent),
            Err(Trouble::Lost(_) | Trouble::TimedOut(_)) => self.repeatable.after_failure(Failure::Lost),
            Err(Trouble::Untrusted(_) | Trouble::Caller(_)) => false,
        };
        // A final answer counts as in flight until the caller has it. This one may wait for its next turn.
        if may_repeat && outcome.verdict != Verdict::Success {
            self.is_out.store(false, Ordering::Relaxed);
        }
        may_repeat
    }
}

impl Trouble {
    fn from_error(error: &hyper_util::client::legacy::Error) -> Self {
        if let Some(body) = cause::<BodyError>(error) {
            return Self::Caller(body.to_string());
        }
        let text = causes(error).map(ToString::to_string).collect::<Vec<_>>().join(": ");
        match cause(error) {
            Some(rustls::Error::InvalidCertificate(_)) => Self::Untrusted(text),
            _ if error.is_connect() => Self::Unreachable(text),
            _ => Self::Lost(text),
        }
    }

    /// The reply to the caller.
    pub(crate) fn reply(&self) -> Reply {
        let bad_gateway = |reason, error: String, hint| Reply::new(StatusCode::BAD_GATEWAY, reason, error, hint);
        match self {
            Self::Unreachable(cause) => bad_gateway(
                "upstream_unreachable",
                format!("the upstream cannot be reached: {cause}"),
                "check --upstream and the network of this machine",
            ),
            Self::Untrusted(cause) => bad_gateway(
                "certificate_not_trusted",
                format!("the upstream's certificate is not trusted: {cause}"),
                "if your own authority issued it, add that authority to this machine's certificates or set SSL_CERT_FILE",
            ),
            Self::Lost(cause) => bad_gateway(
                "upstream_lost",
                format!("the upstream ended the connection without an answer: {cause}"),
                "the upstream may have executed the request; check before you send it again",
            ),
            Self::TimedOut(limit) => Reply::new(
                StatusCode::GATEWAY_TIMEOUT,
                "attempt_timeout",
                format!("the upstream did not answer within {} s", limit.as_secs()),
                "the upstream may have executed the request; check before you send it again",
            ),
            Self::Caller(cause) => caller_stopped(cause),
        }
    }
}

/// The caller did not send its whole body.
pub(crate) fn caller_stopped(cause: &str) -> Reply {
    let error = format!("the body of the request did not arrive: {cause}");
    Reply::new(StatusCode::REQUEST_TIMEOUT, "body_timeout", error, "send the whole body without long pauses")
}
