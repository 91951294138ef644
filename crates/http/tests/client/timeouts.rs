//! Every bound has its own start: the wait, the attempt, the piece of a body, the whole.

use crate::support::{Act, Answer, Provider, answer, brisk, builder, client, head};
use gleaner_http::Refusal;
use gleaner_http::client::{BodyFault, Error, TransportKind};
use std::time::{Duration, Instant};

/// Long enough that a busy machine is not taken for a silent provider.
const LIMIT: Duration = Duration::from_millis(500);
/// Tolerance for a slow machine.
const SLACK: Duration = Duration::from_secs(10);

#[tokio::test]
async fn an_attempt_ends_when_no_head_comes() {
    let provider = Provider::always(Answer::default().then(Act::Hang)).await;
    let client = builder("p").attempt_timeout(LIMIT).single_attempt().build().unwrap();
    let start = Instant::now();
    let result = client.get(provider.url("/")).send().await;
    let Err(Error::Transport { kind: TransportKind::Timeout(after), .. }) = result else { panic!("{result:?}") };
    assert!(after >= LIMIT && start.elapsed() < LIMIT + SLACK, "{after:?} {:?}", start.elapsed());
}

#[tokio::test]
async fn an_attempt_is_timed_from_its_send_and_not_from_the_queue() {
    let provider = Provider::always(answer(200, &[], "")).await;
    let mut settings = brisk();
    settings.config.discovery_interval = LIMIT * 2;
    settings.config.ceiling_interval = LIMIT * 2;
    let client = builder("p").settings(settings).attempt_timeout(LIMIT).single_attempt().build().unwrap();
    for _ in 0..2 {
        client.get(provider.url("/")).send().await.unwrap();
    }
    let received = provider.received();
    assert!(received[1].at - received[0].at > LIMIT, "otherwise this test proves nothing");
}

#[tokio::test]
async fn a_body_may_take_long_but_not_between_two_pieces() {
    let client = builder("p").idle_timeout(LIMIT).build().unwrap();
    let head_of_12 = head(200, &[("content-length", "12")]);
    let steady = (0..12).fold(head_of_12, |answer, _| answer.then(Act::Pause(LIMIT / 10)).write("x"));
    let provider = Provider::always(steady).await;
    assert_eq!(client.get(provider.url("/")).send().await.unwrap().text().await.unwrap(), "x".repeat(12));
    let silent = head(200, &[("content-length", "6")]).write("xxx").then(Act::Hang);
    let provider = Provider::always(silent).await;
    let mut response = client.get(provider.url("/")).send().await.unwrap();
    assert_eq!(response.chunk().await.unwrap().unwrap(), "xxx");
    let start = Instant::now();
    for _ in 0..2 {
        let result = response.chunk().await;
        assert!(matches!(result, Err(Error::Body { fault: BodyFault::Idle(LIMIT), .. })), "{result:?}");
    }
    assert!(start.elapsed() >= LIMIT && start.elapsed() < LIMIT + SLACK, "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_deadline_covers_the_body_the_attempt_and_the_wait() {
    let start = Instant::now();
    let client = client("p");
    let silent = Provider::always(head(200, &[("content-length", "6")]).write("xxx").then(Act::Hang)).await;
    let response = client.get(silent.url("/")).deadline(LIMIT).send().await.unwrap();
    let result = response.bytes().await;
    assert!(matches!(result, Err(Error::Body { fault: BodyFault::Deadline, .. })), "{result:?}");

    let hangs = Provider::always(Answer::default().then(Act::Hang)).await;
    let result = client.get(hangs.url("/")).deadline(Instant::now() + LIMIT).send().await;
    assert!(matches!(result, Err(Error::Transport { kind: TransportKind::Timeout(_), .. })), "{result:?}");

    let refuses = Provider::always(answer(429, &[("retry-after", "9")], "")).await;
    client.get(refuses.url("/")).attempts(1).send().await.unwrap_err();
    let result = client.get(refuses.url("/")).deadline(LIMIT).send().await;
    assert!(matches!(&result, Err(Error::Refused(refused)) if refused.reason == Refusal::MaxWait), "{result:?}");
    assert_eq!(refuses.count(), 1);
    assert!(start.elapsed() < LIMIT * 3 + SLACK, "{:?}", start.elapsed());
}

#[tokio::test]
async fn the_body_of_an_error_is_not_waited_for_longer_than_a_moment() {
    let provider = Provider::always(head(404, &[("content-length", "6")]).write("xxx").then(Act::Hang)).await;
    let start = Instant::now();
    let mut response = client("p").get(provider.url("/")).send().await.unwrap();
    assert!(start.elapsed() < SLACK);
    assert_eq!((response.status().as_u16(), response.chunk().await.unwrap().unwrap().as_ref()), (404, &b"xxx"[..]));
}

#[tokio::test]
async fn a_refusal_whose_body_hangs_is_still_a_refusal_when_the_attempt_ends() {
    let provider = Provider::always(head(429, &[("retry-after", "9"), ("content-length", "6")]).then(Act::Hang)).await;
    let client = builder("p").attempt_timeout(LIMIT * 2).single_attempt().build().unwrap();
    let error = client.get(provider.url("/")).send().await.unwrap_err();
    assert_eq!(error.to_string(), "p_rate_limited");
}

/// A caller that uses up the attempt on the body depends on which of two timers is asked first.
#[tokio::test]
async fn a_body_that_hangs_leaves_time_of_the_attempt() {
    let provider = Provider::always(head(429, &[("retry-after", "9"), ("content-length", "6")]).then(Act::Hang)).await;
    let whole = Duration::from_secs(2);
    let client = builder("p").attempt_timeout(whole).single_attempt().build().unwrap();
    let start = Instant::now();
    client.get(provider.url("/")).send().await.unwrap_err();
    assert!(start.elapsed() < whole.mul_f64(0.9), "{:?}", start.elapsed());
}

#[tokio::test]
async fn the_longest_timeouts_do_not_overflow() {
    let provider = Provider::always(answer(200, &[], "x")).await;
    let client = builder("p").attempt_timeout(Duration::MAX).idle_timeout(Duration::MAX).max_wait(Duration::MAX);
    let request = client.build().unwrap().get(provider.url("/")).deadline(Duration::MAX);
    assert_eq!(request.send().await.unwrap().text().await.unwrap(), "x");
}
