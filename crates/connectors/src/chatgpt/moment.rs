//! Times as the service writes them: seconds since 1970 with a fraction in one place, RFC 3339 in the next.
//!
//! Why one spelling of our own: lists are ordered by these texts, so they must sort like the times. Pure. What cannot
//! be read is nothing, and never "now".

use jiff::Timestamp;
use serde_json::Value;

/// A time as the service wrote it: from 1970 on, in whole microseconds.
pub(super) fn read(value: &Value) -> Option<Timestamp> {
    match value {
        Value::Number(number) => of_seconds(number.as_f64()?),
        Value::String(text) => of_text(text).or_else(|| of_seconds(text.parse().ok()?)),
        _ => None,
    }
}

/// RFC 3339 in UTC with six digits of a second: as text it sorts like the time.
pub(super) fn text(time: Timestamp) -> String {
    format!("{time:.6}")
}

#[expect(clippy::cast_possible_truncation, reason = "a number that does not fit is out of range")]
fn of_seconds(seconds: f64) -> Option<Timestamp> {
    of_micros((seconds.is_finite()).then(|| (seconds * 1e6).round() as i64)?)
}

/// `2026-01-25T00:00:00`, a fraction or none, `Z`, an offset or nothing: the service leaves it out for UTC.
fn of_text(text: &str) -> Option<Timestamp> {
    let (_, clock) = text.split_once(['T', ' '])?;
    let has_zone = clock.contains(['Z', 'z', '+', '-']);
    let time = if has_zone { text.parse::<Timestamp>() } else { format!("{text}Z").parse() };
    of_micros(time.ok()?.as_microsecond())
}

fn of_micros(micros: i64) -> Option<Timestamp> {
    Timestamp::from_microsecond(micros).ok().filter(|time| *time >= Timestamp::UNIX_EPOCH)
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
            let moment = read(&told).unwrap_or_else(|| panic!("{told}"));
            assert_eq!(text(moment), expected, "{told}");
            assert_eq!(read(&json!(expected)), Some(moment), "it is read again as it was written");
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
            assert_eq!(read(&told), None, "{told}");
        }
    }
}
