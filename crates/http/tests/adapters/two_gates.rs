//! Two governed layers on one path would wait twice. The inner one refuses, whatever the names.

use crate::support::{Provider, SILENCE, call, client, get, governor};
use bytes::Bytes;
use gleaner_http::{GovernedError, GovernedLayer, GovernedMiddleware, Refusal, Refused, SendGovernor, Settings};
use http::{Extensions, Request, Response};
use std::time::Duration;
use tokio::time::{Instant, timeout};
use tower::Layer as _;

/// A pair of governors: the same one twice, two of one name, two of different names.
fn pairs() -> [(SendGovernor, SendGovernor); 3] {
    let fresh = |name| governor(name, Settings::default());
    let same = fresh("github");
    [(same.clone(), same), (fresh("github"), fresh("github")), (fresh("github"), fresh("gitlab"))]
}

fn assert_governed_twice(refused: &Refused, outer: &SendGovernor, inner: &SendGovernor) {
    assert_eq!(refused.reason, Refusal::GovernedTwice(outer.key().clone()));
    assert_eq!(&refused.key, inner.key());
}

#[tokio::test(start_paused = true)]
async fn two_independent_pre_flight_gates_is_a_spec_violation_of_layers() {
    for (outer, inner) in pairs() {
        let (provider, start) = (Provider::default(), Instant::now());
        let stack = GovernedLayer::with(inner.clone()).layer(provider.clone());
        let stack = GovernedLayer::with(outer.clone()).layer(stack);
        match call(stack).await {
            Err(GovernedError::Refused(refused)) => assert_governed_twice(&refused, &outer, &inner),
            other => panic!("{other:?}"),
        }
        assert_eq!((provider.count(), start.elapsed().as_millis()), (0, 0), "nothing is sent or waited for");
    }
}

#[tokio::test(start_paused = true)]
async fn two_independent_pre_flight_gates_is_a_spec_violation_of_middlewares() {
    for (outer, inner) in pairs() {
        let (provider, start) = (Provider::default(), Instant::now());
        let outermost = GovernedMiddleware::with(outer.clone());
        let stack = client().with(outermost).with(GovernedMiddleware::with(inner.clone())).with(provider.clone());
        let error = get(&stack.build(), "http://provider.invalid/").await.unwrap_err();
        let reqwest_middleware::Error::Middleware(error) = error else { panic!("{error:?}") };
        let refused = error.downcast_ref::<Refused>().expect("a refusal can be told from other errors");
        assert_governed_twice(refused, &outer, &inner);
        assert_eq!((provider.count(), start.elapsed().as_millis()), (0, 0), "nothing is sent or waited for");
    }
}

/// A layer with a whole middleware stack below it: the mark does not travel, the task-local does.
#[tokio::test(start_paused = true)]
async fn two_independent_pre_flight_gates_is_a_spec_violation_across_adapters() {
    let (provider, governor) = (Provider::default(), governor("github", Settings::default()));
    let below = client().with(GovernedMiddleware::with(governor.clone())).with(provider.clone()).build();
    let service = tower::service_fn(move |_: Request<Bytes>| {
        let below = below.clone();
        async move { get(&below, "http://provider.invalid/").await.map(|_| Response::new(Bytes::new())) }
    });
    let error = call(GovernedLayer::with(governor).layer(service)).await.unwrap_err();
    let text = std::error::Error::source(&error).expect("what the service below said").to_string();
    assert!(text.contains("already governed by github"), "{text}");
    assert_eq!(provider.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn one_governed_layer_passes() {
    let provider = Provider::default();
    let layer = GovernedLayer::with(governor("github", Settings::default()));
    assert_eq!(call(layer.layer(provider.clone())).await.unwrap().status(), 200);
    let middleware = GovernedMiddleware::with(governor("github", Settings::default()));
    let stack = client().with(middleware).with(provider.clone()).build();
    assert_eq!(get(&stack, "http://provider.invalid/").await.unwrap().status(), 200);
    assert_eq!(provider.count(), 2);
}

/// A caller may use its extensions again, also after it has given up on a request.
#[tokio::test(start_paused = true)]
async fn the_mark_goes_with_the_call() {
    let provider = Provider::new(&[(200, None), SILENCE]);
    let middleware = GovernedMiddleware::with(governor("github", Settings::default()));
    let stack = client().with(middleware).with(provider.clone()).build();
    let mut extensions = Extensions::new();
    let request = || reqwest::Request::new(http::Method::GET, "http://provider.invalid/".parse().unwrap());
    assert!(stack.execute_with_extensions(request(), &mut extensions).await.is_ok());
    let given_up = stack.execute_with_extensions(request(), &mut extensions);
    assert!(timeout(Duration::from_secs(5), given_up).await.is_err());
    assert!(stack.execute_with_extensions(request(), &mut extensions).await.is_ok());
    assert_eq!(provider.count(), 3);
}
