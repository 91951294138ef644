//! One test per setting: changing it changes behaviour.

use crate::desk::{Desk, attempt, every, fixed, never_opens, opens_after, seconds, with};
use gleaner_governor::keyed::{Feedback, RegistryConfig};
use gleaner_governor::{
    Admission, Advice, Aimd, BreakerConfig, CircuitState, DeferReason, RetryBudgetConfig, Strategy,
};
use std::time::Duration;

/// The result of `look` with and without a change.
fn differs<T: PartialEq + std::fmt::Debug>(
    base: RegistryConfig,
    change: impl FnOnce(&mut RegistryConfig),
    look: impl Fn(&mut Desk) -> T,
) -> (T, T) {
    let mut changed = base.clone();
    change(&mut changed);
    let (before, after) = (look(&mut Desk::new(base)), look(&mut Desk::new(changed)));
    assert_ne!(before, after);
    (before, after)
}

fn aimd(aimd: Aimd) -> Strategy {
    Strategy::Aimd(aimd)
}

/// Requests that are let through at once.
fn at_once(desk: &mut Desk) -> usize {
    let mut permits = Vec::new();
    while let Admission::Send(permit) = desk.ask("a.com") {
        permits.push(permit);
        if permits.len() == 50 {
            break;
        }
    }
    permits.len()
}

fn wait_after_one(desk: &mut Desk) -> Duration {
    let _in_flight = desk.send("a.com");
    desk.wait("a.com")
}

/// The rate in thousandths after these statuses, each 10 ms after its request.
fn rate_after(desk: &mut Desk, statuses: &[u16], latency_ms: u64) -> u64 {
    for &status in statuses {
        desk.exchange("a.com", status, latency_ms);
    }
    (desk.key("a.com").rate_per_s * 1000.0).round() as u64
}

/// Failures until the circuit opens.
fn failures_to_open(desk: &mut Desk) -> usize {
    (0..100)
        .take_while(|_| {
            desk.exchange("a.com", 500, 1);
            !desk.is_denied("a.com")
        })
        .count()
        + 1
}

#[test]
fn enabled() {
    let config = with(fixed(1.0), |key| key.breaker = opens_after(1));
    let (on, off) = differs(
        config,
        |config| config.enabled = false,
        |desk| {
            desk.exchange("a.com", 500, 0);
            let let_through = (0..5).filter(|_| matches!(desk.ask("a.com"), Admission::Send(_))).count();
            (let_through, desk.key("a.com").answers)
        },
    );
    assert_eq!(on, (0, 1));
    assert_eq!(off, (5, 1), "nobody waits, and what comes back is still counted");
}

#[test]
fn strategy() {
    let look = |desk: &mut Desk| rate_after(desk, &[200, 200, 429], 10);
    let default = RegistryConfig::default;
    let (law, steps) = differs(default(), |config| config.key.strategy = aimd(Aimd::default()), look);
    let (_, fixed) = differs(default(), |config| config.key.strategy = Strategy::Fixed, look);
    assert_eq!((steps, fixed), (600, 1000));
    assert_eq!(law, 400, "the first cut of the law");
}

#[test]
fn discovery_interval() {
    assert_eq!(
        differs(
            fixed(10.0),
            |config| config.key.discovery_interval = every(20.0),
            |desk| {
                desk.registry.acquire(&desk.handle("a.com"), desk.now, desk.now);
                (desk.pass_ms(1).key("a.com").rate_per_s * 10.0).round() as u64
            }
        ),
        (100, 200)
    );
    for strategy in [Strategy::Gleaner, aimd(Aimd::default())] {
        let base = with(fixed(1.0), |key| (key.strategy, key.burst) = (strategy, 1.0));
        let (one, two) = differs(base, |config| config.key.discovery_interval = every(2.0), wait_after_one);
        assert!(one.abs_diff(2 * two) < Duration::from_millis(5), "{strategy:?} {one:?} {two:?}");
    }
}

#[test]
fn slowest_interval() {
    let look = |desk: &mut Desk| rate_after(desk, &[429; 3], 10);
    assert_eq!(differs(RegistryConfig::aimd(), |config| config.key.slowest_interval = every(0.5), look), (125, 500));
    let look = |desk: &mut Desk| rate_after(desk, &[429; 2], 10);
    let change = |config: &mut RegistryConfig| config.key.slowest_interval = every(0.8);
    let base = with(RegistryConfig::default(), |key| key.discovery_interval = every(2.0));
    let (law, floor) = differs(base, change, look);
    assert!(law < 800 && floor == 800, "{law} {floor}");
}

#[test]
fn ceiling_interval() {
    let look = |desk: &mut Desk| rate_after(desk, &[200; 100], 10);
    let change = |config: &mut RegistryConfig| config.key.ceiling_interval = every(2.0);
    let base = with(RegistryConfig::aimd(), |key| key.ceiling_interval = every(5.0));
    assert_eq!(differs(base, change, look), (5000, 2000));
    let base = with(RegistryConfig::default(), |key| key.ceiling_interval = every(4.0));
    assert_eq!(differs(base, change, look), (4000, 2000));
}

#[test]
fn burst() {
    assert_eq!(differs(fixed(1.0), |config| config.key.burst = 3.0, at_once), (10, 3));
}

#[test]
fn max_concurrency() {
    let base = with(fixed(1.0), |key| key.burst = 40.0);
    assert_eq!(differs(base, |config| config.key.max_concurrency = 7, at_once), (40, 7));
}

#[test]
fn increase_per_s() {
    let change =
        |config: &mut RegistryConfig| config.key.strategy = aimd(Aimd { increase_per_s: 0.3, ..Aimd::default() });
    assert_eq!(differs(RegistryConfig::aimd(), change, |desk| rate_after(desk, &[200], 10)), (1100, 1300));
}

#[test]
fn decrease_factor() {
    let change =
        |config: &mut RegistryConfig| config.key.strategy = aimd(Aimd { decrease_factor: 0.8, ..Aimd::default() });
    assert_eq!(differs(RegistryConfig::aimd(), change, |desk| rate_after(desk, &[429], 10)), (500, 800));
}

#[test]
fn latency_target() {
    let latency_target = Duration::from_millis(700);
    let change = |config: &mut RegistryConfig| config.key.strategy = aimd(Aimd { latency_target, ..Aimd::default() });
    assert_eq!(differs(RegistryConfig::aimd(), change, |desk| rate_after(desk, &[200], 600)), (1000, 1100));
}

#[test]
fn late_factor() {
    let change = |config: &mut RegistryConfig| config.key.strategy = aimd(Aimd { late_factor: 4.0, ..Aimd::default() });
    assert_eq!(differs(RegistryConfig::aimd(), change, |desk| rate_after(desk, &[200], 1200)), (500, 1000));
}

#[test]
fn failure_percent() {
    let breaker = BreakerConfig { consecutive_failures: 0, throughput_min: 1, ..BreakerConfig::default() };
    let base = with(fixed(100.0), |key| key.breaker = breaker);
    let look = |desk: &mut Desk| {
        desk.exchange("a.com", 200, 1);
        failures_to_open(desk)
    };
    assert_eq!(differs(base, |config| config.key.breaker.failure_percent = 75, look), (1, 3));
}

#[test]
fn throughput_min() {
    let base = with(fixed(100.0), |key| key.breaker.consecutive_failures = 0);
    assert_eq!(differs(base, |config| config.key.breaker.throughput_min = 4, failures_to_open), (5, 4));
}

#[test]
fn consecutive_failures() {
    // After a success the share is never all of them.
    let look = |desk: &mut Desk| {
        desk.exchange("a.com", 200, 1);
        failures_to_open(desk)
    };
    let base = with(fixed(100.0), |key| key.breaker.failure_percent = 100);
    assert_eq!(differs(base.clone(), |config| config.key.breaker.consecutive_failures = 7, look), (5, 7));
    assert_eq!(differs(base, |config| config.key.breaker.consecutive_failures = 0, look), (5, 101), "off");
}

#[test]
fn probes() {
    let look = |desk: &mut Desk| {
        failures_to_open(desk);
        desk.pass(seconds(60));
        at_once(desk)
    };
    assert_eq!(differs(fixed(100.0), |config| config.key.breaker.probes = 3, look), (1, 3));
}

#[test]
fn horizon() {
    let look = |desk: &mut Desk| {
        desk.tell("a.com", &Feedback::status(429, Some(seconds(10))), 0);
        match desk.ask("a.com") {
            Admission::Defer(deferral) => Some((deferral.reason, deferral.not_before)),
            _ => None,
        }
    };
    let (waits, defers) = differs(fixed(100.0), |config| config.key.horizon = seconds(9), look);
    assert_eq!((waits, defers.unwrap().0), (None, DeferReason::BeyondHorizon));
}

#[test]
fn open_for() {
    let look = |desk: &mut Desk| {
        while !desk.is_denied("a.com") {
            desk.exchange("a.com", 500, 1);
        }
        desk.key("a.com").opens_in
    };
    assert_eq!(
        differs(fixed(100.0), |config| config.key.breaker.open_for = seconds(5), look),
        (seconds(60), seconds(5))
    );
}

#[test]
fn successes_to_close() {
    let look = |desk: &mut Desk| {
        failures_to_open(desk);
        desk.pass(seconds(60));
        (0..9)
            .take_while(|_| {
                desk.exchange("a.com", 200, 1);
                desk.key("a.com").circuit != CircuitState::Closed
            })
            .count()
            + 1
    };
    assert_eq!(differs(fixed(100.0), |config| config.key.breaker.successes_to_close = 5, look), (2, 5));
}

fn longest_pause(number: u32) -> impl Fn(&mut Desk) -> Duration {
    move |desk| match desk.tell("a.com", &attempt(500, number), 0) {
        Advice::RetryAt(at) => at.since(desk.now),
        other => panic!("{other:?}"),
    }
}

#[test]
fn backoff_base() {
    let change = |config: &mut RegistryConfig| config.key.backoff.base = Duration::from_millis(200);
    let expected = (seconds(2), Duration::from_millis(400));
    assert_eq!(differs(fixed(100.0), change, longest_pause(1)), expected);
}

#[test]
fn backoff_cap() {
    let base = with(fixed(100.0), |key| key.backoff.attempts = 100);
    let change = |config: &mut RegistryConfig| config.key.backoff.cap = seconds(9);
    assert_eq!(differs(base, change, longest_pause(20)), (seconds(60), seconds(9)));
}

#[test]
fn attempts() {
    let look = |desk: &mut Desk| {
        (0..50).take_while(|&n| matches!(desk.tell("a.com", &attempt(502, n), 0), Advice::RetryAt(_))).count()
    };
    let base = with(fixed(100.0), |key| key.breaker = never_opens());
    assert_eq!(differs(base, |config| config.key.backoff.attempts = 2, look), (3, 1));
}

#[test]
fn retry_budget() {
    let look = |desk: &mut Desk| {
        let retries = (0..30).filter(|_| matches!(desk.exchange("a.com", 502, 0), Advice::RetryAt(_))).count();
        retries == 30
    };
    let base = with(fixed(1.0), |key| key.breaker = never_opens());
    assert_eq!(differs(base.clone(), |config| config.key.retry_budget = None, look), (false, true));
    let cheap = Some(RetryBudgetConfig { successes_per_retry: 1 });
    let look = |desk: &mut Desk| {
        (0..30)
            .take_while(|_| match desk.exchange("a.com", 502, 0) {
                Advice::RetryAt(_) => true,
                Advice::Defer(deferral) if deferral.reason == DeferReason::RetryBudget => false,
                other => panic!("{other:?}"),
            })
            .count()
    };
    let (five, one) = differs(base, |config| config.key.retry_budget = cheap, look);
    assert!(one > five, "{one} {five}");
}

#[test]
fn breaker_window() {
    let look = |desk: &mut Desk| {
        desk.exchange("a.com", 500, 1);
        desk.pass(seconds(10)).exchange("a.com", 200, 1);
        desk.key("a.com").answers
    };
    assert_eq!(differs(fixed(100.0), |config| config.key.breaker.window = seconds(6), look), (2, 1));
}

#[test]
fn breaker_bucket() {
    // The oldest bucket goes as a whole.
    let look = |desk: &mut Desk| {
        desk.exchange("a.com", 500, 0);
        desk.pass(seconds(9)).exchange("a.com", 500, 0);
        desk.pass(seconds(22)).exchange("a.com", 200, 0);
        desk.key("a.com").answers
    };
    assert_eq!(differs(fixed(100.0), |config| config.key.breaker.bucket = seconds(15), look), (2, 1));
}

#[test]
fn forget_after() {
    let look = |desk: &mut Desk| {
        desk.exchange("a.com", 200, 1);
        desk.pass(seconds(600)).tend();
        desk.registry.len()
    };
    assert_eq!(differs(fixed(100.0), |config| config.forget_after = seconds(500), look), (1, 0));
}

#[test]
fn shards() {
    // With as many shards as there are, a key's own work is all that happens under its lock; seen from outside,
    // tending one shard of one tends everything.
    let look = |desk: &mut Desk| {
        for n in 0..100 {
            desk.exchange(&format!("h{n}.com"), 200, 1);
        }
        desk.pass(seconds(7200)).tend_first_shard();
        desk.registry.is_empty()
    };
    assert_eq!(differs(fixed(100.0), |config| config.shards = 1, look), (false, true));
}

#[test]
fn keys_max() {
    let look = |desk: &mut Desk| {
        for n in 0..10 {
            desk.exchange(&format!("h{n}.com"), 200, 1);
        }
        desk.registry.len()
    };
    assert_eq!(differs(fixed(100.0), |config| config.keys_max = 4, look), (10, 4));
}

#[test]
fn throttled_after() {
    let look = |desk: &mut Desk| {
        let (handle, start) = (desk.handle("a.com"), desk.now);
        let waited = desk.registry.acquire(&handle, start, start + Duration::from_millis(300));
        assert!(matches!(waited, Admission::Send(_)));
        desk.snapshot().totals.throttled
    };
    let change = |config: &mut RegistryConfig| config.throttled_after = Duration::from_millis(300);
    assert_eq!(differs(fixed(100.0), change, look), (1, 0));
    assert_eq!(differs(RegistryConfig::default(), change, look), (1, 0));
}

#[test]
fn snapshot_keys_max() {
    let look = |desk: &mut Desk| {
        for n in 0..200 {
            desk.exchange(&format!("h{n}.com"), 200, 0);
        }
        desk.snapshot().keys.len()
    };
    assert_eq!(differs(fixed(100.0), |config| config.snapshot_keys_max = 7, look), (100, 7));
}

#[test]
fn groups() {
    let look = |desk: &mut Desk| {
        for host in ["example.com", "a.example.com", "b.a.example.com", "badexample.com", "example.com:8080"] {
            desk.exchange(host, 200, 1);
        }
        (desk.registry.len(), desk.handle("x.a.example.com").domain().to_owned())
    };
    let change = |config: &mut RegistryConfig| config.groups = ["example.com".into(), "com.example".into()].into();
    let expected = ((5, "x.a.example.com".to_owned()), (3, "example.com".to_owned()));
    assert_eq!(differs(fixed(100.0), change, look), expected);
}

#[test]
fn the_longest_group_wins() {
    let groups = ["example.com".into(), "a.example.com".into()].into();
    let desk = Desk::new(RegistryConfig { groups, ..RegistryConfig::default() });
    assert_eq!(desk.handle("b.a.example.com").domain(), "a.example.com");
    assert_eq!(desk.handle("b.example.com").domain(), "example.com");
}

#[test]
fn statuses() {
    let look = |desk: &mut Desk| matches!(desk.tell("a.com", &Feedback::status(404, None), 0), Advice::RetryAt(_));
    let change = |config: &mut RegistryConfig| {
        let statuses = gleaner_governor::keyed::Statuses::new(&[404], &[]);
        config.statuses.insert("a.com".into(), statuses);
    };
    assert_eq!(differs(fixed(100.0), change, look), (false, true));
}
