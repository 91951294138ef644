//! Dates as RFC 3339 in UTC. A time after the year 9999 is written as the end of that year.

use jiff::Timestamp;

/// `2031-02-03T04:05:06Z`; the rest of the second is cut off.
#[must_use]
pub fn rfc3339_seconds(unix_millis: u64) -> String {
    format!("{:.0}", timestamp(unix_millis / 1000 * 1000))
}

/// `2031-02-03T04:05:06.789Z`
#[must_use]
pub fn rfc3339_millis(unix_millis: u64) -> String {
    format!("{:.3}", timestamp(unix_millis))
}

fn timestamp(unix_millis: u64) -> Timestamp {
    i64::try_from(unix_millis)
        .ok()
        .and_then(|millis| Timestamp::from_millisecond(millis).ok())
        .unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (millis, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (784_111_777_999, "1994-11-06T08:49:37.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_926_561_906_789, "2031-01-19T04:05:06.789Z"),
            (4_102_444_799_999, "2099-12-31T23:59:59.999Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339_millis(millis), expected);
            assert_eq!(rfc3339_seconds(millis), format!("{}Z", &expected[..19]));
        }
        assert!(rfc3339_millis(u64::MAX).starts_with("9999-12-30T"), "{}", rfc3339_millis(u64::MAX));
    }
}
