//! The end of a sidecar: what is out ends, what waits is told so, what was learned is written down.

use crate::support::{TestSidecar, TestUpstream, answer, ask, body, caller, read};
use gleaner_http::Governors;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::Notify;

#[tokio::test]
async fn what_is_out_may_end_and_what_waits_is_told_so() {
    let go_on = Arc::new(Notify::new());
    let wait = Arc::clone(&go_on);
    let upstream = TestUpstream::start(move |_, _| {
        let wait = Arc::clone(&wait);
        async move {
            wait.notified().await;
            answer(200, &[], "done")
        }
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let mut sidecar = TestSidecar::with(&upstream.url(), |config| {
        config.governors = Governors::remembering(folder.path()).unwrap();
        config.settings.config.max_concurrency = 1;
    })
    .await;
    let caller = caller();
    let out = tokio::spawn(caller.request(sidecar.get("/").body(body("")).unwrap()));
    sidecar.until("one is out", |status| status.in_flight == Some(1)).await;
    let waits = tokio::spawn(caller.request(sidecar.get("/").body(body("")).unwrap()));
    sidecar.until("one waits", |status| status.waiting == 1).await;
    sidecar.stop();
    let told = read(waits.await.unwrap().unwrap()).await;
    assert_eq!(told.own(), (503, "shutting_down"));
    go_on.notify_one();
    assert_eq!(read(out.await.unwrap().unwrap()).await.text(), "done");
    tokio::time::timeout(Duration::from_secs(5), &mut sidecar.task).await.unwrap().unwrap();
    assert!(TcpStream::connect(sidecar.address).await.is_err(), "nobody listens any more");
    let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.iter().any(|file| file.extension().is_some_and(|end| end == "learned")), "{files:?}");
    assert_eq!(upstream.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_takes_too_long_to_end_is_cut_off() {
    let upstream = TestUpstream::start(|_, _| std::future::pending()).await;
    let mut sidecar = TestSidecar::before(&upstream.url()).await;
    let out = tokio::spawn(caller().request(sidecar.get("/").body(body("")).unwrap()));
    sidecar.until("one is out", |status| status.in_flight == Some(1)).await;
    sidecar.stop();
    tokio::time::timeout(Duration::from_secs(12), &mut sidecar.task).await.unwrap().unwrap();
    assert!(out.await.unwrap().is_err());
}

#[tokio::test]
async fn a_connection_that_lies_unused_does_not_keep_it() {
    let upstream = TestUpstream::ok().await;
    let mut sidecar = TestSidecar::before(&upstream.url()).await;
    assert_eq!(ask(sidecar.get("/")).await.status, 200);
    let _unused = TcpStream::connect(sidecar.address).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    sidecar.stop();
    tokio::time::timeout(Duration::from_secs(3), &mut sidecar.task).await.unwrap().unwrap();
}
