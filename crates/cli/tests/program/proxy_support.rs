//! `gleaner proxy` as a process of its own, an upstream to put it before, and callers.

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response, Version};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use std::convert::Infallible;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

pub(crate) type Body = BoxBody<Bytes, Infallible>;

pub(crate) fn body(data: impl Into<Bytes>) -> Body {
    Full::new(data.into()).boxed()
}

/// A sidecar, killed when it is dropped.
pub(crate) struct Sidecar {
    child: Child,
    pub(crate) address: SocketAddr,
    /// What it printed to stderr so far.
    printed: Arc<Mutex<String>>,
}

impl Sidecar {
    pub(crate) fn start(upstream: &str, home: &Path, arguments: &[&str]) -> Self {
        Self::start_with(upstream, home, arguments, &[])
    }

    pub(crate) fn start_with(upstream: &str, home: &Path, arguments: &[&str], env: &[(&str, &str)]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_gleaner"))
            .args(["proxy", "--upstream", upstream, "--listen", "127.0.0.1:0"])
            .args(arguments)
            .env("GLEANER_HOME", home)
            .envs(env.iter().copied())
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("the program starts");
        let mut stderr = BufReader::new(child.stderr.take().expect("stderr is piped"));
        let mut first = String::new();
        stderr.read_line(&mut first).expect("stderr is text");
        let address = first.split_once("http://").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
        let address = address.unwrap_or_else(|| panic!("no address in {first:?}"));
        let printed = Arc::new(Mutex::new(first));
        let log = Arc::clone(&printed);
        thread::spawn(move || {
            for line in stderr.lines() {
                let Ok(line) = line else { return };
                *log.lock().unwrap() += &format!("{line}\n");
            }
        });
        Self { child, address, printed }
    }

    pub(crate) fn printed(&self) -> String {
        self.printed.lock().unwrap().clone()
    }

    /// `kill -9`.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    /// Most memory that it ever had, in bytes.
    pub(crate) fn peak_memory(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
    }

    pub(crate) fn request(&self, target: &str) -> hyper::http::request::Builder {
        Request::builder().uri(format!("http://{}{target}", self.address))
    }

    pub(crate) async fn status(&self) -> serde_json::Value {
        let got = send(&caller(), self.request("/.gleaner/status"), "").await;
        serde_json::from_str(&got.text).unwrap()
    }
}

impl Drop for Sidecar {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _status = self.child.wait();
    }
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

pub(crate) type Caller = Client<HttpConnector, Body>;

pub(crate) fn caller() -> Caller {
    Client::builder(TokioExecutor::new()).build_http()
}

pub(crate) async fn send(caller: &Caller, request: hyper::http::request::Builder, data: &'static str) -> Got {
    let answer = caller.request(request.body(body(data)).unwrap()).await.unwrap();
    let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    Got { status, headers, text: String::from_utf8(bytes.to_vec()).unwrap() }
}

/// When a request came, and over which version of HTTP.
pub(crate) type Arrival = (Instant, Version);

/// An upstream with a thread of its own, so that what it measures does not depend on its callers.
#[derive(Clone)]
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    arrivals: Arc<Mutex<Vec<Arrival>>>,
}

impl Upstream {
    /// Answers request number `n` (from 0).
    pub(crate) fn start<F>(tls: Option<TlsAcceptor>, answer: F) -> Self
    where
        F: Fn(usize, &Request<Incoming>) -> Response<Body> + Send + Sync + 'static,
    {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let upstream = Self { address: listener.local_addr().unwrap(), arrivals: Arc::default() };
        listener.set_nonblocking(true).unwrap();
        let (arrivals, answer) = (Arc::clone(&upstream.arrivals), Arc::new(answer));
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(accept(listener, tls, arrivals, answer));
        });
        upstream
    }

    pub(crate) fn arrivals(&self) -> Vec<Arrival> {
        self.arrivals.lock().unwrap().clone()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

async fn accept<F>(
    listener: std::net::TcpListener,
    tls: Option<TlsAcceptor>,
    arrivals: Arc<Mutex<Vec<Arrival>>>,
    answer: Arc<F>,
) where
    F: Fn(usize, &Request<Incoming>) -> Response<Body> + Send + Sync + 'static,
{
    let listener = TcpListener::from_std(listener).unwrap();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (tls, arrivals, answer) = (tls.clone(), Arc::clone(&arrivals), Arc::clone(&answer));
        tokio::spawn(async move {
            match tls {
                None => serve(stream, arrivals, answer).await,
                Some(tls) => {
                    if let Ok(stream) = tls.accept(stream).await {
                        serve(stream, arrivals, answer).await;
                    }
                }
            }
        });
    }
}

async fn serve<S, F>(stream: S, arrivals: Arc<Mutex<Vec<Arrival>>>, answer: Arc<F>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    F: Fn(usize, &Request<Incoming>) -> Response<Body> + Send + Sync + 'static,
{
    let service = service_fn(move |request: Request<Incoming>| {
        let number = {
            let mut arrivals = arrivals.lock().unwrap();
            arrivals.push((Instant::now(), request.version()));
            arrivals.len() - 1
        };
        let answered = answer(number, &request);
        async move {
            let _all = request.into_body().collect().await;
            Ok::<_, Infallible>(answered)
        }
    });
    let _ended = Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
}

/// Waits until `is_so`, and fails if it is not so soon.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, is_so: impl Fn() -> F) {
    for _ in 0..500 {
        if is_so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("never {what}");
}
