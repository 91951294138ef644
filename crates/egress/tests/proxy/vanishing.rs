//! Callers that leave: nothing more is sent for them, and everything they held comes back.

use crate::support::{TestSidecar, TestUpstream, answer, ask, body, caller, http2_caller};
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

#[tokio::test]
async fn who_leaves_while_waiting_is_never_sent() {
    let upstream = TestUpstream::start(|n, _| async move {
        if n == 0 { answer(429, &[("retry-after", "2")], "no") } else { answer(200, &[], "ok") }
    })
    .await;
    let sidecar = TestSidecar::before(&upstream.url()).await;
    ask(sidecar.get("/").header("gleaner-max-wait", "0")).await;
    let mut http1 = TcpStream::connect(sidecar.address).await.unwrap();
    http1.write_all(b"POST /left HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\ndata").await.unwrap();
    let http2 = http2_caller();
    let left = tokio::spawn(http2.request(sidecar.get("/left").body(body("")).unwrap()));
    let stays = tokio::spawn(caller().request(sidecar.get("/stays").body(body("")).unwrap()));
    sidecar.until("three wait", |status| status.waiting == 3).await;
    drop(http1);
    left.abort();
    sidecar.until("one waits", |status| status.waiting == 1).await;
    assert_eq!(stays.await.unwrap().unwrap().status(), 200);
    let seen: Vec<String> = upstream.seen().into_iter().map(|seen| seen.target).collect();
    assert_eq!(seen, ["/", "/stays"]);
}

#[tokio::test]
async fn who_leaves_while_out_frees_the_place() {
    let upstream = TestUpstream::start(|n, _| async move {
        if n == 0 {
            std::future::pending::<()>().await;
        }
        answer(200, &[], "ok")
    })
    .await;
    let sidecar = TestSidecar::with(&upstream.url(), |config| config.settings.config.max_concurrency = 1).await;
    let mut stream = TcpStream::connect(sidecar.address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    sidecar.until("it is out", |status| status.in_flight == Some(1)).await;
    drop(stream);
    sidecar.until("nothing is out", |status| status.in_flight == Some(0)).await;
    let next = tokio::time::timeout(Duration::from_secs(5), ask(sidecar.get("/"))).await.unwrap();
    assert_eq!(next.status, 200);
    assert_eq!((sidecar.status().retried, upstream.count()), (0, 2));
}

#[tokio::test]
async fn a_slow_uploader_holds_no_place() {
    let upstream = TestUpstream::ok().await;
    let sidecar = TestSidecar::with(&upstream.url(), |config| config.settings.config.max_concurrency = 1).await;
    let mut slow = TcpStream::connect(sidecar.address).await.unwrap();
    slow.write_all(b"POST /slow HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nhalf").await.unwrap();
    assert_eq!(ask(sidecar.get("/quick")).await.status, 200);
    assert_eq!(upstream.seen()[0].target, "/quick");
    slow.write_all(b" done").await.unwrap();
    sidecar.until("the slow one is answered, too", |status| status.accepted == 2).await;
}
