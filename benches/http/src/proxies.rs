//! The smallest reverse proxy that hyper makes possible, next to the sidecar.
//!
//! Each proxy has a thread of its own. The callers are bare connections of hyper, so that most of the
//! work is the proxy's.

use crate::CALLERS;
use crate::rounds::{self, Measured, Side, Thread};
use crate::server::{accept, runtime};
use bytes::Bytes;
use gleaner_http::Settings;
use gleaner_http::governor::Config;
use gleaner_egress::{self as proxy, Proxy, Upstream};
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Request, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

pub fn measure(upstream: SocketAddr, time: Duration) -> Vec<Measured> {
    let runtime = runtime();
    let sides = vec![
        side("plain hyper proxy", &runtime, start_plain(upstream)),
        side("gleaner proxy", &runtime, start_sidecar(upstream)),
    ];
    rounds::measure(sides, time)
}

/// A proxy, and the thread that does its work.
struct Started {
    address: SocketAddr,
    thread: Thread,
}

/// Starts a thread that ends with the process.
fn spawn(work: impl FnOnce() + Send + 'static) -> Thread {
    let (tell, told) = std::sync::mpsc::channel();
    thread::spawn(move || {
        tell.send(Thread::current()).expect("it is waited for");
        work();
    });
    told.recv().expect("it has started")
}

/// Passes everything on as it comes.
fn start_plain(upstream: SocketAddr) -> Started {
    let runtime = runtime();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("loopback is there");
    let address = listener.local_addr().expect("it is bound");
    let thread = spawn(move || {
        let client = Client::builder(TokioExecutor::new()).build_http();
        runtime.block_on(accept(listener, move |mut request| {
            *request.uri_mut() = there(upstream, request.uri());
            client.request(request)
        }));
    });
    Started { address, thread }
}

fn there(upstream: SocketAddr, uri: &Uri) -> Uri {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    format!("http://{upstream}{path}").parse().expect("a URI")
}

/// The sidecar, with pacing opted out and as many kept connections as there are callers.
fn start_sidecar(upstream: SocketAddr) -> Started {
    let unpaced = crate::clients::unpaced();
    let concurrency = u16::try_from(CALLERS * 2).expect("a few callers");
    let settings = Settings { config: Config { max_concurrency: concurrency, ..unpaced.config }, ..unpaced };
    let upstream = Upstream::parse(&format!("http://{upstream}")).expect("an upstream");
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let config = proxy::Config { listen, settings, ..proxy::Config::new(upstream) };
    let runtime = runtime();
    let proxy = runtime.block_on(Proxy::bind(config)).expect("a sidecar");
    let address = proxy.local_addr();
    let thread = spawn(move || runtime.block_on(proxy.serve(std::future::pending())));
    Started { address, thread }
}

/// All callers ask again and again, each on its own connection, until the slice is over.
fn side<'a>(name: &'static str, runtime: &'a Runtime, proxy: Started) -> Side<'a> {
    let mut connections: Vec<_> = runtime.block_on(async {
        let mut connections = Vec::new();
        for _ in 0..CALLERS {
            connections.push(connect(proxy.address).await);
        }
        connections
    });
    let host = proxy.address.to_string();
    let load = move |slice| {
        let end = Instant::now() + slice;
        let mut callers = JoinSet::new();
        for mut connection in connections.drain(..) {
            let host = host.clone();
            let caller = async move {
                let mut answers = 0;
                while Instant::now() < end {
                    get(&mut connection, &host).await;
                    answers += 1;
                }
                (connection, answers)
            };
            callers.spawn_on(caller, runtime.handle());
        }
        let done = runtime.block_on(callers.join_all());
        let answers = done.iter().map(|(_, answers)| answers).sum();
        connections.extend(done.into_iter().map(|(connection, _)| connection));
        answers
    };
    Side { name, thread: Some(proxy.thread), load: Box::new(load) }
}

type Connection = SendRequest<Empty<Bytes>>;

async fn connect(proxy: SocketAddr) -> Connection {
    let stream = TcpStream::connect(proxy).await.expect("the proxy listens");
    stream.set_nodelay(true).expect("a TCP socket");
    let (connection, driver) = handshake(TokioIo::new(stream)).await.expect("HTTP");
    tokio::spawn(driver);
    connection
}

async fn get(connection: &mut Connection, host: &str) {
    connection.ready().await.expect("the connection is kept");
    let request = Request::get("/items/4711").header("host", host).body(Empty::new()).expect("a request");
    let answer = connection.send_request(request).await.expect("an answer");
    assert!(answer.status().is_success(), "{}", answer.status());
    let body = answer.into_body().collect().await.expect("a body");
    assert!(!body.to_bytes().is_empty());
}
