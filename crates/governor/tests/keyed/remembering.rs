//! Learned state that outlives the process.

use crate::desk::{Desk, domain, fixed, opens_after, seconds, with};
use gleaner_governor::keyed::{Feedback, RegistryConfig};
use gleaner_governor::{BreakerConfig, Learned, Strategy, WallTime};
use std::collections::BTreeMap;
use std::time::Duration;

const WALL: WallTime = WallTime::from_unix_millis(1_800_000_000_000);

fn learned(desk: &Desk) -> BTreeMap<String, Learned> {
    let mut all = BTreeMap::new();
    desk.registry.learned(desk.now, WALL, |name, learned| {
        all.insert(name.to_owned(), learned.clone());
    });
    all
}

fn restart(desk: &Desk, config: RegistryConfig, later: Duration) -> Desk {
    let new = Desk::new(config);
    for (name, learned) in learned(desk) {
        let learned = Learned::decode(learned.to_string().as_bytes()).unwrap();
        assert!(new.registry.restore(&domain(&name), &learned, new.now, WALL + later));
    }
    new
}

fn warm(config: RegistryConfig) -> Desk {
    let mut desk = Desk::new(config);
    for _ in 0..200 {
        desk.exchange("a.com", 200, 10);
    }
    desk
}

#[test]
fn a_restart_starts_warm_with_every_strategy_that_learns() {
    for config in [RegistryConfig::default(), RegistryConfig::aimd()] {
        let desk = warm(config.clone());
        let before = desk.key("a.com").rate_per_s;
        assert!(before > 5.0, "{before}");
        let mut new = restart(&desk, config.clone(), seconds(60));
        new.exchange("a.com", 200, 10);
        let after = new.key("a.com").rate_per_s;
        assert!((after - before).abs() < 0.2, "{:?}: {before} {after}", config.key.strategy);
        let mut late = restart(&desk, config.clone(), seconds(7 * 3600));
        late.exchange("a.com", 200, 10);
        assert!(late.key("a.com").rate_per_s < 1.2, "a rate is good for six hours");
    }
}

#[test]
fn a_key_at_rest_is_remembered_too() {
    let mut desk = warm(RegistryConfig::default());
    let awake = learned(&desk);
    desk.pass(seconds(60)).tend();
    assert_eq!(desk.snapshot().keys_active, 0);
    let asleep = learned(&desk);
    assert_eq!(asleep["a.com"].interval, awake["a.com"].interval);
    assert_eq!(asleep["a.com"].recorded_at, WALL.before(seconds(60)), "as old as its last use");
}

#[test]
fn gates_and_open_circuits_survive_whatever_their_age() {
    for strategy in [Strategy::Gleaner, Strategy::Fixed] {
        let breaker = BreakerConfig { open_for: seconds(50_000), ..opens_after(1) };
        let config = with(fixed(10.0), |key| (key.strategy, key.breaker) = (strategy, breaker));
        let mut desk = Desk::new(config.clone());
        desk.tell("gate.com", &Feedback::status(429, Some(seconds(60_000))), 0);
        desk.exchange("circuit.com", 500, 0);
        let new = restart(&desk, config, seconds(40_000));
        assert_eq!(new.wait("gate.com"), seconds(20_000), "{strategy:?}");
        assert_eq!(new.wait("circuit.com"), seconds(10_000), "{strategy:?}");
    }
}

#[test]
fn what_is_known_or_from_the_future_is_not_restored() {
    let desk = warm(RegistryConfig::default());
    let all = learned(&desk);
    let new = Desk::new(RegistryConfig::default());
    let a = domain("a.com");
    assert!(!new.registry.restore(&a, &all["a.com"], new.now, WALL.before(seconds(1))), "from the future");
    assert!(new.registry.restore(&a, &all["a.com"], new.now, WALL));
    assert!(!new.registry.restore(&a, &all["a.com"], new.now, WALL), "known already");
}

#[test]
fn nothing_is_remembered_of_a_key_that_taught_nothing() {
    let mut desk = Desk::new(RegistryConfig::default());
    let _handle = desk.handle("asked.com");
    desk.exchange("once.com", 200, 10);
    assert!(learned(&desk).is_empty());
}
