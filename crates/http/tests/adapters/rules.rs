//! Retries, and the copying of bodies for them.

use crate::support::{Adapter, Line, Provider, governor, unpaced};
use bytes::Bytes;
use gleaner_http::governor::{DefaultClassifier, PressureReason, Verdict};
use gleaner_http::{CallReport, End, GovernedError, GovernedLayer, GovernedMiddleware, SendOnce};
use http::{Method, Request, Response};
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use tower::{Layer as _, Service, ServiceExt as _, service_fn};

#[tokio::test(start_paused = true)]
async fn only_what_does_nothing_twice_is_sent_again() {
    let cases: [(Method, Line, u16, u32); 8] = [
        (Method::GET, (429, None), 200, 2),
        (Method::GET, (503, None), 200, 2),
        (Method::GET, (500, None), 200, 2),
        (Method::GET, (404, None), 404, 1),
        (Method::POST, (429, None), 200, 2),
        (Method::POST, (503, Some("1")), 200, 2),
        (Method::POST, (503, None), 503, 1),
        (Method::POST, (500, Some("1")), 500, 1),
    ];
    for (method, line, status, attempts) in cases {
        for adapter in Adapter::both(unpaced()) {
            let provider = Provider::new(&[line]);
            let (seen, report) = adapter.ask(method.clone(), &provider).await.unwrap();
            assert_eq!((seen, report.attempts), (status, attempts), "{method} {line:?}");
            assert_eq!(provider.count(), attempts as usize, "{method} {line:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_final_429_is_an_answer_and_says_why_it_is_final() {
    for adapter in Adapter::both(unpaced()) {
        let provider = Provider::new(&[(429, None); 4]);
        let (status, report) = adapter.ask(Method::GET, &provider).await.unwrap();
        assert_eq!((status, report.attempts, report.verdict), (429, 4, Verdict::Throttled));
        assert!(matches!(report.end, End::Pressure { reason: PressureReason::RateLimited, .. }), "{report:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_classifier_of_its_own_is_asked() {
    let classifier = || DefaultClassifier::new().also_throttled(404);
    let governor = governor("odd", unpaced());
    let layer = Adapter::Layer(GovernedLayer::with(governor.clone()).classifier(classifier()));
    let middleware = Adapter::Middleware(GovernedMiddleware::with(governor).classifier(classifier()));
    for adapter in [layer, middleware] {
        let provider = Provider::new(&[(404, None)]);
        let (status, report) = adapter.ask(Method::GET, &provider).await.unwrap();
        assert_eq!((status, report.attempts), (200, 2));
    }
}

/// A body that cannot be copied, as streams are.
struct Stream;

#[tokio::test(start_paused = true)]
async fn what_cannot_be_copied_passes_once() {
    let provider = Provider::new(&[(429, None)]);
    let below = {
        let provider = provider.clone();
        service_fn(move |_: Request<Stream>| {
            let answer = provider.answer().unwrap();
            async move { Ok::<_, Infallible>(answer) }
        })
    };
    let layer = GovernedLayer::with(governor("github", unpaced()));
    let answer = layer.clone().bodies(SendOnce).layer(below.clone()).oneshot(Request::new(Stream)).await.unwrap();
    assert_eq!((answer.status().as_u16(), provider.count()), (429, 1));

    // A caller that can recreate the stream says so.
    let provider_now = provider.count();
    let again = layer.bodies(|_: &Stream| Some(Stream)).layer(below).oneshot(Request::new(Stream)).await.unwrap();
    assert_eq!((again.status().as_u16(), provider.count()), (200, provider_now + 1));
}

#[tokio::test(start_paused = true)]
async fn a_repeated_request_is_the_same_request() {
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let below = {
        let seen = Arc::clone(&seen);
        service_fn(move |request: Request<Bytes>| {
            let mut seen = seen.lock().unwrap();
            seen.push(format!("{:?} {:?} {:?}", request.method(), request.headers(), request));
            let status = if seen.len() == 1 { 429 } else { 200 };
            async move { Ok::<_, Infallible>(Response::builder().status(status).body(()).unwrap()) }
        })
    };
    let request = Request::put("http://h/p?q=1").header("x-a", "1").extension(7_u8).body(Bytes::from("body")).unwrap();
    let layer = GovernedLayer::with(governor("github", unpaced()));
    let answer = layer.layer(below).oneshot(request).await.unwrap();
    assert_eq!(answer.extensions().get::<CallReport>().unwrap().attempts, 2);
    let seen = seen.lock().unwrap();
    assert_eq!(seen[0], seen[1]);
    assert!(seen[1].contains("/p?q=1") && seen[1].contains("x-a") && seen[1].contains("body"), "{}", seen[1]);
}

/// Fails like a client below would, so often.
fn failing(
    kind: io::ErrorKind,
) -> (
    Arc<AtomicUsize>,
    impl Clone + Service<Request<Bytes>, Response = Response<()>, Error = io::Error, Future: Send> + Send,
) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let service = service_fn(move |_: Request<Bytes>| {
        counted.fetch_add(1, Ordering::Relaxed);
        async move { Err(io::Error::from(kind)) }
    });
    (count, service)
}

#[tokio::test(start_paused = true)]
async fn a_post_is_sent_again_only_if_it_was_never_sent() {
    for (kind, sends) in [(io::ErrorKind::ConnectionReset, 1), (io::ErrorKind::ConnectionRefused, 4)] {
        let (count, below) = failing(kind);
        let layer = GovernedLayer::with(governor("github", unpaced()));
        let request = Request::post("/").body(Bytes::new()).unwrap();
        let error = layer.layer(below).oneshot(request).await.unwrap_err();
        let GovernedError::Service(error) = error else { panic!("{error:?}") };
        assert_eq!(error.downcast_ref::<io::Error>().unwrap().kind(), kind);
        assert_eq!(count.load(Ordering::Relaxed), sends, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_untrusted_certificate_is_asked_once() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let below = service_fn(move |_: Request<Bytes>| {
        counted.fetch_add(1, Ordering::Relaxed);
        let error = rustls::Error::InvalidCertificate(rustls::CertificateError::Expired);
        async move { Err::<Response<()>, _>(io::Error::new(io::ErrorKind::InvalidData, error)) }
    });
    let layer = GovernedLayer::with(governor("github", unpaced()));
    assert!(layer.layer(below).oneshot(Request::new(Bytes::new())).await.is_err());
    assert_eq!(count.load(Ordering::Relaxed), 1);
}

/// A service that may be called only by whoever has asked it, as tower demands.
#[derive(Debug, Default)]
struct Strict {
    is_ready: bool,
    provider: Provider,
}

impl Clone for Strict {
    /// Readiness is not copied.
    fn clone(&self) -> Self {
        Self { is_ready: false, provider: self.provider.clone() }
    }
}

impl Service<Request<Bytes>> for Strict {
    type Response = Response<Bytes>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Response<Bytes>, Infallible>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.is_ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _request: Request<Bytes>) -> Self::Future {
        assert!(std::mem::take(&mut self.is_ready), "called without having been asked");
        std::future::ready(Ok(self.provider.answer().unwrap()))
    }
}

#[tokio::test(start_paused = true)]
async fn the_service_that_is_ready_is_the_one_that_is_called() {
    let strict = Strict { is_ready: false, provider: Provider::new(&[(429, None), (429, None)]) };
    let provider = strict.provider.clone();
    let mut service = GovernedLayer::with(governor("github", unpaced())).layer(strict);
    for _ in 0..2 {
        let answer = service.ready().await.unwrap().call(Request::new(Bytes::new())).await.unwrap();
        assert_eq!(answer.status(), 200);
    }
    assert_eq!(provider.count(), 4);
}

#[tokio::test(start_paused = true)]
async fn readiness_never_waits_for_the_pace() {
    let layer = GovernedLayer::with(governor("github", gleaner_http::Settings::default()));
    let mut service = layer.layer(Provider::default());
    let start = tokio::time::Instant::now();
    service.ready().await.unwrap().call(Request::new(Bytes::new())).await.unwrap();
    let second = service.ready().await.unwrap().call(Request::new(Bytes::new()));
    service.ready().await.unwrap();
    assert!(start.elapsed().is_zero(), "two callers may hold a ready service; the wait is in the call");
    second.await.unwrap();
    assert!(!start.elapsed().is_zero());
}
