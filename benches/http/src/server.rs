//! The provider: answers everything with the same small body, on a thread of its own.

use bytes::Bytes;
use http_body_util::Full;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::thread;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

/// What a small answer of an API looks like.
const ANSWER: &[u8] =
    br#"{"id":4711,"name":"an item of some list","updated_at":"2026-11-14T12:00:00Z","tags":["a","b"]}"#;

/// Starts it; it ends with the process.
pub fn start() -> SocketAddr {
    let runtime = runtime();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("loopback is there");
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        runtime.block_on(accept(listener, |_| async {
            let mut answer = Response::new(Full::new(Bytes::from_static(ANSWER)));
            answer.headers_mut().insert("content-type", "application/json".parse().expect("a header value"));
            Ok::<_, Infallible>(answer)
        }));
    });
    address
}

/// Serves HTTP/1.1 on every connection.
pub async fn accept<F, R, E, B>(listener: TcpListener, answer: F)
where
    F: Fn(Request<hyper::body::Incoming>) -> R + Clone + Send + 'static,
    R: Future<Output = Result<Response<B>, E>> + Send + 'static,
    E: Into<Box<dyn std::error::Error + Send + Sync>> + 'static,
    B: hyper::body::Body<Data: Send, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send + 'static,
{
    while let Ok((stream, _)) = listener.accept().await {
        stream.set_nodelay(true).expect("a TCP socket");
        let service = service_fn(answer.clone());
        tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

/// All cores, as `#[tokio::main]` has it.
pub fn usual_runtime() -> Runtime {
    Builder::new_multi_thread().enable_all().build().expect("a runtime")
}

/// One thread: what is measured has a core, and everything else has the other.
pub fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}
