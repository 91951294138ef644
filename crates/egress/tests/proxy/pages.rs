//! The sidecar's own pages: complete, never waiting, never asked of the upstream.

use crate::support::{TestSidecar, TestUpstream, answer, ask};
use http::Request;

#[tokio::test]
async fn the_status_has_every_field() {
    let upstream = TestUpstream::start(|_, _| async { answer(429, &[("retry-after", "60")], "no") }).await;
    let sidecar = TestSidecar::before(&upstream.url()).await;
    ask(sidecar.get("/").header("gleaner-max-wait", "0")).await;
    // The key is closed for a minute; the page does not care.
    let got = ask(sidecar.get("/.gleaner/status")).await;
    assert_eq!((got.status, got.header("content-type")), (200, Some("application/json")));
    let status = got.json();
    assert_eq!(
        (status["upstream"].as_str(), status["listen"].as_str()),
        (Some(upstream.url().as_str()), Some(sidecar.address.to_string().as_str()))
    );
    assert!(status["uptime_s"].as_f64().unwrap() > 0.0 && status["connections"].as_u64().unwrap() >= 1, "{status}");
    let key = &status["keys"][0];
    for field in [
        "key",
        "mode",
        "interval_ms",
        "rate_per_s",
        "ceiling_interval_ms",
        "last_backoff",
        "gate_until",
        "breaker",
        "sent",
        "accepted",
        "rejected",
        "retried",
        "waiting",
        "in_flight",
        "wait_p95_ms",
    ] {
        assert!(!key[field].is_null(), "{field} in {key:#}");
    }
    for field in ["reason", "at", "interval_ms"] {
        assert!(!key["last_backoff"][field].is_null(), "{field} in {key:#}");
    }
    assert_eq!(
        (key["sent"].as_u64(), key["rejected"].as_u64(), key["breaker"].as_str()),
        (Some(1), Some(1), Some("closed"))
    );
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn metrics_are_what_prometheus_reads() {
    let upstream = TestUpstream::ok().await;
    let sidecar = TestSidecar::before(&upstream.url()).await;
    ask(sidecar.get("/")).await;
    let got = ask(sidecar.get("/.gleaner/metrics")).await;
    assert_eq!(got.header("content-type"), Some("application/openmetrics-text; version=1.0.0; charset=utf-8"));
    let line = format!("gleaner_attempts_total{{key=\"{}\"}} 1", upstream.address);
    assert!(got.text().lines().any(|have| have == line) && got.text().ends_with("# EOF\n"), "{}", got.text());
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn our_folder_is_never_asked_of_the_upstream() {
    let upstream = TestUpstream::ok().await;
    let sidecar = TestSidecar::before(&upstream.url()).await;
    for (method, target, expected) in [
        ("GET", "/.gleaner/other", (404, "no_such_page")),
        ("GET", "/.gleaner", (404, "no_such_page")),
        ("POST", "/.gleaner/", (404, "no_such_page")),
        ("POST", "/.gleaner/status", (405, "read_only")),
    ] {
        assert_eq!(
            ask(Request::builder().method(method).uri(sidecar.url(target))).await.own(),
            expected,
            "{method} {target}"
        );
    }
    let head = ask(Request::head(sidecar.url("/.gleaner/status?x=1"))).await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(upstream.count(), 0);
    assert_eq!(ask(sidecar.get("/.gleaners")).await.status, 200);
    assert_eq!(upstream.count(), 1);
}
