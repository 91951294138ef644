//! The sidecar's own answers: who refused, why, and until when.
//!
//! All of them carry `Gleaner-Answered-By: sidecar` and a `Gleaner-Reason` from a fixed set; both are removed from
//! upstream answers (`hygiene.rs`), so they cannot be forged. The body repeats it as JSON for people. Never holds
//! anything of the caller's request.

use crate::body::AnswerBody;
use bytes::Bytes;
use gleaner_http::governor::DeferReason;
use gleaner_http::{Refusal, Refused};
use http::header::{self, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use serde::Serialize;
use std::time::Duration;

/// Why the sidecar answered, or did not retry.
pub(crate) const REASON: HeaderName = HeaderName::from_static("gleaner-reason");
/// Number of sends.
pub(crate) const ATTEMPTS: HeaderName = HeaderName::from_static("gleaner-attempts");
const ANSWERED_BY: HeaderName = HeaderName::from_static("gleaner-answered-by");

/// An answer of the sidecar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) reason: &'static str,
    error: String,
    hint: &'static str,
    retry_in: Option<Duration>,
    attempts: Option<u32>,
}

#[derive(Serialize)]
struct Told<'a> {
    error: &'a str,
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_s: Option<u64>,
    hint: &'a str,
}

impl Reply {
    pub(crate) fn new(status: StatusCode, reason: &'static str, error: impl Into<String>, hint: &'static str) -> Self {
        Self { status, reason, error: error.into(), hint, retry_in: None, attempts: None }
    }

    /// Adds the time after which a retry makes sense.
    pub(crate) fn retry_in(mut self, wait: Option<Duration>) -> Self {
        self.retry_in = wait;
        self
    }

    /// Adds the number of sends.
    pub(crate) fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = Some(attempts);
        self
    }

    pub(crate) fn into_response(self) -> Response<AnswerBody> {
        let retry_after_s = self.retry_in.map(whole_seconds);
        let told = Told { error: &self.error, reason: self.reason, retry_after_s, hint: self.hint };
        let mut response = json(self.status, &told);
        let headers = response.headers_mut();
        headers.insert(REASON, HeaderValue::from_static(self.reason));
        headers.insert(ANSWERED_BY, HeaderValue::from_static("sidecar"));
        if let Some(seconds) = retry_after_s {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if let Some(attempts) = self.attempts {
            headers.insert(ATTEMPTS, attempts.into());
        }
        // The unread rest of the body would be parsed as the next request.
        if self.status == StatusCode::REQUEST_TIMEOUT {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

/// Our own refusals as HTTP: 429 when only this caller's limit is too short, 503 when every caller would get the
/// same.
impl From<Refused> for Reply {
    fn from(refused: Refused) -> Self {
        let (status, hint) = match &refused.reason {
            Refusal::MaxWait => {
                (StatusCode::TOO_MANY_REQUESTS, "retry after Retry-After, or send a longer Gleaner-Max-Wait")
            }
            Refusal::QueueFull(_) => {
                (StatusCode::SERVICE_UNAVAILABLE, "send fewer requests at a time, or start with a larger --max-waiting")
            }
            Refusal::Deferred(DeferReason::CircuitOpen) => {
                (StatusCode::SERVICE_UNAVAILABLE, "check the upstream's answers; after Retry-After it is probed again")
            }
            Refusal::Deferred(_) => (StatusCode::SERVICE_UNAVAILABLE, "retry after Retry-After"),
            Refusal::GovernedTwice(_) => (StatusCode::LOOP_DETECTED, "remove one of the two governors"),
        };
        let reply = Self::new(status, refused.reason.as_str(), refused.to_string(), hint).retry_in(refused.retry_in);
        if refused.attempts > 0 { reply.attempts(refused.attempts) } else { reply }
    }
}

/// A JSON answer that must not be cached.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Response<AnswerBody> {
    // Structs of texts and numbers always serialize.
    let mut text = serde_json::to_vec(value).unwrap_or_default();
    text.push(b'\n');
    plain(status, "application/json", text.into())
}

/// A plain-text answer.
pub(crate) fn plain(status: StatusCode, content_type: &'static str, text: Bytes) -> Response<AnswerBody> {
    let mut response = Response::new(AnswerBody::own(text));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Rounded up, so that a retry does not come too early; at least one second, because zero would mean "at once".
pub(crate) fn whole_seconds(wait: Duration) -> u64 {
    (wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_rounded_up_and_never_zero() {
        for (millis, expected) in [(0, 1), (1, 1), (1000, 1), (1001, 2), (59_999, 60)] {
            assert_eq!(whole_seconds(Duration::from_millis(millis)), expected);
        }
    }
}
