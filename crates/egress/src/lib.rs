//! The sidecar: a reverse proxy on loopback that gives every language what `gleaner-http` gives Rust.
//!
//! A program makes the sidecar its base URL, and nothing else changes: paths, headers and bodies pass as
//! they are. What changes is when a request goes out ([`SendGovernor`](gleaner_http::SendGovernor)), and that a
//! request which the provider refuses is repeated inside, if that does nothing twice.
//!
//! ```no_run
//! use gleaner_egress::{Config, Proxy, Upstream};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let config = Config::new(Upstream::parse("https://api.example.com")?);
//! let proxy = Proxy::bind(config).await?;
//! println!("listening on {}", proxy.local_addr());
//! proxy.serve(std::future::pending()).await; // until the program ends
//! # Ok(())
//! # }
//! ```
//!
//! # What a caller can say and hear
//!
//! | header | of | meaning |
//! |---|---|---|
//! | `Gleaner-Max-Wait` | request | seconds that it may wait before it is sent, 120 if absent |
//! | `Gleaner-Reason` | answer | why the sidecar answered itself, or why it did not repeat what it passes on |
//! | `Gleaner-Attempts` | answer | how often the request was sent; beside a reason |
//! | `Gleaner-Answered-By` | answer | `sidecar` on answers that are not the upstream's |
//!
//! `GET /.gleaner/status` and `GET /.gleaner/metrics` show what was learned and why requests wait.
//!
//! # What is deliberately absent
//!
//! - `Via`, `Forwarded` and `X-Forwarded-For`: the upstream sees what it would see without us.
//! - A cache, a rewritten body, another encoding.
//! - WebSockets and `CONNECT`: a tunnel is not a request that a limit is counted by.
//! - An option to accept a certificate that is not trusted.
//!
//! # Files
//!
//! - `listener.rs`, `extract.rs`: connections and their limits; which requests are let in
//! - `handler.rs`, `forward.rs`: one request's way through; sending it once
//! - `connect.rs`, `upstream.rs`: the way to the upstream; where that is
//! - `body.rs`, `stalled_body.rs`: bodies that can be sent again, and bodies that stall
//! - `hygiene.rs`, `links.rs`, `max_wait.rs`: headers that do not pass; links back to the sidecar; how long a caller
//!   waits
//! - `respond.rs`, `inspect.rs`: the sidecar's own answers; its status and metrics

#![warn(missing_docs)]

mod body;
mod connect;
mod extract;
mod forward;
mod handler;
mod hygiene;
mod inspect;
mod links;
mod listener;
mod max_wait;
mod respond;
mod stalled_body;
mod upstream;

use gleaner_http::{CallLimits, Governors, KeyError, Settings};
use handler::{REQUESTS_MAX, Sidecar};
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

pub use upstream::{Upstream, UpstreamError};

/// How a sidecar is set up.
#[derive(Clone, Debug)]
pub struct Config {
    /// Whom it stands for.
    pub upstream: Upstream,
    /// Where it listens. Anyone who reaches this address can use the sidecar.
    pub listen: SocketAddr,
    /// Where its governors are; they remember if this does.
    pub governors: Governors,
    /// How its keys are governed.
    pub settings: Settings,
    /// Attempts and timeouts of a request; its `max_wait` holds for callers that name none.
    pub call_limits: CallLimits,
    /// Whether each `Authorization` has a limit of its own. It is kept only as a keyed hash.
    pub per_authorization: bool,
    /// Whether requests may leave this machine in plain text.
    pub allow_insecure_upstream: bool,
}

/// Where a sidecar listens unless told otherwise.
pub const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8717);
/// How long a caller waits unless it says otherwise: as long as the patient ones among HTTP clients.
pub const MAX_WAIT: Duration = Duration::from_secs(120);

impl Config {
    /// A sidecar for `upstream`, with defaults for the rest, that forgets when it ends.
    #[must_use]
    pub fn new(upstream: Upstream) -> Self {
        Self {
            upstream,
            listen: LISTEN,
            governors: Governors::new(),
            settings: Settings::default(),
            call_limits: CallLimits { max_wait: Some(MAX_WAIT), ..CallLimits::default() },
            per_authorization: false,
            allow_insecure_upstream: false,
        }
    }
}

/// Why there is no sidecar.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// Nobody can listen there, or somebody else does.
    #[error("cannot listen on {listen}")]
    Listen {
        /// Where.
        listen: SocketAddr,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Requests and credentials would leave this machine in plain text. Holds which.
    #[error("{0} is plain http to another machine: everyone on the way could read what is sent")]
    InsecureUpstream(Upstream),
    /// It would forward to itself for ever. Holds which.
    #[error("{0} is the sidecar itself")]
    UpstreamIsSelf(Upstream),
    /// This machine cannot check certificates.
    #[error("cannot set up TLS")]
    Tls(#[source] rustls::Error),
    /// Somebody else in this process governs the upstream otherwise.
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// A sidecar that listens already; connections wait until it is served.
pub struct Proxy {
    listener: TcpListener,
    sidecar: Arc<Sidecar>,
    stop: watch::Sender<bool>,
}

impl Proxy {
    /// Listens, and prepares the way to the upstream without going it.
    ///
    /// # Errors
    /// When the address is not free, when the upstream may not be used, or when TLS cannot be set up.
    pub async fn bind(config: Config) -> Result<Self, ProxyError> {
        let upstream = config.upstream;
        if upstream.is_insecure() && !config.allow_insecure_upstream {
            return Err(ProxyError::InsecureUpstream(upstream));
        }
        let idle_max = usize::from(config.settings.config.max_concurrency);
        let client = connect::client(&upstream, idle_max).map_err(ProxyError::Tls)?;
        let fail = |source| ProxyError::Listen { listen: config.listen, source };
        let listener = TcpListener::bind(config.listen).await.map_err(fail)?;
        let listen = listener.local_addr().map_err(fail)?;
        if upstream.is_loopback() && listen.ip().is_loopback() && upstream.port() == Some(listen.port()) {
            return Err(ProxyError::UpstreamIsSelf(upstream));
        }
        let governor = if config.per_authorization {
            None
        } else {
            let key = config.governors.key(upstream.provider(), None);
            Some(config.governors.governor(&key, &config.settings)?)
        };
        let (stop, is_stopping) = watch::channel(false);
        let sidecar = Arc::new(Sidecar {
            upstream,
            listen,
            client,
            governors: config.governors,
            settings: config.settings,
            call_limits: config.call_limits,
            governor,
            budget: Arc::default(),
            places: Arc::new(Semaphore::new(REQUESTS_MAX)),
            connections: AtomicUsize::new(0),
            started: Instant::now(),
            is_stopping,
        });
        Ok(Self { listener, sidecar, stop })
    }

    /// Where it listens, with the port that the system chose if it was asked to.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.sidecar.listen
    }

    /// Its governors: what was learned, and why requests wait.
    #[must_use]
    pub fn governors(&self) -> &Governors {
        &self.sidecar.governors
    }

    /// Serves until `shutdown`. Then nothing new is accepted, what waits is told so, what is out has ten
    /// seconds to end, and what was learned is written down.
    pub async fn serve(self, shutdown: impl Future<Output = ()> + Send) {
        let governors = self.sidecar.governors.clone();
        let stop = self.stop;
        let shutdown = async move {
            shutdown.await;
            stop.send_replace(true);
        };
        listener::serve(self.listener, self.sidecar, shutdown).await;
        if tokio::task::spawn_blocking(move || governors.save()).await.is_err() {
            tracing::warn!("the thread that writes down what was learned is gone");
        }
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("listen", &self.sidecar.listen).finish_non_exhaustive()
    }
}
