//! The adapters over real sockets: a hyper server on loopback that answers from a script.

use crate::support::{Provider, client, get, governor};
use bytes::Bytes;
use gleaner_http::governor::{BackoffConfig, Config};
use gleaner_http::{CallReport, GovernedError, GovernedLayer, GovernedMiddleware, Governors, Refused, Settings};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::TcpListener;
use tower::{Layer as _, ServiceExt as _};

/// Without pacing and almost without pauses: these run in real time.
fn brisk() -> Settings {
    let settings = crate::support::unpaced();
    let backoff = BackoffConfig { base: Duration::from_millis(1), ..settings.config.backoff };
    Settings { config: Config { backoff, ..settings.config }, ..settings }
}

/// Serves until the test ends.
async fn serve(provider: Provider) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let provider = provider.clone();
            let service = hyper::service::service_fn(move |request| answer(provider.clone(), request));
            let http = hyper::server::conn::http1::Builder::new();
            tokio::spawn(http.serve_connection(TokioIo::new(stream), service));
        }
    });
    address
}

/// The scripted answer, with the question as its body.
async fn answer(provider: Provider, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let question = request.into_body().collect().await.unwrap().to_bytes();
    Ok(provider.answer().unwrap().map(|_| Full::new(question)))
}

#[tokio::test]
async fn a_throttled_post_reaches_the_provider_again_with_its_body() {
    let provider = Provider::new(&[(429, None)]);
    let address = serve(provider.clone()).await;
    let stack = client().with(GovernedMiddleware::with(governor("github", brisk()))).build();
    let response = stack.post(format!("http://{address}/")).body("question").send().await.unwrap();
    assert_eq!(response.extensions().get::<CallReport>().unwrap().attempts, 2);
    assert_eq!((response.status().as_u16(), response.text().await.unwrap().as_str()), (200, "question"));
    assert_eq!(provider.count(), 2);
}

/// reqwest follows redirects inside of one attempt: what the last place says proves nothing about the first.
#[tokio::test]
async fn a_post_that_was_done_and_redirected_is_not_done_again() {
    let limited = serve(Provider::new(&[(429, None); 8])).await;
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    for to in [limited, closed] {
        let paid = Arc::new(AtomicUsize::new(0));
        let shop = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/pay", shop.local_addr().unwrap());
        let count = Arc::clone(&paid);
        tokio::spawn(async move {
            while let Ok((stream, _)) = shop.accept().await {
                let count = Arc::clone(&count);
                let service = hyper::service::service_fn(move |_request: Request<Incoming>| {
                    count.fetch_add(1, Ordering::Relaxed);
                    let answer = Response::builder().status(303).header("location", format!("http://{to}/"));
                    async move { Ok::<_, Infallible>(answer.body(Full::new(Bytes::new())).unwrap()) }
                });
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service),
                );
            }
        });
        let stack = client().with(GovernedMiddleware::with(governor("shop", brisk()))).build();
        let _whatever = stack.post(&url).body("once").send().await;
        assert_eq!(paid.load(Ordering::Relaxed), 1, "{to}");
    }
}

#[tokio::test]
async fn a_streamed_post_reaches_the_provider_once() {
    let provider = Provider::new(&[(429, None)]);
    let address = serve(provider.clone()).await;
    let stack = client().with(GovernedMiddleware::with(governor("github", brisk()))).build();
    let body = reqwest::Body::wrap(Full::new(Bytes::from("question")));
    let response = stack.post(format!("http://{address}/")).body(body).send().await.unwrap();
    assert_eq!((response.status().as_u16(), response.text().await.unwrap().as_str()), (429, "question"));
    assert_eq!(provider.count(), 1);
}

#[tokio::test]
async fn the_client_of_hyper_is_governed_by_a_layer() {
    let provider = Provider::new(&[(503, None)]);
    let address = serve(provider.clone()).await;
    let below = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    let service = GovernedLayer::with(governor("github", brisk())).layer(below);
    let request = Request::put(format!("http://{address}/")).body(Full::from("question")).unwrap();
    let response = service.oneshot(request).await.unwrap();
    assert_eq!(response.extensions().get::<CallReport>().unwrap().attempts, 2);
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "question");
}

#[tokio::test]
async fn a_closed_port_is_a_failure_of_the_service_below() {
    let address = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let single = gleaner_http::CallLimits::single_attempt();
    let below = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    let service = GovernedLayer::with(governor("github", brisk())).call_limits(single).layer(below);
    let request = Request::get(format!("http://{address}/")).body(Full::from("")).unwrap();
    assert!(matches!(service.oneshot(request).await, Err(GovernedError::Service(_))));

    let stack = client().with(GovernedMiddleware::with(governor("github", brisk())).call_limits(single)).build();
    let error = get(&stack, &format!("http://{address}/")).await.unwrap_err();
    assert!(error.is_connect(), "{error:?}");
}

#[tokio::test]
async fn each_host_has_a_governor_of_its_own() {
    let (slow, other) = (Provider::new(&[(429, Some("86000"))]), Provider::default());
    let [at, elsewhere] = [serve(slow.clone()).await, serve(other.clone()).await];
    let governors = Governors::new();
    let middleware = GovernedMiddleware::per_host_of(governors.clone(), Settings::default());
    let stack = client().with(middleware).build();
    let (slow_url, other_url) = (format!("http://{at}/"), format!("http://{elsewhere}/"));
    // A gate that is beyond the horizon: the answer comes back, and nobody asks that host again.
    assert_eq!(get(&stack, &slow_url).await.unwrap().status(), 429);
    let error = get(&stack, &slow_url).await.unwrap_err();
    let reqwest_middleware::Error::Middleware(error) = error else { panic!("{error:?}") };
    let refused = error.downcast_ref::<Refused>().unwrap();
    assert_eq!((refused.reason.as_str(), refused.key.provider()), ("beyond_horizon", at.to_string().as_str()));
    assert_eq!(get(&stack, &other_url).await.unwrap().status(), 200);
    assert_eq!((slow.count(), other.count()), (1, 1));
    assert_eq!(governors.all().len(), 2);
}
