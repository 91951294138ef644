//! Settings that make no sense are refused by name.

use gleaner_governor::keyed::{Aimd, Config, Registry, Strategy};
use std::time::Duration;

fn refused(change: impl FnOnce(&mut Config)) -> String {
    let mut config = Config::aimd();
    change(&mut config);
    Registry::<()>::new(config, 0).unwrap_err().to_string()
}

fn refused_aimd(change: impl FnOnce(&mut Aimd)) -> String {
    let mut aimd = Aimd::default();
    change(&mut aimd);
    refused(|config| config.strategy = Strategy::Aimd(aimd))
}

#[test]
fn the_defaults_are_fine() {
    assert_eq!(Config::default().check(), Ok(()));
    assert_eq!(Config::aimd().check(), Ok(()));
}

#[test]
fn rates_that_are_no_numbers() {
    assert_eq!(refused(|config| config.initial_per_s = f64::NAN), "initial_per_s is not a number");
    assert_eq!(refused(|config| config.min_per_s = f64::NAN), "min_per_s is not a number");
    assert_eq!(refused(|config| config.max_per_s = f64::NAN), "max_per_s is not a number");
    assert_eq!(refused(|config| config.burst = f64::NAN), "burst is not a number");
    assert_eq!(refused(|config| config.error_share = f64::NAN), "error_share is not above 0 and up to 1");
    assert_eq!(refused_aimd(|aimd| aimd.increase_per_s = f64::NAN), "increase_per_s is not a number");
    assert_eq!(refused_aimd(|aimd| aimd.decrease_factor = f64::NAN), "decrease_factor is not between 0 and 1");
    assert_eq!(refused_aimd(|aimd| aimd.late_factor = f64::NAN), "late_factor is not a number");
}

#[test]
fn rates_that_are_negative_zero_or_endless() {
    assert_eq!(refused(|config| config.initial_per_s = -1.0), "initial_per_s is negative");
    assert_eq!(refused(|config| config.min_per_s = -0.1), "min_per_s is negative");
    assert_eq!(refused(|config| config.min_per_s = 0.0), "min_per_s is too small");
    assert_eq!(refused(|config| config.max_per_s = f64::INFINITY), "max_per_s is too large");
    assert_eq!(refused(|config| config.burst = -3.0), "burst is negative");
    assert_eq!(refused(|config| config.burst = 0.5), "burst is too small");
    assert_eq!(refused_aimd(|aimd| aimd.increase_per_s = -0.1), "increase_per_s is negative");
    assert_eq!(refused_aimd(|aimd| aimd.late_factor = 0.9), "late_factor is too small");
}

#[test]
fn bounds_that_cross() {
    assert_eq!(refused(|config| config.min_per_s = 100.0), "min_per_s is above max_per_s");
    assert_eq!(refused(|config| config.initial_per_s = 51.0), "initial_per_s is not between min_per_s and max_per_s");
    assert_eq!(refused(|config| config.initial_per_s = 0.05), "initial_per_s is not between min_per_s and max_per_s");
    assert_eq!(refused(|config| config.retry_base = Duration::from_secs(61)), "retry_base is above retry_cap");
    assert_eq!(
        refused(|config| config.stats_bucket = Duration::from_secs(31)),
        "stats_bucket is longer than stats_window"
    );
    assert_eq!(
        refused(|config| config.stats_bucket = Duration::from_secs(1)),
        "stats_bucket makes more than 16 buckets of stats_window"
    );
    assert_eq!(
        refused(|config| config.forget_after = Duration::from_secs(29)),
        "forget_after is shorter than stats_window"
    );
}

#[test]
fn factors_and_shares_out_of_their_range() {
    for factor in [0.0, 1.0, 1.5, -0.5] {
        assert_eq!(refused_aimd(|aimd| aimd.decrease_factor = factor), "decrease_factor is not between 0 and 1");
    }
    for share in [0.0, -0.1, 1.1] {
        assert_eq!(refused(|config| config.error_share = share), "error_share is not above 0 and up to 1");
    }
}

#[test]
fn counts_and_times_of_zero() {
    assert_eq!(refused(|config| config.max_in_flight = 0), "max_in_flight is zero");
    assert_eq!(refused(|config| config.samples_min = 0), "samples_min is zero");
    assert_eq!(refused(|config| config.successes_to_close = 0), "successes_to_close is zero");
    assert_eq!(refused(|config| config.attempts = 0), "attempts is zero");
    assert_eq!(refused(|config| config.snapshot_keys_max = 0), "snapshot_keys_max is zero");
    assert_eq!(refused(|config| config.open_for = Duration::ZERO), "open_for is zero");
    assert_eq!(refused(|config| config.stats_window = Duration::ZERO), "stats_window is zero");
    assert_eq!(refused(|config| config.stats_bucket = Duration::ZERO), "stats_bucket is zero");
    assert_eq!(refused(|config| config.forget_after = Duration::ZERO), "forget_after is zero");
    assert_eq!(refused_aimd(|aimd| aimd.latency_target = Duration::ZERO), "latency_target is zero");
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
        assert_eq!(error, "groups has what is no domain in its one spelling, or one with a port");
        if group != "example.com:8080" {
            let error = refused(|config| drop(config.statuses.insert(group.into(), Default::default())));
            assert_eq!(error, "statuses has what is no domain in its one spelling");
        }
    }
}
