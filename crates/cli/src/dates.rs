//! Dates for people and for the wire: RFC 3339 in UTC, and how long ago something was.

use gleaner_engine::WallTime;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(crate) fn now() -> WallTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    WallTime::from_unix_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// `2031-02-03T04:05:06Z`
pub(crate) fn rfc3339(time: WallTime) -> String {
    let seconds = time.as_unix_millis() / 1000;
    let (days, clock) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", clock / 3600, clock / 60 % 60, clock % 60)
}

/// Days since 1970-01-01 as year, month and day. Years begin in March, so that the leap day is last.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

/// The end of a wait on the clock of this machine: `12:03:20`, with its date if that is not today.
pub(crate) fn until(time: WallTime) -> String {
    gleaner_schedule::Zone::of_this_machine().show_near(time, now())
}

/// `12 s`, `3 min`, `5 h`, `2 days`
pub(crate) fn span(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ 0..=99 => format!("{seconds} s"),
        seconds @ 100..=5_999 => format!("{} min", seconds / 60),
        seconds @ 6_000..=172_799 => format!("{} h", seconds / 3600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_written_as_everybody_does() {
        for (millis, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400_000, "2000-02-29T00:00:00Z"),
            (1_926_561_906_789, "2031-01-19T04:05:06Z"),
            (4_102_444_799_999, "2099-12-31T23:59:59Z"),
        ] {
            assert_eq!(rfc3339(WallTime::from_unix_millis(millis)), expected);
        }
    }

    #[test]
    fn spans_are_short() {
        let texts = [5, 100, 7200, 200_000].map(|seconds| span(Duration::from_secs(seconds)));
        assert_eq!(texts, ["5 s", "1 min", "2 h", "2 days"]);
    }
}
