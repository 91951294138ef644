//! One limit per upstream, or per `Authorization`, which is shown and written nowhere.

use crate::support::{TestSidecar, TestUpstream, answer, ask};
use gleaner_http::Governors;
use std::fs;

const TOKEN: &str = "Bearer hunter2-hunter2";

#[tokio::test]
async fn each_authorization_has_a_limit_of_its_own() {
    let upstream = TestUpstream::start(|_, request| async move {
        match request.headers().get("authorization") {
            Some(token) if token == TOKEN => answer(429, &[("retry-after", "60")], "no"),
            _ => answer(200, &[], "ok"),
        }
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let sidecar = TestSidecar::with(&upstream.url(), |config| {
        config.governors = Governors::remembering(folder.path()).unwrap();
        config.per_authorization = true;
    })
    .await;
    let with = |token: &str| sidecar.get("/").header("authorization", token).header("gleaner-max-wait", "0.5");
    assert_eq!(ask(with(TOKEN)).await.status, 429);
    assert_eq!(ask(with(TOKEN)).await.own(), (429, "max_wait"), "its own gate");
    assert_eq!(ask(with("Bearer other")).await.status, 200, "and nobody else's");
    assert_eq!(ask(sidecar.get("/")).await.status, 200);
    assert_eq!(ask(sidecar.get("/").header("x", "1")).await.status, 200);
    assert_eq!(sidecar.governors.all().len(), 3, "those without a credential share one key");

    sidecar.governors.save();
    let mut shown = ask(sidecar.get("/.gleaner/status")).await.text().to_owned();
    shown += ask(sidecar.get("/.gleaner/metrics")).await.text();
    for entry in fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        shown += &format!("{} {}", path.display(), String::from_utf8_lossy(&fs::read(&path).unwrap()));
    }
    assert!(!shown.contains("hunter2") && !shown.contains("Bearer"), "{shown}");
}

#[tokio::test]
async fn without_the_option_there_is_one_limit() {
    let upstream = TestUpstream::start(|_, _| async { answer(429, &[("retry-after", "60")], "no") }).await;
    let sidecar = TestSidecar::before(&upstream.url()).await;
    let with = |token: &str| sidecar.get("/").header("authorization", token).header("gleaner-max-wait", "0");
    assert_eq!(ask(with("a")).await.status, 429);
    assert_eq!(ask(with("b")).await.own(), (429, "max_wait"));
    assert_eq!(sidecar.governors.all().len(), 1);
}
