//! Accepts connections, with limits on their number, on the time to the first request, and on its size.

use crate::body::AnswerBody;
use crate::handler::Sidecar;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Maximum of connections: twice the thousand callers of a busy machine. Their buffers take up to 2 × 64 KiB each, so
/// 256 MiB at worst. Further ones wait in the system's queue.
const CONNECTIONS_MAX: usize = 2048;
/// Time for the head of a request, and idle time of a connection: silent connections do not keep others out for
/// longer.
const HEAD_WITHIN: Duration = Duration::from_secs(30);
/// Maximum size of a request's head: the usual maximum of servers, with room for one large token.
const HEAD_MAX: u32 = 64 * 1024;
/// Concurrent requests on one HTTP/2 connection; clients expect at least 100.
const STREAMS_MAX: u32 = 256;
/// Flow-control window of one stream, and of a connection.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 4 * STREAM_WINDOW;
/// Interval of keep-alive pings to a silent HTTP/2 caller.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// Time for requests in flight at shutdown; service managers wait longer.
const GRACE: Duration = Duration::from_secs(10);
/// Pause after a failed accept (no more file handles): an immediate retry would fail too.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until `shutdown`, then lets requests in flight end.
pub(crate) async fn serve(listener: TcpListener, sidecar: Arc<Sidecar>, shutdown: impl Future<Output = ()> + Send) {
    let graceful = GracefulShutdown::new();
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut tasks = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            () = &mut shutdown => break,
            Some(_ended) = tasks.join_next() => continue,
            accepted = accept(&listener, &slots) => accepted,
        };
        match accepted {
            Ok((stream, slot)) => {
                tasks.spawn(connection(stream, Arc::clone(&sidecar), graceful.watcher(), slot));
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                let _pause = timeout(ACCEPT_PAUSE, pending::<()>()).await;
            }
        }
    }
    drop(listener);
    let left = graceful.count();
    if timeout(GRACE, graceful.shutdown()).await.is_err() {
        tracing::warn!(connections = left, "shutdown timeout: open connections were closed");
    }
    tasks.shutdown().await;
}

/// Accepts a connection as soon as there is room.
async fn accept(listener: &TcpListener, slots: &Arc<Semaphore>) -> io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let slot = Arc::clone(slots).acquire_owned().await.map_err(io::Error::other)?;
    let (stream, _caller) = listener.accept().await?;
    stream.set_nodelay(true)?;
    Ok((stream, slot))
}

async fn connection(stream: TcpStream, sidecar: Arc<Sidecar>, watcher: Watcher, _slot: OwnedSemaphorePermit) {
    let _counted = Counted::new(Arc::clone(&sidecar));
    let first_request = Arc::new(Notify::new());
    let heard = Arc::clone(&first_request);
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        heard.notify_one();
        let sidecar = Arc::clone(&sidecar);
        async move { Ok::<hyper::Response<AnswerBody>, Infallible>(sidecar.answer(request).await) }
    });
    let builder = builder();
    let mut connection = pin!(watcher.watch(builder.serve_connection(TokioIo::new(stream), service).into_owned()));
    // hyper's own timeout for heads starts only when it knows the HTTP version.
    let ended = tokio::select! {
        ended = &mut connection => ended,
        heard = timeout(HEAD_WITHIN, first_request.notified()) => match heard {
            Ok(()) => connection.await,
            Err(_elapsed) => return,
        },
    };
    if let Err(error) = ended {
        // Broken connections are normal; only a debug log shows them.
        tracing::debug!(error, "a connection broke");
    }
}

fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_buf_size(HEAD_MAX as usize)
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(KEEP_ALIVE)
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(HEAD_MAX)
        .max_send_buf_size(HEAD_MAX as usize)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    builder
}

/// Counts a connection while it is open.
struct Counted(Arc<Sidecar>);

impl Counted {
    fn new(sidecar: Arc<Sidecar>) -> Self {
        sidecar.connections.fetch_add(1, Ordering::Relaxed);
        Self(sidecar)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}
