//! The listener: connections in, requests to whoever answers them, and an end when it is told so.
//!
//! Everything that a stranger could do without a credential is bounded here: connections at a time, the size and the time
//! of a head. HTTP/1.1 alone; a console needs no more, and less can go wrong.

use crate::server::handler::RequestHandler;
use crate::server::slow_clients::Patient;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

/// Connections at a time: all streams of events, some browsers with six each, and scripts. Each holds some 20 KiB, and a
/// file descriptor of the 1024 that a process commonly has.
pub(crate) const CONNECTIONS_MAX: usize = 640;
/// How long a head may take, and how long a connection may be kept without a request.
const HEAD_MAX: Duration = Duration::from_secs(10);
/// The longest head. Cookies of other programs on this machine come with each request.
const HEAD_BYTES_MAX: usize = 32 * 1024;
/// Headers of one request.
const HEADERS_MAX: usize = 64;
/// How long answers may take that were begun when the end came.
const GOODBYE: Duration = Duration::from_secs(2);
/// A pause after the system had no room for a connection.
const PAUSE: Duration = Duration::from_millis(50);

/// Serves until `stop` is true.
pub(crate) async fn serve(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    answering: Arc<RequestHandler>,
    mut stop: watch::Receiver<bool>,
) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.wait_for(|stop| *stop) => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
        };
        let Ok((socket, _)) = accepted else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        // Who comes beyond that is hung up on at once: a queue would let the first hundred keep the owner out for long.
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            answering.figures.hung_up.inc();
            continue;
        };
        let (tls, answering, stop) = (tls.clone(), Arc::clone(&answering), stop.clone());
        connections.spawn(async move {
            connection(socket, tls, answering, stop).await;
            drop(place);
        });
    }
    drop(listener);
    let all_done = async { while connections.join_next().await.is_some() {} };
    // What takes longer ends with the runtime.
    let _done_in_time = timeout(GOODBYE, all_done).await;
}

async fn connection(
    socket: TcpStream,
    tls: Option<TlsAcceptor>,
    answering: Arc<RequestHandler>,
    stop: watch::Receiver<bool>,
) {
    // Answers are written in one piece; waiting for more would only delay them.
    let _best_effort = socket.set_nodelay(true);
    let socket = Patient::new(socket);
    let Some(tls) = tls else { return converse(socket, answering, stop).await };
    // Whoever does not speak TLS is hung up on: there is nothing that could be said in the clear.
    if let Ok(Ok(socket)) = timeout(HEAD_MAX, tls.accept(socket)).await {
        converse(socket, answering, stop).await;
    }
}

async fn converse(
    socket: impl AsyncRead + AsyncWrite + Unpin,
    answering: Arc<RequestHandler>,
    mut stop: watch::Receiver<bool>,
) {
    let service = service_fn(move |request| {
        let answering = Arc::clone(&answering);
        async move { Ok::<_, Infallible>(answering.answer(request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_MAX)
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(socket), service);
    tokio::pin!(connection);
    tokio::select! {
        // Why a connection ended is the other side's affair.
        _ended = &mut connection => return,
        _ = stop.wait_for(|stop| *stop) => connection.as_mut().graceful_shutdown(),
    }
    let _ended = connection.await;
}
