//! One of the laboratory's providers, over real HTTP: the same limits, on the wall clock.

use super::{LOST, NOTES, PAGE};
use gleaner_lab::provider::{Decision, Provider};
use gleaner_lab::scenario::Scenario;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::{Value, json};
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
    thread::Builder::new().spawn(move || runtime.block_on(serve(&listener, &serving)))?;
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
        let Ok(mut state) = shared.provider.lock() else { return Ok(plain(500, &Value::Null)) };
        let (provider, seen) = &mut *state;
        let decided = provider.decide(now);
        seen.requests += 1;
        seen.rejected += u64::from(decided.decision != Decision::Accepted);
        (decided.decision, provider.headers(&decided, now, now))
    };
    if decision != Decision::Accepted {
        let mut refused = plain(shared.status, &json!({"error": "too many requests"}));
        for (name, value) in headers {
            if let Ok(value) = value.parse() {
                refused.headers_mut().insert(name, value);
            }
        }
        return Ok(refused);
    }
    tokio::time::sleep(shared.latency).await;
    Ok(page(request.uri().path(), request.uri().query().unwrap_or_default()))
}

/// `/notes` lists, the newest first: `until` a time, `after` a note. `/notes/K` is one of them.
fn page(path: &str, query: &str) -> Response<Full<Bytes>> {
    if path == "/notes" {
        return list(query);
    }
    let id = path.strip_prefix("/notes/").and_then(|id| id.parse::<u64>().ok());
    match id.filter(|id| *id < NOTES && !LOST.contains(id)) {
        Some(id) => {
            let written_at = written_at(id);
            plain(200, &json!({"id": id.to_string(), "title": format!("Note {id}"), "written_at": written_at}))
        }
        None => plain(404, &json!({"error": "not found"})),
    }
}

fn list(query: &str) -> Response<Full<Bytes>> {
    let given = |name: &str| {
        let pair =
            |pair: &'_ str| pair.split_once('=').filter(|(key, _)| *key == name).map(|(_, value)| value.to_owned());
        query.split('&').find_map(pair)
    };
    let after = given("after").and_then(|after| after.parse::<u64>().ok()).unwrap_or(NOTES).min(NOTES);
    // The one character of a time that callers write in another way.
    let until = given("until").map(|until| until.replace("%3A", ":"));
    let is_asked = |id: &u64| until.as_ref().is_none_or(|until| written_at(*id) <= *until);
    let ids = (0..after).rev().filter(is_asked).take(PAGE as usize).collect::<Vec<_>>();
    let notes = ids.iter().map(|id| json!({"id": id.to_string(), "written_at": written_at(*id)}));
    // Its name for the next page is the last note of this one: that is there whatever is written meanwhile.
    let next = ids.last().filter(|last| **last > 0).map(u64::to_string);
    plain(200, &json!({"notes": notes.collect::<Vec<_>>(), "next": next}))
}

/// One an hour, since long before anybody asks for them.
fn written_at(id: u64) -> String {
    format!("2021-01-{:02}T{:02}:00:00Z", id / 24 + 1, id % 24)
}

fn plain(status: u16, body: &Value) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body.to_string())));
    *response.status_mut() = hyper::StatusCode::from_u16(status).unwrap_or(hyper::StatusCode::OK);
    response.headers_mut().insert("content-type", hyper::header::HeaderValue::from_static("application/json"));
    response
}
