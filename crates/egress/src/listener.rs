//! Accepts connections and ends them: bounded in number, in the time to say something, and in the size of
//! what is said first.

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

/// Connections at a time: twice the thousand callers that a busy machine has. Their buffers can take
/// 2 × 64 KiB each, so 256 MiB at worst. One more waits in the system's queue until another one ends.
const CONNECTIONS_MAX: usize = 2048;
/// Time for the head of a request, and how long a connection may lie unused: whoever opens connections
/// to say nothing does not keep others out for longer.
const HEAD_WITHIN: Duration = Duration::from_secs(30);
/// Longest head of a request: what servers allow at most, and room for one large token.
const HEAD_MAX: u32 = 64 * 1024;
/// Requests at a time on one HTTP/2 connection; what clients expect to get at least is 100.
const STREAMS_MAX: u32 = 256;
/// What a caller may send ahead on one stream, and on all of a connection.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 4 * STREAM_WINDOW;
/// How often a silent HTTP/2 caller is asked whether it is there.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// How long what is out may take when the sidecar is stopped; what service managers wait is more.
const GRACE: Duration = Duration::from_secs(10);
/// Pause after the system could not give us a connection (no more file handles): it will not at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until `shutdown`, then lets what is out end.
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
        tracing::warn!(connections = left, "requests that took too long to end were cut off");
    }
    tasks.shutdown().await;
}

/// A connection, as soon as there is room for one more.
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
    // hyper's own limit on heads begins when it knows which version of HTTP it is, and not before.
    let ended = tokio::select! {
        ended = &mut connection => ended,
        heard = timeout(HEAD_WITHIN, first_request.notified()) => match heard {
            Ok(()) => connection.await,
            Err(_elapsed) => return,
        },
    };
    if let Err(error) = ended {
        // Callers come and go; only who looks for trouble wants to hear of it.
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

/// Counts a connection for as long as it lives.
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
