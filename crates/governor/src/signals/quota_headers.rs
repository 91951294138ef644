//! Reads quota headers in all common formats.
//!
//! Why all in one place: the same three numbers (limit, remaining, reset) come under a dozen names and as counts,
//! lists, fractions, epochs, durations and structured fields. Parsing never fails: an invalid part is `None`, as if
//! it had not been sent, so nonsense never makes anything faster. Never guesses a window, never decides.

use std::time::Duration;

use crate::signals::classify::HeaderSource;
use crate::signals::outcome::{QUOTAS_MAX, QuotaReading, Quotas};
use crate::signals::quota_fields::read_structured;
use crate::signals::retry_after::{Calendar, go_duration, http_date, iso_date, seconds};
use crate::time::WallTime;

/// The longest time to a reset, and the longest window, that is believed: a yearly quota. A larger number is not a
/// reset (or a clock is wrong by decades) and is dropped, not cut: an invented end of a window helps nobody.
pub const QUOTA_RESET_MAX: Duration = Duration::from_secs(366 * 86_400);

/// A reset further back than this did not just pass while clocks differ; it is nonsense, and must not mean "the quota
/// is full again".
const RESET_PAST_MAX: Duration = Duration::from_secs(86_400);

/// Reads every quota in `headers`; `wall_now` is their time of arrival.
///
/// ```
/// use gleaner_governor::{WallTime, read_quotas};
/// let headers = [("RateLimit", "\"default\";r=50;t=30"), ("RateLimit-Policy", "\"default\";q=100;w=60")];
/// let quotas = read_quotas(&headers, WallTime::from_unix_millis(1_794_830_400_000));
/// assert_eq!(quotas.as_slice()[0].remaining, Some(50));
/// assert_eq!(quotas.as_slice()[0].limit, Some(100));
/// ```
#[must_use]
pub fn read_quotas(headers: &dyn HeaderSource, wall_now: WallTime) -> Quotas {
    if !headers.may_name(IN_EVERY_NAME) {
        return Quotas::NONE;
    }
    let calendar = Calendar { headers, wall_now };
    let mut quotas = Quotas::NONE;
    add_all(&mut quotas, &read_structured(headers));
    for family in &FAMILIES {
        add_all(&mut quotas, &family.read(calendar));
    }
    for name in USED_OF_LIMIT {
        add_all(&mut quotas, &read_used_of_limit(headers, name));
    }
    quotas
}

/// Common part of all names of quota headers.
const IN_EVERY_NAME: &str = "limit";

/// Readings of one header family, by position in the comma lists.
pub(crate) type Places = [QuotaReading; QUOTAS_MAX];

pub(crate) const NOTHING: QuotaReading = QuotaReading { limit: None, remaining: None, resets_in: None, window: None };

/// Adds the readings of one family. Many servers send the same quota in two formats: the second completes the first
/// instead of taking another slot.
fn add_all(quotas: &mut Quotas, places: &Places) {
    let already = quotas.as_slice().len();
    for reading in places.iter().filter(|reading| **reading != NOTHING) {
        let earlier = &mut quotas.as_mut_slice()[..already];
        match earlier.iter_mut().find(|known| is_twin(known, reading)) {
            Some(known) => {
                // The later of two resets, since the earlier may be wrong.
                known.resets_in = known.resets_in.max(reading.resets_in);
                known.window = known.window.or(reading.window);
            }
            None => quotas.push(*reading),
        }
    }
}

fn is_twin(known: &QuotaReading, reading: &QuotaReading) -> bool {
    let windows_agree = known.window.is_none() || reading.window.is_none() || known.window == reading.window;
    reading.limit.is_some()
        && reading.remaining.is_some()
        && (known.limit, known.remaining) == (reading.limit, reading.remaining)
        && windows_agree
}

/// Header names of one format; missing ones are empty.
struct Family {
    limit: &'static str,
    remaining: &'static str,
    reset: &'static str,
    reset_after: &'static str,
    used: [&'static str; 2],
}

const FAMILIES: [Family; 5] = [
    // GitHub, Reddit, Discord and most others; `-usage` with comma lists is Strava.
    Family {
        limit: "x-ratelimit-limit",
        remaining: "x-ratelimit-remaining",
        reset: "x-ratelimit-reset",
        reset_after: "x-ratelimit-reset-after",
        used: ["x-ratelimit-used", "x-ratelimit-usage"],
    },
    // Strava's second pair, for reading.
    Family {
        limit: "x-readratelimit-limit",
        remaining: "",
        reset: "",
        reset_after: "",
        used: ["x-readratelimit-usage", ""],
    },
    // Twitter.
    Family {
        limit: "x-rate-limit-limit",
        remaining: "x-rate-limit-remaining",
        reset: "x-rate-limit-reset",
        reset_after: "",
        used: ["", ""],
    },
    // The IETF draft up to version 6, Docker Hub.
    Family {
        limit: "ratelimit-limit",
        remaining: "ratelimit-remaining",
        reset: "ratelimit-reset",
        reset_after: "",
        used: ["", ""],
    },
    // OpenAI. Its `-tokens` twin counts tokens, not requests, so it is not read.
    Family {
        limit: "x-ratelimit-limit-requests",
        remaining: "x-ratelimit-remaining-requests",
        reset: "x-ratelimit-reset-requests",
        reset_after: "",
        used: ["", ""],
    },
];

impl Family {
    fn read(&self, calendar: Calendar<'_>) -> Places {
        let mut places = [NOTHING; QUOTAS_MAX];
        let headers = calendar.headers;
        read_limits(headers, self.limit, &mut places);
        for_each_item(headers, self.remaining, |place, item| places[place].remaining = remaining(item));
        for_each_reset(headers, self.reset, |place, text| places[place].resets_in = reset(text, calendar));
        // The names below only complete those above; most answers have neither.
        if places == [NOTHING; QUOTAS_MAX] {
            return places;
        }
        for_each_item(headers, self.reset_after, |place, text| {
            // A delta is preferred to an epoch, since it needs no synchronized clock.
            places[place].resets_in = delta(text).or(places[place].resets_in);
        });
        for name in self.used {
            for_each_item(headers, name, |place, item| apply_used(&mut places[place], item));
        }
        places
    }
}

/// Limits may carry their window (`100;w=21600`, Docker Hub), and the old draft repeats the limit in
/// force as the first of its policies (`10, 10;w=1, 50;w=60`).
fn read_limits(headers: &dyn HeaderSource, name: &str, places: &mut Places) {
    let mut next = 0;
    for_each_piece(headers, name, |item| {
        let (limit, window) = (limit(item), window_parameter(item));
        let told = places[..next].iter_mut().find(|known| known.limit == limit && known.window.is_none());
        if let (Some(known), Some(_), Some(_)) = (told, limit, window) {
            known.window = window;
        } else if let Some(place) = places.get_mut(next) {
            (place.limit, place.window) = (limit, window);
            next += 1;
        }
    });
}

fn window_parameter(item: &[u8]) -> Option<Duration> {
    let parameters = item.split(|byte| *byte == b';').skip(1);
    parameters
        .filter_map(|parameter| parameter.trim_ascii().strip_prefix(b"w="))
        .find_map(delta)
        .filter(|window| !window.is_zero())
}

/// Counts used so far, next to a limit or a remainder (Strava, Reddit, GitHub).
fn apply_used(reading: &mut QuotaReading, item: &[u8]) {
    let Some(used) = whole(item, Rounding::Up) else { return };
    match (reading.limit, reading.remaining) {
        (Some(limit), None) => reading.remaining = Some(limit.saturating_sub(used)),
        (None, Some(remaining)) => reading.limit = used.checked_add(remaining).filter(|limit| *limit > 0),
        _ => {}
    }
}

/// Headers of the form `used/limit`: Shopify, YNAB. Several quotas follow each other.
const USED_OF_LIMIT: [&str; 2] = ["x-rate-limit", "x-shopify-shop-api-call-limit"];

fn read_used_of_limit(headers: &dyn HeaderSource, name: &str) -> Places {
    let mut places = [NOTHING; QUOTAS_MAX];
    for_each_item(headers, name, |place, item| {
        let Some(slash) = item.iter().position(|byte| *byte == b'/') else { return };
        let Some(limit) = limit(&item[slash + 1..]) else { return };
        let used = whole(&item[..slash], Rounding::Up);
        let remaining = used.map(|used| limit.saturating_sub(used));
        places[place] = QuotaReading { limit: Some(limit), remaining, ..NOTHING };
    });
    places
}

/// Visits the comma-separated pieces of all values of a header, up to [`QUOTAS_MAX`].
fn for_each_item(headers: &dyn HeaderSource, name: &str, mut visit: impl FnMut(usize, &[u8])) {
    let mut place = 0;
    for_each_piece(headers, name, |piece| {
        if place < QUOTAS_MAX {
            visit(place, piece);
            place += 1;
        }
    });
}

fn for_each_piece(headers: &dyn HeaderSource, name: &str, mut visit: impl FnMut(&[u8])) {
    // An empty name is a header that the format does not have.
    if !name.is_empty() {
        headers.for_each_value(name, &mut |value| value.split(|byte| *byte == b',').for_each(&mut visit));
    }
}

/// Like [`for_each_item`], but keeps the comma inside an HTTP date.
fn for_each_reset(headers: &dyn HeaderSource, name: &str, mut visit: impl FnMut(usize, &[u8])) {
    let mut place = 0;
    let mut visit_next = |text: &[u8]| {
        if place < QUOTAS_MAX {
            visit(place, text);
            place += 1;
        }
    };
    if name.is_empty() {
        return;
    }
    headers.for_each_value(name, &mut |value| {
        if http_date(value.trim_ascii()).is_some() {
            visit_next(value);
        } else {
            value.split(|byte| *byte == b',').for_each(&mut visit_next);
        }
    });
}

/// A limit of zero is ignored; some providers mean "none" by it.
fn limit(item: &[u8]) -> Option<u64> {
    whole(item, Rounding::Down).filter(|limit| *limit > 0)
}

/// The remainder; negative values (Docker Hub sends them) mean zero.
fn remaining(item: &[u8]) -> Option<u64> {
    match item.trim_ascii().strip_prefix(b"-") {
        Some(debt) => whole(debt, Rounding::Down).map(|_| 0),
        None => whole(item, Rounding::Down),
    }
}

/// Direction in which a fraction of a request is rounded: the conservative one.
#[derive(Clone, Copy)]
enum Rounding {
    Up,
    Down,
}

/// A count, without its `;parameters`. Reddit sends fractions.
fn whole(item: &[u8], rounding: Rounding) -> Option<u64> {
    let number = item.split(|byte| *byte == b';').next().unwrap_or_default();
    let number = seconds(number.trim_ascii())?;
    match rounding {
        Rounding::Up if number.subsec_nanos() > 0 => number.as_secs().checked_add(1),
        Rounding::Up | Rounding::Down => Some(number.as_secs()),
    }
}

/// Time until a reset, in any format.
fn reset(text: &[u8], calendar: Calendar<'_>) -> Option<Duration> {
    let text = text.trim_ascii();
    if let Some(number) = seconds(text) {
        return match epoch_millis(number) {
            Some(at) => until(at, calendar),
            None => believable(number),
        };
    }
    let date = http_date(text).or_else(|| iso_date(text));
    date.map_or_else(|| delta(text), |at| until(at, calendar))
}

/// A number of seconds or a duration, counted from now.
fn delta(text: &[u8]) -> Option<Duration> {
    let text = text.trim_ascii();
    seconds(text).or_else(|| go_duration(text)).and_then(believable)
}

pub(crate) fn believable(wait: Duration) -> Option<Duration> {
    (wait <= QUOTA_RESET_MAX).then_some(wait)
}

/// The time that a number means if it is too large to be a delta. 10⁹ seconds are 31 years as a delta and the year
/// 2001 as an epoch: neither is a reset, so every real value is clearly on one side, whatever our clock says; the
/// same gap separates seconds, milli-, micro- and nanoseconds. Values in between come out decades away and are
/// dropped later.
fn epoch_millis(number: Duration) -> Option<WallTime> {
    let millis = match number.as_secs() {
        0..1_000_000_000 => return None,
        1_000_000_000..1_000_000_000_000 => u64::try_from(number.as_millis()).ok()?,
        whole @ 1_000_000_000_000..1_000_000_000_000_000 => whole,
        whole @ 1_000_000_000_000_000..1_000_000_000_000_000_000 => whole / 1_000,
        whole => whole / 1_000_000,
    };
    Some(WallTime::from_unix_millis(millis))
}

fn until(at: WallTime, calendar: Calendar<'_>) -> Option<Duration> {
    let now = calendar.now();
    if now.since(at) > RESET_PAST_MAX {
        return None;
    }
    believable(at.since(now))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 2026-11-16 12:00:00 UTC, a Monday; as an epoch 1,794,830,400.
    const NOW: WallTime = WallTime::from_unix_millis(1_794_830_400_000);

    /// Limit, remaining, milliseconds to the reset, seconds of the window.
    pub(crate) type Row = (Option<u64>, Option<u64>, Option<u64>, Option<u64>);

    fn rows(headers: &[(&str, &str)]) -> Vec<Row> {
        let millis = |wait: Duration| u64::try_from(wait.as_millis()).unwrap();
        let row = |quota: &QuotaReading| {
            (quota.limit, quota.remaining, quota.resets_in.map(millis), quota.window.map(|window| window.as_secs()))
        };
        read_quotas(&headers, NOW).as_slice().iter().map(row).collect()
    }

    pub(crate) fn check(headers: &[(&str, &str)], expect: &[Row]) {
        assert_eq!(rows(headers), expect, "{headers:?}");
    }

    #[test]
    fn no_header_means_no_reading() {
        check(&[], &[]);
        check(&[("content-type", "text/plain"), ("retry-after", "5"), ("date", "x")], &[]);
        assert_eq!(read_quotas(&(), NOW), Quotas::NONE);
    }

    #[test]
    fn the_three_numbers_are_read_under_each_family_s_names() {
        for prefix in ["X-RateLimit", "X-Rate-Limit", "RateLimit"] {
            let names = ["Limit", "Remaining", "Reset"].map(|part| format!("{prefix}-{part}"));
            check(
                &[(&names[0], "60"), (&names[1], "59"), (&names[2], "30")],
                &[(Some(60), Some(59), Some(30_000), None)],
            );
        }
        check(
            &[
                ("x-ratelimit-limit-requests", "60"),
                ("x-ratelimit-remaining-requests", "59"),
                ("x-ratelimit-reset-requests", "6m0s"),
                ("x-ratelimit-remaining-tokens", "149984"),
            ],
            &[(Some(60), Some(59), Some(360_000), None)],
        );
    }

    #[test]
    fn a_reset_is_read_however_it_is_written() {
        for (value, millis) in [
            ("90", 90_000),
            ("90.5", 90_500),
            ("0", 0),
            ("1794830490", 90_000),
            ("1794830490.25", 90_250),
            ("1794830490000", 90_000),
            ("1794830490000000", 90_000),
            ("1794830490000000000", 90_000),
            ("1794830399", 0),
            ("1m30s", 90_000),
            ("120ms", 120),
            ("Mon, 16 Nov 2026 12:01:30 GMT", 90_000),
            ("Monday, 16-Nov-26 12:01:30 GMT", 90_000),
            ("2026-11-16T12:01:30Z", 90_000),
            ("2026-11-16T13:01:30.5+01:00", 90_500),
            ("2592000", 2_592_000_000),
        ] {
            check(&[("x-ratelimit-reset", value)], &[(None, None, Some(millis), None)]);
        }
    }

    #[test]
    fn a_reset_that_makes_no_sense_is_not_told() {
        for value in [
            "",
            "-5",
            "abc",
            "NaN",
            "inf",
            "1e3",
            "999999999",
            "1000000000",
            "4102444800",
            "99999999999",
            "1794830490000000000000",
            "18446744073709551615",
            "2001-01-01T00:00:00Z",
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "10000h",
            "5 s",
        ] {
            check(&[("x-ratelimit-limit", "60"), ("x-ratelimit-reset", value)], &[(Some(60), None, None, None)]);
        }
    }

    #[test]
    fn an_epoch_is_read_by_the_provider_s_own_clock() {
        let date = ("Date", "Mon, 16 Nov 2026 11:00:00 GMT");
        check(&[("x-ratelimit-reset", "1794826860"), date], &[(None, None, Some(60_000), None)]);
        check(&[("x-ratelimit-reset", "60"), date], &[(None, None, Some(60_000), None)]);
        check(&[("x-ratelimit-reset", "2026-11-16T11:01:00Z"), date], &[(None, None, Some(60_000), None)]);
        // A board without a battery: its clock is of no use, theirs is.
        let headers = [("x-ratelimit-reset", "1794826860"), date];
        let read = read_quotas(&headers, WallTime::from_unix_millis(5));
        assert_eq!(read.as_slice()[0].resets_in, Some(Duration::from_secs(60)));
    }

    #[test]
    fn reset_after_is_preferred_to_an_epoch() {
        let epoch = ("x-ratelimit-reset", "1794830490");
        let remaining = ("x-ratelimit-remaining", "1");
        check(&[remaining, epoch, ("x-ratelimit-reset-after", "1.25")], &[(None, Some(1), Some(1_250), None)]);
        check(&[remaining, epoch, ("x-ratelimit-reset-after", "soon")], &[(None, Some(1), Some(90_000), None)]);
        check(&[remaining, epoch, ("x-ratelimit-reset-after", "1794830490")], &[(None, Some(1), Some(90_000), None)]);
    }

    #[test]
    fn counts_that_make_no_sense_are_not_told() {
        for (value, remaining) in [
            ("12", Some(12)),
            ("598.9", Some(598)),
            ("76;w=21600", Some(76)),
            ("-1", Some(0)),
            ("-0.5", Some(0)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("-", None),
            ("--1", None),
            ("-inf", None),
            ("NaN", None),
            ("", None),
            ("ten", None),
        ] {
            check(
                &[("x-ratelimit-limit", "600"), ("x-ratelimit-remaining", value)],
                &[(Some(600), remaining, None, None)],
            );
        }
        for limit in ["0", "-5", "NaN", "unlimited", ""] {
            check(&[("x-ratelimit-limit", limit), ("x-ratelimit-remaining", "3")], &[(None, Some(3), None, None)]);
        }
    }

    #[test]
    fn comma_lists_are_quotas_side_by_side() {
        check(
            &[
                ("X-RateLimit-Limit", "200,2000"),
                ("X-RateLimit-Usage", "12,340"),
                ("X-ReadRateLimit-Limit", "100,1000"),
                ("X-ReadRateLimit-Usage", "120, 9"),
            ],
            &[
                (Some(200), Some(188), None, None),
                (Some(2000), Some(1660), None, None),
                (Some(100), Some(0), None, None),
                (Some(1000), Some(991), None, None),
            ],
        );
        // An unreadable part keeps its position, so that the others are not shifted.
        check(
            &[("X-RateLimit-Limit", "200,2000"), ("X-RateLimit-Usage", "x,340")],
            &[(Some(200), None, None, None), (Some(2000), Some(1660), None, None)],
        );
        check(&[("X-RateLimit-Limit", "1,2,3,4,5,6")], &[1, 2, 3, 4].map(|limit| (Some(limit), None, None, None)));
    }

    #[test]
    fn used_completes_a_limit_or_what_remains_but_contradicts_neither() {
        let used = ("X-Ratelimit-Used", "2.5");
        check(&[("X-Ratelimit-Limit", "100"), used], &[(Some(100), Some(97), None, None)]);
        check(
            &[("X-Ratelimit-Remaining", "598.0"), used, ("X-Ratelimit-Reset", "512")],
            &[(Some(601), Some(598), Some(512_000), None)],
        );
        check(
            &[("X-Ratelimit-Limit", "100"), ("X-Ratelimit-Remaining", "5"), used],
            &[(Some(100), Some(5), None, None)],
        );
    }

    #[test]
    fn used_of_limit_is_read_as_one_quota_or_as_several() {
        check(&[("X-Shopify-Shop-Api-Call-Limit", "32/40")], &[(Some(40), Some(8), None, None)]);
        check(&[("X-Rate-Limit", "36/200")], &[(Some(200), Some(164), None, None)]);
        check(
            &[("x-rate-limit", "3/10, 210/200")],
            &[(Some(10), Some(7), None, None), (Some(200), Some(0), None, None)],
        );
        check(&[("x-rate-limit", "x/10")], &[(Some(10), None, None, None)]);
        for nonsense in ["200", "/", "5/", "5/0", "5/-1", "5/NaN", ""] {
            check(&[("x-rate-limit", nonsense)], &[]);
        }
    }

    #[test]
    fn limits_with_a_window_are_read_with_it() {
        check(
            &[("ratelimit-limit", "100;w=21600"), ("ratelimit-remaining", "76;w=21600")],
            &[(Some(100), Some(76), None, Some(21_600))],
        );
        check(
            &[("ratelimit-limit", "10, 10;w=1, 50;w=60"), ("ratelimit-remaining", "9"), ("ratelimit-reset", "1")],
            &[(Some(10), Some(9), Some(1_000), Some(1)), (Some(50), None, None, Some(60))],
        );
    }

    #[test]
    fn the_same_quota_in_two_dialects_is_one_reading_with_the_later_reset() {
        check(
            &[
                ("x-ratelimit-limit", "100"),
                ("x-ratelimit-remaining", "50"),
                ("x-ratelimit-reset", "1794830431"),
                ("ratelimit", r#""d";r=50;t=30"#),
                ("ratelimit-policy", r#""d";q=100;w=60"#),
            ],
            &[(Some(100), Some(50), Some(31_000), Some(60))],
        );
    }

    const NAMES: &str = "(x-rate-?limit(-limit|-remaining|-reset|-used|-usage|-reset-after)?|ratelimit(-policy|-limit|-remaining|-reset)?|x-shopify-shop-api-call-limit|x-readratelimit-(limit|usage)|date)";

    fn value() -> impl Strategy<Value = String> {
        prop_oneof![
            "[ -~]{0,30}",
            "[-0-9.,/;wqrt=\"a ]{0,30}",
            any::<i64>().prop_map(|number| number.to_string()),
            any::<f64>().prop_map(|number| number.to_string()),
            (1_000_000_000_u64..3_000_000_000, 0..4_u32)
                .prop_map(|(at, steps)| (u128::from(at) * 1_000_u128.pow(steps)).to_string()),
        ]
    }

    proptest! {
        #[test]
        fn reading_is_total_and_believable(headers in proptest::collection::vec((NAMES, value()), 0..8), now: u64) {
            for quota in read_quotas(&headers, WallTime::from_unix_millis(now)).as_slice() {
                prop_assert_ne!(*quota, NOTHING);
                prop_assert!(quota.limit.is_none_or(|limit| limit > 0));
                prop_assert!(quota.resets_in.is_none_or(|wait| wait <= QUOTA_RESET_MAX));
                prop_assert!(quota.window.is_none_or(|window| !window.is_zero() && window <= QUOTA_RESET_MAX));
            }
        }

        #[test]
        fn bytes_that_are_no_text_are_no_reading(bytes in proptest::collection::vec(128_u8.., 0..20)) {
            for name in ["ratelimit", "ratelimit-policy", "x-ratelimit-remaining", "x-ratelimit-reset", "x-rate-limit"] {
                prop_assert_eq!(read_quotas(&[(name, &bytes)], NOW), Quotas::NONE);
            }
        }

        #[test]
        fn nonsense_in_one_header_leaves_the_others_as_told(nonsense in "[a-zA-Z$%&! ]{0,20}") {
            let told = [("x-ratelimit-limit", "60"), ("x-ratelimit-remaining", "2"), ("x-ratelimit-reset", "30")];
            for damaged in 0..3 {
                let mut headers = told;
                headers[damaged].1 = &nonsense;
                let mut expect = (Some(60), Some(2), Some(30_000), None);
                match damaged {
                    0 => expect.0 = None,
                    1 => expect.1 = None,
                    _ => expect.2 = None,
                }
                prop_assert_eq!(rows(&headers), vec![expect]);
            }
        }

        #[test]
        fn a_header_sent_twice_never_raises_what_remains(first in value(), second in value()) {
            let least = |headers: &[(&str, &String)]| {
                read_quotas(&headers, NOW).as_slice().iter().filter_map(|quota| quota.remaining).min()
            };
            let name = "x-ratelimit-remaining";
            prop_assume!(!first.contains(','));
            if let Some(alone) = least(&[(name, &first)]) {
                prop_assert!(least(&[(name, &first), (name, &second)]).unwrap() <= alone);
            }
        }
    }
}
