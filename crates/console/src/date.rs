//! Dates as everybody writes them.

use gleaner_engine::WallTime;
use jiff::Timestamp;

/// `2031-02-03T04:05:06.789Z`
pub(crate) fn rfc3339(time: WallTime) -> String {
    timestamp(time).to_string()
}

/// What lies beyond the calendar is its end.
pub(crate) fn timestamp(time: WallTime) -> Timestamp {
    let millis = i64::try_from(time.as_unix_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX)
}
