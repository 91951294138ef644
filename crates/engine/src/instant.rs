//! Points in time as records write them, for comparing with the range of a grant.
//!
//! Why not by comparing the texts: `2031-01-01T00:30:00+01:00` is before `2031-01-01T00:00:00Z`, and
//! a text comparison says the opposite. Reads RFC 3339, the same without a zone (UTC), a date alone (its midnight in UTC),
//! and seconds or milliseconds since 1970, as a number or as text. What cannot be read is not guessed: a number that
//! could be anything else is no time. Why not `jiff`: docs/decisions/0002-own-parsers.md.

use crate::time::WallTime;
use gleaner_protocol::RawJson;

/// Nanoseconds since 1970-01-01 UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Instant(i128);

impl Instant {
    /// The time that a field of a record holds.
    pub(crate) fn of_value(value: &RawJson<'_>) -> Option<Self> {
        match value.text() {
            Some(text) => Self::parse(&text),
            None => Self::of_epoch(value.as_str()),
        }
    }

    /// The time that a text names.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if has_digits_of_an_epoch(text) {
            return Self::of_epoch(text);
        }
        let (date, rest) = text.split_at_checked(10)?;
        let days = parse_date(date)?;
        let (clock, offset) = match rest.as_bytes().first() {
            None => (0, 0),
            Some(b'T' | b't' | b' ') => parse_clock(&rest[1..])?,
            Some(_) => return None,
        };
        Some(Self(i128::from(days) * 86_400 * NANOS + clock - offset * NANOS))
    }

    /// Seconds since 1970, or milliseconds where seconds would be after the year 5138. Providers write 0 where there is
    /// no time, and larger numbers are microseconds or no time at all.
    fn of_epoch(number: &str) -> Option<Self> {
        match scaled(number)? {
            0 => None,
            nanos if nanos.abs() < SECONDS_MAX * NANOS => Some(Self(nanos)),
            nanos if nanos.abs() < MILLIS_MAX * NANOS => Some(Self(nanos / 1000)),
            _ => None,
        }
    }
}

impl Instant {
    /// The same on the calendar of dates; what lies before its beginning is its beginning.
    pub(crate) fn to_wall_time(self) -> WallTime {
        WallTime::from_unix_millis(u64::try_from((self.0 / 1_000_000).max(0)).unwrap_or(u64::MAX))
    }
}

const NANOS: i128 = 1_000_000_000;
/// Larger numbers are not seconds: this is the year 5138, and as milliseconds it is 1973.
const SECONDS_MAX: i128 = 100_000_000_000;
/// Larger numbers are not milliseconds: the same year.
const MILLIS_MAX: i128 = 1000 * SECONDS_MAX;
/// Digits of a number that are looked at; more than any time has.
const DIGITS_MAX: usize = 60;

/// Whether a text is a number that can only be a time: seconds or milliseconds between 1973 and 2286. A year, a compact
/// date (`20310115`) and a compact time (`20310115120000`) have other lengths.
fn has_digits_of_an_epoch(text: &str) -> bool {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    matches!(whole.len(), 9 | 10 | 12 | 13) && all_digits(whole) && all_digits(fraction)
}

/// A JSON number times 10^9, cut off. Not by way of a float, which has too few digits for it.
fn scaled(number: &str) -> Option<i128> {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let exponent = exponent.parse::<i64>().ok()?;
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or((1, mantissa), |rest| (-1, rest));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if digits.len() > DIGITS_MAX || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // How far the digits are shifted to the left for 10^9.
    let shift = exponent.checked_add(9)?.checked_sub(i64::try_from(fraction.len()).ok()?)?;
    let digits = digits.trim_start_matches('0');
    let length = i64::try_from(digits.len()).ok()?.checked_add(shift)?;
    let value = match (u32::try_from(shift), digits.is_empty() || length <= 0) {
        (_, true) => 0,
        // Longer than any time, and than what fits below.
        _ if length > 30 => return None,
        (Ok(shift), false) => digits.parse::<i128>().ok()?.checked_mul(10_i128.checked_pow(shift)?)?,
        (Err(_), false) => digits.get(..usize::try_from(length).ok()?)?.parse().ok()?,
    };
    Some(sign * value)
}

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
    let (clock, zone) = text.split_at(text.find(['Z', 'z', '+', '-']).unwrap_or(text.len()));
    let clock = clock.trim_end();
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let mut parts = clock.split(':');
    let (hour, minute) = (digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
    let second = parts.next().map_or(Some(0), |second| digits(second, 2))?;
    // A leap second is written as 60.
    if parts.next().is_some() || hour > 23 || minute > 59 || second > 60 || fraction.len() > 18 {
        return None;
    }
    let nanos = if fraction.is_empty() { 0 } else { digits(&format!("{fraction:0<9}")[..9], 9)? };
    let seconds = i128::from(hour * 3600 + minute * 60 + second);
    Some((seconds * NANOS + i128::from(nanos), parse_zone(zone)?))
}

fn parse_zone(zone: &str) -> Option<i128> {
    // Without a zone it is UTC.
    if zone.is_empty() || zone.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let (sign, rest) = zone.split_at_checked(1)?;
    let (hours, minutes) = rest.split_at_checked(2)?;
    let minutes = minutes.strip_prefix(':').unwrap_or(minutes);
    let minutes = if minutes.is_empty() { "00" } else { minutes };
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
            "2031-01-01T00",
            "20310115",
            "20310115120000",
            "2031",
            "-5",
            "2031-01-01T24:00:00Z",
            "1e9",
            "２０３１-01",
        ] {
            assert_eq!(Instant::parse(text), None, "{text}");
        }
    }
}
