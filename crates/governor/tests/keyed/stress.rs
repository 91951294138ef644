//! Many threads at once: acquires, answers, lookups, evictions and snapshots of the same keys.

use crate::desk::{domain, with};
use gleaner_governor::keyed::{Feedback, Registry, RegistryConfig};
use gleaner_governor::{Admission, Aimd, Strategy, Time};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const HOSTS: u64 = 300;
const ROUNDS: u64 = 30_000;

/// Every thread sends and answers; one tends, looks and forgets. Time goes on with each question.
fn storm(config: RegistryConfig) {
    let limit = config.keys_max;
    let registry: Registry = Registry::new(config, 3).unwrap();
    let (clock, granted, stop) = (AtomicU64::new(1_000_000_000_000), AtomicU64::new(0), AtomicBool::new(false));
    let now = || Time::from_nanos(clock.fetch_add(200_000, Ordering::Relaxed));
    std::thread::scope(|scope| {
        let tending = scope.spawn(|| {
            let mut looks = 0;
            while !stop.load(Ordering::Relaxed) {
                registry.tend(now());
                let snapshot = registry.snapshot(50, now());
                assert!(snapshot.keys_known <= limit, "{}", snapshot.keys_known);
                looks += 1;
            }
            looks
        });
        let senders: Vec<_> = (0..4_u64)
            .map(|thread| {
                let (registry, now, granted) = (&registry, &now, &granted);
                scope.spawn(move || {
                    let mut seed = thread + 1;
                    for round in 0..ROUNDS {
                        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        let host = domain(&format!("h{}.com", (seed >> 33) % HOSTS));
                        let Ok(handle) = registry.handle(&host, now()) else { continue };
                        let asked = now();
                        let Admission::Send(permit) = registry.acquire(&handle, asked, asked) else { continue };
                        granted.fetch_add(1, Ordering::Relaxed);
                        match round % 50 {
                            0 => {
                                registry.cancel(&handle, permit, now());
                                granted.fetch_sub(1, Ordering::Relaxed);
                            }
                            1 => registry.abandon(&handle, permit, now()),
                            2 => drop(registry.feedback(&handle, permit, &Feedback::status(429, None), now())),
                            3 => drop(registry.feedback(&handle, permit, &Feedback::lost(), now())),
                            _ => drop(registry.feedback(&handle, permit, &Feedback::status(200, None), now())),
                        }
                    }
                })
            })
            .collect();
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        stop.store(true, Ordering::Relaxed);
        assert!(tending.join().unwrap() > 0);
    });
    let end = now();
    let snapshot = registry.snapshot(usize::MAX, end);
    assert_eq!(snapshot.totals.granted, granted.load(Ordering::Relaxed), "nothing is lost and nothing counted twice");
    assert!(snapshot.keys.iter().all(|key| key.in_flight == 0), "all were answered");
    registry.tend(end + Duration::from_secs(100_000));
    registry.tend(end + Duration::from_secs(200_000));
    assert_eq!(registry.len(), 0, "and everything can be forgotten");
}

/// Short windows, so that keys rest, wake and are forgotten all the time.
fn restless(strategy: Strategy) -> RegistryConfig {
    let config = with(RegistryConfig::aimd(), |key| {
        key.strategy = strategy;
        key.discovery_interval = Duration::from_millis(1);
        key.ceiling_interval = Duration::from_micros(10);
        key.breaker.window = Duration::from_millis(200);
        key.breaker.bucket = Duration::from_millis(20);
        key.breaker.open_for = Duration::from_millis(100);
    });
    RegistryConfig { forget_after: Duration::from_millis(500), keys_max: 200, ..config }
}

#[test]
fn a_storm_on_the_law_loses_nothing() {
    storm(restless(Strategy::Gleaner));
}

#[test]
fn a_storm_on_token_buckets_loses_nothing() {
    storm(restless(Strategy::Aimd(Aimd::default())));
}

#[test]
fn a_few_hot_keys_are_shared_without_loss() {
    let config = with(RegistryConfig::default(), |key| {
        key.discovery_interval = Duration::from_micros(1);
        key.ceiling_interval = Duration::from_micros(1);
        key.max_concurrency = 64;
    });
    let registry: Registry = Registry::new(config, 3).unwrap();
    let clock = AtomicU64::new(1_000_000_000_000);
    let handle = registry.handle(&domain("hot.com"), Time::from_nanos(1_000_000_000_000)).unwrap();
    let sent: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let (mut sent, mut last) = (0, 0);
                    for _ in 0..200_000 {
                        let now = Time::from_nanos(clock.fetch_add(600, Ordering::Relaxed));
                        if let Admission::Send(permit) = registry.acquire(&handle, now, now) {
                            sent += 1;
                            let later = Time::from_nanos(clock.fetch_add(100, Ordering::Relaxed));
                            registry.feedback(&handle, permit, &Feedback::status(200, None), later);
                        }
                        last = now.as_nanos();
                    }
                    assert!(last > 0);
                    sent
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    let now = Time::from_nanos(clock.load(Ordering::Relaxed));
    let key = &registry.snapshot(1, now).keys[0];
    assert_eq!((key.totals.granted, key.in_flight), (sent, 0));
    // No more than one per microsecond, whichever way they went.
    let passed = now.as_nanos() - 1_000_000_000_000;
    assert!(sent <= passed / 1000 + 1, "{sent} in {passed} ns");
    assert!(sent > 100_000, "{sent}");
}
