//! Whatever a provider sends as quota headers: no panic, and every part that is read is believable.
#![no_main]

mod header_block;

use gleaner_governor::{QUOTA_RESET_MAX, QuotaReading, WallTime, read_quotas};
use header_block::{NOW, headers};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let headers = headers(input);
    // Our own clock may be wrong in either direction.
    for wall_now in [NOW, WallTime::from_unix_millis(0), WallTime::from_unix_millis(u64::MAX)] {
        let quotas = read_quotas(&headers, wall_now);
        assert_eq!(quotas, read_quotas(&headers, wall_now), "reading is a function of its input");
        for quota in quotas.as_slice() {
            assert_ne!(*quota, QuotaReading::default(), "a reading says something");
            assert!(quota.limit.is_none_or(|limit| limit > 0));
            assert!(quota.resets_in.is_none_or(|wait| wait <= QUOTA_RESET_MAX));
            assert!(quota.window.is_none_or(|window| !window.is_zero() && window <= QUOTA_RESET_MAX));
        }
    }
});
