//! Dates for people and for the wire: RFC 3339 in UTC, and how long ago something was.

use gleaner_engine::WallTime;
use std::time::Duration;

/// The wall clock.
#[must_use]
pub fn now() -> WallTime {
    WallTime::from_unix_millis(gleaner_base::clock::unix_millis())
}

/// `2031-02-03T04:05:06Z`
#[must_use]
pub fn rfc3339(time: WallTime) -> String {
    gleaner_base::date::rfc3339_seconds(time.as_unix_millis())
}

/// The end of a wait on the clock of this machine: `12:03:20`, with its date if that is not today.
#[must_use]
pub fn until(time: WallTime) -> String {
    gleaner_schedule::Zone::of_this_machine().show_near(time, now())
}

/// `12 s`, `3 min`, `5 h`, `2 days`
#[must_use]
pub fn span(duration: Duration) -> String {
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
    fn spans_are_short() {
        let texts = [5, 100, 7200, 200_000].map(|seconds| span(Duration::from_secs(seconds)));
        assert_eq!(texts, ["5 s", "1 min", "2 h", "2 days"]);
    }
}
