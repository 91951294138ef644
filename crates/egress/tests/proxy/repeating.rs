//! Retries inside the sidecar: only safe ones, and only while the body is kept.

use crate::support::{TestSidecar, TestUpstream, answer, ask, body, caller, no_answer, send};
use gleaner_http::Status;
use http_body_util::BodyExt as _;
use std::time::Duration;

const MIB: usize = 1024 * 1024;

/// An upstream that says `no` once and then yes.
async fn refusing_once(status: u16, headers: &'static [(&'static str, &'static str)]) -> TestUpstream {
    TestUpstream::start(move |n, request| async move {
        let length = request.into_body().collect().await.unwrap().to_bytes().len();
        if n == 0 { answer(status, headers, "no") } else { answer(200, &[], &length.to_string()) }
    })
    .await
}

/// How often a request is sent, and what the caller sees.
async fn check(method: &str, upstream: TestUpstream, expected: (usize, u16)) {
    let sidecar = TestSidecar::before(&upstream.url()).await;
    let request = http::Request::builder().method(method).uri(sidecar.url("/"));
    let got = send(&caller(), request, "data").await;
    assert_eq!((upstream.count(), got.status), expected, "{method} {got:?}");
    assert_eq!(sidecar.status().retried, upstream.count() as u64 - 1);
}

#[tokio::test]
async fn a_throttled_request_is_repeated_and_the_caller_sees_the_final_answer() {
    check("GET", refusing_once(429, &[("retry-after", "0")]).await, (2, 200)).await;
    check("GET", refusing_once(500, &[]).await, (2, 200)).await;
    check("PUT", refusing_once(503, &[("retry-after", "0")]).await, (2, 200)).await;
    check(
        "GET",
        TestUpstream::start(|n, _| async move { if n == 0 { no_answer() } else { answer(200, &[], "") } }).await,
        (2, 200),
    )
    .await;
}

#[tokio::test]
async fn a_post_is_repeated_only_when_nothing_was_done() {
    check("POST", refusing_once(429, &[("retry-after", "0")]).await, (2, 200)).await;
    check("POST", refusing_once(503, &[("retry-after", "0")]).await, (2, 200)).await;
    check("POST", refusing_once(503, &[]).await, (1, 503)).await;
    check("POST", refusing_once(500, &[]).await, (1, 500)).await;
    check("PATCH", refusing_once(500, &[("retry-after", "0")]).await, (1, 500)).await;
    check("POST", TestUpstream::start(|_, _| async { no_answer() }).await, (1, 502)).await;
}

#[tokio::test]
async fn what_the_provider_asks_for_is_waited_for_once() {
    let upstream = refusing_once(429, &[("retry-after", "1")]).await;
    let sidecar = TestSidecar::before(&upstream.url()).await;
    let start = std::time::Instant::now();
    assert_eq!(ask(sidecar.get("/")).await.status, 200);
    let waited = start.elapsed().as_secs_f64();
    assert!((1.0..1.5).contains(&waited), "{waited}");
}

#[tokio::test]
async fn a_body_of_one_mebibyte_is_repeated_and_one_byte_more_passes_once() {
    for (length, expected) in [(MIB, (2, 200)), (MIB + 1, (1, 429))] {
        let upstream = refusing_once(429, &[("retry-after", "0")]).await;
        let sidecar = TestSidecar::before(&upstream.url()).await;
        let got = send(&caller(), sidecar.post("/"), vec![7; length]).await;
        assert_eq!((upstream.count(), got.status), expected, "{length}");
        if got.status == 200 {
            assert_eq!(got.text(), length.to_string());
        } else {
            assert_eq!((got.text(), got.header("gleaner-attempts")), ("no", Some("1")));
        }
        assert_eq!(upstream.seen()[0].headers["content-length"], length.to_string(), "the length stays known");
    }
}

#[tokio::test]
async fn a_larger_body_passes_whole() {
    let upstream = refusing_once(200, &[]).await;
    let sidecar = TestSidecar::before(&upstream.url()).await;
    assert_eq!(send(&caller(), sidecar.post("/"), vec![7; 10]).await.text(), "no");
    assert_eq!(send(&caller(), sidecar.post("/"), vec![7; 5 * MIB + 3]).await.text(), (5 * MIB + 3).to_string());
}

#[tokio::test]
async fn a_final_throttle_is_passed_on_as_it_came() {
    let upstream = TestUpstream::start(|_, _| async {
        let headers = [("retry-after", "0"), ("x-ratelimit-remaining", "0"), ("content-type", "text/x-own")];
        answer(429, &headers, "slow down")
    })
    .await;
    let sidecar = TestSidecar::with(&upstream.url(), |config| config.call_limits.attempts = 2).await;
    let got = ask(sidecar.get("/")).await;
    assert_eq!((got.status, got.text(), got.header("content-type")), (429, "slow down", Some("text/x-own")));
    assert_eq!((got.header("retry-after"), got.header("gleaner-answered-by")), (Some("0"), None));
    assert_eq!((upstream.count(), got.header("gleaner-attempts")), (2, Some("2")));
    assert_eq!(got.header("gleaner-reason"), Some("rate_limited"));
}

#[tokio::test]
async fn a_retry_that_would_come_too_late_is_left_to_the_caller() {
    let upstream = refusing_once(429, &[("retry-after", "100")]).await;
    let sidecar = TestSidecar::before(&upstream.url()).await;
    let got = ask(sidecar.get("/").header("gleaner-max-wait", "50")).await;
    assert_eq!(
        (got.status, got.header("retry-after"), got.header("gleaner-reason")),
        (429, Some("100"), Some("max_wait"))
    );
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn when_too_much_is_kept_already_requests_pass_once() {
    let upstream = TestUpstream::start(|_, request| async move {
        let held = request.uri().path() == "/held";
        let _all = request.into_body().collect().await.unwrap();
        if held {
            std::future::pending::<()>().await;
        }
        answer(429, &[("retry-after", "0")], "no")
    })
    .await;
    let sidecar = TestSidecar::with(&upstream.url(), |config| {
        config.per_authorization = true;
        config.call_limits.attempts = 2;
    })
    .await;
    let caller = caller();
    // All of the 64 MiB, and a little left of it.
    let _held: Vec<_> = (0..64)
        .map(|_| {
            let request = sidecar
                .post("/held")
                .header("authorization", "another account")
                .body(body(vec![7; MIB - 100]))
                .unwrap();
            tokio::spawn(caller.request(request))
        })
        .collect();
    let count = |status: &Status| status.waiting + usize::from(status.in_flight.unwrap());
    for _ in 0..500 {
        if sidecar.governors.all().iter().map(|governor| count(&governor.status())).sum::<usize>() == 64 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let sent_for = |token: &str| upstream.seen().iter().filter(|seen| seen.headers["authorization"] == token).count();
    // Two attempts, and an account of its own, so that the second refusal of one is not waited for by the other.
    for (token, length, expected) in [("over", 6401, 1), ("under", 6400, 2)] {
        let got = send(&caller, sidecar.post("/").header("authorization", token), vec![7; length]).await;
        assert_eq!((got.status, sent_for(token)), (429, expected), "{token}: {got:?}");
    }
}
