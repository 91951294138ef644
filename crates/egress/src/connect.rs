//! Connections to the upstream: pooled, HTTP/2 where TLS negotiates it, certificates checked by the platform. The
//! check cannot be turned off.

use crate::body::Upload;
use crate::upstream::Upstream;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::crypto::CryptoProvider;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt as _;
use std::sync::Arc;
use std::time::Duration;

pub(crate) type UpstreamClient = Client<HttpsConnector<HttpConnector>, Upload>;

/// Connect timeout. Three TCP tries fit into it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Idle time of a pooled connection: less than the 5 s after which Node and Apache close it, because a request on a
/// closing connection is lost, and a lost POST is not retried.
const POOL_IDLE: Duration = Duration::from_secs(4);
/// Interval of keep-alive pings on a silent connection.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// Maximum size of an answer's head; four times the default of servers.
const ANSWER_HEAD_MAX: usize = 128 * 1024;
/// Data that the upstream may send ahead of a slow caller, per answer: 2.5 MB/s at 100 ms.
const STREAM_WINDOW: u32 = 256 * 1024;
/// The same for all answers on one connection: up to 255 stalled callers do not hold up the others.
const CONNECTION_WINDOW: u32 = 256 * STREAM_WINDOW;

/// A client for `upstream` with at most `idle_max` idle connections.
pub(crate) fn client(upstream: &Upstream, idle_max: usize) -> Result<UpstreamClient, rustls::Error> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
    tcp.set_keepalive(Some(KEEP_ALIVE));
    let connector = HttpsConnectorBuilder::new().with_tls_config(tls_config(upstream)?);
    let connector = if upstream.is_tls() { connector.https_only() } else { connector.https_or_http() };
    let connector = connector.enable_all_versions().wrap_connector(tcp);
    Ok(Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(POOL_IDLE)
        .pool_max_idle_per_host(idle_max)
        .http1_max_buf_size(ANSWER_HEAD_MAX)
        .http2_initial_stream_window_size(STREAM_WINDOW)
        .http2_initial_connection_window_size(CONNECTION_WINDOW)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .build(connector))
}

fn tls_config(upstream: &Upstream) -> Result<ClientConfig, rustls::Error> {
    // The provider of the process, or ring, which needs only a C compiler to build.
    let ring = || Arc::new(rustls::crypto::ring::default_provider());
    let provider = CryptoProvider::get_default().cloned().unwrap_or_else(ring);
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    // A machine without certificates can still use a plain local upstream.
    let builder = if upstream.is_tls() {
        builder.with_platform_verifier()?
    } else {
        builder.with_root_certificates(RootCertStore::empty())
    };
    Ok(builder.with_no_client_auth())
}
