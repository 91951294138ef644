//! The sidecar's own answers: who refused, why, and until when.

use crate::support::{TestSidecar, TestUpstream, answer, ask, body, caller, no_answer, raw, send};
use gleaner_egress::{Config, Proxy, ProxyError, Upstream};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// A sidecar whose key is closed for a minute.
async fn closed(upstream: &TestUpstream) -> TestSidecar {
    let sidecar = TestSidecar::before(&upstream.url()).await;
    ask(sidecar.get("/").header("gleaner-max-wait", "0")).await;
    sidecar
}

fn seconds(got: &crate::support::Got) -> u64 {
    got.header("retry-after").unwrap().parse().unwrap()
}

#[tokio::test]
async fn who_will_not_wait_long_enough_is_told_how_long_it_takes() {
    let upstream = TestUpstream::start(|_, _| async { answer(429, &[("retry-after", "60")], "no") }).await;
    let sidecar = closed(&upstream).await;
    for max_wait in ["0", "0.5", "58.9"] {
        let got = ask(sidecar.get("/").header("gleaner-max-wait", max_wait)).await;
        assert_eq!(got.own(), (429, "max_wait"));
        assert!((59..=60).contains(&seconds(&got)), "{got:?}");
        assert_eq!(got.header("content-type"), Some("application/json"));
    }
    assert_eq!(upstream.count(), 1, "nothing more was sent");
}

#[tokio::test]
async fn a_refusal_without_a_time_gets_ours_when_the_caller_will_not_wait() {
    let upstream = TestUpstream::start(|_, _| async { answer(429, &[], "no") }).await;
    let sidecar = TestSidecar::before(&upstream.url()).await;
    // The first is refused by the upstream and would have to pause; the pause may be none at all.
    for _ in 0..3 {
        let got = ask(sidecar.get("/").header("gleaner-max-wait", "0")).await;
        assert_eq!(got.status, 429);
        assert!(got.header("gleaner-reason").is_some() && seconds(&got) >= 1, "{got:?}");
    }
}

#[tokio::test]
async fn what_was_sent_is_not_said_to_be_unsent() {
    let upstream = TestUpstream::start(|_, _| async { answer(500, &[], "broken") }).await;
    let sidecar = TestSidecar::before(&upstream.url()).await;
    let calls: Vec<_> = (0..4).map(|_| tokio::spawn(ask(http::Request::put(sidecar.url("/"))))).collect();
    for call in calls {
        let got = call.await.unwrap();
        let attempts: usize = got.header("gleaner-attempts").map_or(0, |text| text.parse().unwrap());
        let is_ours = got.header("gleaner-answered-by").is_some();
        assert!(!is_ours || attempts == 0 || got.text().contains("not retried"), "{got:?}");
        assert!(!is_ours || attempts > 0 || got.text().contains("not sent:"), "{got:?}");
    }
}

#[tokio::test]
async fn an_answer_with_two_lengths_is_not_cut_short() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = [0; 4096];
        let _read = stream.read(&mut head).await.unwrap();
        let answer =
            "HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
        stream.write_all(answer.as_bytes()).await.unwrap();
        let _until_closed = stream.read(&mut head).await;
    });
    let sidecar = TestSidecar::before(&format!("http://{address}")).await;
    let got = ask(sidecar.get("/")).await;
    assert_eq!((got.status, got.text(), got.header("content-length")), (200, "hello", None));
}

#[tokio::test]
async fn a_bound_that_cannot_be_read_is_refused() {
    let upstream = TestUpstream::ok().await;
    let sidecar = TestSidecar::before(&upstream.url()).await;
    for garbage in ["soon", "-1", "1e3", "", "86401"] {
        assert_eq!(
            ask(sidecar.get("/").header("gleaner-max-wait", garbage)).await.own(),
            (400, "bad_max_wait"),
            "{garbage}"
        );
    }
    let twice = sidecar.get("/").header("gleaner-max-wait", "5").header("gleaner-max-wait", "6");
    assert_eq!(ask(twice).await.own(), (400, "bad_max_wait"));
    assert_eq!(ask(sidecar.get("/").header("gleaner-max-wait", "0.5")).await.status, 200);
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn a_wait_beyond_the_horizon_is_not_begun() {
    let upstream = TestUpstream::start(|_, _| async { answer(429, &[("retry-after", "4000")], "no") }).await;
    let sidecar = TestSidecar::before(&upstream.url()).await;
    let first = ask(sidecar.get("/")).await;
    assert_eq!((first.status, first.header("retry-after")), (429, Some("4000")), "as it came");
    let got = ask(sidecar.get("/").header("gleaner-max-wait", "5000")).await;
    assert_eq!(got.own(), (503, "beyond_horizon"));
    assert!((3999..=4000).contains(&seconds(&got)), "{got:?}");
}

#[tokio::test]
async fn the_queue_is_bounded() {
    let upstream = TestUpstream::start(|n, _| async move {
        if n == 0 { answer(429, &[("retry-after", "60")], "no") } else { answer(200, &[], "ok") }
    })
    .await;
    let sidecar = TestSidecar::with(&upstream.url(), |config| config.settings.max_waiting = 3).await;
    ask(sidecar.get("/").header("gleaner-max-wait", "0")).await;
    let caller = caller();
    let _waiting: Vec<_> =
        (0..3).map(|_| tokio::spawn(caller.request(sidecar.get("/").body(body("")).unwrap()))).collect();
    sidecar.until("three wait", |status| status.waiting == 3).await;
    let got = ask(sidecar.get("/")).await;
    assert_eq!(got.own(), (503, "queue_full"));
    assert!(seconds(&got) >= 59, "{got:?}");
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn an_open_circuit_is_told_without_a_send() {
    let upstream = TestUpstream::start(|_, _| async { answer(500, &[], "broken") }).await;
    let sidecar = TestSidecar::before(&upstream.url()).await;
    let mut sent = 0;
    let got = loop {
        let got = send(&caller(), sidecar.post("/"), "").await;
        if got.status != 500 || sent > 30 {
            break got;
        }
        sent += 1;
    };
    assert_eq!(got.own(), (503, "circuit_open"));
    assert!((55..=60).contains(&seconds(&got)), "{got:?}");
    assert_eq!(upstream.count(), sent);
}

#[tokio::test]
async fn an_upstream_that_is_not_there_is_a_bad_gateway() {
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", gone.local_addr().unwrap());
    drop(gone);
    let sidecar = TestSidecar::before(&url).await;
    let got = send(&caller(), sidecar.post("/"), "data").await;
    assert_eq!(got.own(), (502, "upstream_unreachable"));
    assert_eq!(got.header("gleaner-attempts"), Some("4"), "it was never sent, so even a POST is tried again");
    let upstream = TestUpstream::start(|_, _| async { no_answer() }).await;
    let sidecar = TestSidecar::before(&upstream.url()).await;
    assert_eq!(send(&caller(), sidecar.post("/"), "data").await.own(), (502, "upstream_lost"));
}

#[tokio::test]
async fn an_attempt_that_takes_too_long_is_a_gateway_timeout() {
    let upstream = TestUpstream::start(|_, _| std::future::pending()).await;
    let sidecar =
        TestSidecar::with(&upstream.url(), |config| config.call_limits.attempt_timeout = Duration::from_millis(50))
            .await;
    let got = send(&caller(), sidecar.post("/"), "data").await;
    assert_eq!(got.own(), (504, "attempt_timeout"));
    assert_eq!((upstream.count(), got.header("gleaner-attempts")), (1, Some("1")));
    sidecar.until("nothing is out", |status| status.in_flight == Some(0)).await;
}

#[tokio::test]
async fn answers_that_are_no_http_are_a_bad_gateway() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let long = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "x".repeat(1_000_000));
    for (n, text) in
        ["SSH-2.0-OpenSSH\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nxx", &long]
            .into_iter()
            .enumerate()
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let text = text.to_owned();
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let _head = stream.read(&mut [0; 1024]).await;
                let _sent = stream.write_all(text.as_bytes()).await;
            }
        });
        let sidecar = TestSidecar::before(&url).await;
        let got = send(&caller(), sidecar.post("/"), "data").await;
        assert_eq!(got.own(), (502, "upstream_lost"), "{n}");
    }
}

#[tokio::test]
async fn a_sidecar_that_cannot_be_meant_is_not_started() {
    let insecure = Config::new(Upstream::parse("http://192.0.2.1").unwrap());
    assert!(matches!(Proxy::bind(insecure.clone()).await, Err(ProxyError::InsecureUpstream(_))));
    let allowed = Config { allow_insecure_upstream: true, listen: "127.0.0.1:0".parse().unwrap(), ..insecure };
    let proxy = Proxy::bind(allowed.clone()).await.unwrap();
    let taken = Config { listen: proxy.local_addr(), ..allowed };
    assert!(matches!(Proxy::bind(taken.clone()).await, Err(ProxyError::Listen { .. })));
    drop(proxy);
    let own = Upstream::parse(&format!("http://localhost:{}", taken.listen.port())).unwrap();
    assert!(matches!(Proxy::bind(Config { upstream: own, ..taken }).await, Err(ProxyError::UpstreamIsSelf(_))));
}

#[tokio::test]
async fn a_head_that_is_too_long_is_refused() {
    let upstream = TestUpstream::ok().await;
    let sidecar = TestSidecar::before(&upstream.url()).await;
    let request = format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(70_000));
    assert!(raw(sidecar.address, &request).await.starts_with("HTTP/1.1 431"));
    assert_eq!(upstream.count(), 0);
}
