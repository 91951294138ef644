//! Against a real nginx with `limit_req`, 20 requests per second and a burst of 5: the client, the
//! sidecar, and for comparison the same workers with plain exponential backoff.
//!
//! By default a quarter of the size and one run of each from cold. With `GLEANER_TEST_ALL` in the
//! environment 2,000 requests each, and again warm.

#![expect(clippy::unwrap_used, reason = "a test whose server cannot be started has failed")]

mod figures;
mod server;

use figures::{Figures, print};
use gleaner_egress::{Config, Proxy, Upstream};
use gleaner_http::Governors;
use gleaner_http::client::GovernedClient;
use server::{Mode, Nginx};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Callers at the same time.
const WORKERS: usize = 8;

fn is_full_size() -> bool {
    std::env::var_os("GLEANER_TEST_ALL").is_some()
}

fn requests() -> usize {
    if is_full_size() { 2000 } else { 500 }
}

/// Lets the workers call `ask` until all requests are made; how many were answered with success.
async fn work<A, F>(ask: A) -> usize
where
    A: Fn() -> F + Clone + Send + 'static,
    F: Future<Output = bool> + Send,
{
    let (asked, answered) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let workers: Vec<_> = (0..WORKERS)
        .map(|_| {
            let (ask, asked, answered) = (ask.clone(), Arc::clone(&asked), Arc::clone(&answered));
            tokio::spawn(async move {
                while asked.fetch_add(1, Ordering::Relaxed) < requests() {
                    answered.fetch_add(usize::from(ask().await), Ordering::Relaxed);
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await.unwrap();
    }
    answered.load(Ordering::Relaxed)
}

async fn through_client(memory: &Path, url: String) -> usize {
    let governors = Governors::remembering(memory).unwrap();
    let client = GovernedClient::builder("nginx").governors(governors.clone()).build().unwrap();
    let answered = work(move || {
        let request = client.get(&url);
        async move { request.send().await.is_ok_and(|response| response.status().is_success()) }
    })
    .await;
    governors.save();
    answered
}

async fn through_sidecar(memory: &Path, url: String) -> usize {
    let mut config = Config::new(Upstream::parse(&url).unwrap());
    config.governors = Governors::remembering(memory).unwrap();
    config.listen = ([127, 0, 0, 1], 0).into();
    let governors = config.governors.clone();
    let proxy = Proxy::bind(config).await.unwrap();
    let own_url = format!("http://{}/", proxy.local_addr());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(proxy.serve(async move {
        let _ = stopped.await;
    }));
    let client = plain_client();
    let answered = work(move || {
        let request = client.get(&own_url);
        async move { request.send().await.is_ok_and(|response| response.status().is_success()) }
    })
    .await;
    let _ = stop.send(());
    serving.await.unwrap();
    governors.save();
    answered
}

/// The method of most programs: send, and after a refusal wait anything up to 1, 2, 4, ... s.
async fn with_backoff(url: String) -> usize {
    let client = plain_client();
    work(move || {
        let (client, url) = (client.clone(), url.clone());
        async move {
            for attempt in 0..10 {
                let answer = client.get(&url).send().await;
                if answer.is_ok_and(|answer| answer.status().is_success()) {
                    return true;
                }
                let most = Duration::from_secs(1 << attempt).min(Duration::from_secs(60));
                backoff(most.mul_f64(fastrand::f64())).await;
            }
            false
        }
    })
    .await
}

#[expect(clippy::disallowed_methods, reason = "the law that is compared with, not ours")]
async fn backoff(pause: Duration) {
    tokio::time::sleep(pause).await;
}

fn plain_client() -> reqwest::Client {
    reqwest::Client::new()
}

async fn compare(title: &str, mode: Mode) {
    let nginx = Nginx::start(mode, 3);
    let memory = tempfile::tempdir().unwrap();
    let [client, sidecar] = ["client", "sidecar"].map(|name| memory.path().join(name));
    let (by_client, by_sidecar, by_backoff) = tokio::join!(
        through_client(&client, nginx.url(0)),
        through_sidecar(&sidecar, nginx.url(1)),
        with_backoff(nginx.url(2)),
    );
    let cold = [("client, cold", by_client, 0), ("sidecar, cold", by_sidecar, 1)];
    let cold = cold.map(|(name, answered, server)| Figures::new(name, answered, &nginx.log(server)));
    let baseline = Figures::new("exponential backoff", by_backoff, &nginx.log(2));
    let mut warm = Vec::new();
    if is_full_size() {
        // The same servers, whose buckets are full again: the sidecar's key is the address.
        let before = [nginx.log(0).len(), nginx.log(1).len()];
        let (by_client, by_sidecar) =
            tokio::join!(through_client(&client, nginx.url(0)), through_sidecar(&sidecar, nginx.url(1)));
        warm.push(Figures::new("client, warm", by_client, &nginx.log(0)[before[0]..]));
        warm.push(Figures::new("sidecar, warm", by_sidecar, &nginx.log(1)[before[1]..]));
    }
    let all: Vec<_> = cold.iter().chain(&warm).chain([&baseline]).cloned().collect();
    print(title, &all);
    cold.iter().for_each(assert_cold);
    warm.iter().for_each(assert_warm);
    // The comparison itself must be able to show a difference.
    if mode == Mode::Refuses {
        assert!(baseline.rejected > 10 * cold[0].rejected, "{baseline:?}");
    }
}

fn assert_cold(run: &Figures) {
    assert_eq!(run.answered, requests(), "{run:?}");
    if is_full_size() {
        assert!(run.steady >= 0.95 && run.overall >= 0.85, "{run:?}");
        assert!(run.rejected_share() <= 0.01, "{run:?}");
    } else {
        // The way up takes a third of so short a run.
        assert!(run.steady >= 0.80 && run.rejected_share() <= 0.015, "{run:?}");
    }
}

fn assert_warm(run: &Figures) {
    assert_eq!(run.answered, requests(), "{run:?}");
    assert!(run.overall >= 0.93 && run.rejected_share() <= 0.01, "{run:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nginx_that_answers_429_at_once() {
    compare("nginx, 20 r/s, burst 5 nodelay, 429", Mode::Refuses).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nginx_that_makes_requests_wait_and_answers_503() {
    compare("nginx, 20 r/s, burst 5 with delay, 503", Mode::Delays).await;
}
