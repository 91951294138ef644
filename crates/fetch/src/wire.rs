//! How a request gets to a host: the seam between the pipeline and sockets.

use crate::settings::Settings;
use gleaner_http::Error;
use gleaner_http::wire::{ACCEPTED, Body, BodyLimits, NoAnswer, TransportKind, client_builder, public_only};
use http::header::{ACCEPT_ENCODING, IF_MODIFIED_SINCE, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use std::time::Duration;
use tokio::time::{Instant, timeout};
use url::Url;

/// From sending to the head of the answer. Half a minute: what browsers' users wait at most.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// For a whole body: 64 MiB at 75 KB/s. A host that sends a byte now and then would hold its place for ever.
const BODY_TIMEOUT: Duration = Duration::from_secs(900);
/// A connection that nobody used for so long is closed: it is kept for hosts that are asked once a second, and not
/// for the thousands that were asked once.
const KEEP_IDLE: Duration = Duration::from_secs(5);
/// Connections to one host that are kept: as many as a host is asked things at a time.
const KEEP_IDLE_MAX: usize = 6;

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) url: Url,
    pub(crate) etag: Option<String>,
    pub(crate) last_modified: Option<String>,
    /// A redirect led here from elsewhere.
    pub(crate) must_be_public: bool,
}

/// The head of an answer, and its body to be read.
pub(crate) struct Head {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
}

/// Sends.
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
            // What is no header any more is not sent; then the answer is whole.
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
