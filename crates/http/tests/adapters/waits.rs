//! The one wait before a send, on a paused clock: how long it is, and that it is paid once.

use crate::support::{Adapter, Provider, SILENCE, governor, unpaced};
use gleaner_http::governor::{Config, PressureReason};
use gleaner_http::{CallLimits, End, GovernedLayer, GovernedMiddleware, SendGovernor, Settings};
use http::{Extensions, Method};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// Twice the delay of a tokio timer.
const TOLERANCE: Duration = Duration::from_millis(2);
const RETRY_AFTER: Duration = Duration::from_secs(7);

fn assert_near(actual: Duration, expected: Duration) {
    assert!(actual.abs_diff(expected) <= TOLERANCE, "{actual:?} instead of {expected:?}");
}

fn interval(governor: &SendGovernor) -> Duration {
    Duration::from_secs_f64(governor.status().interval_ms.unwrap() / 1000.0)
}

fn single(extensions: &mut Extensions) {
    extensions.insert(CallLimits::single_attempt());
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_slept_once_not_stacked_on_backoff() {
    for make in [Adapter::layer, Adapter::middleware] {
        let governor = governor("github", Settings::default());
        let adapter = make(governor.clone());
        let provider = Provider::new(&[(429, Some("7"))]);
        let (status, report) = adapter.ask(Method::GET, &provider).await.unwrap();
        assert_eq!((status, report.attempts, report.end), (200, 2, End::Done));
        assert_near(report.waited, RETRY_AFTER);
        let [first, retry] = provider.asked()[..] else { panic!("{:?}", provider.asked()) };
        assert_near(retry - first, RETRY_AFTER);

        // The next one waits for the pace, which the refusal has slowed, and not for the gate again.
        let interval = interval(&governor);
        adapter.ask(Method::GET, &provider).await.unwrap();
        assert!(interval < RETRY_AFTER, "{interval:?}");
        assert_near(provider.asked()[2] - retry, interval);
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_is_the_longest_of_its_reasons_and_never_their_sum() {
    for make in [Adapter::layer, Adapter::middleware] {
        let config = Config { discovery_interval: Duration::from_secs(10), ..Settings::default().config };
        let governor = governor("slow", Settings { config, ..Settings::default() });
        let adapter = make(governor.clone());
        let provider = Provider::new(&[(429, Some("7"))]);
        adapter.ask_with(Method::GET, &provider, single).await.unwrap();
        let interval = interval(&governor);
        assert!(interval > RETRY_AFTER, "{interval:?}");
        // Pacing asks for longer than the provider does.
        let (_, report) = adapter.ask(Method::GET, &provider).await.unwrap();
        assert_near(report.waited, interval);
    }
}

#[tokio::test(start_paused = true)]
async fn a_single_attempt_leaves_the_gate_for_the_next_call_to_pay_once() {
    for adapter in Adapter::both(Settings::default()) {
        let provider = Provider::new(&[(429, Some("7"))]);
        let start = Instant::now();
        let (status, report) = adapter.ask_with(Method::GET, &provider, single).await.unwrap();
        assert_eq!((status, report.attempts, start.elapsed()), (429, 1, Duration::ZERO));
        assert!(matches!(report.end, End::Pressure { reason: PressureReason::RateLimited, .. }), "{report:?}");
        let (status, report) = adapter.ask(Method::GET, &provider).await.unwrap();
        assert_eq!((status, report.attempts), (200, 1));
        assert_near(report.waited, RETRY_AFTER);
    }
}

#[tokio::test(start_paused = true)]
async fn the_patience_of_the_layer_holds_for_requests_without_their_own() {
    let governor = governor("github", unpaced());
    let layer = Adapter::Layer(GovernedLayer::with(governor.clone()).call_limits(CallLimits::single_attempt()));
    let middleware = Adapter::Middleware(GovernedMiddleware::with(governor).call_limits(CallLimits::single_attempt()));
    for adapter in [layer, middleware] {
        let provider = Provider::new(&[(500, None)]);
        let (status, report) = adapter.ask(Method::GET, &provider).await.unwrap();
        assert_eq!((status, report.attempts, provider.count()), (500, 1, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn without_pacing_nothing_waits_but_the_retry() {
    for adapter in Adapter::both(unpaced()) {
        let provider = Provider::new(&[(200, None), (200, None), (503, Some("7"))]);
        let start = Instant::now();
        for _ in 0..2 {
            adapter.ask(Method::GET, &provider).await.unwrap();
        }
        assert_eq!(start.elapsed(), Duration::ZERO);
        adapter.ask(Method::GET, &provider).await.unwrap();
        assert_near(start.elapsed(), RETRY_AFTER);
        adapter.ask(Method::GET, &provider).await.unwrap();
        assert_near(start.elapsed(), RETRY_AFTER);
    }
}

#[tokio::test(start_paused = true)]
async fn a_middleware_and_a_layer_of_one_key_share_its_pace() {
    let governor = governor("github", Settings::default());
    let (layer, middleware) = (Adapter::layer(governor.clone()), Adapter::middleware(governor.clone()));
    let provider = Provider::new(&[(429, Some("7"))]);
    layer.ask_with(Method::GET, &provider, single).await.unwrap();
    let (_, report) = middleware.ask(Method::GET, &provider).await.unwrap();
    assert_near(report.waited, RETRY_AFTER);
    assert_eq!(governor.status().sent, 2);
}

#[tokio::test(start_paused = true)]
async fn adapters_that_name_the_same_provider_are_governed_together() {
    let layer = Adapter::Layer(GovernedLayer::new("adapters-shared"));
    let middleware = Adapter::Middleware(GovernedMiddleware::new("adapters-shared"));
    let provider = Provider::default();
    layer.ask(Method::GET, &provider).await.unwrap();
    let (_, report) = middleware.ask(Method::GET, &provider).await.unwrap();
    assert!(report.waited >= Duration::from_millis(500), "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_away_frees_its_place() {
    for make in [Adapter::layer, Adapter::middleware] {
        let config = Config { max_concurrency: 1, ..Settings::default().config };
        let governor = governor("github", Settings { config, ..Settings::default() });
        let adapter = make(governor.clone());
        let provider = Provider::new(&[SILENCE]);
        assert!(timeout(Duration::from_secs(3), adapter.ask(Method::GET, &provider)).await.is_err());
        assert_eq!(governor.status().in_flight, Some(0));
        let (_, report) = timeout(Duration::from_secs(3), adapter.ask(Method::GET, &provider)).await.unwrap().unwrap();
        assert_eq!((report.attempts, provider.count()), (1, 2));
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_away_before_its_turn_has_sent_nothing() {
    for make in [Adapter::layer, Adapter::middleware] {
        let governor = governor("github", Settings::default());
        let adapter = make(governor.clone());
        let provider = Provider::default();
        adapter.ask(Method::GET, &provider).await.unwrap();
        assert!(timeout(Duration::from_millis(10), adapter.ask(Method::GET, &provider)).await.is_err());
        let status = governor.status();
        assert_eq!((status.sent, status.waiting, provider.count()), (1, 0, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_is_given_up_after_its_own_time_and_repeated() {
    for adapter in Adapter::both(unpaced()) {
        let provider = Provider::new(&[SILENCE]);
        let impatient = |extensions: &mut Extensions| {
            extensions.insert(CallLimits { attempt_timeout: Duration::from_secs(2), ..CallLimits::default() });
        };
        let (status, report) = adapter.ask_with(Method::GET, &provider, impatient).await.unwrap();
        assert_eq!((status, report.attempts), (200, 2));

        let provider = Provider::new(&[SILENCE]);
        let error = adapter.ask_with(Method::POST, &provider, impatient).await.unwrap_err();
        assert!(error.contains("no answer within 200"), "{error}");
        assert_eq!(provider.count(), 1, "a lost POST may have been done");
    }
}
