//! Bodies stream in both directions: they arrive as they are sent, and break off as they break off. That they
//! are not gathered in memory is measured on the program (`crates/cli/tests`).

use crate::support::{TestSidecar, TestUpstream, answer, ask, caller, http2_caller, raw};
use bytes::Bytes;
use http::Response;
use http_body_util::BodyExt as _;
use http_body_util::channel::{Channel, Sender};
use std::io;
use std::sync::Mutex;
use std::time::Duration;
use tokio::sync::mpsc;

const CHUNK: Bytes = Bytes::from_static(&[7; 64 * 1024]);

/// An upstream whose answers are written by the test.
async fn writing() -> (TestUpstream, mpsc::UnboundedReceiver<Sender<Bytes, io::Error>>) {
    let (senders, receiver) = mpsc::unbounded_channel();
    let upstream = TestUpstream::start(move |_, _| {
        let (sender, body) = Channel::new(1);
        senders.send(sender).unwrap();
        async { Ok(Response::new(body.boxed())) }
    })
    .await;
    (upstream, receiver)
}

#[tokio::test]
async fn an_answer_arrives_while_it_is_being_written() {
    for caller in [caller(), http2_caller()] {
        let (upstream, mut senders) = writing().await;
        let sidecar = TestSidecar::before(&upstream.url()).await;
        let request = sidecar.get("/").body(crate::support::body("")).unwrap();
        let mut answer = caller.request(request).await.unwrap();
        let mut sender = senders.recv().await.unwrap();
        for word in ["one", "two"] {
            sender.send_data(Bytes::from(word)).await.unwrap();
            let frame = answer.body_mut().frame().await.unwrap().unwrap();
            assert_eq!(frame.into_data().unwrap(), word);
        }
        assert_eq!(sidecar.status().in_flight, Some(0), "a long answer holds no place");
        drop(sender);
        assert!(answer.into_body().collect().await.unwrap().to_bytes().is_empty());
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_does_not_look_complete() {
    for caller in [caller(), http2_caller()] {
        let (upstream, mut senders) = writing().await;
        let sidecar = TestSidecar::before(&upstream.url()).await;
        let request = sidecar.get("/").body(crate::support::body("")).unwrap();
        let mut answer = caller.request(request).await.unwrap();
        let mut sender = senders.recv().await.unwrap();
        sender.send_data(Bytes::from("half")).await.unwrap();
        assert!(answer.body_mut().frame().await.unwrap().is_ok());
        sender.abort(io::Error::other("broken on purpose"));
        assert!(answer.body_mut().frame().await.unwrap().is_err());
    }
}

#[tokio::test]
async fn an_upload_arrives_while_it_is_being_written() {
    let (arrived, mut arrivals) = mpsc::unbounded_channel();
    let upstream = TestUpstream::start(move |_, request| {
        let arrived = arrived.clone();
        async move {
            let mut body = request.into_body();
            let mut sum = 0;
            while let Some(frame) = body.frame().await {
                sum += frame.unwrap().into_data().unwrap().len();
                let _count = arrived.send(sum);
            }
            answer(200, &[], &sum.to_string())
        }
    })
    .await;
    let sidecar = TestSidecar::before(&upstream.url()).await;
    let (mut sender, body) = Channel::<Bytes, io::Error>::new(1);
    let request = sidecar.post("/").body(body.boxed()).unwrap();
    let answer = tokio::spawn(caller().request(request));
    // More than is kept, so that it is sent before it is complete.
    for _ in 0..20 {
        sender.send_data(CHUNK).await.unwrap();
    }
    while arrivals.recv().await.unwrap() < 20 * CHUNK.len() {}
    sender.send_data(Bytes::from("end")).await.unwrap();
    drop(sender);
    let got = crate::support::read(answer.await.unwrap().unwrap()).await;
    assert_eq!(got.text(), (20 * CHUNK.len() + 3).to_string());
}

#[tokio::test]
async fn a_caller_that_does_not_read_holds_up_nobody() {
    let (upstream, mut senders) = writing().await;
    let sidecar = TestSidecar::with(&upstream.url(), |config| config.settings.config.max_concurrency = 1).await;
    let held = Mutex::new(Vec::new());
    for _ in 0..20 {
        let answer = caller().request(sidecar.get("/").body(crate::support::body("")).unwrap()).await.unwrap();
        let mut sender = senders.recv().await.unwrap();
        tokio::spawn(async move { while sender.send_data(CHUNK).await.is_ok() {} });
        held.lock().unwrap().push(answer);
    }
    let quick = tokio::spawn(ask(sidecar.get("/")));
    drop(senders.recv().await.unwrap());
    assert_eq!(tokio::time::timeout(Duration::from_secs(5), quick).await.unwrap().unwrap().status, 200);
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_falls_silent_does_not_keep_a_caller_for_ever() {
    let (upstream, mut senders) = writing().await;
    let sidecar = TestSidecar::before(&upstream.url()).await;
    let mut answer = caller().request(sidecar.get("/").body(crate::support::body("")).unwrap()).await.unwrap();
    let mut sender = senders.recv().await.unwrap();
    sender.send_data(Bytes::from("half")).await.unwrap();
    assert!(answer.body_mut().frame().await.unwrap().is_ok());
    let start = tokio::time::Instant::now();
    assert!(answer.body_mut().frame().await.unwrap().is_err());
    assert!(start.elapsed() >= Duration::from_secs(299), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_falls_silent_within_a_streamed_body_is_not_held_against_the_provider() {
    let upstream = TestUpstream::start(|_, request| async {
        match request.into_body().collect().await {
            Ok(_) => answer(200, &[], "ok"),
            Err(error) => Err(io::Error::other(error)),
        }
    })
    .await;
    let sidecar = TestSidecar::before(&upstream.url()).await;
    for _ in 0..12 {
        let head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3000000\r\n\r\n";
        let text = raw(sidecar.address, &format!("{head}{}", "x".repeat(2_000_000))).await;
        assert!(text.starts_with("HTTP/1.1 408") && text.contains("gleaner-reason: body_timeout"), "{text}");
    }
    let status = sidecar.status();
    assert_eq!((status.breaker, status.in_flight, status.rejected, status.sent), ("closed", Some(0), 0, 12));
}
