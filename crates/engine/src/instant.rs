//! Points in time as records write them, for comparing with the range of a grant.
//!
//! Why not by comparing the texts: `2031-01-01T00:30:00+01:00` is before `2031-01-01T00:00:00Z`, and
//! a text comparison says the opposite. Reads RFC 3339 and a date alone (its midnight in UTC), and
//! nothing else: what cannot be read is not guessed.

use crate::time::WallTime;

/// Nanoseconds since 1970-01-01 UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Instant(i128);

impl Instant {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (date, rest) = text.split_at_checked(10)?;
        let days = parse_date(date)?;
        let (clock, offset) = match rest.as_bytes().first() {
            None => (0, 0),
            Some(b'T' | b't' | b' ') => parse_clock(&rest[1..])?,
            Some(_) => return None,
        };
        Some(Self(i128::from(days) * 86_400 * NANOS + clock - offset * NANOS))
    }
}

impl Instant {
    /// The same on the calendar of dates; what lies before its beginning is its beginning.
    pub(crate) fn to_wall_time(self) -> WallTime {
        WallTime::from_unix_millis(u64::try_from((self.0 / 1_000_000).max(0)).unwrap_or(u64::MAX))
    }
}

const NANOS: i128 = 1_000_000_000;

/// Days since 1970-01-01.
fn parse_date(date: &str) -> Option<i64> {
    let mut parts = date.split('-');
    let (year, month, day) = (digits(parts.next()?, 4)?, digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if parts.next().is_some() || !(1..=length).contains(&day) {
        return None;
    }
    // Years that begin in March put the leap day last, so that a month's days follow from a line.
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let days = 365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    Some(days + (153 * month + 2) / 5 + day - 1 - 719_468)
}

/// The time of day in nanoseconds, and the offset from UTC in seconds.
fn parse_clock(text: &str) -> Option<(i128, i128)> {
    let end = text.find(['Z', 'z', '+', '-'])?;
    let (clock, zone) = text.split_at(end);
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let mut parts = clock.split(':');
    let (hour, minute) = (digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
    let second = digits(parts.next()?, 2)?;
    // A leap second is written as 60.
    if parts.next().is_some() || hour > 23 || minute > 59 || second > 60 || fraction.len() > 18 {
        return None;
    }
    let nanos = if fraction.is_empty() { 0 } else { digits(&format!("{fraction:0<9}")[..9], 9)? };
    let seconds = i128::from(hour * 3600 + minute * 60 + second);
    Some((seconds * NANOS + i128::from(nanos), parse_zone(zone)?))
}

fn parse_zone(zone: &str) -> Option<i128> {
    if zone.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let (sign, rest) = zone.split_at_checked(1)?;
    let (hours, minutes) = rest.split_once(':')?;
    let seconds = i128::from(digits(hours, 2)? * 3600 + digits(minutes, 2)? * 60);
    Some(if sign == "-" { -seconds } else { seconds })
}

fn digits(text: &str, count: usize) -> Option<i64> {
    let plain = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_compared_and_not_their_texts() {
        let ascending = [
            "1969-12-31T23:59:59Z",
            "1970-01-01",
            "2030-12-31T23:30:00Z",
            "2031-01-01T00:30:00.5+00:30",
            "2031-01-01t00:00:00.500000001z",
            "2031-01-01 00:00:01-00:00",
            "2032-02-29T00:00:00Z",
            "2032-03-01",
        ];
        for pair in ascending.windows(2) {
            assert!(Instant::parse(pair[0]).unwrap() < Instant::parse(pair[1]).unwrap(), "{pair:?}");
        }
        assert_eq!(Instant::parse("1970-01-01T00:00:01Z"), Some(Instant(NANOS)));
        assert_eq!(Instant::parse("2000-03-01"), Some(Instant(11_017 * 86_400 * NANOS)));
    }

    #[test]
    fn what_is_no_time_is_not_guessed() {
        for text in [
            "",
            "yesterday",
            "2031-02-29",
            "2031-1-1",
            "2031-01-01T00:00:00",
            "2031-01-01T24:00:00Z",
            "1e9",
            "２０３１-01",
        ] {
            assert_eq!(Instant::parse(text), None, "{text}");
        }
    }
}
