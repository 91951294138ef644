//! A request before it is sent. Its body is in memory, so that it can be retried.

use super::GovernedClient;
use super::error::{Error, RequestFault};
use super::redirect::Hop;
use super::response::Response;
use super::send;
use super::shown_url::ShownUrl;
use crate::call_limits::CallLimits;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Method;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use serde::Serialize;
use std::borrow::Cow;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tracing::Instrument;
use url::Url;
use url::form_urlencoded::Serializer;

/// A request under construction. `send` reports errors in it. `E` drives it: nothing in an async program, its own
/// runtime in a [blocking](crate::blocking) one.
#[derive(Clone)]
#[must_use = "a request does nothing until it is sent"]
pub struct RequestBuilder<E = ()>(pub(crate) Box<Draft>, pub(crate) E);

/// Parts of a request. Boxed, because it is large and passed on often.
#[derive(Clone)]
pub(crate) struct Draft {
    client: GovernedClient,
    method: Method,
    url: Result<Url, RequestFault>,
    headers: HeaderMap,
    /// Whether `headers` are complete, so that no defaults are added.
    has_all_headers: bool,
    body: Bytes,
    call_limits: CallLimits,
    deadline: Option<Deadline>,
    fault: Option<RequestFault>,
}

/// End of a call: a moment, or a time after `send`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// At this moment.
    At(Instant),
    /// This long after `send` is called.
    In(Duration),
}

impl Deadline {
    /// The moment, if the clock reaches that far.
    fn moment(self) -> Option<Instant> {
        match self {
            Self::At(at) => Some(at),
            Self::In(duration) => Instant::now().checked_add(duration),
        }
    }
}

impl From<Duration> for Deadline {
    fn from(duration: Duration) -> Self {
        Self::In(duration)
    }
}

impl From<Instant> for Deadline {
    fn from(instant: Instant) -> Self {
        Self::At(instant)
    }
}

impl From<std::time::Instant> for Deadline {
    fn from(instant: std::time::Instant) -> Self {
        Self::At(instant.into())
    }
}

impl RequestBuilder {
    pub(crate) fn new(client: GovernedClient, method: Method, url: &str) -> Self {
        let call_limits = client.inner.call_limits;
        let mut draft = Box::new(Draft {
            client,
            method,
            url: parse(url),
            headers: HeaderMap::new(),
            has_all_headers: false,
            body: Bytes::new(),
            call_limits,
            deadline: None,
            fault: None,
        });
        draft.take_credentials_of_url();
        Self(draft, ())
    }
}

impl<E> RequestBuilder<E> {
    /// Sets a header; it replaces the client's default.
    pub fn header(mut self, name: impl AsRef<str>, value: impl AsRef<[u8]>) -> Self {
        self.0.set_header(name.as_ref(), value.as_ref());
        self
    }

    /// Sets several headers; each replaces the client's default.
    pub fn headers(mut self, headers: HeaderMap) -> Self {
        self.0.headers.extend(headers);
        self
    }

    /// Adds to the query of the URL.
    pub fn query<K: AsRef<str>, V: AsRef<str>>(mut self, pairs: &[(K, V)]) -> Self {
        if let (Ok(url), false) = (&mut self.0.url, pairs.is_empty()) {
            url.query_pairs_mut().extend_pairs(pairs);
        }
        self
    }

    /// Sets `Authorization: Bearer …` for this request. The key stays the client's: a client is an account.
    pub fn bearer_auth(self, token: impl AsRef<str>) -> Self {
        self.header(header::AUTHORIZATION, format!("Bearer {}", token.as_ref()))
    }

    /// Sets the body.
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.0.body = body.into();
        self
    }

    /// Sets the body to a value serialized as JSON.
    pub fn json<T: Serialize + ?Sized>(mut self, value: &T) -> Self {
        match serde_json::to_vec(value) {
            Ok(body) => self.typed_body("application/json", body),
            Err(_its_text_quotes_the_value) => {
                self.0.blame(RequestFault::Json);
                self
            }
        }
    }

    /// Sets the body to form fields.
    pub fn form<K: AsRef<str>, V: AsRef<str>>(self, fields: &[(K, V)]) -> Self {
        let body = Serializer::new(String::new()).extend_pairs(fields).finish();
        self.typed_body("application/x-www-form-urlencoded", body)
    }

    fn typed_body(mut self, content_type: &'static str, body: impl Into<Bytes>) -> Self {
        let draft = &mut *self.0;
        if !draft.client.inner.default_headers.all.contains_key(header::CONTENT_TYPE) {
            draft.headers.entry(header::CONTENT_TYPE).or_insert(HeaderValue::from_static(content_type));
        }
        self.body(body)
    }

    /// End of the whole call: waits, attempts and body.
    pub fn deadline(mut self, deadline: impl Into<Deadline>) -> Self {
        self.0.deadline = Some(deadline.into());
        self
    }

    /// Longest wait before it is sent, retries included. If the wait would be longer, the call fails at once and says
    /// when to retry.
    pub fn max_wait(mut self, max_wait: Duration) -> Self {
        self.0.call_limits.max_wait = Some(max_wait);
        self
    }

    /// Sends of this request, the first included; at most the number of the client.
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.0.call_limits.attempts = attempts;
        self
    }

    pub(crate) fn url(&self) -> Result<&Url, RequestFault> {
        self.0.url.as_ref().map_err(Clone::clone)
    }

    pub(crate) fn with_url(mut self, url: Url) -> Self {
        self.0.url = Ok(url);
        self
    }
}

impl RequestBuilder {
    /// Sends the request, and retries while that helps and is safe.
    ///
    /// An answer with an error status is an answer; see
    /// [`error_for_status`](Response::error_for_status).
    ///
    /// # Errors
    /// There is no answer, it was not sent, or the provider refused it for good.
    pub async fn send(self) -> Result<Response, Error> {
        let Draft { client, method, url, headers, has_all_headers, body, mut call_limits, deadline, fault } = *self.0;
        if let Some(fault) = fault {
            return Err(fault.into());
        }
        call_limits.deadline = deadline.and_then(Deadline::moment);
        let inner = &client.inner;
        let headers = if has_all_headers { Cow::Owned(headers) } else { inner.default_headers.with(headers) };
        let mut hop = Hop { method, url: url?, headers, body };
        let span = tracing::debug_span!("call", key = %inner.governor.key(), method = %hop.method, to = %ShownUrl::new(&hop.url));
        let answer = {
            // Pinned here: a call is a large future, and its wrappers stay small.
            let call = pin!(send::call(inner, &mut hop, &call_limits));
            call.instrument(span).await?
        };
        Ok(Response { answer, url: hop.url, engine: () })
    }

    /// Sends it through another client, with its own headers and not the other client's.
    pub(crate) fn with_client(mut self, client: &GovernedClient) -> Self {
        let draft = &mut *self.0;
        if !Arc::ptr_eq(&draft.client.inner, &client.inner) {
            let former = std::mem::replace(&mut draft.client, client.clone());
            if !std::mem::replace(&mut draft.has_all_headers, true) {
                draft.headers = former.inner.default_headers.with(std::mem::take(&mut draft.headers)).into_owned();
            }
        }
        self
    }
}

impl Draft {
    fn set_header(&mut self, name: &str, value: &[u8]) {
        match header(name, value) {
            Ok((name, value)) => drop(self.headers.insert(name, value)),
            Err(fault) => self.blame(fault),
        }
    }

    /// Reports the first fault only.
    fn blame(&mut self, fault: RequestFault) {
        self.fault.get_or_insert(fault);
    }

    /// Moves user name and password out of the URL, which may be shown.
    fn take_credentials_of_url(&mut self) {
        let Ok(url) = &mut self.url else { return };
        if url.username().is_empty() && url.password().is_none() {
            return;
        }
        let credentials = basic(url);
        // Neither can fail for http and https, and no other scheme is parsed.
        let _cleared = url.set_username("").and_then(|()| url.set_password(None));
        self.set_header(header::AUTHORIZATION.as_str(), credentials.as_bytes());
    }
}

fn parse(url: &str) -> Result<Url, RequestFault> {
    let url = Url::parse(url).map_err(RequestFault::Url)?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        _ => Err(RequestFault::Scheme),
    }
}

/// A header of the caller; possible credentials are excluded from HTTP/2 compression tables.
pub(crate) fn header(name: &str, value: &[u8]) -> Result<(HeaderName, HeaderValue), RequestFault> {
    let fault = || RequestFault::Header(name.into());
    let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_invalid| fault())?;
    let mut value = HeaderValue::from_bytes(value).map_err(|_invalid| fault())?;
    value.set_sensitive(matches!(parsed, header::AUTHORIZATION | header::COOKIE));
    Ok((parsed, value))
}

/// `Basic` authentication with user name and password of a URL (RFC 7617).
fn basic(url: &Url) -> String {
    let decoded = |text: &str| {
        let pair = format!("x={}", text.replace('+', "%2B"));
        url::form_urlencoded::parse(pair.as_bytes()).next().map(|(_, value)| value.into_owned()).unwrap_or_default()
    };
    let credentials = format!("{}:{}", decoded(url.username()), decoded(url.password().unwrap_or_default()));
    format!("Basic {}", STANDARD.encode(credentials))
}

// Omits query, headers and body.
gleaner_base::debug_only!(RequestBuilder<E> for E, |it| method = it.0.method, place = it.0.url.as_ref().map(ShownUrl::new));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_in_a_url_become_a_header() {
        for (url, expected) in [
            ("https://Aladdin:open%20sesame@a.example", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
            ("https://a:b+c@a.example", "Basic YTpiK2M="),
            ("https://token@a.example", "Basic dG9rZW46"),
        ] {
            assert_eq!(basic(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }

    #[test]
    fn only_http_is_spoken() {
        assert_eq!(parse("ftp://a.example/"), Err(RequestFault::Scheme));
        assert_eq!(parse("/relative"), Err(RequestFault::Url(url::ParseError::RelativeUrlWithoutBase)));
        assert!(parse("HTTPS://a.example").is_ok());
    }

    #[test]
    fn a_bad_header_is_named_and_its_value_is_not() {
        let fault = header("x-key", b"se\ncret").unwrap_err();
        assert_eq!(fault.to_string(), "its header \"x-key\" has a name or a value that HTTP does not allow");
    }
}
