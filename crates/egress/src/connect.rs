//! The way to the upstream: pooled connections, HTTP/2 where TLS agrees on it, certificates as the platform
//! checks them. There is no way to turn that check off.

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

/// Longest wait for a connection. Three tries of TCP fit into it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a connection may lie unused: less than the 5 s after which Node and Apache close it, since a
/// request on a connection that is just being closed is lost, and a lost POST is not repeated.
const POOL_IDLE: Duration = Duration::from_secs(4);
/// How often a silent connection is asked whether the other end is still there.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// Longest head of an answer; four times what servers send by default.
const ANSWER_HEAD_MAX: usize = 128 * 1024;
/// What the upstream may send ahead of a caller that reads slowly, per answer: 2.5 MB/s at 100 ms.
const STREAM_WINDOW: u32 = 256 * 1024;
/// And of all answers on one connection together: as long as fewer than 256 callers do not read at all,
/// the others are not held up by them.
const CONNECTION_WINDOW: u32 = 256 * STREAM_WINDOW;

/// A client for `upstream` with at most `idle_max` connections in stock.
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
    // What the process has chosen, or ring: it builds with a C compiler and nothing else.
    let ring = || Arc::new(rustls::crypto::ring::default_provider());
    let provider = CryptoProvider::get_default().cloned().unwrap_or_else(ring);
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    // A machine without certificates can still talk to a plain upstream of its own.
    let builder = if upstream.is_tls() {
        builder.with_platform_verifier()?
    } else {
        builder.with_root_certificates(RootCertStore::empty())
    };
    Ok(builder.with_no_client_auth())
}
