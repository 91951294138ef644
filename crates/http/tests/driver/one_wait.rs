//! "A provider request path SHALL have exactly one pre-flight send governor."

use crate::support::{Provider, Reply, assert_about, fetch, fetch_with, governor, ms, provider_takes, secs, steady};
use gleaner_http::governor::{DeferReason, Outcome, RetryBudgetConfig, WaitReason, WallTime};
use gleaner_http::{CallLimits, Failure, Governors, Key, Refusal, SendGovernor, Settings, Transport};
use std::time::Duration;
use tokio::time::Instant;

/// Time between asking and sending, for one request.
async fn preflight(governor: &SendGovernor, provider: &Provider) -> Duration {
    let asked = Instant::now();
    fetch(governor, provider).await.unwrap();
    *provider.sends().last().unwrap() - asked
}

#[tokio::test(start_paused = true)]
async fn one_pre_flight_wait_source_per_admitted_request() {
    // Everything that could wait is configured: pacing, lane, run budget, retry budget, breaker.
    let mut settings = steady(secs(2));
    settings.config.max_concurrency = 1;
    settings.config.run_budget.request_cap = Some(100);
    settings.config.run_budget.wall_clock = Some(secs(3600));
    settings.config.retry_budget = Some(RetryBudgetConfig::default());
    let governor = governor(&settings);
    let provider = Provider::always(200);
    assert_eq!(preflight(&governor, &provider).await, Duration::ZERO);
    for _ in 0..5 {
        let finished = {
            let asked = Instant::now();
            let finished = fetch(&governor, &provider).await.unwrap();
            // All the time that passed before the send is the one wait that the governor reports.
            assert_about(*provider.sends().last().unwrap() - asked, finished.waited);
            finished
        };
        assert_about(finished.waited, secs(2));
    }
}

#[tokio::test(start_paused = true)]
async fn decision_layers_answer_at_once_and_add_no_wait() {
    // Run budget.
    let mut settings = steady(secs(2));
    settings.config.run_budget.request_cap = Some(1);
    let capped = governor(&settings);
    let provider = Provider::always(200);
    fetch(&capped, &provider).await.unwrap();
    let asked = Instant::now();
    let refused = fetch(&capped, &provider).await.unwrap_err();
    assert_eq!((refused.reason, asked.elapsed()), (Refusal::Deferred(DeferReason::RequestCap), Duration::ZERO));
    // Circuit breaker.
    let broken = governor(&steady(ms(100)));
    let failing = Provider::always(500);
    let refused = loop {
        let asked = Instant::now();
        if let Err(refused) = fetch_with(&broken, &failing, &CallLimits::single_attempt()).await {
            assert_eq!(asked.elapsed(), Duration::ZERO);
            break refused;
        }
    };
    assert_eq!(refused.reason, Refusal::Deferred(DeferReason::CircuitOpen));
    assert!(refused.retry_in.is_some_and(|wait| wait <= secs(60)));
}

#[tokio::test(start_paused = true)]
async fn gcra_pacing_contributes_a_signal_not_a_second_gate() {
    // A lane of one with an answer that takes 3 s, and a pace of 2 s: the second waits 3 s, not 5 s.
    let mut settings = steady(secs(2));
    settings.config.max_concurrency = 1;
    let governor = governor(&settings);
    let provider = Provider::new(|_| Reply::status(200).after(secs(3)));
    let (first, second) = tokio::join!(fetch(&governor, &provider), fetch(&governor, &provider));
    assert!(first.is_ok() && second.is_ok());
    assert_about(provider.gaps()[0], secs(3));
    // And with an answer that takes 1 s it is the pace, 2 s, not 3 s.
    let governor = self::governor(&settings);
    let provider = Provider::new(|_| Reply::status(200).after(secs(1)));
    let (first, second) = tokio::join!(fetch(&governor, &provider), fetch(&governor, &provider));
    assert!(first.is_ok() && second.is_ok());
    assert_about(provider.gaps()[0], secs(2));
}

/// The defect of the specification: a request that passes two governors.
struct Nested {
    inner: SendGovernor,
    provider: Provider,
}

impl Transport for Nested {
    type Answer = Reply;
    type Failure = Refusal;

    async fn send(&mut self) -> Result<Reply, Refusal> {
        let finished = self.inner.run(&CallLimits::default(), &mut self.provider).await;
        let finished = finished.map_err(|refused| refused.reason)?;
        finished.result.map_err(|_lost: Failure| Refusal::MaxWait)
    }

    fn timed_out(&self, _limit: Duration) -> Refusal {
        Refusal::MaxWait
    }

    fn classify(&self, result: Result<&Reply, &Refusal>, wall_now: WallTime) -> Outcome {
        self.provider.classify(result.map_err(|_| &Failure::Lost), wall_now)
    }

    fn may_repeat(&self, _result: Result<&Reply, &Refusal>, _outcome: &Outcome) -> bool {
        false
    }
}

#[tokio::test(start_paused = true)]
async fn two_independent_pre_flight_gates_is_a_spec_violation() {
    let governors = Governors::new();
    let settings = steady(secs(2));
    let outer = governors.governor(&Key::new("example"), &settings).unwrap();
    let inner = governors.governor(&governors.key("example", Some(b"token")), &settings).unwrap();
    let provider = Provider::always(200);
    let mut path = Nested { inner, provider: provider.clone() };
    let finished = outer.run(&CallLimits::default(), &mut path).await.unwrap();
    // The second wait source is seen, named, and nothing was sent.
    assert_eq!(finished.result.unwrap_err(), Refusal::GovernedTwice(Key::new("example")));
    assert!(provider.sends().is_empty());
}

/// The negative control of the measurements above: two gates that each wait would be seen as their sum.
#[tokio::test(start_paused = true)]
async fn a_second_wait_on_the_path_would_be_measured() {
    let governor = governor(&steady(secs(2)));
    let provider = Provider::always(200);
    fetch(&governor, &provider).await.unwrap();
    let asked = Instant::now();
    // A gate beside the governor, as a fixed sleep in front of each request would be.
    provider_takes(secs(2)).await;
    let second_gate = governor.until_ready().await.unwrap();
    assert!(second_gate.waited() < ms(5), "{:?}", second_gate.waited());
    drop(second_gate);
    let finished = fetch(&governor, &provider).await.unwrap();
    let preflight = *provider.sends().last().unwrap() - asked;
    assert!(preflight.saturating_sub(finished.waited) >= secs(2), "{preflight:?} against {:?}", finished.waited);
}

#[tokio::test(start_paused = true)]
async fn a_governor_of_another_provider_inside_is_no_second_gate() {
    // For example a token that is fetched from the provider of accounts while a request is under way.
    let governors = Governors::new();
    let outer = governors.governor(&Key::new("data"), &Settings::default()).unwrap();
    let inner = governors.governor(&Key::new("accounts"), &Settings::default()).unwrap();
    let mut path = Nested { inner, provider: Provider::always(200) };
    assert_eq!(outer.run(&CallLimits::default(), &mut path).await.unwrap().result.unwrap().status, 200);
}

#[tokio::test(start_paused = true)]
async fn every_wait_has_a_reason_that_can_be_asked_for() {
    let mut settings = steady(secs(2));
    settings.config.max_concurrency = 1;
    let governor = governor(&settings);
    assert_eq!(governor.waiting(), None);
    let provider = Provider::first(vec![Reply::status(200), Reply::throttled("30").after(secs(1))]);
    fetch(&governor, &provider).await.unwrap();
    let waiting = governor.waiting().unwrap();
    assert_eq!((waiting.reason, waiting.callers), (WaitReason::Pacing, 0));
    assert_about(waiting.remaining.unwrap(), secs(2));
    let caller = tokio::spawn({
        let (governor, provider) = (governor.clone(), provider.clone());
        async move { fetch(&governor, &provider).await }
    });
    // Sent at 2 s and answered at 3 s.
    provider_takes(ms(2500)).await;
    let waiting = governor.waiting().unwrap();
    assert_eq!((waiting.reason, waiting.remaining), (WaitReason::InFlight, None));
    provider_takes(ms(1500)).await;
    let waiting = governor.waiting().unwrap();
    assert_eq!(waiting.reason, WaitReason::Gate);
    assert_about(waiting.remaining.unwrap(), secs(29));
    assert!(caller.await.unwrap().is_ok());
}
