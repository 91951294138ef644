//! Many callers of one key: order, bounds, and nothing lost when some of them vanish.

use crate::support::{Provider, Reply, fetch, fetch_with, governor, ms, provider_takes, secs, steady};
use gleaner_http::{CallLimits, Governors, Key, KeyError, Refusal, Settings};
use std::sync::{Arc, Mutex};
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn first_come_first_served() {
    let governor = governor(&steady(ms(100)));
    let order = Arc::new(Mutex::new(Vec::new()));
    let calls: Vec<_> = (0..50)
        .map(|number| {
            let (governor, order) = (governor.clone(), Arc::clone(&order));
            tokio::spawn(async move {
                fetch(&governor, &Provider::always(200)).await.unwrap();
                order.lock().unwrap().push(number);
            })
        })
        .collect();
    for call in calls {
        call.await.unwrap();
    }
    let order = order.lock().unwrap();
    assert!(order.is_sorted(), "{order:?}");
}

#[tokio::test(start_paused = true)]
async fn one_more_than_may_wait_is_refused_at_once() {
    let mut settings = steady(secs(1));
    settings.max_waiting = 3;
    let governor = governor(&settings);
    let provider = Provider::always(200);
    let calls: Vec<_> = (0..6)
        .map(|_| {
            let (governor, provider) = (governor.clone(), provider.clone());
            tokio::spawn(async move { fetch(&governor, &provider).await.map(|finished| finished.waited) })
        })
        .collect();
    let mut refused = Vec::new();
    for call in calls {
        refused.extend(call.await.unwrap().err());
    }
    // One is sent at once, three wait.
    assert_eq!(refused.len(), 2);
    for refused in refused {
        assert_eq!(refused.reason, Refusal::QueueFull(3));
        assert!(refused.retry_in.is_some_and(|wait| wait >= secs(3)), "{refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_cannot_possibly_be_served_in_time_is_told_so_at_once() {
    let governor = governor(&steady(secs(1)));
    let provider = Provider::always(200);
    let patient: Vec<_> = (0..10)
        .map(|_| {
            let (governor, provider) = (governor.clone(), provider.clone());
            tokio::spawn(async move { fetch(&governor, &provider).await.is_ok() })
        })
        .collect();
    provider_takes(ms(10)).await;
    let start = Instant::now();
    let hurried = CallLimits { max_wait: Some(secs(4)), ..CallLimits::default() };
    let refused = fetch_with(&governor, &provider, &hurried).await.unwrap_err();
    assert_eq!((refused.reason, start.elapsed()), (Refusal::MaxWait, ms(0)));
    assert!(refused.retry_in.is_some_and(|wait| wait >= secs(9)), "{:?}", refused.retry_in);
    for call in patient {
        assert!(call.await.unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn dropped_before_the_send_the_permit_is_given_back() {
    let mut settings = steady(secs(1));
    settings.config.run_budget.request_cap = Some(1);
    let governor = governor(&settings);
    drop(governor.until_ready().await.unwrap());
    let status = governor.status();
    assert_eq!((status.in_flight, status.sent), (Some(0), 0));
    // The cap of one is whole again.
    assert!(fetch(&governor, &Provider::always(200)).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn dropped_after_the_send_only_the_place_in_flight_is_free() {
    let mut settings = steady(secs(10));
    settings.config.max_concurrency = 1;
    let governor = governor(&settings);
    let provider = Provider::new(|_| Reply::status(200).after(secs(60)));
    let call = tokio::spawn({
        let (governor, provider) = (governor.clone(), provider.clone());
        async move { fetch(&governor, &provider).await.is_ok() }
    });
    provider_takes(ms(100)).await;
    assert_eq!(governor.status().in_flight, Some(1));
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    assert_eq!(governor.status().in_flight, Some(0));
    // The provider has counted it, so the next one keeps its distance.
    let other = Provider::always(200);
    fetch(&governor, &other).await.unwrap();
    let gap = other.sends()[0] - provider.sends()[0];
    assert!(gap >= ms(9_998), "{gap:?}");
}

#[tokio::test(start_paused = true)]
async fn who_vanishes_from_the_head_of_the_queue_holds_nobody_up() {
    let governor = governor(&steady(secs(5)));
    let provider = Provider::always(200);
    fetch(&governor, &provider).await.unwrap();
    let start = Instant::now();
    let calls: Vec<_> = (0..3)
        .map(|_| {
            let (governor, provider) = (governor.clone(), provider.clone());
            tokio::spawn(async move { fetch(&governor, &provider).await.is_ok() })
        })
        .collect();
    provider_takes(secs(1)).await;
    calls[0].abort();
    calls[1].abort();
    provider_takes(secs(5)).await;
    assert_eq!((provider.sends().len(), governor.status().waiting), (2, 0));
    assert!(provider.sends()[1] - start < ms(5_001));
}

#[tokio::test(start_paused = true)]
async fn two_clients_of_one_key_share_it_and_a_slow_provider_delays_no_other() {
    let governors = Governors::new();
    let settings = steady(secs(1));
    let [one, two] = [(); 2].map(|()| governors.governor(&Key::new("slow"), &settings).unwrap());
    let provider = Provider::new(|_| Reply::status(200).after(secs(30)));
    let start = Instant::now();
    let slow = tokio::spawn({
        let provider = provider.clone();
        async move { tokio::join!(fetch(&one, &provider), fetch(&two, &provider)).0.is_ok() }
    });
    let quick = governors.governor(&Key::new("quick"), &settings).unwrap();
    let other = Provider::always(200);
    for _ in 0..5 {
        fetch(&quick, &other).await.unwrap();
    }
    assert!(start.elapsed() <= secs(4), "{:?}", start.elapsed());
    assert!(slow.await.unwrap());
    assert!(provider.gaps()[0] >= ms(998), "{:?}", provider.gaps());
}

#[test]
fn a_key_with_other_settings_is_an_error_and_not_a_surprise() {
    let governors = Governors::new();
    let key = governors.key("github", Some(b"token"));
    governors.governor(&key, &steady(secs(1))).unwrap();
    let error = governors.governor(&key, &steady(secs(2))).unwrap_err();
    assert!(matches!(error, KeyError::OtherSettings(_)), "{error}");
    assert!(!error.to_string().contains("token"));
    // Another credential is another limit.
    assert!(governors.governor(&governors.key("github", Some(b"other")), &steady(secs(2))).is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_thousand_callers_slow_and_vanishing_ones_among_them_lose_nothing_and_break_no_ceiling() {
    let ceiling = ms(20);
    let mut settings = Settings::default();
    settings.config.discovery_interval = ms(100);
    settings.config.ceiling_interval = ceiling;
    let governor = governor(&settings);
    let provider = Provider::new(|send| {
        let latency = match send % 10 {
            0 => secs(3),
            1 => ms(400),
            _ => ms(30),
        };
        let status = if send % 97 == 96 { 429 } else { 200 };
        Reply::status(status).after(latency)
    });
    let calls: Vec<_> = (0..1000_u64)
        .map(|number| {
            let (governor, provider) = (governor.clone(), provider.clone());
            tokio::spawn(async move {
                let call = fetch(&governor, &provider);
                // Every fourth loses limits after some time: in the queue, or while it is under way.
                let call_limits = if number % 4 == 3 { ms(number * 37 % 20_000) } else { secs(100_000) };
                tokio::time::timeout(call_limits, call).await.map(|finished| finished.unwrap().result.is_ok())
            })
        })
        .collect();
    let mut answered = 0;
    for call in calls {
        answered += u32::from(call.await.unwrap() == Ok(true));
    }
    assert!(answered >= 750, "{answered} answered");
    let status = governor.status();
    assert_eq!((status.waiting, status.in_flight), (0, Some(0)));
    assert_eq!(status.sent, provider.sends().len() as u64);
    let shortest = provider.gaps().into_iter().min().unwrap();
    assert!(shortest >= ceiling, "{shortest:?}");
}
