//! An upstream that does what a test says, a sidecar before it, and callers.

use bytes::Bytes;
use gleaner_egress::{Config, Proxy, Upstream};
use gleaner_http::governor::BackoffConfig;
use gleaner_http::{Governors, Settings, Status};
use http::{HeaderMap, Method, Request, Response, Version};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub(crate) type TestBody = BoxBody<Bytes, io::Error>;
pub(crate) type TestAnswer = Result<Response<TestBody>, io::Error>;

pub(crate) fn body(data: impl Into<Bytes>) -> TestBody {
    Full::new(data.into()).map_err(|never| match never {}).boxed()
}

/// An answer with a status, headers and a text.
pub(crate) fn answer(status: u16, headers: &[(&str, &str)], text: &str) -> TestAnswer {
    let mut answer = Response::builder().status(status);
    for (name, value) in headers {
        answer = answer.header(*name, *value);
    }
    Ok(answer.body(body(text.to_owned())).unwrap())
}

/// The connection ends without an answer.
pub(crate) fn no_answer() -> TestAnswer {
    Err(io::Error::other("ended on purpose"))
}

/// A request as the upstream saw it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: Method,
    pub(crate) target: String,
    pub(crate) headers: HeaderMap,
}

/// An upstream on a port of its own.
pub(crate) struct TestUpstream {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    task: JoinHandle<()>,
}

impl TestUpstream {
    /// Answers request number `n` (from 0) with what `handler` says.
    pub(crate) async fn start<F, A>(handler: F) -> Self
    where
        F: Fn(usize, Request<Incoming>) -> A + Send + Sync + 'static,
        A: Future<Output = TestAnswer> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (log, handler) = (Arc::clone(&seen), Arc::new(handler));
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (log, handler) = (Arc::clone(&log), Arc::clone(&handler));
                let service = service_fn(move |request: Request<Incoming>| {
                    let number = note(&log, &request);
                    handler(number, request)
                });
                tokio::spawn(async move {
                    let _ended =
                        Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Self { address, seen, task }
    }

    /// Answers everything with 200 and `ok`.
    pub(crate) async fn ok() -> Self {
        Self::start(|_, _| async { answer(200, &[], "ok") }).await
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.seen.lock().unwrap().len()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for TestUpstream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn note(log: &Mutex<Vec<Seen>>, request: &Request<Incoming>) -> usize {
    let mut log = log.lock().unwrap();
    let (method, target) = (request.method().clone(), request.uri().to_string());
    log.push(Seen { method, target, headers: request.headers().clone() });
    log.len() - 1
}

/// Settings that hardly hold anything up.
pub(crate) fn fast() -> Settings {
    let mut settings = Settings::default();
    settings.config.discovery_interval = Duration::from_millis(2);
    settings.config.ceiling_interval = Duration::from_millis(1);
    settings.config.backoff =
        BackoffConfig { base: Duration::from_millis(5), cap: Duration::from_millis(20), ..BackoffConfig::default() };
    settings
}

/// A sidecar that runs until it is dropped.
pub(crate) struct TestSidecar {
    pub(crate) address: SocketAddr,
    pub(crate) governors: Governors,
    stop: Option<oneshot::Sender<()>>,
    pub(crate) task: JoinHandle<()>,
}

impl TestSidecar {
    pub(crate) async fn before(upstream: &str) -> Self {
        Self::with(upstream, |_| {}).await
    }

    /// With other settings than [`fast`].
    pub(crate) async fn with(upstream: &str, change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::new(Upstream::parse(upstream).unwrap());
        config.listen = "127.0.0.1:0".parse().unwrap();
        config.settings = fast();
        change(&mut config);
        let proxy = Proxy::bind(config).await.unwrap();
        let (address, governors) = (proxy.local_addr(), proxy.governors().clone());
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(proxy.serve(async { drop(stopped.await) }));
        Self { address, governors, stop: Some(stop), task }
    }

    pub(crate) fn stop(&mut self) {
        self.stop = None;
    }

    pub(crate) fn status(&self) -> Status {
        self.governors.all()[0].status()
    }

    pub(crate) fn url(&self, target: &str) -> String {
        format!("http://{}{target}", self.address)
    }

    pub(crate) fn get(&self, target: &str) -> http::request::Builder {
        Request::get(self.url(target))
    }

    pub(crate) fn post(&self, target: &str) -> http::request::Builder {
        Request::post(self.url(target))
    }

    /// Waits until `is_so`, and fails if it is not so soon.
    pub(crate) async fn until(&self, what: &str, is_so: impl Fn(&Status) -> bool) {
        for _ in 0..500 {
            if is_so(&self.status()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("never {what}: {:?}", self.status());
    }
}

/// An answer that was read to its end.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) version: Version,
    pub(crate) body: Bytes,
    pub(crate) trailers: Option<HeaderMap>,
}

impl Got {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Status and reason of an answer that is the sidecar's own.
    pub(crate) fn own(&self) -> (u16, &str) {
        assert_eq!(self.header("gleaner-answered-by"), Some("sidecar"), "{self:?}");
        let reason = self.header("gleaner-reason").unwrap();
        let told = self.json();
        assert_eq!(told["reason"], reason);
        assert!(told["error"].is_string() && told["hint"].is_string(), "{told}");
        assert_eq!(told["retry_after_s"].as_u64().map(|s| s.to_string()).as_deref(), self.header("retry-after"));
        (self.status, reason)
    }
}

pub(crate) type Caller = Client<HttpConnector, TestBody>;

pub(crate) fn caller() -> Caller {
    Client::builder(TokioExecutor::new()).build_http()
}

pub(crate) fn http2_caller() -> Caller {
    Client::builder(TokioExecutor::new()).http2_only(true).build_http()
}

pub(crate) async fn send(caller: &Caller, request: http::request::Builder, data: impl Into<Bytes>) -> Got {
    read(caller.request(request.body(body(data)).unwrap()).await.unwrap()).await
}

/// Sends without a body.
pub(crate) async fn ask(request: http::request::Builder) -> Got {
    send(&caller(), request, "").await
}

pub(crate) async fn read(answer: Response<Incoming>) -> Got {
    let (head, body) = answer.into_parts();
    let collected = body.collect().await.unwrap();
    let trailers = collected.trailers().cloned();
    Got {
        status: head.status.as_u16(),
        headers: head.headers,
        version: head.version,
        body: collected.to_bytes(),
        trailers,
    }
}

/// Sends bytes as they are and reads until the other end closes.
pub(crate) async fn raw(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // A reset after the answer is as good an end as any.
    let _end = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}
