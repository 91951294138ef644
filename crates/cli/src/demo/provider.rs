//! One of the laboratory's providers, over real HTTP: the same limits, on the wall clock.

use super::{LOST, NOTES, PAGE};
use gleaner_lab::provider::{Decision, Provider};
use gleaner_lab::scenario::Scenario;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;

/// What the provider has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) requests: u64,
    pub(crate) rejected: u64,
}

/// A provider that is running.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    provider: Mutex<(Provider, Seen)>,
    began: Instant,
    latency: Duration,
    status: u16,
}

impl Running {
    pub(crate) fn seen(&self) -> Seen {
        self.shared.provider.lock().map(|state| state.1).unwrap_or_default()
    }
}

/// Starts it on a free port of this machine, in a thread of its own.
pub(crate) fn start(scenario: &Scenario) -> io::Result<Running> {
    let shared = Arc::new(Shared {
        provider: Mutex::new((Provider::new(scenario), Seen::default())),
        began: Instant::now(),
        latency: Duration::from_secs_f64(scenario.latency.base_ms / 1000.0),
        status: scenario.signal.status,
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
    let address = listener.local_addr()?;
    let serving = Arc::clone(&shared);
    thread::spawn(move || runtime.block_on(serve(&listener, &serving)));
    Ok(Running { address, shared })
}

async fn serve(listener: &TcpListener, shared: &Arc<Shared>) {
    while let Ok((socket, _)) = listener.accept().await {
        let shared = Arc::clone(shared);
        tokio::spawn(async move {
            let service = service_fn(|request| answer(Arc::clone(&shared), request));
            let mut http = hyper::server::conn::http1::Builder::new();
            // A caller that was killed is no news.
            drop(http.timer(TokioTimer::new()).serve_connection(TokioIo::new(socket), service).await);
        });
    }
}

async fn answer(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let now = shared.began.elapsed().as_secs_f64();
    let (decision, headers) = {
        let Ok(mut state) = shared.provider.lock() else { return Ok(plain(500, "{}")) };
        let (provider, seen) = &mut *state;
        let decided = provider.decide(now);
        seen.requests += 1;
        seen.rejected += u64::from(decided.decision != Decision::Accepted);
        (decided.decision, provider.headers(&decided, now, now))
    };
    if decision != Decision::Accepted {
        let mut refused = plain(shared.status, "{\"error\":\"too many requests\"}");
        for (name, value) in headers {
            if let Ok(value) = value.parse() {
                refused.headers_mut().insert(name, value);
            }
        }
        return Ok(refused);
    }
    tokio::time::sleep(shared.latency).await;
    Ok(page(request.uri().path()))
}

/// `/notes/from/K` lists, `/notes/K` is one of them.
fn page(path: &str) -> Response<Full<Bytes>> {
    let number = path.rsplit('/').next().and_then(|number| number.parse::<u64>().ok());
    match number {
        Some(from) if path.starts_with("/notes/from/") => {
            let ids = (from..NOTES.min(from + PAGE)).map(|id| id.to_string()).collect::<Vec<_>>().join(",");
            plain(200, &format!("{{\"ids\":[{ids}]}}"))
        }
        Some(id) if path.starts_with("/notes/") && id < NOTES && !LOST.contains(&id) => {
            let day = id % 28 + 1;
            let note = format!(r#"{{"id":{id},"title":"Note {id}","written_at":"2031-01-{day:02}T08:00:00Z"}}"#);
            plain(200, &note)
        }
        _ => plain(404, "{\"error\":\"not found\"}"),
    }
}

fn plain(status: u16, body: &str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body.to_owned())));
    *response.status_mut() = hyper::StatusCode::from_u16(status).unwrap_or(hyper::StatusCode::OK);
    response.headers_mut().insert("content-type", hyper::header::HeaderValue::from_static("application/json"));
    response
}
