//! The oracle against values worked out by hand.

use crate::support::scenario;
use gleaner_lab::oracle::best;
use gleaner_lab::scenario::Scenario;

#[track_caller]
fn check(scenario: &Scenario, expected: u64, tolerance: u64) {
    for seed in 1..=3 {
        let accepted = best(scenario, seed).accepted;
        assert!(accepted.abs_diff(expected) <= tolerance, "{accepted}, expected {expected} ± {tolerance}");
    }
}

const BUCKET: &str = "[[limit]]\nkind = \"token_bucket\"\nrate_per_s = 10\nburst = 20\n";
const VARYING: &str = "[latency]\nbase_ms = 120\nsigma = 0.25\n";

#[test]
fn one_limit_of_each_kind() {
    check(&scenario(&format!("workers = 8\n{BUCKET}{VARYING}")), 36_020, 2);
    let fixed = "workers = 8\n[[limit]]\nkind = \"fixed_window\"\nlimit = 100\nwindow_s = 60\nphase_s = 0\n";
    check(&scenario(&format!("{fixed}{VARYING}")), 6_000, 0);
    let sliding = "workers = 8\n[[limit]]\nkind = \"sliding_window\"\nlimit = 60\nwindow_s = 20\n";
    check(&scenario(&format!("{sliding}{VARYING}")), 10_800, 2);
    let queue = "horizon_s = 1800\n[[limit]]\nkind = \"delay_queue\"\nrate_per_s = 10\nburst = 20\n";
    check(&scenario(&format!("{queue}{VARYING}")), 18_000, 21);
}

#[test]
fn one_worker_is_bound_by_its_own_latency() {
    // One request per 120 ms: 30,000 in an hour, fewer than the bucket would give.
    check(&scenario(&format!("workers = 1\n{BUCKET}")), 30_000, 1);
    // At 50 ms it drains the burst and then keeps up.
    check(&scenario(&format!("workers = 1\n{BUCKET}[latency]\nbase_ms = 50\nsigma = 0\n")), 36_020, 2);
    // 100 requests take 12 of the window's 60 s; at a second each, only 60 fit.
    let fixed = "workers = 1\n[[limit]]\nkind = \"fixed_window\"\nlimit = 100\nwindow_s = 60\n";
    check(&scenario(fixed), 6_000, 0);
    check(&scenario(&format!("{fixed}[latency]\nbase_ms = 1000\nsigma = 0\n")), 3_600, 1);
    let sliding = "workers = 1\n[[limit]]\nkind = \"sliding_window\"\nlimit = 60\nwindow_s = 20\n";
    check(&scenario(&format!("{sliding}{VARYING}")), 10_800, 2);
}

#[test]
fn phase_moves_the_windows() {
    // Windows begin at -30, 30, …, 3570: 61 of them touch the hour.
    check(&scenario("[[limit]]\nkind = \"fixed_window\"\nlimit = 100\nwindow_s = 60\nphase_s = 30\n"), 6_100, 0);
}

#[test]
fn limits_that_change() {
    let slower = "[[limit]]\nkind = \"token_bucket\"\nrate_per_s = 5\nburst = 10\nfrom_s = 1800\n";
    // 20 + 18,000, then a fresh bucket: 10 + 9,000.
    check(&scenario(&format!("{BUCKET}until_s = 1800\n{slower}")), 27_030, 2);
    // After the limit has ended, the owner's ceiling of 50/s is what is left: 18,020 + 90,000.
    check(&scenario(&format!("{BUCKET}until_s = 1800\n")), 108_020, 4);
}

#[test]
fn nested_limits_and_the_other_kinds() {
    let fixed = "[[limit]]\nkind = \"fixed_window\"\nlimit = 300\nwindow_s = 60\n";
    check(&scenario(&format!("{BUCKET}{fixed}")), 18_000, 0);
    // Two at a time, a tenth of a second each.
    let two = "horizon_s = 100\n[[limit]]\nkind = \"concurrency\"\nlimit = 2\n[latency]\nbase_ms = 100\nsigma = 0\n";
    check(&scenario(two), 2_000, 2);
    // 50 per 10 s go through unhindered.
    let tarpit = "horizon_s = 1000\n[[limit]]\nkind = \"tarpit\"\nrate_per_s = 5\nwindow_s = 10\nfactor = 20\n";
    check(&scenario(tarpit), 5_000, 2);
}

#[test]
fn noise_is_taken_off() {
    // A tenth of 36,020; four standard deviations of that draw are 228.
    check(&scenario(&format!("{BUCKET}[noise]\nserver_error = 0.06\nreset = 0.04\n")), 32_418, 228);
}

#[test]
fn a_backlog_ends_the_run() {
    // 20 at once, the other 980 at 10/s: the last is sent at 98 s and answered 120 ms later.
    let best = best(&scenario(&format!("backlog = 1000\n{BUCKET}")), 1);
    assert_eq!(best.accepted, 1000);
    assert!((best.completion_s - 98.12).abs() < 0.01, "{}", best.completion_s);
}
