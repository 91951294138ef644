//! Each kind of limit, each Retry-After and each header, worked out by hand.

use crate::support::scenario;
use gleaner_governor::{QuotaReading, WallTime, read_quotas, read_retry_after};
use gleaner_lab::provider::{Decision, EPOCH_S, Headers, Provider};
use std::time::Duration;

/// `a`ccepted, `r`ejected or `b`anned, one letter per request.
#[track_caller]
fn check(limits: &str, times_s: &[f64], expected: &str) {
    let mut provider = Provider::new(&scenario(limits));
    let letters: String = times_s
        .iter()
        .map(|&now| match provider.decide(now).decision {
            Decision::Accepted => 'a',
            Decision::Rejected => 'r',
            Decision::Banned => 'b',
        })
        .collect();
    assert_eq!(letters, expected, "at {times_s:?}");
}

const BUCKET: &str = "[[limit]]\nkind = \"token_bucket\"\nrate_per_s = 1\nburst = 3\n";
const SLIDING: &str = "[[limit]]\nkind = \"sliding_window\"\nlimit = 2\nwindow_s = 10\n";

#[test]
fn token_bucket() {
    check(BUCKET, &[0.0, 0.0, 0.0, 0.0, 0.5, 1.0, 1.0, 2.5, 2.9, 3.0], "aaarrarara");
    // Each refusal empties what had dripped in.
    check(&format!("{BUCKET}count_rejected = true\n"), &[0.0, 0.0, 0.0, 0.0, 0.5, 1.0, 1.5, 2.5], "aaarrrra");
}

#[test]
fn fixed_window() {
    // With phase 3 windows begin at -3, 7 and 17.
    let limit = "[[limit]]\nkind = \"fixed_window\"\nlimit = 2\nwindow_s = 10\nphase_s = 3\n";
    check(limit, &[0.0, 1.0, 2.0, 6.999, 7.0, 8.0, 9.0, 17.0], "aarraara");
}

#[test]
fn sliding_window() {
    check(SLIDING, &[0.0, 4.0, 9.0, 10.0, 13.0, 14.0], "aarara");
    // A client that keeps asking is kept out; a window of silence opens it.
    let times = [0.0, 4.0, 9.0, 10.0, 14.0, 19.0, 20.0, 30.0];
    check(&format!("{SLIDING}count_rejected = true\n"), &times, "aarrrrra");
}

#[test]
fn delay_queue_delays_up_to_its_burst() {
    let queue = "[[limit]]\nkind = \"delay_queue\"\nrate_per_s = 1\nburst = 2\n";
    check(queue, &[0.0, 0.0, 0.0, 0.0, 1.0, 1.0], "aaarar");
    let mut provider = Provider::new(&scenario(queue));
    let delays: Vec<f64> = [0.0, 0.0, 0.0, 1.0, 9.0].iter().map(|&now| provider.decide(now).delay_s).collect();
    assert_eq!(delays, [0.0, 1.0, 2.0, 2.0, 0.0]);
}

#[test]
fn nginx_example_of_the_catalogue() {
    // 6 at once at 1 r/s with burst 5: one now, five later; a seventh is refused.
    check("[[limit]]\nkind = \"delay_queue\"\nrate_per_s = 1\nburst = 5\n", &[0.0; 7], "aaaaaar");
}

#[test]
fn concurrency_counts_what_is_being_worked_on() {
    let mut provider = Provider::new(&scenario("[[limit]]\nkind = \"concurrency\"\nlimit = 2\n"));
    for (now, until) in [(0.0, 5.0), (1.0, 3.0)] {
        assert_eq!(provider.decide(now).decision, Decision::Accepted);
        provider.occupy(now, until);
    }
    let refused = provider.decide(2.0);
    assert_eq!((refused.decision, refused.wait_s), (Decision::Rejected, 1.0));
    assert_eq!(provider.decide(3.0).decision, Decision::Accepted);
}

#[test]
fn tarpit_only_slows_down() {
    let mut provider =
        Provider::new(&scenario("[[limit]]\nkind = \"tarpit\"\nrate_per_s = 1\nwindow_s = 4\nfactor = 10\n"));
    let factors: Vec<f64> =
        [0.0, 1.0, 2.0, 3.0, 3.5, 4.0, 20.0].iter().map(|&now| provider.decide(now).factor).collect();
    assert_eq!(factors, [1.0, 1.0, 1.0, 1.0, 10.0, 10.0, 1.0]);
}

#[test]
fn tarpit_threshold_survives_rounding() {
    // 2.3 × 10 is 22.999… in binary; 23 requests in 10 s are within it.
    let mut provider =
        Provider::new(&scenario("[[limit]]\nkind = \"tarpit\"\nrate_per_s = 2.3\nwindow_s = 10\nfactor = 10\n"));
    let slow = (0..24).filter(|_| provider.decide(1.0).factor > 1.0).count();
    assert_eq!(slow, 1);
}

#[test]
fn a_refusal_burns_only_the_limits_that_count_it() {
    let inner = "[[limit]]\nkind = \"fixed_window\"\nlimit = 1\nwindow_s = 1\n";
    let outer = "[[limit]]\nkind = \"fixed_window\"\nlimit = 3\nwindow_s = 100\n";
    check(&format!("{inner}{outer}"), &[0.0, 0.5, 1.0, 2.0, 3.0], "araar");
    check(&format!("{inner}{outer}count_rejected = true\n"), &[0.0, 0.5, 1.0, 2.0, 3.0], "ararr");
}

#[test]
fn a_limit_acts_only_in_its_period() {
    let limit = "[[limit]]\nkind = \"fixed_window\"\nlimit = 1\nwindow_s = 10\nfrom_s = 5\nuntil_s = 15\n";
    check(limit, &[0.0, 1.0, 5.0, 6.0, 10.0, 11.0, 15.0, 16.0], "aaararaa");
}

#[test]
fn strikes_suspend_and_each_suspension_doubles() {
    let limit = "[[limit]]\nkind = \"fixed_window\"\nlimit = 1\nwindow_s = 100\n";
    let penalty = "[penalty]\nstrikes = 2\nwithin_s = 10\nban_s = 5\n";
    // Suspended from 2 to 7, then for 10 s from 8, then (18 is too old to count at 29) for 20 s from 30.
    let times = [0.0, 1.0, 2.0, 3.0, 6.9, 7.0, 8.0, 17.9, 18.0, 29.0, 30.0, 49.9, 50.0];
    check(&format!("{limit}{penalty}doubling = true\n"), &times, "arrbbrrbrrrbr");
    // Without doubling each one lasts 5 s: from 2, 8 and 30.
    let times = [0.0, 1.0, 2.0, 6.9, 7.0, 8.0, 12.9, 13.0, 29.0, 30.0, 34.9, 35.0];
    check(&format!("{limit}{penalty}"), &times, "arrbrrbrrrbr");
}

/// Headers of the second request to `limits`, sent at `now`; the first was accepted at 0.
fn second_answer(limits: &str, now: f64) -> Headers {
    let mut provider = Provider::new(&scenario(limits));
    provider.decide(0.0);
    let decided = provider.decide(now);
    provider.headers(&decided, now, now + 0.02)
}

fn wall(seconds: f64) -> WallTime {
    WallTime::from_unix_millis(((EPOCH_S + seconds) * 1000.0) as u64)
}

#[test]
fn each_retry_after_form_is_read_back() {
    // Refused at 10.5 of 60 s: the true wait is 49.5 s, in whole seconds 50.
    let cases = [
        ("none", None),
        ("seconds", Some(50)),
        ("zero", Some(0)),
        ("wrong_short", Some(17)),
        ("wrong_long", Some(149)),
        // The date is the window's end, the server's clock says 10.
        ("date", Some(50)),
    ];
    for (form, expected) in cases {
        let limits = "[[limit]]\nkind = \"fixed_window\"\nlimit = 1\nwindow_s = 60\n[signal]\nretry_after = ";
        let headers = second_answer(&format!("{limits}\"{form}\"\n"), 10.5);
        assert_eq!(read_retry_after(&headers, wall(10.52)), expected.map(Duration::from_secs), "{form}: {headers:?}");
    }
}

#[test]
fn the_true_wait_includes_the_refusal_that_tells_it() {
    let limit = "[[limit]]\nkind = \"sliding_window\"\nlimit = 1\nwindow_s = 10\ncount_rejected = true\n";
    let headers = second_answer(&format!("{limit}[signal]\nretry_after = \"seconds\"\n"), 4.0);
    assert_eq!(read_retry_after(&headers, wall(4.0)), Some(Duration::from_secs(10)));
}

#[track_caller]
fn check_quotas(limits: &str, form: &str, now: f64, expected: &[QuotaReading]) {
    let headers = second_answer(&format!("{limits}[signal]\nheaders = \"{form}\"\n"), now);
    assert_eq!(read_quotas(&headers, wall(now)).as_slice(), expected, "{headers:?}");
}

fn quota(limit: u64, remaining: u64, resets_in_s: Option<u64>, window_s: Option<u64>) -> QuotaReading {
    QuotaReading {
        limit: Some(limit),
        remaining: Some(remaining),
        resets_in: resets_in_s.map(Duration::from_secs),
        window: window_s.map(Duration::from_secs),
    }
}

#[test]
fn each_header_form_is_read_back() {
    let two = "[[limit]]\nkind = \"fixed_window\"\nlimit = 100\nwindow_s = 60\n\
               [[limit]]\nkind = \"sliding_window\"\nlimit = 1000\nwindow_s = 3600\n";
    check_quotas(two, "none", 10.0, &[]);
    check_quotas(two, "x-ratelimit", 10.0, &[quota(100, 98, Some(50), None)]);
    check_quotas(two, "ietf", 10.0, &[quota(100, 98, Some(50), Some(60))]);
    check_quotas(two, "used-limit", 10.0, &[quota(100, 98, None, None), quota(1000, 998, None, None)]);
}

#[test]
fn rejections_and_suspensions_carry_quota_headers_too() {
    let one = "[[limit]]\nkind = \"fixed_window\"\nlimit = 1\nwindow_s = 60\n";
    check_quotas(one, "x-ratelimit", 10.0, &[quota(1, 0, Some(50), None)]);
    let strict =
        format!("{one}[penalty]\nstrikes = 1\nwithin_s = 10\nban_s = 100\n[signal]\nretry_after = \"seconds\"\n");
    let mut provider = Provider::new(&scenario(&format!("{strict}headers = \"x-ratelimit\"\n")));
    provider.decide(0.0);
    provider.decide(1.0);
    let banned = provider.decide(2.0);
    assert_eq!(banned.decision, Decision::Banned);
    let headers = provider.headers(&banned, 2.0, 2.02);
    assert_eq!(read_retry_after(&headers, wall(2.02)), None);
    assert_eq!(read_quotas(&headers, wall(2.0)).as_slice(), [quota(1, 0, Some(58), None)]);
}
