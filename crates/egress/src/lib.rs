//! The sidecar: a reverse proxy on loopback that brings `gleaner-http` to every language.
//!
//! A program uses the sidecar as its base URL, and nothing else changes: paths, headers and bodies pass unchanged.
//! The sidecar delays requests to stay under the rate limit ([`SendGovernor`](gleaner_http::SendGovernor)) and
//! retries refused ones if that is safe.
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
//! # Headers
//!
//! | header | of | meaning |
//! |---|---|---|
//! | `Gleaner-Max-Wait` | request | longest wait before the send in seconds, 120 if absent |
//! | `Gleaner-Reason` | answer | why the sidecar answered, or why it did not retry |
//! | `Gleaner-Attempts` | answer | number of sends; beside a reason |
//! | `Gleaner-Answered-By` | answer | `sidecar` on answers that are not the upstream's |
//!
//! `GET /.gleaner/status` and `GET /.gleaner/metrics` show the learned rates and why requests wait.
//!
//! # Deliberately absent
//!
//! - `Via`, `Forwarded` and `X-Forwarded-For`: the upstream sees the same as without us.
//! - A cache, a rewritten body, another encoding.
//! - WebSockets and `CONNECT`: rate limits do not count tunnels.
//! - An option to accept an untrusted certificate.
//!
//! # Files
//!
//! - `listener.rs`, `extract.rs`: connections and their limits; checks of requests
//! - `handler.rs`, `forward.rs`: path of one request; sending it
//! - `connect.rs`, `upstream.rs`: connections to the upstream; its URL
//! - `body.rs`, `stalled_body.rs`: bodies that can be sent again, and bodies that stall
//! - `hygiene.rs`, `links.rs`, `max_wait.rs`: header removal; links back to the sidecar; the caller's longest wait
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

/// Settings of a sidecar.
#[derive(Clone, Debug)]
pub struct Config {
    /// The upstream that it forwards to.
    pub upstream: Upstream,
    /// Address to listen on. Anyone who reaches it can use the sidecar.
    pub listen: SocketAddr,
    /// Its governors; they keep learned rates if this registry does.
    pub governors: Governors,
    /// Settings of its keys.
    pub settings: Settings,
    /// Attempts and timeouts of a request; `max_wait` applies to callers that set none.
    pub call_limits: CallLimits,
    /// Whether each `Authorization` has its own limit. It is stored only as a keyed hash.
    pub per_authorization: bool,
    /// Whether requests may leave this machine unencrypted.
    pub allow_insecure_upstream: bool,
}

/// Default address to listen on.
pub const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8717);
/// Default of the longest wait: like patient HTTP clients.
pub const MAX_WAIT: Duration = Duration::from_secs(120);

impl Config {
    /// A sidecar for `upstream` with defaults, whose learned rates are dropped when it ends.
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

/// Why the sidecar cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// The address is not available.
    #[error("cannot listen on {listen}")]
    Listen {
        /// The address.
        listen: SocketAddr,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// Requests and credentials would leave this machine unencrypted. Holds the upstream.
    #[error("{0} is plain http to another machine: everyone on the network path could read requests and credentials")]
    InsecureUpstream(Upstream),
    /// It would forward to itself. Holds the upstream.
    #[error("{0} is the sidecar itself")]
    UpstreamIsSelf(Upstream),
    /// TLS cannot be set up on this machine.
    #[error("cannot set up TLS")]
    Tls(#[source] rustls::Error),
    /// The key is governed with other settings in this process.
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// A bound sidecar; connections wait until `serve`.
pub struct Proxy {
    listener: TcpListener,
    sidecar: Arc<Sidecar>,
    stop: watch::Sender<bool>,
}

impl Proxy {
    /// Binds the address and prepares the client, without connecting to the upstream.
    ///
    /// # Errors
    /// The address is not free, the upstream is not allowed, or TLS cannot be set up.
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

    /// The address, with the port that the system chose if it was 0.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.sidecar.listen
    }

    /// Its governors: learned rates, and why requests wait.
    #[must_use]
    pub fn governors(&self) -> &Governors {
        &self.sidecar.governors
    }

    /// Serves until `shutdown`. Then it accepts nothing new, refuses waiting requests, gives requests in flight ten
    /// seconds, and saves the learned rates.
    pub async fn serve(self, shutdown: impl Future<Output = ()> + Send) {
        let governors = self.sidecar.governors.clone();
        let stop = self.stop;
        let shutdown = async move {
            shutdown.await;
            stop.send_replace(true);
        };
        listener::serve(self.listener, self.sidecar, shutdown).await;
        if tokio::task::spawn_blocking(move || governors.save()).await.is_err() {
            tracing::warn!("the thread that saves learned rates is gone");
        }
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("listen", &self.sidecar.listen).finish_non_exhaustive()
    }
}
