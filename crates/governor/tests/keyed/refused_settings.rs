//! Settings that make no sense are refused by name.

use gleaner_governor::keyed::{Registry, RegistryConfig};
use gleaner_governor::{Aimd, Config, RunBudgetConfig, Strategy};
use std::time::Duration;

fn refused(change: impl FnOnce(&mut RegistryConfig)) -> String {
    let mut config = RegistryConfig::aimd();
    change(&mut config);
    Registry::<()>::new(config, 0).unwrap_err().to_string()
}

fn refused_key(change: impl FnOnce(&mut Config)) -> String {
    refused(|config| change(&mut config.key))
}

fn refused_aimd(change: impl FnOnce(&mut Aimd)) -> String {
    let mut aimd = Aimd::default();
    change(&mut aimd);
    refused_key(|key| key.strategy = Strategy::Aimd(aimd))
}

#[test]
fn the_defaults_are_fine() {
    assert_eq!(Config::default().check(), Ok(()));
    assert_eq!(RegistryConfig::default().check(), Ok(()));
    assert_eq!(RegistryConfig::aimd().check(), Ok(()));
}

#[test]
fn a_single_governor_and_a_registry_have_the_same_defaults_but_for_two() {
    let RegistryConfig { key, .. } = RegistryConfig::default();
    let Config { max_concurrency, horizon, .. } = Config::default();
    assert_eq!(Config { max_concurrency, horizon, ..key }, Config::default());
    assert_eq!((key.max_concurrency, key.horizon), (6, Duration::MAX));
}

#[test]
fn numbers_that_are_none_negative_or_too_small() {
    assert_eq!(refused_key(|key| key.burst = f64::NAN), "burst is not a number");
    assert_eq!(refused_key(|key| key.burst = -3.0), "burst is negative");
    assert_eq!(refused_key(|key| key.burst = 0.5), "burst is too small");
    assert_eq!(refused_key(|key| key.burst = f64::INFINITY), "burst is too large");
    assert_eq!(refused_aimd(|aimd| aimd.increase_per_s = f64::NAN), "increase_per_s is not a number");
    assert_eq!(refused_aimd(|aimd| aimd.increase_per_s = -0.1), "increase_per_s is negative");
    assert_eq!(refused_aimd(|aimd| aimd.decrease_factor = f64::NAN), "decrease_factor is not between 0 and 1");
    assert_eq!(refused_aimd(|aimd| aimd.late_factor = f64::NAN), "late_factor is not a number");
    assert_eq!(refused_aimd(|aimd| aimd.late_factor = 0.9), "late_factor is too small");
}

#[test]
fn bounds_that_cross() {
    let between = "discovery_interval is not between ceiling_interval and slowest_interval";
    let ms = Duration::from_millis;
    assert_eq!(refused_key(|key| key.slowest_interval = ms(19)), "slowest_interval is shorter than ceiling_interval");
    for interval in [ms(0), ms(19), ms(10_001)] {
        assert_eq!(refused_key(|key| key.discovery_interval = interval), between);
    }
    assert_eq!(refused_key(|key| key.backoff.base = ms(61_000)), "backoff.base is above backoff.cap");
    assert_eq!(refused_key(|key| key.breaker.bucket = ms(31_000)), "breaker.bucket is longer than breaker.window");
    assert_eq!(
        refused_key(|key| key.breaker.bucket = ms(1000)),
        "breaker.bucket is too short: breaker.window would have more than 15 buckets"
    );
    assert_eq!(refused(|config| config.forget_after = ms(29_000)), "forget_after is shorter than breaker.window");
}

#[test]
fn factors_and_shares_out_of_their_range() {
    for factor in [0.0, 1.0, 1.5, -0.5] {
        assert_eq!(refused_aimd(|aimd| aimd.decrease_factor = factor), "decrease_factor is not between 0 and 1");
    }
    for percent in [0, 101] {
        let refused = refused_key(|key| key.breaker.failure_percent = percent);
        assert_eq!(refused, "breaker.failure_percent is not between 1 and 100");
    }
}

#[test]
fn counts_and_times_of_zero() {
    assert_eq!(refused_key(|key| key.ceiling_interval = Duration::ZERO), "ceiling_interval is zero");
    assert_eq!(refused_key(|key| key.max_concurrency = 0), "max_concurrency is zero");
    assert_eq!(refused_key(|key| key.breaker.throughput_min = 0), "breaker.throughput_min is zero");
    assert_eq!(refused_key(|key| key.breaker.probes = 0), "breaker.probes is zero");
    assert_eq!(refused_key(|key| key.breaker.successes_to_close = 0), "breaker.successes_to_close is zero");
    assert_eq!(refused_key(|key| key.breaker.open_for = Duration::ZERO), "breaker.open_for is zero");
    assert_eq!(refused_key(|key| key.breaker.window = Duration::ZERO), "breaker.window is zero");
    assert_eq!(refused_key(|key| key.breaker.bucket = Duration::ZERO), "breaker.bucket is zero");
    assert_eq!(refused_key(|key| key.backoff.attempts = 0), "backoff.attempts is zero");
    assert_eq!(refused(|config| config.snapshot_keys_max = 0), "snapshot_keys_max is zero");
    assert_eq!(refused(|config| config.forget_after = Duration::ZERO), "forget_after is zero");
    assert_eq!(refused_aimd(|aimd| aimd.latency_target = Duration::ZERO), "latency_target is zero");
}

#[test]
fn what_a_registry_has_not() {
    let run_budget = RunBudgetConfig { request_cap: Some(5), wall_clock: None };
    assert_eq!(refused_key(|key| key.run_budget = run_budget), "run_budget is set, but a registry has no runs");
}

#[test]
fn shards_that_are_no_power_of_two_and_keys_without_number() {
    for shards in [0, 3, 12, 8192] {
        assert_eq!(refused(|config| config.shards = shards), "shards is not a power of two up to 4096");
    }
    for keys in [0, usize::MAX] {
        assert_eq!(refused(|config| config.keys_max = keys), "keys_max is not between 1 and 100000000");
    }
}

#[test]
fn names_that_are_no_domains() {
    for group in ["Example.com", "a b", "example.com:8080", "https://example.com", ""] {
        let error = refused(|config| config.groups = [group.into()].into());
        assert_eq!(error, "groups has an entry that is not a normalized domain, or one with a port");
        if group != "example.com:8080" {
            let error = refused(|config| drop(config.statuses.insert(group.into(), Default::default())));
            assert_eq!(error, "statuses has an entry that is not a normalized domain");
        }
    }
}
