//! Passing: everything meant for the other end, unchanged, and nothing else.

use crate::support::{TestBody, TestSidecar, TestUpstream, answer, ask, body, caller, http2_caller, raw, read, send};
use bytes::Bytes;
use http::{Response, Version};
use http_body_util::BodyExt as _;
use http_body_util::channel::Channel;
use std::io;

#[tokio::test]
async fn a_request_and_its_answer_pass_as_they_are() {
    let upstream = TestUpstream::start(|_, request| async {
        let length = request.into_body().collect().await.unwrap().to_bytes().len();
        answer(
            201,
            &[("x-their", "1"), ("set-cookie", "a=1"), ("set-cookie", "b=2"), ("etag", "\"x\"")],
            &length.to_string(),
        )
    })
    .await;
    let sidecar = TestSidecar::before(&format!("{}/v2/", upstream.url())).await;
    let request = sidecar.post("/items/%2Fa?q=1&q=%20").header("x-mine", "2").header("authorization", "Bearer t");
    let got = send(&caller(), request, "12345").await;
    assert_eq!((got.status, got.text(), got.header("x-their")), (201, "5", Some("1")));
    assert_eq!(got.headers.get_all("set-cookie").iter().count(), 2);
    assert_eq!(got.header("gleaner-reason"), None);
    let seen = &upstream.seen()[0];
    assert_eq!((seen.method.as_str(), seen.target.as_str()), ("POST", "/v2/items/%2Fa?q=1&q=%20"));
    assert_eq!(seen.headers["host"], upstream.address.to_string());
    assert_eq!(
        (&seen.headers["x-mine"], &seen.headers["authorization"]),
        (&"2".parse().unwrap(), &"Bearer t".parse().unwrap())
    );
    assert_eq!(seen.headers["content-length"], "5");
}

#[tokio::test]
async fn headers_of_a_connection_stay_on_it_in_both_directions() {
    let upstream = TestUpstream::start(|_, _| async {
        let headers = [
            ("connection", "x-hop"),
            ("x-hop", "1"),
            ("keep-alive", "timeout=1"),
            ("gleaner-reason", "forged"),
            ("alt-svc", "h3"),
        ];
        answer(200, &headers, "ok")
    })
    .await;
    let sidecar = TestSidecar::before(&upstream.url()).await;
    let text = raw(
        sidecar.address,
        "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close, X-Secret\r\nX-Secret: 1\r\nKeep-Alive: 5\r\n\
         Proxy-Authorization: Basic x\r\nTE: trailers\r\nGleaner-Max-Wait: 5\r\nGleaner-Other: 1\r\nAccept-Encoding: br\r\n\r\n",
    )
    .await;
    for gone in ["x-hop", "keep-alive", "gleaner-", "alt-svc"] {
        assert!(!text.contains(gone), "{gone} in {text}");
    }
    let seen = &upstream.seen()[0].headers;
    let mut names: Vec<&str> = seen.keys().map(|name| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["accept-encoding", "host", "te"], "nothing is added, nothing else taken away");
    assert_eq!((seen["accept-encoding"].as_bytes(), seen["te"].as_bytes()), (b"br".as_slice(), b"trailers".as_slice()));
}

#[tokio::test]
async fn links_and_redirects_lead_back_to_the_sidecar() {
    let upstream = TestUpstream::start(|_, request| async move {
        let own = format!("http://{}", request.headers()["host"].to_str().unwrap());
        let link = format!("<{own}/v2/items?page=2>; rel=\"next\", </v2/items?page=9>; rel=last, <{own}/else>; rel=up");
        let (location, content) = (format!("{own}/v2/new"), format!("{own}/v2/items?page=1"));
        answer(302, &[("location", &location), ("content-location", &content), ("link", &link)], &own)
    })
    .await;
    let sidecar = TestSidecar::before(&format!("{}/v2", upstream.url())).await;
    let got = ask(sidecar.get("/items")).await;
    let own = format!("http://{}", sidecar.address);
    assert_eq!(got.status, 302, "redirects are the caller's to follow");
    assert_eq!(got.header("location"), Some(format!("{own}/new").as_str()));
    assert_eq!(got.header("content-location"), Some(format!("{own}/items?page=1").as_str()));
    let link =
        format!("<{own}/items?page=2>; rel=\"next\", </items?page=9>; rel=last, <{}/else>; rel=up", upstream.url());
    assert_eq!(got.header("link"), Some(link.as_str()));
    assert_eq!(got.text(), upstream.url(), "bodies are never rewritten");
    let port = sidecar.address.port();
    let named =
        raw(sidecar.address, &format!("GET / HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n")).await;
    assert!(named.contains(&format!("location: http://localhost:{port}/new")), "{named}");
}

#[tokio::test]
async fn answers_without_a_body_have_none() {
    let upstream = TestUpstream::start(|_, request| async move {
        match request.uri().path() {
            "/head" => answer(200, &[("x-length", "kept")], "12345"),
            "/304" => Ok(Response::builder().status(304).header("etag", "\"x\"").body(body("")).unwrap()),
            _ => Ok(Response::builder().status(204).body(body("")).unwrap()),
        }
    })
    .await;
    let sidecar = TestSidecar::before(&upstream.url()).await;
    let head = |line: &str| format!("{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let text = raw(sidecar.address, &head("HEAD /head")).await;
    assert!(
        text.starts_with("HTTP/1.1 200") && text.contains("content-length: 5") && text.ends_with("\r\n\r\n"),
        "{text}"
    );
    let text = raw(sidecar.address, &head("GET /304")).await;
    assert!(text.starts_with("HTTP/1.1 304") && text.contains("etag: \"x\"") && text.ends_with("\r\n\r\n"), "{text}");
    let text = raw(sidecar.address, &head("DELETE /204")).await;
    assert!(text.starts_with("HTTP/1.1 204") && !text.contains("chunked") && text.ends_with("\r\n\r\n"), "{text}");
}

#[tokio::test]
async fn encoded_bodies_are_not_touched() {
    let upstream =
        TestUpstream::start(|_, _| async { answer(200, &[("content-encoding", "br")], "not really brotli") }).await;
    let sidecar = TestSidecar::before(&upstream.url()).await;
    let got = ask(sidecar.get("/").header("accept-encoding", "br, gzip;q=0.5")).await;
    assert_eq!((got.text(), got.header("content-encoding")), ("not really brotli", Some("br")));
    assert_eq!(upstream.seen()[0].headers["accept-encoding"], "br, gzip;q=0.5");
}

#[tokio::test]
async fn http_2_callers_and_many_at_once_on_one_connection() {
    let upstream = TestUpstream::ok().await;
    let sidecar = TestSidecar::before(&upstream.url()).await;
    let caller = http2_caller();
    let requests = (0..50).map(|n| {
        let (caller, request) = (caller.clone(), sidecar.post(&format!("/{n}")).header("te", "trailers"));
        tokio::spawn(async move { send(&caller, request, "data").await })
    });
    for request in requests.collect::<Vec<_>>() {
        let got = request.await.unwrap();
        assert_eq!((got.status, got.version, got.text()), (200, Version::HTTP_2, "ok"));
    }
    assert_eq!(upstream.count(), 50);
    assert_eq!(upstream.seen()[0].headers["host"], upstream.address.to_string());
}

#[tokio::test]
async fn trailers_pass_in_both_directions() {
    let upstream = TestUpstream::start(|_, request| async {
        let theirs = request.into_body().collect().await.unwrap().trailers().cloned();
        let sum = theirs.map_or_else(|| "none".to_owned(), |trailers| trailers["x-sum"].to_str().unwrap().to_owned());
        Ok(Response::builder().header("trailer", "x-total").body(with_trailers(&sum, "x-total", "9").await).unwrap())
    })
    .await;
    let sidecar = TestSidecar::before(&upstream.url()).await;
    let upload = with_trailers("data", "x-sum", "7").await;
    let request = sidecar.post("/").header("te", "trailers").header("trailer", "x-sum").body(upload).unwrap();
    let got = read(http2_caller().request(request).await.unwrap()).await;
    assert_eq!(got.text(), "7");
    assert_eq!(got.trailers.unwrap()["x-total"], "9");
}

async fn with_trailers(data: &str, name: &'static str, value: &'static str) -> TestBody {
    let (mut sender, body) = Channel::<Bytes, io::Error>::new(2);
    let trailers = [(http::HeaderName::from_static(name), http::HeaderValue::from_static(value))].into_iter().collect();
    sender.send_data(Bytes::from(data.to_owned())).await.unwrap();
    sender.send_trailers(trailers).await.unwrap();
    body.boxed()
}

#[tokio::test]
async fn a_caller_that_waits_for_permission_to_send_its_body_gets_it() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let upstream = TestUpstream::ok().await;
    let sidecar = TestSidecar::before(&upstream.url()).await;
    let mut stream = tokio::net::TcpStream::connect(sidecar.address).await.unwrap();
    let head =
        b"PUT / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 4\r\nConnection: close\r\n\r\n";
    stream.write_all(head).await.unwrap();
    let mut told = [0; 25];
    stream.read_exact(&mut told).await.unwrap();
    assert_eq!(&told, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"data").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(!upstream.seen()[0].headers.contains_key("expect"));
}
