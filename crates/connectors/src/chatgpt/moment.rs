//! Times as the service writes them: seconds since 1970 with a fraction in one place, RFC 3339 in the next.
//!
//! Why one spelling of our own: lists are ordered by these texts, so they must sort like the times. Pure. What cannot
//! be read is nothing, and never "now".

use serde_json::Value;

const MICROS: i64 = 1_000_000;
/// 9999-12-31T23:59:59Z: beyond it the texts would no longer sort.
const LATEST: i64 = 253_402_300_799;

/// A point in time, in microseconds since 1970-01-01 UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment(i64);

impl Moment {
    /// As the service wrote it.
    pub(super) fn read(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => Self::of_seconds(number.as_f64()?),
            Value::String(text) => Self::of_text(text).or_else(|| Self::of_seconds(text.parse().ok()?)),
            _ => None,
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "within the years 1970 to 9999 it fits")]
    fn of_seconds(seconds: f64) -> Option<Self> {
        (0.0..=LATEST as f64).contains(&seconds).then(|| Self((seconds * MICROS as f64).round() as i64))
    }

    /// `2026-01-25T00:00:00`, a fraction or none, `Z`, an offset or nothing: the service leaves it out for UTC.
    fn of_text(text: &str) -> Option<Self> {
        let (date, clock) = text.split_once(['T', ' '])?;
        let mut parts = date.splitn(3, '-').map(|part| number(part, 4));
        let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
        if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
            return None;
        }
        let end = clock.find(['Z', 'z', '+', '-']).unwrap_or(clock.len());
        let (clock, zone) = clock.split_at(end);
        let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
        let mut parts = clock.splitn(3, ':').map(|part| number(part, 2));
        let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next().unwrap_or(Some(0))?);
        if hour > 23 || minute > 59 || second > 60 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let micros = fraction
            .bytes()
            .chain(std::iter::repeat(b'0'))
            .take(6)
            .fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'));
        let seconds = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset(zone)?;
        (0..=LATEST).contains(&seconds).then_some(Self(seconds * MICROS + micros))
    }
}

/// A number without a sign, of at most so many digits.
fn number(text: &str, digits: usize) -> Option<i64> {
    let is_plain = (1..=digits).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| text.parse().ok()).flatten()
}

/// Seconds east of UTC.
fn offset(zone: &str) -> Option<i64> {
    let (sign, rest) = match zone.as_bytes().first() {
        None | Some(b'Z' | b'z') => return Some(0),
        Some(b'+') => (1, &zone[1..]),
        Some(_) => (-1, &zone[1..]),
    };
    let (hours, minutes) = rest.split_once(':').or_else(|| rest.split_at_checked(2))?;
    Some(sign * (number(hours, 2)? * 3600 + number(minutes, 2)? * 60))
}

/// Days since 1970-01-01. Years that begin in March put the leap day last.
const fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + (153 * month + 2) / 5 + day
        - 1
        - 719_468
}

/// RFC 3339 in UTC with six digits of a second: as text it sorts like the time.
impl std::fmt::Display for Moment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (seconds, micros) = (self.0.div_euclid(MICROS), self.0.rem_euclid(MICROS));
        let (mut left, of_day) = (seconds.div_euclid(86_400) + 719_468, seconds.rem_euclid(86_400));
        let era = left.div_euclid(146_097);
        left = left.rem_euclid(146_097);
        let year = (left - left / 1460 + left / 36_524 - left / 146_096) / 365;
        left -= 365 * year + year / 4 - year / 100;
        let month = (5 * left + 2) / 153;
        let day = left - (153 * month + 2) / 5 + 1;
        let (year, month) = (year + era * 400 + i64::from(month >= 10), if month < 10 { month + 3 } else { month - 9 });
        let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_spelling_of_a_time_becomes_one() {
        for (told, expected) in [
            (json!(1_769_299_200), "2026-01-25T00:00:00.000000Z"),
            (json!(1_769_299_200.25), "2026-01-25T00:00:00.250000Z"),
            (json!("1769299200.5"), "2026-01-25T00:00:00.500000Z"),
            (json!("2026-01-25T00:00:00Z"), "2026-01-25T00:00:00.000000Z"),
            (json!("2026-01-25T00:00:00.123456"), "2026-01-25T00:00:00.123456Z"),
            (json!("2026-01-25T01:30:00.1+01:30"), "2026-01-25T00:00:00.100000Z"),
            (json!("2024-02-29 23:59:59-0100"), "2024-03-01T00:59:59.000000Z"),
            (json!(0), "1970-01-01T00:00:00.000000Z"),
        ] {
            let moment = Moment::read(&told).unwrap_or_else(|| panic!("{told}"));
            assert_eq!(moment.to_string(), expected, "{told}");
            assert_eq!(Moment::read(&json!(expected)), Some(moment), "it is read again as it was written");
        }
    }

    #[test]
    fn what_is_no_time_is_none_and_never_now() {
        for told in [
            json!(null),
            json!(""),
            json!("soon"),
            json!(-1),
            json!(1e300),
            json!("NaN"),
            json!("2026-13-01T00:00:00Z"),
            json!("2026-01-25"),
            json!("2026-01-25T25:00:00Z"),
            json!("2026-01-25T00:00:00.x"),
            json!([1]),
            json!("2026-01-25T00:00:00+é"),
            json!("T"),
            json!("99999-01-01T00:00:00Z"),
            json!("2026-01-25T00:00:00+0"),
        ] {
            assert_eq!(Moment::read(&told), None, "{told}");
        }
    }
}
