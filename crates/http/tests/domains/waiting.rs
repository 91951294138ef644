//! Waiting for a turn: in order, no longer than the caller is willing, and never for another host.

use crate::hosts::{acquire, answer, exchange, fixed, ms, within};
use gleaner_http::governor::keyed::RegistryConfig;
use gleaner_http::{AcquireError, DomainSettings, Domains, Refusal, domain_of};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

fn refusal(error: AcquireError) -> Refusal {
    match error {
        AcquireError::Refused(refused) => refused.reason,
        other => panic!("{other}"),
    }
}

#[tokio::test(start_paused = true)]
async fn workers_that_share_a_host_are_slowed_down_to_its_pace_and_the_waits_are_counted() {
    let domains = Domains::new(fixed(5.0)).unwrap();
    let start = Instant::now();
    let workers: Vec<_> = (0..8)
        .map(|_| {
            let domains = domains.clone();
            tokio::spawn(async move {
                let mut longest = Duration::ZERO;
                for _ in 0..5 {
                    let permit = acquire(&domains, "https://slow.com/page").await.unwrap();
                    longest = longest.max(permit.waited());
                    answer(permit, 200, ms(10), "").await;
                }
                longest
            })
        })
        .collect();
    for worker in workers {
        let longest = worker.await.unwrap();
        assert!(longest > ms(100), "a worker waited {longest:?} at most");
    }
    let took = start.elapsed();
    assert!(took >= ms(39 * 200) && took < ms(41 * 200), "{took:?}");
    let totals = domains.snapshot(0).totals;
    assert_eq!((totals.granted, totals.throttled), (40, 39), "all but the first waited longer than 100 ms");
}

#[tokio::test(start_paused = true)]
async fn callers_are_served_in_the_order_in_which_they_came() {
    let domains = Domains::new(fixed(10.0)).unwrap();
    exchange(&domains, "a.com", 200, Duration::ZERO).await;
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut callers = Vec::new();
    for number in 0..20 {
        let (domains, order) = (domains.clone(), Arc::clone(&order));
        callers.push(tokio::spawn(async move {
            let permit = acquire(&domains, "a.com").await.unwrap();
            order.lock().unwrap().push(number);
            answer(permit, 200, ms(500), "").await;
        }));
        tokio::task::yield_now().await;
    }
    for caller in callers {
        caller.await.unwrap();
    }
    assert_eq!(*order.lock().unwrap(), (0..20).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_an_answer_is_woken_by_it_and_by_a_permit_that_is_given_back() {
    let mut settings = fixed(1000.0);
    settings.config.key.max_concurrency = 1;
    settings.config.key.burst = 10.0;
    let domains = Domains::new(settings).unwrap();
    for way in 0..3 {
        let mut held = acquire(&domains, "a.com").await.unwrap();
        let other = domains.clone();
        let waiting = tokio::spawn(async move { acquire(&other, "a.com").await.unwrap().waited() });
        crate::hosts::provider_takes(ms(300)).await;
        match way {
            0 => drop(held),
            1 => {
                held.sent();
                drop(held);
            }
            _ => drop(answer(held, 200, ms(0), "").await),
        }
        assert_eq!(waiting.await.unwrap(), ms(300), "way {way}");
    }
    let key = &domains.snapshot(1).keys[0];
    assert_eq!((key.in_flight, key.totals.granted), (0, 2), "what was given back before it was sent does not count");
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_longer_than_he_is_willing_to() {
    let domains = Domains::new(fixed(0.5)).unwrap();
    exchange(&domains, "a.com", 200, Duration::ZERO).await;
    let start = Instant::now();
    let error = domains.acquire("a.com", &within(ms(500))).await.unwrap_err();
    assert_eq!(
        (start.elapsed(), error.to_string().as_str()),
        (Duration::ZERO, "a.com: not sent: the wait would be longer than the caller allows; retry in 2 s")
    );
    // Behind somebody else nobody can tell before; then it is told when the limits is over.
    let first = domains.clone();
    let first = tokio::spawn(async move { acquire(&first, "a.com").await.map(|permit| permit.waited()) });
    tokio::task::yield_now().await;
    let error = domains.acquire("a.com", &within(ms(500))).await.unwrap_err();
    assert_eq!((refusal(error), start.elapsed()), (Refusal::MaxWait, ms(500)));
    assert_eq!(first.await.unwrap().unwrap(), ms(2000), "and whoever was before is not disturbed");
}

#[tokio::test(start_paused = true)]
async fn no_more_may_wait_than_the_owner_allows() {
    let domains = Domains::new(DomainSettings { max_waiting: 2, ..fixed(1.0) }).unwrap();
    exchange(&domains, "a.com", 200, Duration::ZERO).await;
    let waiting: Vec<_> = (0..2)
        .map(|_| {
            let domains = domains.clone();
            tokio::spawn(async move { drop(acquire(&domains, "a.com").await.unwrap()) })
        })
        .collect();
    tokio::task::yield_now().await;
    assert_eq!(refusal(acquire(&domains, "a.com").await.unwrap_err()), Refusal::QueueFull(2));
    assert!(acquire(&domains, "b.com").await.is_ok(), "another host has its own queue");
    for waiting in waiting {
        waiting.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_leaves_makes_room_for_the_next() {
    let domains = Domains::new(fixed(1.0)).unwrap();
    exchange(&domains, "a.com", 200, Duration::ZERO).await;
    let leaving = domains.clone();
    let leaving = tokio::spawn(async move { acquire(&leaving, "a.com").await.map(drop) });
    tokio::task::yield_now().await;
    let next = domains.clone();
    let next = tokio::spawn(async move { acquire(&next, "a.com").await.map(|permit| permit.waited()) });
    tokio::task::yield_now().await;
    leaving.abort();
    assert_eq!(next.await.unwrap().unwrap(), ms(1000));
}

#[test]
fn hosts_have_one_spelling_also_those_that_are_not_ascii() {
    for text in
        ["https://BÜCHER.example/seite", "bücher.example:443", "xn--bcher-kva.example", "Bu\u{308}cher.example."]
    {
        assert_eq!(domain_of(text).unwrap().as_str(), "xn--bcher-kva.example", "{text}");
    }
    assert_eq!(domain_of("http://例え.テスト:8080/").unwrap().as_str(), "xn--r8jz45g.xn--zckzah:8080");
    assert!(domain_of("https://a\u{2488}b.com/").is_err(), "what IDNA forbids");
    let domains = Domains::new(DomainSettings::default()).unwrap();
    let error = domains.handle("https:///nowhere").unwrap_err();
    assert_eq!(error.to_string(), "no host given");
    assert_eq!(domains.handle("HTTP://A.com:80/x").unwrap().domain(), "a.com");
}

#[test]
fn settings_that_make_no_sense_are_refused_by_name() {
    let config = RegistryConfig { shards: 3, ..RegistryConfig::default() };
    let error = Domains::new(DomainSettings { config, ..DomainSettings::default() }).unwrap_err();
    assert_eq!(error.to_string(), "shards is not a power of two up to 4096");
    let settings = DomainSettings { snapshot_every: Some(Duration::ZERO), ..DomainSettings::default() };
    assert_eq!(
        Domains::new(settings).unwrap_err().to_string(),
        "snapshot_every is zero; leave it out to disable snapshots"
    );
}
