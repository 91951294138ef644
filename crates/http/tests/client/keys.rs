//! Sharing of limits between clients.

use crate::support::{Act, Answer, Provider, answer, brisk, builder, pass};
use gleaner_http::client::Error;
use gleaner_http::{GovernedClient, Governors, KeyError, Settings};
use std::time::{Duration, Instant};

fn client(governors: &Governors, name: &str, credential: &str) -> GovernedClient {
    builder(name).governors(governors.clone()).credential(credential).build().unwrap()
}

fn slow() -> Settings {
    let mut settings = brisk();
    settings.config.discovery_interval = Duration::from_millis(300);
    settings.config.ceiling_interval = Duration::from_millis(300);
    settings
}

#[tokio::test]
async fn clients_with_the_same_name_and_credential_share_a_governor() {
    let provider = Provider::always(answer(200, &[], "")).await;
    let governors = Governors::new();
    let [one, two] = [client(&governors, "p", "me"), client(&governors, "p", "me")];
    for client in [&one, &two] {
        client.get(provider.url("/")).send().await.unwrap();
    }
    assert_eq!(one.governor().key(), two.governor().key());
    assert_eq!(one.governor().status().sent, 2);
    for other in [client(&governors, "p", "you"), client(&governors, "q", "me")] {
        assert_ne!(other.governor().key(), one.governor().key());
        assert_eq!(other.governor().status().sent, 0);
    }
    let bearer = builder("p").governors(governors).bearer("me").build().unwrap();
    assert_eq!(bearer.governor().key(), one.governor().key());
}

#[tokio::test]
async fn a_gate_of_one_client_holds_for_the_other() {
    let provider = Provider::start(|_, number| match number {
        0 => answer(429, &[("retry-after", "0.4")], ""),
        _ => answer(200, &[], ""),
    })
    .await;
    let governors = Governors::new();
    let one = builder("p").governors(governors.clone()).single_attempt().build().unwrap();
    let two = builder("p").governors(governors).build().unwrap();
    one.get(provider.url("/")).send().await.unwrap_err();
    two.get(provider.url("/")).send().await.unwrap();
    let received = provider.received();
    assert!(received[1].at - received[0].at >= Duration::from_millis(395));
}

#[tokio::test]
async fn a_key_cannot_be_governed_in_two_ways() {
    let governors = Governors::new();
    let _one = client(&governors, "p", "me");
    let other = builder("p").governors(governors).credential("me").ceiling_interval(Duration::from_secs(9)).build();
    assert!(matches!(other, Err(Error::Key(KeyError::OtherSettings(_)))), "{other:?}");
}

#[tokio::test]
async fn a_slow_provider_never_delays_another() {
    let governors = Governors::new();
    let [stuck, quick] = [client(&governors, "stuck", "me"), client(&governors, "quick", "me")];
    let hangs = Provider::always(Answer::default().then(Act::Hang)).await;
    let answers = Provider::always(answer(200, &[], "")).await;
    let waiting: Vec<_> = (0..50).map(|_| tokio::spawn(stuck.get(hangs.url("/")).send())).collect();
    let start = Instant::now();
    for _ in 0..20 {
        quick.get(answers.url("/")).send().await.unwrap();
    }
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn requests_that_nobody_waits_for_free_their_place() {
    let provider = Provider::start(|request, _| match request.target.as_str() {
        "/hang" => Answer::default().then(Act::Hang),
        "/slow-body" => crate::support::head(200, &[("content-length", "5")]).then(Act::Hang),
        _ => answer(200, &[], ""),
    })
    .await;
    let mut settings = brisk();
    settings.config.max_concurrency = 1;
    let client = builder("p").settings(settings).build().unwrap();
    for _ in 0..3 {
        let sent = tokio::time::timeout(Duration::from_millis(60), client.get(provider.url("/hang")).send()).await;
        assert!(sent.is_err());
    }
    // The place is free when the head is there: a body that takes its time holds up nobody.
    let _body = client.get(provider.url("/slow-body")).send().await.unwrap();
    let last = tokio::time::timeout(Duration::from_secs(2), client.get(provider.url("/")).send()).await;
    assert_eq!(last.unwrap().unwrap().status(), 200);
    assert_eq!(client.governor().status().in_flight, Some(0));
}

#[tokio::test]
async fn requests_that_give_up_in_the_queue_are_not_sent() {
    let provider = Provider::always(answer(200, &[], "")).await;
    let client = builder("p").settings(slow()).build().unwrap();
    client.get(provider.url("/first")).send().await.unwrap();
    let gives_up = tokio::spawn(client.get(provider.url("/never")).send());
    pass(Duration::from_millis(50)).await;
    gives_up.abort();
    assert!(gives_up.await.is_err());
    client.get(provider.url("/second")).send().await.unwrap();
    let targets: Vec<_> = provider.received().into_iter().map(|request| request.target).collect();
    assert_eq!(targets, ["/first", "/second"]);
    assert_eq!(client.governor().status().sent, 2);
}
