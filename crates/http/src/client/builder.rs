//! Settings of a client, with safe defaults. There is no setting for the rate (the governor finds it), and none that
//! weakens TLS.

use super::cookies::Cookies;
use super::defaults::DefaultHeaders;
use super::error::{Error, RequestFault};
use super::record_replay::{Player, RecordReplay, Recorder};
use super::redirect::RedirectRules;
use super::request::header;
use super::{GovernedClient, Inner};
use crate::blocking;
use crate::call_limits::CallLimits;
use crate::governors::{Governors, Settings};
use crate::send_governor::SendGovernor;
use crate::wire::{BodyLimits, client_builder, public_only};
use gleaner_governor::{Classifier, DefaultClassifier};
use http::header::{AUTHORIZATION, HeaderMap, USER_AGENT};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Builds a [`GovernedClient`], or its [blocking](crate::blocking) form.
#[must_use = "a builder does nothing until it is built"]
pub struct ClientBuilder {
    name: Box<str>,
    credential: Option<Vec<u8>>,
    bearer: Option<Vec<u8>>,
    headers: HeaderMap,
    fault: Option<RequestFault>,
    settings: Settings,
    call_limits: CallLimits,
    body_limits: BodyLimits,
    redirect_rules: RedirectRules,
    classifier: Arc<dyn Classifier + Send + Sync>,
    peek_bytes: usize,
    governors: Governors,
    keeps_cookies: bool,
    record_replay: RecordReplay,
    /// Certificate authorities beside those of the platform, as PEM.
    roots: Vec<Vec<u8>>,
}

/// One day, in place of `Duration::MAX`: the clock cannot represent a time that far away.
const TIMEOUT_MAX: Duration = Duration::from_secs(86_400);

impl ClientBuilder {
    pub(crate) fn new(name: &str) -> Self {
        let builder = Self {
            name: name.into(),
            credential: None,
            bearer: None,
            headers: HeaderMap::new(),
            fault: None,
            settings: Settings::default(),
            call_limits: CallLimits::default(),
            body_limits: BodyLimits::default(),
            redirect_rules: RedirectRules::default(),
            classifier: Arc::new(DefaultClassifier::new()),
            peek_bytes: 0,
            governors: Governors::global().clone(),
            keeps_cookies: true,
            record_replay: RecordReplay::default(),
            roots: Vec::new(),
        };
        builder.user_agent(concat!("gleaner-http/", env!("CARGO_PKG_VERSION")))
    }

    /// Separates accounts: the provider's limit is per account, so each has its own key. The secret is hashed, not
    /// stored and not sent.
    pub fn credential(mut self, secret: impl AsRef<[u8]>) -> Self {
        self.credential = Some(secret.as_ref().to_vec());
        self
    }

    /// Sends `Authorization: Bearer …` with every request, except after a redirect to another origin. The token also
    /// becomes the credential, unless another one is set.
    pub fn bearer(mut self, token: impl AsRef<str>) -> Self {
        self.bearer = Some(token.as_ref().as_bytes().to_vec());
        self.default_header(AUTHORIZATION, format!("Bearer {}", token.as_ref()))
    }

    /// Sends a header with every request. After a redirect to another origin it is dropped, unless it is known to be
    /// harmless (`Accept` and the like).
    pub fn default_header(mut self, name: impl AsRef<str>, value: impl AsRef<[u8]>) -> Self {
        match header(name.as_ref(), value.as_ref()) {
            Ok((name, value)) => drop(self.headers.insert(name, value)),
            Err(fault) => self.fault = self.fault.or(Some(fault)),
        }
        self
    }

    /// Sets `User-Agent`; providers like to know whom to contact.
    pub fn user_agent(self, value: impl AsRef<str>) -> Self {
        self.default_header(USER_AGENT, value.as_ref())
    }

    /// Sets the ceiling: the shortest time between two sends.
    pub const fn ceiling_interval(mut self, interval: Duration) -> Self {
        self.settings.config.ceiling_interval = interval;
        self
    }

    /// All settings of the key. All clients of a key need the same.
    pub const fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Sends of one request, the first included. More than four is a setting of the key: then all clients of the key
    /// need the same.
    pub const fn attempts(mut self, attempts: u32) -> Self {
        self.call_limits.attempts = attempts;
        self
    }

    /// One send and no retry. A refusal returns at once as `<name>_rate_limited`; the governor still learns from it,
    /// and the next call waits for the provider's Retry-After.
    pub const fn single_attempt(self) -> Self {
        self.attempts(1)
    }

    /// Longest time of one attempt, from its send until the head of its answer.
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.call_limits.attempt_timeout = timeout.min(TIMEOUT_MAX);
        self
    }

    /// Longest time between two pieces of a body.
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.body_limits.idle = timeout.min(TIMEOUT_MAX);
        self
    }

    /// Longest wait of a request before it is sent, retries included.
    pub const fn max_wait(mut self, max_wait: Duration) -> Self {
        self.call_limits.max_wait = Some(max_wait);
        self
    }

    /// Maximum size of a decoded body; 64 MiB unless set.
    pub const fn max_decoded_bytes(mut self, bytes: u64) -> Self {
        self.body_limits.decoded_bytes = bytes;
        self
    }

    /// Maximum growth of a body by decoding, beyond its first megabyte; 200 times unless set.
    pub const fn max_ratio(mut self, ratio: u32) -> Self {
        self.body_limits.ratio = ratio;
        self
    }

    /// Maximum number of redirects; 10 unless set. With 0 a redirect is returned as an answer.
    pub const fn max_redirects(mut self, max: u32) -> Self {
        self.redirect_rules.max = max;
        self
    }

    /// Whether a redirect to another origin may lead to a private address. Off unless set: a provider could make this
    /// machine send requests to its local network.
    pub const fn allow_private_redirects(mut self, allowed: bool) -> Self {
        self.redirect_rules.private_allowed = allowed;
        self
    }

    /// Classifies answers, for providers that throttle in their own way.
    pub fn classifier(mut self, classifier: impl Classifier + Send + Sync + 'static) -> Self {
        self.classifier = Arc::new(classifier);
        self
    }

    /// Lets the classifier see the first `bytes` of every body. Of error answers it always sees the
    /// first 16 KiB.
    pub const fn peek_body(mut self, bytes: usize) -> Self {
        self.peek_bytes = bytes;
        self
    }

    /// The registry whose governors are used; [`Governors::global`] unless set.
    pub fn governors(mut self, governors: Governors) -> Self {
        self.governors = governors;
        self
    }

    /// Whether cookies are stored and sent back to their origin. On unless set.
    pub const fn cookie_store(mut self, enabled: bool) -> Self {
        self.keeps_cookies = enabled;
        self
    }

    /// Records every exchange: each hop and attempt, with its answer.
    pub fn recorder(mut self, recorder: Arc<dyn Recorder>) -> Self {
        self.record_replay.recorder = Some(recorder);
        self
    }

    /// Replays answers from a recording: no socket is opened, and nothing waits.
    pub fn player(mut self, player: Arc<dyn Player>) -> Self {
        self.record_replay.player = Some(player);
        self
    }

    /// Trusts a further certificate authority (PEM) beside those of the platform, such as a company's own.
    pub fn extra_root_certificate(mut self, pem: impl AsRef<[u8]>) -> Self {
        self.roots.push(pem.as_ref().to_vec());
        self
    }

    /// Builds the client.
    ///
    /// # Errors
    /// A header or certificate is invalid, TLS cannot be set up, or the key is governed with other settings already.
    pub fn build(mut self) -> Result<GovernedClient, Error> {
        if let Some(fault) = self.fault {
            return Err(fault.into());
        }
        let backoff = &mut self.settings.config.backoff;
        backoff.attempts = backoff.attempts.max(self.call_limits.attempts);
        let credential = self.credential.or(self.bearer);
        let key = self.governors.key(&self.name, credential.as_deref());
        let request_cap = self.settings.config.run_budget.request_cap;
        let replay_governor =
            self.record_replay.player.as_ref().map(|_| SendGovernor::for_replay(key.clone(), request_cap));
        let inner = Inner {
            wire: connections(&self.roots, false)?,
            guarded_wire: OnceLock::new(),
            roots: self.roots,
            governor: self.governors.governor(&key, &self.settings)?,
            governors: self.governors,
            name: self.name,
            default_headers: DefaultHeaders::new(self.headers),
            cookies: self.keeps_cookies.then(Cookies::default),
            call_limits: self.call_limits,
            body_limits: self.body_limits,
            redirect_rules: self.redirect_rules,
            classifier: self.classifier,
            peek_bytes: self.peek_bytes,
            record_replay: self.record_replay,
            replay_governor,
        };
        Ok(GovernedClient { inner: Arc::new(inner) })
    }

    /// Builds the blocking client, for programs without an async runtime.
    ///
    /// # Errors
    /// See [`build`](Self::build); also when no thread can be started.
    pub fn build_blocking(self) -> Result<blocking::Client, Error> {
        blocking::Client::around(self.build()?)
    }
}

/// Connections for the caller's own requests, or restricted to public addresses for redirect targets.
pub(super) fn connections(roots: &[Vec<u8>], must_be_public: bool) -> Result<reqwest::Client, Error> {
    let roots = roots.iter().map(|pem| reqwest::Certificate::from_pem(pem));
    let roots: Vec<_> = roots.collect::<Result<_, _>>().map_err(setup("a root certificate cannot be read"))?;
    let builder = client_builder();
    let builder = if roots.is_empty() { builder } else { builder.tls_certs_merge(roots) };
    let builder = if must_be_public { public_only(builder) } else { builder };
    builder.build().map_err(setup("TLS cannot be set up; are CA certificates installed (Debian: ca-certificates)?"))
}

fn setup(what: &'static str) -> impl Fn(reqwest::Error) -> Error {
    move |error| Error::Setup { what, source: error.without_url().into() }
}

// Omits credential and headers.
gleaner_base::debug_only!(ClientBuilder, |it| name = it.name);
