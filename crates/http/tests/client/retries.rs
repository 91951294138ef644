//! Retries: which requests are retried, and how a refusal ends.

use crate::support::{Act, Answer, Provider, answer, brisk, builder, client};
use gleaner_http::client::{Error, Response, Terminal, TerminalReason, TransportKind};
use gleaner_http::governor::{
    Classifier, DefaultClassifier, DeferReason, PressureReason, ResponseView, Verdict, WallTime,
};
use gleaner_http::{GovernedClient, Refusal};
use std::time::{Duration, Instant};

fn throttled(seconds: &str) -> Answer {
    answer(429, &[("retry-after", seconds)], "slow down")
}

fn reset() -> Answer {
    Answer::default().then(Act::Close)
}

fn terminal(result: Result<Response, Error>) -> Terminal {
    match result {
        Err(Error::Terminal(terminal)) => terminal,
        other => panic!("{other:?}"),
    }
}

/// A provider that answers `first` once, and then with a 200.
async fn once(first: Answer) -> Provider {
    Provider::start(move |_, number| if number == 0 { first.clone() } else { answer(200, &[], "ok") }).await
}

#[tokio::test]
async fn a_get_is_sent_again_after_a_throttle_an_error_and_a_reset() {
    for first in [throttled("0.05"), answer(503, &[("retry-after", "0.05")], ""), answer(500, &[], ""), reset()] {
        let provider = once(first.clone()).await;
        let response = client("p").get(provider.url("/")).send().await.unwrap();
        assert_eq!((response.status().as_u16(), response.attempts(), provider.count()), (200, 2, 2), "{first:?}");
    }
}

#[tokio::test]
async fn a_post_is_sent_again_only_when_nothing_was_done() {
    for first in [throttled("0.05"), answer(503, &[("retry-after", "0.05")], "")] {
        let provider = once(first).await;
        let response = client("p").post(provider.url("/")).body("x").send().await.unwrap();
        assert_eq!((response.status().as_u16(), provider.count()), (200, 2));
        assert_eq!(provider.received()[1].body, "x");
    }
    let provider = once(answer(500, &[], "")).await;
    let response = client("p").post(provider.url("/")).body("x").send().await.unwrap();
    assert_eq!((response.status().as_u16(), provider.count()), (500, 1));
    let provider = once(reset()).await;
    let lost = client("p").post(provider.url("/")).body("x").send().await;
    assert!(matches!(lost, Err(Error::Transport { kind: TransportKind::Lost, .. })), "{lost:?}");
    assert_eq!(provider.count(), 1);
}

#[tokio::test]
async fn a_connection_that_was_never_made_is_tried_again_for_every_method() {
    let closed = { Provider::always(answer(200, &[], "")).await.url("/") };
    tokio::task::yield_now().await;
    let client = client("p");
    let result = client.post(closed).body("x").send().await;
    assert!(matches!(result, Err(Error::Transport { kind: TransportKind::Connect, .. })), "{result:?}");
    assert_eq!(client.governor().status().sent, 4);
}

#[tokio::test]
async fn terminal_rate_limit_preserves_the_cross_run_cooldown_contract() {
    let provider = Provider::always(throttled("0.01")).await;
    let client = builder("github").build().unwrap();
    let result = client.get(provider.url("/")).send().await;
    assert_eq!(result.as_ref().unwrap_err().to_string(), "github_rate_limited");
    let terminal = terminal(result);
    assert_eq!((terminal.status.as_u16(), terminal.attempts, provider.count()), (429, 4, 4));
    // Only this starts a cooldown.
    assert_eq!(terminal.pressure(), Some(PressureReason::RateLimited));
}

#[tokio::test]
async fn a_spent_retry_budget_has_the_same_shape_and_is_not_pressure() {
    let provider = Provider::always(throttled("0.01")).await;
    let mut settings = brisk();
    // One retry: 20 % of five.
    settings.config.run_budget.request_cap = Some(5);
    let client = builder("github").settings(settings).build().unwrap();
    let result = client.get(provider.url("/")).send().await;
    assert_eq!(result.as_ref().unwrap_err().to_string(), "github_retry_exhausted");
    let terminal = terminal(result);
    assert_eq!(terminal.reason, TerminalReason::Deferred(DeferReason::RetryBudget));
    assert_eq!((terminal.status.as_u16(), terminal.attempts, terminal.pressure()), (429, 2, None));
}

#[tokio::test]
async fn a_failure_for_which_no_retry_was_left_says_so() {
    for first in [answer(500, &[], "why"), reset()] {
        let provider = Provider::always(first).await;
        let mut settings = brisk();
        settings.config.run_budget.request_cap = Some(5);
        let client = builder("p").settings(settings).build().unwrap();
        let error = client.get(provider.url("/")).send().await.and_then(Response::error_for_status).unwrap_err();
        let (Error::Status { deferred, .. } | Error::Transport { deferred, .. }) = error else { panic!("{error:?}") };
        assert_eq!((deferred, provider.count()), (Some(DeferReason::RetryBudget), 2));
    }
    // All of its attempts were made: that is no budget of the run's.
    let provider = Provider::always(answer(500, &[], "why")).await;
    let response = client("p").get(provider.url("/")).send().await.unwrap();
    assert_eq!((response.deferred(), provider.count()), (Some(DeferReason::Attempts), 4));
}

#[tokio::test]
async fn other_final_answers_are_answers() {
    for (status, attempts) in [(404, 1), (401, 1), (403, 1), (500, 4), (502, 4)] {
        let provider = Provider::always(answer(status, &[], "why")).await;
        let response = client("p").get(provider.url("/")).send().await.unwrap();
        assert_eq!(
            (response.status().as_u16(), response.attempts(), provider.count()),
            (status, attempts, attempts as usize)
        );
        let error = response.error_for_status().unwrap_err();
        assert!(matches!(error, Error::Status { status: told, .. } if told.as_u16() == status));
    }
}

#[tokio::test]
async fn a_single_bounded_attempt_preserves_immediate_throw_behavior() {
    let provider = once(throttled("2")).await;
    let client = builder("github").single_attempt().build().unwrap();
    let start = Instant::now();
    let first = terminal(client.get(provider.url("/")).send().await);
    assert!(start.elapsed() < Duration::from_millis(1900));
    assert_eq!((first.to_string().as_str(), first.attempts, provider.count()), ("github_rate_limited", 1, 1));
    assert!(first.retry_in.is_some_and(|wait| wait > Duration::from_millis(100)), "{first:?}");
    for _ in 0..2 {
        client.get(provider.url("/")).send().await.unwrap();
    }
    let at: Vec<_> = provider.received().iter().map(|request| request.at).collect();
    let (paid, after) = (at[1] - at[0], at[2] - at[1]);
    assert!(paid >= Duration::from_millis(1995) && paid < Duration::from_millis(3900), "{paid:?}");
    assert!(after < Duration::from_millis(1900), "paid twice: {after:?}");
}

#[tokio::test]
async fn retry_after_is_waited_for_exactly_once() {
    let provider = once(throttled("2")).await;
    let client = client("p");
    let interval = || client.governor().collection_rate().unwrap().current_interval_ms;
    let before = interval();
    let response = client.get(provider.url("/")).send().await.unwrap();
    assert!(response.waited() >= Duration::from_millis(1995));
    assert!(interval() > before, "the rate still decreases");
    client.get(provider.url("/")).send().await.unwrap();
    let at: Vec<_> = provider.received().iter().map(|request| request.at).collect();
    let (paid, after) = (at[1] - at[0], at[2] - at[1]);
    assert!(paid >= Duration::from_millis(1995) && paid < Duration::from_millis(3900), "{paid:?}");
    assert!(after < Duration::from_millis(1900), "paid twice: {after:?}");
}

#[tokio::test]
async fn a_throttle_that_outlasts_the_callers_patience_ends_at_once() {
    let provider = Provider::always(throttled("30")).await;
    let client = client("p");
    let start = Instant::now();
    let first = terminal(client.get(provider.url("/")).max_wait(Duration::from_millis(100)).send().await);
    assert_eq!((first.to_string().as_str(), first.attempts), ("p_rate_limited", 1));
    assert!(first.retry_in.is_some_and(|wait| wait > Duration::from_secs(25)));
    // The next one is not even sent, and says when it could be.
    let second = client.get(provider.url("/")).max_wait(Duration::from_millis(100)).send().await;
    let Err(Error::Refused(refused)) = second else { panic!("{second:?}") };
    assert_eq!(refused.reason, Refusal::MaxWait);
    assert!(refused.retry_in.is_some_and(|wait| wait > Duration::from_secs(25)));
    assert!(start.elapsed() < Duration::from_secs(20));
    assert_eq!(provider.count(), 1);
}

fn shopify(view: &ResponseView<'_>, now: WallTime) -> gleaner_http::governor::Outcome {
    let told = view.body_contains("THROTTLED");
    if told { view.outcome(Verdict::Throttled, now) } else { DefaultClassifier::new().classify(view, now) }
}

#[tokio::test]
async fn a_classifier_sees_the_beginning_of_bodies() {
    let inside_200 = answer(200, &[("retry-after", "0.05")], "{\"code\":\"THROTTLED\"}");
    let inside_403 = answer(403, &[("retry-after", "0.05")], "{\"code\":\"THROTTLED\"}");
    let with = |bytes: usize| -> GovernedClient { builder("p").classifier(shopify).peek_body(bytes).build().unwrap() };
    for (first, client, attempts) in
        [(inside_200.clone(), with(100), 2), (inside_200, with(0), 1), (inside_403, with(0), 2)]
    {
        let provider = once(first).await;
        let response = client.get(provider.url("/")).send().await.unwrap();
        assert_eq!(response.attempts(), attempts);
    }
}

#[tokio::test]
async fn more_attempts_than_usual_are_made_when_the_client_is_built_for_them() {
    let provider =
        Provider::start(|_, number| if number < 6 { throttled("0.005") } else { answer(200, &[], "") }).await;
    let client = builder("p").attempts(7).build().unwrap();
    assert_eq!(client.get(provider.url("/")).send().await.unwrap().attempts(), 7);
    let provider = Provider::always(throttled("0.005")).await;
    assert_eq!(terminal(client.get(provider.url("/")).attempts(2).send().await).attempts, 2);
}
