//! Reads `Retry-After`, and the time formats that quota headers share with it.
//!
//! Why by hand on top of `httpdate`: providers send fractions, two headers at once, dates by another clock, and plain
//! nonsense (F41). Parsing never panics and never returns a negative or endless wait; nonsense counts as absent, so
//! that the governor's own backoff applies. It never decides whether to wait: a long wait becomes a deferral
//! elsewhere.

use std::time::{Duration, UNIX_EPOCH};

use crate::signals::classify::HeaderSource;
use crate::time::WallTime;

/// The longest wait that is believed; longer ones are cut to it.
///
/// A year is far beyond any quota (days, a month) or suspension seen in a header, and beyond every horizon, so the
/// cut changes no decision; it keeps an absurd value (or a date read by a clock that is still at 1970) from closing a
/// key for decades.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(366 * 86_400);

/// The provider's Retry-After; `None` when it is absent or unreadable.
///
/// Zero or a date in the past is `Some(ZERO)`. Of several values, in one header or in many, the
/// longest counts.
#[must_use]
pub fn read_retry_after(headers: &dyn HeaderSource, wall_now: WallTime) -> Option<Duration> {
    let calendar = Calendar { headers, wall_now };
    let mut longest = None;
    headers.for_each_value("retry-after", &mut |value| {
        // `None` is smaller than every `Some`: a readable value wins over nonsense.
        longest = longest.max(parse(value, calendar));
    });
    longest
}

/// Current time by the provider's clock.
#[derive(Clone, Copy)]
pub(crate) struct Calendar<'h> {
    pub(crate) headers: &'h dyn HeaderSource,
    pub(crate) wall_now: WallTime,
}

impl Calendar<'_> {
    /// The provider's clock, if it sent a Date: its dates refer to that clock, and ours may be off by seconds
    /// (Discord) or by decades (a board without a battery). Of two, the earlier, because it makes the wait longer.
    pub(crate) fn now(self) -> WallTime {
        let mut told: Option<WallTime> = None;
        self.headers.for_each_value("date", &mut |value| {
            if let Some(date) = http_date(value.trim_ascii()) {
                told = Some(told.map_or(date, |earlier| earlier.min(date)));
            }
        });
        told.unwrap_or(self.wall_now)
    }
}

fn parse(value: &[u8], calendar: Calendar<'_>) -> Option<Duration> {
    let wait = parse_one(value, calendar).or_else(|| parse_joined(value, calendar))?;
    Some(wait.min(RETRY_AFTER_MAX))
}

fn parse_one(text: &[u8], calendar: Calendar<'_>) -> Option<Duration> {
    let text = text.trim_ascii();
    seconds(text).or_else(|| http_date(text).map(|date| date.since(calendar.now())))
}

/// Parses two headers that a proxy joined with a comma. A date contains a comma, so each piece is tried alone and
/// together with the piece before it.
fn parse_joined(value: &[u8], calendar: Calendar<'_>) -> Option<Duration> {
    let (mut longest, mut previous, mut start) = (None, 0, 0);
    for piece in value.split(|byte| *byte == b',') {
        let end = start + piece.len();
        let pair = value.get(previous..end).unwrap_or_default();
        longest = longest.max(parse_one(piece, calendar)).max(parse_one(pair, calendar));
        (previous, start) = (start, end + 1);
    }
    longest
}

/// A plain decimal number of seconds, such as `120`, `1.5` or `.25`. No sign, exponent, `inf` or `NaN`, and no
/// overflow. Fractions of a nanosecond are rounded up.
pub(crate) fn seconds(text: &[u8]) -> Option<Duration> {
    let dot = text.iter().position(|byte| *byte == b'.').unwrap_or(text.len());
    let (whole, fraction) = text.split_at(dot);
    let fraction = fraction.strip_prefix(b".").unwrap_or_default();
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    Duration::from_secs(digits(whole)?).checked_add(fraction_of_second(fraction)?)
}

fn fraction_of_second(text: &[u8]) -> Option<Duration> {
    let (coarse, fine) = text.split_at(text.len().min(9));
    let scale = 10_u64.pow(9 - u32::try_from(coarse.len()).ok()?);
    if !fine.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let rounding = u64::from(fine.iter().any(|digit| *digit != b'0'));
    Some(Duration::from_nanos(digits(coarse)? * scale + rounding))
}

/// An unsigned number of digits alone; an empty text is zero.
fn digits(text: &[u8]) -> Option<u64> {
    text.iter().try_fold(0_u64, |number, byte| {
        let digit = char::from(*byte).to_digit(10)?;
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// A duration as Go prints it: `6m0s`, `1.5s`, `120ms`. Days are also accepted.
pub(crate) fn go_duration(text: &[u8]) -> Option<Duration> {
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let (number, tail) = rest.split_at(prefix_len(rest, |byte| byte.is_ascii_digit() || byte == b'.'));
        let (unit, tail) = tail.split_at(prefix_len(tail, |byte| !byte.is_ascii_digit() && byte != b'.'));
        total = total.checked_add(in_unit(seconds(number)?, unit)?)?;
        rest = tail;
    }
    (!text.is_empty()).then_some(total)
}

fn prefix_len(text: &[u8], belongs: impl Fn(u8) -> bool) -> usize {
    text.iter().position(|byte| !belongs(*byte)).unwrap_or(text.len())
}

fn in_unit(amount: Duration, unit: &[u8]) -> Option<Duration> {
    match unit {
        b"d" => amount.checked_mul(86_400),
        b"h" => amount.checked_mul(3_600),
        b"m" => amount.checked_mul(60),
        b"s" => Some(amount),
        b"ms" => Some(amount / 1_000),
        // Go writes the micro sign; both Unicode characters are in use.
        b"us" | b"\xc2\xb5s" | b"\xce\xbcs" => Some(amount / 1_000_000),
        b"ns" => Some(amount / 1_000_000_000),
        _ => None,
    }
}

/// An HTTP date in any of its three forms; two-digit years below 70 are 20xx.
pub(crate) fn http_date(text: &[u8]) -> Option<WallTime> {
    let date = httpdate::parse_http_date(std::str::from_utf8(text).ok()?).ok()?;
    let since_epoch = date.duration_since(UNIX_EPOCH).ok()?;
    Some(WallTime::from_unix_millis(u64::try_from(since_epoch.as_millis()).ok()?))
}

/// An ISO 8601 date with a time: `2026-11-16T12:30:00Z`, optionally with a fraction or an offset. Without a zone it
/// is UTC, as all known providers mean it.
pub(crate) fn iso_date(text: &[u8]) -> Option<WallTime> {
    let (stamp, rest) = text.split_at_checked(19)?;
    let separators = [4, 7, 10, 13, 16].map(|at| stamp[at]);
    if !matches!(&separators, b"--T::" | b"--t::" | b"-- ::") {
        return None;
    }
    let part = |range: std::ops::Range<usize>, low: u64, high: u64| {
        digits(&stamp[range]).filter(|number| (low..=high).contains(number))
    };
    let days = days_since_1970(part(0..4, 1970, 9999)?, part(5..7, 1, 12)?, part(8..10, 1, 31)?);
    let (hour, minute) = (part(11..13, 0, 23)?, part(14..16, 0, 59)?);
    // 60 is a leap second.
    let second = part(17..19, 0, 60)?;
    let millis = (days * 86_400 + hour * 3_600 + minute * 60 + second) * 1_000;
    let (fraction, zone) = rest.split_at(prefix_len(rest, |byte| byte == b'.' || byte.is_ascii_digit()));
    let fraction = match fraction {
        [] => Duration::ZERO,
        [b'.', figures @ ..] if !figures.is_empty() => fraction_of_second(figures)?,
        _ => return None,
    };
    let utc = millis.checked_add_signed(-offset_millis(zone)?)?;
    Some(WallTime::from_unix_millis(utc) + fraction)
}

fn offset_millis(zone: &[u8]) -> Option<i64> {
    let (sign, hours, minutes) = match zone {
        b"" | b"Z" | b"z" => return Some(0),
        [sign, hours @ .., b':', m1, m2] if hours.len() == 2 => (*sign, hours, [*m1, *m2]),
        [sign, hours @ .., m1, m2] if hours.len() == 2 => (*sign, hours, [*m1, *m2]),
        _ => return None,
    };
    let minutes = i64::try_from(digits(hours)? * 60 + digits(&minutes)?).ok()?;
    match sign {
        b'+' => Some(minutes * 60_000),
        b'-' => Some(-minutes * 60_000),
        _ => None,
    }
}

/// Days from 1970-01-01 to a day of the Gregorian calendar, counted in years that begin in March so that the leap day
/// comes last. Day 31 of a short month runs into the next.
const fn days_since_1970(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days_before_month = (153 * month + 2) / 5;
    // 719,468 days lie between 0000-03-01 and 1970-01-01.
    year * 365 + year / 4 - year / 100 + year / 400 + days_before_month + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 2026-11-16 12:00:00 UTC, a Monday.
    const NOW: WallTime = WallTime::from_unix_millis(1_794_830_400_000);

    fn check(headers: &[(&str, &str)], expect: Option<f64>) {
        let read = read_retry_after(&headers, NOW);
        assert_eq!(read, expect.map(Duration::from_secs_f64), "{headers:?}");
    }

    fn check_one(value: &str, expect: Option<f64>) {
        check(&[("Retry-After", value)], expect);
    }

    #[test]
    fn seconds_and_fractions_are_read_as_told() {
        for (value, expect) in [
            ("120", 120.0),
            (" 120 ", 120.0),
            ("0", 0.0),
            ("0.0", 0.0),
            ("000", 0.0),
            ("1.5", 1.5),
            (".5", 0.5),
            ("7.", 7.0),
            ("1.0000000001", 1.000_000_001),
            ("0.9999999999", 1.0),
        ] {
            check_one(value, Some(expect));
        }
    }

    #[test]
    fn what_is_no_wait_is_treated_as_absent() {
        for value in [
            "-5",
            "-0",
            "+5",
            "abc",
            "",
            " ",
            ".",
            "1.2.3",
            "1.5x",
            "NaN",
            "inf",
            "-inf",
            "1e3",
            "0x10",
            "12 34",
            "18446744073709551616",
            "18446744073709551615.9999999999",
            "99999999999999999999999999",
            "１２",
            "5s",
            ",",
            ",,",
            "null",
            "Mon, 32 Nov 2026 12:00:00 GMT",
            "Tue, 16 Nov 2026 12:00:00 GMT",
            "Mon, 16 Nov 2026 25:00:00 GMT",
        ] {
            check_one(value, None);
        }
        check(&[], None);
        assert_eq!(read_retry_after(&[("retry-after", b"\xff\xfe".as_slice())], NOW), None);
    }

    #[test]
    fn an_absurd_wait_is_cut_to_a_finite_one() {
        let longest = Some(RETRY_AFTER_MAX.as_secs_f64());
        for value in ["99999999999", "315360000", "18446744073709551615", "99999999999.5"] {
            check_one(value, longest);
        }
        check_one("Sun, 16 Nov 2036 12:00:00 GMT", longest);
    }

    #[test]
    fn a_date_is_read_in_all_three_forms_by_our_clock_when_theirs_is_not_told() {
        for value in ["Mon, 16 Nov 2026 12:01:30 GMT", "Monday, 16-Nov-26 12:01:30 GMT", "Mon Nov 16 12:01:30 2026"] {
            check_one(value, Some(90.0));
        }
    }

    #[test]
    fn a_date_in_the_past_is_a_wait_of_zero() {
        for value in ["Mon, 16 Nov 2026 11:59:59 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"] {
            check_one(value, Some(0.0));
        }
    }

    #[test]
    fn a_date_is_corrected_by_the_provider_s_own_clock() {
        let at = ("Retry-After", "Mon, 16 Nov 2026 13:00:30 GMT");
        check(&[at, ("Date", "Mon, 16 Nov 2026 13:00:00 GMT")], Some(30.0));
        check(&[at, ("date", "Monday, 16-Nov-26 13:00:10 GMT")], Some(20.0));
        check(&[at, ("Date", "Mon, 16 Nov 2026 14:00:00 GMT")], Some(0.0));
        check(&[at, ("Date", "nonsense")], Some(3630.0));
        // Two dates: the one that makes the wait longer.
        check(&[at, ("Date", "Mon, 16 Nov 2026 13:00:20 GMT"), ("Date", "Mon, 16 Nov 2026 13:00:00 GMT")], Some(30.0));
        // Seconds do not depend on anybody's clock.
        check(&[("Retry-After", "30"), ("Date", "Mon, 16 Nov 2020 13:00:00 GMT")], Some(30.0));
    }

    #[test]
    fn of_two_headers_the_longer_counts_and_nonsense_does_not() {
        check(&[("Retry-After", "5"), ("retry-after", "7")], Some(7.0));
        check(&[("Retry-After", "7"), ("RETRY-AFTER", "5")], Some(7.0));
        check(&[("Retry-After", "7"), ("Retry-After", "-9")], Some(7.0));
        check(&[("Retry-After", "7"), ("Retry-After", "Mon, 16 Nov 2026 12:01:30 GMT")], Some(90.0));
    }

    #[test]
    fn two_headers_joined_by_a_proxy_count_as_two() {
        for (value, expect) in [
            ("5, 7", 7.0),
            ("7,5", 7.0),
            ("7, abc", 7.0),
            ("5, Mon, 16 Nov 2026 12:01:30 GMT", 90.0),
            ("Mon, 16 Nov 2026 12:01:30 GMT, 5", 90.0),
            ("Mon, 16 Nov 2026 12:01:30 GMT, Mon, 16 Nov 2026 12:02:00 GMT", 120.0),
        ] {
            check_one(value, Some(expect));
        }
    }

    #[test]
    fn go_durations_are_read_and_other_text_is_not() {
        for (text, millis) in
            [("6m0s", 360_000), ("1s", 1_000), ("120ms", 120), ("1h2m3.5s", 3_723_500), ("1d", 86_400_000), ("0s", 0)]
        {
            assert_eq!(go_duration(text.as_bytes()), Some(Duration::from_millis(millis)), "{text}");
        }
        assert_eq!(go_duration("1500µs".as_bytes()), Some(Duration::from_micros(1500)));
        assert_eq!(go_duration(b"7ns"), Some(Duration::from_nanos(7)));
        for text in ["", "s", "5", "5x", "-5s", "m5", "1s ", "999999999999999999999s", "18446744073709551615d"] {
            assert_eq!(go_duration(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn iso_dates_are_read_with_fractions_and_offsets() {
        for text in [
            "2026-11-16T12:00:00Z",
            "2026-11-16 12:00:00",
            "2026-11-16t12:00:00.000z",
            "2026-11-16T13:30:00+01:30",
            "2026-11-16T11:00:00-0100",
        ] {
            assert_eq!(iso_date(text.as_bytes()), Some(NOW), "{text}");
        }
        assert_eq!(iso_date(b"1970-01-01T00:00:00.25Z"), Some(WallTime::from_unix_millis(250)));
        assert_eq!(iso_date(b"2024-02-29T00:00:00Z"), Some(WallTime::from_unix_millis(1_709_164_800_000)));
        for text in [
            "",
            "2026-11-16",
            "2026-11-16T12:00Z",
            "2026-13-16T12:00:00Z",
            "2026-11-16T24:00:00Z",
            "1969-12-31T23:59:59Z",
            "2026-11-16T12:00:00.Z",
            "2026-11-16T12:00:005",
            "2026-11-16T12:00:00+1",
            "1970-01-01T00:00:00+01:00",
        ] {
            assert_eq!(iso_date(text.as_bytes()), None, "{text}");
        }
    }

    /// Mostly things that look like a Retry-After, so that the interesting branches are met.
    fn value() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..40),
            "[-+ .,0-9eGMTNova:smh]{0,40}".prop_map(String::into_bytes),
            any::<u64>().prop_map(|number| number.to_string().into_bytes()),
            any::<f64>().prop_map(|number| number.to_string().into_bytes()),
            (0_u64..253_402_300_799)
                .prop_map(|at| { httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(at)).into_bytes() }),
        ]
    }

    proptest! {
        #[test]
        fn reading_is_total_and_finite(values in proptest::collection::vec(value(), 0..4), date in value(), now: u64) {
            let mut headers: Vec<_> = values.into_iter().map(|value| ("retry-after", value)).collect();
            headers.push(("date", date));
            let read = read_retry_after(&headers, WallTime::from_unix_millis(now));
            prop_assert!(read.is_none_or(|wait| wait <= RETRY_AFTER_MAX));
        }

        #[test]
        fn one_more_header_never_shortens_the_wait(first in value(), second in value(), now: u64) {
            let now = WallTime::from_unix_millis(now);
            let alone = read_retry_after(&[("retry-after", &first)], now);
            let other = read_retry_after(&[("retry-after", &second)], now);
            let both = read_retry_after(&[("retry-after", &first), ("retry-after", &second)], now);
            prop_assert_eq!(both, alone.max(other));
        }

        #[test]
        fn joining_two_headers_with_a_comma_never_shortens_the_wait(first in value(), second in value()) {
            let joined = [first.as_slice(), b", ", second.as_slice()].concat();
            let split = read_retry_after(&[("retry-after", &first), ("retry-after", &second)], NOW);
            prop_assert!(read_retry_after(&[("retry-after", &joined)], NOW) >= split);
        }

        #[test]
        fn more_seconds_are_never_a_shorter_wait(fewer: u64, more: u64) {
            let wait = |number: u64| read_retry_after(&[("retry-after", number.to_string())], NOW);
            prop_assert!(wait(fewer.min(more)) <= wait(fewer.max(more)));
        }

        #[test]
        fn no_text_is_both_a_number_and_a_go_duration(text in "[0-9.]{0,12}(s|ms|h)?") {
            let read = (seconds(text.as_bytes()), go_duration(text.as_bytes()));
            prop_assert!(!matches!(read, (Some(_), Some(_))));
        }

        #[test]
        fn an_iso_date_of_any_text_lies_before_the_year_10000(
            text in "[0-9]{4}-[01][0-9]-[0-3][0-9][T ][0-2][0-9]:[0-5][0-9]:[0-6][0-9][-+Z.0-9:]{0,9}",
        ) {
            // The last second of 9999 plus a leap second and the westernmost offset that fits.
            let latest = WallTime::from_unix_millis(253_402_300_800_000) + Duration::from_secs(100 * 3_600);
            prop_assert!(iso_date(text.as_bytes()).is_none_or(|date| date <= latest));
        }

        #[test]
        fn an_iso_date_agrees_with_the_same_http_date(at in 0_u64..253_402_300_799) {
            let http = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(at));
            let months = "JanFebMarAprMayJunJulAugSepOctNovDec";
            let month = months.find(&http[8..11]).unwrap() / 3 + 1;
            let iso = format!("{}-{month:02}-{}T{}Z", &http[12..16], &http[5..7], &http[17..25]);
            prop_assert_eq!(iso_date(iso.as_bytes()), Some(WallTime::from_unix_millis(at * 1_000)));
        }
    }
}
