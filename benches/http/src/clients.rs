//! Bare reqwest, next to the same with the middleware, next to `GovernedClient`.

use crate::CALLERS;
use crate::rounds::{self, Measured, Side, Thread};
use gleaner_http::client::GovernedClient;
use gleaner_http::governor::Config;
use gleaner_http::{GovernedMiddleware, Governors, Key, Settings};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::{Runtime, RuntimeFlavor};
use tokio::task::JoinSet;

pub fn measure(upstream: SocketAddr, runtime: &Runtime, time: Duration) -> Vec<Measured> {
    install_tls();
    let url = format!("http://{upstream}/items/4711");
    let sides = vec![bare(runtime, &url), middleware(runtime, &url), governed(runtime, &url)];
    rounds::measure(sides, time)
}

/// What reqwest without its default features wants.
pub fn install_tls() {
    // An error says that it is installed already.
    let _installed = rustls::crypto::ring::default_provider().install_default();
}

/// The opt-out: no pacing, and everything else.
pub fn unpaced() -> Settings {
    let settings = Settings::default();
    Settings { config: Config { discovery_interval: Duration::ZERO, ..settings.config }, ..settings }
}

fn bare<'a>(runtime: &'a Runtime, url: &'a str) -> Side<'a> {
    let get = |client: reqwest::Client, url: Arc<str>| async move {
        client.get(&*url).send().await.expect("an answer").bytes().await.expect("a body").len()
    };
    side("reqwest", runtime, url, wire(), get)
}

fn middleware<'a>(runtime: &'a Runtime, url: &'a str) -> Side<'a> {
    let get = |client: reqwest_middleware::ClientWithMiddleware, url: Arc<str>| async move {
        client.get(&*url).send().await.expect("an answer").bytes().await.expect("a body").len()
    };
    side("GovernedMiddleware", runtime, url, with_middleware(), get)
}

fn governed<'a>(runtime: &'a Runtime, url: &'a str) -> Side<'a> {
    let get = |client: GovernedClient, url: Arc<str>| async move {
        client.get(&*url).send().await.expect("an answer").bytes().await.expect("a body").len()
    };
    side("GovernedClient", runtime, url, governed_client(), get)
}

/// What most programs use.
pub fn wire() -> reqwest::Client {
    reqwest::Client::new()
}

/// The same behind the middleware.
pub fn with_middleware() -> reqwest_middleware::ClientWithMiddleware {
    let governor = Governors::new().governor(&Key::new("bench"), &unpaced()).expect("a new registry");
    reqwest_middleware::ClientBuilder::new(wire()).with(GovernedMiddleware::with(governor)).build()
}

pub fn governed_client() -> GovernedClient {
    let builder = GovernedClient::builder("bench").governors(Governors::new()).settings(unpaced());
    builder.build().expect("a client")
}

/// All callers ask again and again, each for the whole body, until the slice is over.
fn side<'a, C, R>(
    name: &'static str,
    runtime: &'a Runtime,
    url: &str,
    client: C,
    get: impl Fn(C, Arc<str>) -> R + Copy + Send + 'static,
) -> Side<'a>
where
    C: Clone + Send + Sync + 'static,
    R: Future<Output = usize> + Send + 'static,
{
    let url: Arc<str> = url.into();
    let is_one_thread = runtime.handle().runtime_flavor() == RuntimeFlavor::CurrentThread;
    let load = move |slice| {
        let end = Instant::now() + slice;
        let (url, client) = (Arc::clone(&url), client.clone());
        runtime.block_on(async move {
            let mut callers = JoinSet::new();
            for _ in 0..CALLERS {
                let (url, client) = (Arc::clone(&url), client.clone());
                callers.spawn(async move {
                    let mut answers = 0;
                    while Instant::now() < end {
                        assert!(get(client.clone(), Arc::clone(&url)).await > 0);
                        answers += 1;
                    }
                    answers
                });
            }
            callers.join_all().await.into_iter().sum()
        })
    };
    Side { name, thread: is_one_thread.then(Thread::current), load: Box::new(load) }
}
