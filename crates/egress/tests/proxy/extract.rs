//! Accepted requests, and the time limit for a request's head.

use crate::support::{TestSidecar, TestUpstream, raw};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::Instant;

#[tokio::test]
async fn only_requests_that_mean_this_sidecar_come_in() {
    let upstream = TestUpstream::ok().await;
    let sidecar = TestSidecar::before(&upstream.url()).await;
    let port = sidecar.address.port();
    for (head, expected) in [
        ("GET / HTTP/1.1\r\nHost: evil.example".to_owned(), "421"),
        ("GET /.gleaner/status HTTP/1.1\r\nHost: evil.example".to_owned(), "421"),
        ("GET http://api.example.com/ HTTP/1.1\r\nHost: api.example.com".to_owned(), "421"),
        (format!("GET http://localhost:{port}/a HTTP/1.1\r\nHost: localhost:{port}"), "200"),
        ("GET / HTTP/1.1\r\nHost: LocalHost:1".to_owned(), "200"),
        ("GET / HTTP/1.1".to_owned(), "400"),
        ("GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost".to_owned(), "400"),
        ("CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com:443".to_owned(), "501"),
        ("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket".to_owned(), "501"),
        ("OPTIONS * HTTP/1.1\r\nHost: localhost".to_owned(), "501"),
        // Pages of this machine may, others may not.
        ("GET /own HTTP/1.1\r\nHost: localhost\r\nOrigin: http://127.0.0.1:3000".to_owned(), "200"),
        ("POST / HTTP/1.1\r\nHost: localhost\r\nOrigin: https://evil.example".to_owned(), "403"),
        ("POST / HTTP/1.1\r\nHost: localhost\r\nOrigin: null".to_owned(), "403"),
        ("GET / HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site".to_owned(), "403"),
        ("GET /.gleaner/status HTTP/1.1\r\nHost: localhost\r\nOrigin: https://evil.example".to_owned(), "403"),
    ] {
        let text = raw(sidecar.address, &format!("{head}\r\nConnection: close\r\n\r\n")).await;
        assert!(text.starts_with(&format!("HTTP/1.1 {expected}")), "{head}: {text}");
    }
    let seen: Vec<String> = upstream.seen().into_iter().map(|seen| seen.target).collect();
    assert_eq!(seen, ["/a", "/", "/own"]);
}

/// Time is tokio's here, and jumps when everybody waits.
#[tokio::test(start_paused = true)]
async fn a_caller_that_does_not_finish_its_head_is_hung_up_on() {
    let upstream = TestUpstream::ok().await;
    let sidecar = TestSidecar::before(&upstream.url()).await;
    for beginning in ["", "P", "PRI * HTTP/2.0\r\n", "GET / HTTP/1.1\r\nHost: loc"] {
        let start = Instant::now();
        let mut stream = TcpStream::connect(sidecar.address).await.unwrap();
        stream.write_all(beginning.as_bytes()).await.unwrap();
        let mut rest = Vec::new();
        let _end = stream.read_to_end(&mut rest).await;
        assert!(rest.is_empty() || rest.starts_with(b"HTTP/1.1 408"), "{beginning:?}");
        let waited = start.elapsed();
        assert!((Duration::from_secs(29)..Duration::from_secs(62)).contains(&waited), "{beginning:?}: {waited:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_stops_within_its_body_is_told_so_and_was_never_sent() {
    let upstream = TestUpstream::ok().await;
    let sidecar = TestSidecar::before(&upstream.url()).await;
    let head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n12345";
    let text = raw(sidecar.address, head).await;
    assert!(text.starts_with("HTTP/1.1 408") && text.contains("gleaner-reason: body_timeout"), "{text}");
    assert_eq!((upstream.count(), sidecar.status().sent), (0, 0));
}
