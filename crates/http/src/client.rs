//! [`GovernedClient`]: an HTTP client that finds a provider's rate limit and stays just under it.
//!
//! reqwest provides the connections: TLS with the platform's certificates, and HTTP/2 where available. This module
//! replaces what would conflict with the governor or with safety: redirects, because every hop is a request and must
//! not carry credentials to other hosts; decoding, because detecting a decompression bomb needs both sizes; and
//! retries.
//!
//! | | default | why |
//! |---|---|---|
//! | attempts | 4 | pauses of at most 1, 2 and 4 s |
//! | attempt timeout | 60 s from the send | longer than load balancers on the way allow |
//! | idle timeout | 30 s between two pieces of a body | after that a connection is dead, not slow |
//! | size | 64 MiB decoded, 200 times the encoded size | an answer is kept in memory whole |
//! | redirects | 10, public addresses only | |
//!
//! The client uses a proxy from the environment (`HTTPS_PROXY` and the like) for the caller's own requests. It
//! connects to redirect targets directly, because a proxy would resolve the name where we cannot check the address.
//!
//! # Deliberately absent
//!
//! - An option to skip the check of certificates, and a fall-back from https to http.
//! - A sleep. The send governor has the only one.
//! - URLs with their query, headers and bodies in errors, logs or `Debug` output.

mod builder;
mod cookies;
mod defaults;
mod error;
mod link;
mod paging;
mod record_replay;
mod redirect;
mod request;
mod response;
pub(crate) mod send;
mod shown_url;

pub use crate::wire::{BodyEnd, BodyFault, RedirectFault, TransportKind};
pub use builder::ClientBuilder;
pub use error::{Error, RequestFault, Terminal, TerminalReason};
pub use paging::{Pages, Paging, PagingFault, Slice};
pub use record_replay::{Asked, NoReply, Player, Recorder, Reply};
pub use request::{Deadline, RequestBuilder};
pub use response::Response;
pub use shown_url::ShownUrl;

use crate::call_limits::CallLimits;
use crate::governors::Governors;
use crate::send_governor::SendGovernor;
use crate::wire::BodyLimits;
use builder::connections;
use cookies::Cookies;
use defaults::DefaultHeaders;
use gleaner_governor::Classifier;
use http::{Method, StatusCode};
use record_replay::RecordReplay;
use redirect::RedirectRules;
use std::sync::{Arc, OnceLock};

/// An HTTP client that finds a provider's rate limit and stays just under it.
///
/// Cheap to clone. Two clients with the same name and credential share one governor, because a provider counts per
/// account.
///
/// ```no_run
/// # async fn example() -> Result<(), gleaner_http::Error> {
/// use gleaner_http::GovernedClient;
///
/// let github = GovernedClient::builder("github").bearer("ghp_…").build()?;
/// let user: serde_json::Value = github.get("https://api.github.com/user").send().await?.json().await?;
/// println!("{}, at {:?}", user["login"], github.governor().collection_rate());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct GovernedClient {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    name: Box<str>,
    governor: SendGovernor,
    governors: Governors,
    default_headers: DefaultHeaders,
    cookies: Option<Cookies>,
    call_limits: CallLimits,
    body_limits: BodyLimits,
    redirect_rules: RedirectRules,
    classifier: Arc<dyn Classifier + Send + Sync>,
    /// Bytes of every body that the classifier sees; it sees more of errors.
    peek_bytes: usize,
    record_replay: RecordReplay,
    /// Replaces all others when answers come from a recording.
    replay_governor: Option<SendGovernor>,
    roots: Vec<Vec<u8>>,
    wire: reqwest::Client,
    /// Created at the first redirect to another origin: most clients never need it.
    guarded_wire: OnceLock<reqwest::Client>,
}

/// The first lines of an error say what it is; 16 KiB leave room for HTML around it.
const PEEK_OF_ERRORS: usize = 16 * 1024;

/// Defines a function for each of these HTTP methods.
macro_rules! request_methods {
    ($($name:ident $method:ident),+) => {
        $(#[doc = concat!("A `", stringify!($method), "`.")]
        pub fn $name(&self, url: impl AsRef<str>) -> RequestBuilder {
            self.request(Method::$method, url)
        })+
    };
}
pub(crate) use request_methods;

impl GovernedClient {
    /// A client with default settings for the provider `name`.
    ///
    /// ```
    /// use gleaner_http::GovernedClient;
    ///
    /// # fn main() -> Result<(), gleaner_http::Error> {
    /// let client = GovernedClient::new("example")?;
    /// // It starts slowly: one request a second, until it knows better.
    /// let rate = client.governor().collection_rate().expect("pacing is on");
    /// assert_eq!(rate.effective_rate_per_min, 60.0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// TLS cannot be set up, or the key is governed with other settings already.
    pub fn new(name: &str) -> Result<Self, Error> {
        Self::builder(name).build()
    }

    /// A client with other settings than the default ones.
    pub fn builder(name: &str) -> ClientBuilder {
        ClientBuilder::new(name)
    }

    /// The send governor of this client's key, with its rate, waits and counts.
    #[must_use]
    pub fn governor(&self) -> &SendGovernor {
        &self.inner.governor
    }

    request_methods! { get GET, post POST, put PUT, patch PATCH, delete DELETE, head HEAD }

    /// A request with any method.
    pub fn request(&self, method: Method, url: impl AsRef<str>) -> RequestBuilder {
        RequestBuilder::new(self.clone(), method, url.as_ref())
    }

    /// Loads pages starting with `request`, one slice at a time.
    pub fn pages(&self, request: RequestBuilder) -> Paging {
        Paging::new(self, request)
    }
}

impl Inner {
    /// Bytes of an answer's body that the classifier sees.
    fn peek_of(&self, status: StatusCode) -> usize {
        let is_error = status.is_client_error() || status.is_server_error();
        if is_error { self.peek_bytes.max(PEEK_OF_ERRORS) } else { self.peek_bytes }
    }

    /// The connections for the caller's own requests, or those restricted to public addresses.
    fn wire(&self, must_be_public: bool) -> Result<&reqwest::Client, Error> {
        if !must_be_public {
            return Ok(&self.wire);
        }
        if let Some(wire) = self.guarded_wire.get() {
            return Ok(wire);
        }
        let wire = connections(&self.roots, true)?;
        Ok(self.guarded_wire.get_or_init(|| wire))
    }
}

gleaner_base::debug_only!(GovernedClient, |it| key = it.inner.governor.key());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_answers_and_errors_may_be_shared_between_threads() {
        const fn shared<T: Send + Sync>() {}
        const fn sent<T: Send>(_: &T) {}
        shared::<GovernedClient>();
        shared::<RequestBuilder>();
        shared::<Response>();
        shared::<Error>();
        let client = GovernedClient::new("shared").unwrap();
        sent(&client.get("http://127.0.0.1/").send());
    }
}
