//! Sends requests to hosts: the interface between the pipeline and sockets.

use crate::settings::Settings;
use gleaner_http::Error;
use gleaner_http::wire::{ACCEPTED, Body, BodyLimits, NoAnswer, TransportKind, client_builder, public_only};
use http::header::{ACCEPT_ENCODING, IF_MODIFIED_SINCE, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use std::time::Duration;
use tokio::time::{Instant, timeout};
use url::Url;

/// Timeout from the send to the head of the answer. Half a minute: browser users wait no longer.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout for a whole body: 64 MiB at 75 KB/s. A host that sends single bytes would hold its slot for ever.
const BODY_TIMEOUT: Duration = Duration::from_secs(900);
/// Idle time of a connection: enough for hosts with one request a second, and short for the thousands with one
/// request in total.
const KEEP_IDLE: Duration = Duration::from_secs(5);
/// Idle connections per host: as many as concurrent requests.
const KEEP_IDLE_MAX: usize = 6;

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) url: Url,
    pub(crate) etag: Option<String>,
    pub(crate) last_modified: Option<String>,
    /// A redirect from another origin led here.
    pub(crate) must_be_public: bool,
}

/// The head of an answer, and its body to be read.
pub(crate) struct Head {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
}

/// Sends a request.
pub(crate) trait Wire: Send + Sync + 'static {
    fn ask(&self, ask: Ask) -> impl Future<Output = Result<Head, NoAnswer>> + Send;
}

/// Real sockets.
#[derive(Debug)]
pub(crate) struct Sockets {
    open: reqwest::Client,
    guarded: reqwest::Client,
    limits: BodyLimits,
}

impl Sockets {
    pub(crate) fn new(settings: &Settings) -> Result<Self, Error> {
        let builder = || {
            let builder = client_builder().pool_idle_timeout(KEEP_IDLE).pool_max_idle_per_host(KEEP_IDLE_MAX);
            builder.user_agent(settings.user_agent.clone())
        };
        let build = |builder: reqwest::ClientBuilder| {
            let what = "TLS cannot be set up (are CA certificates installed? Debian: ca-certificates), or the user agent is no header value";
            builder.build().map_err(|error| Error::Setup { what, source: error.without_url().into() })
        };
        Ok(Self {
            open: build(builder())?,
            guarded: build(public_only(builder()))?,
            limits: BodyLimits { decoded_bytes: settings.body_bytes_max, ..BodyLimits::default() },
        })
    }
}

impl Wire for Sockets {
    async fn ask(&self, ask: Ask) -> Result<Head, NoAnswer> {
        let client = if ask.must_be_public { &self.guarded } else { &self.open };
        let mut request = reqwest::Request::new(Method::GET, ask.url);
        let headers = request.headers_mut();
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(ACCEPTED));
        for (name, value) in [(IF_NONE_MATCH, ask.etag), (IF_MODIFIED_SINCE, ask.last_modified)] {
            // An invalid header is not sent; then the full answer comes.
            if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
                headers.insert(name, value);
            }
        }
        let sent = timeout(HEAD_TIMEOUT, client.execute(request)).await;
        let mut response = sent.map_err(|_elapsed| NoAnswer::new(TransportKind::Timeout(HEAD_TIMEOUT)))??;
        let status = response.status();
        let mut headers = std::mem::take(response.headers_mut());
        let ends = Some(Instant::now() + BODY_TIMEOUT);
        let body = Body::new(&Method::GET, response, &mut headers, self.limits, ends);
        Ok(Head { status, headers, body })
    }
}
