//! Numbers, dates and shares as pages write them.
//!
//! A date is shown as how long ago it was, with the moment itself one hover away; the script counts it on. Only our own
//! numbers go into the markup here.

use crate::date;
use askama::filters::Safe;
pub(crate) use gleaner_app::dates::span;
use gleaner_engine::WallTime;
use gleaner_protocol::{Backoff, CollectionRate};
use jiff::tz::TimeZone;
use std::time::Duration;

/// A moment, as far from now as it is.
pub(crate) fn when(at: WallTime, now: WallTime) -> Safe<String> {
    let ago = || format!("{} ago", span(now.since(at)));
    moment("at", at, &ahead(at, now).map_or_else(ago, |ahead| format!("in {ahead}")))
}

/// The end of something that is waited for.
pub(crate) fn until(at: WallTime, now: WallTime) -> Safe<String> {
    moment("until", at, &ahead(at, now).map_or_else(|| "time is over".to_owned(), |ahead| format!("{ahead} left")))
}

/// When something will happen by itself; what is due and has not happened yet is due now.
pub(crate) fn due(at: WallTime, now: WallTime) -> Safe<String> {
    moment("due", at, &ahead(at, now).map_or_else(|| "due now".to_owned(), |ahead| format!("in {ahead}")))
}

fn ahead(at: WallTime, now: WallTime) -> Option<String> {
    (at > now).then(|| span(at.since(now)))
}

/// `kind` says to the script how the text is counted on.
fn moment(kind: &str, at: WallTime, text: &str) -> Safe<String> {
    let (machine, person, millis) = (date::rfc3339(at), person_date(at), at.as_unix_millis());
    Safe(format!(r#"<time datetime="{machine}" title="{person}" data-{kind}="{millis}">{text}</time>"#))
}

/// The time of day of an event of a run, with its date one hover away.
pub(crate) fn clock(at: WallTime) -> Safe<String> {
    let time = date::timestamp(at).to_zoned(TimeZone::system()).strftime("%H:%M:%S").to_string();
    let (machine, person) = (date::rfc3339(at), person_date(at));
    Safe(format!(r#"<time datetime="{machine}" title="{person}">{time}</time>"#))
}

/// In the zone of the machine that collects, which is said.
pub(crate) fn person_date(time: WallTime) -> String {
    date::timestamp(time).to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S %Z").to_string()
}

/// `1,234,567`
pub(crate) fn number(count: u64) -> String {
    let digits = count.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// `1 gap`, `2 gaps`
pub(crate) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", number(count), if count == 1 { one } else { many })
}

/// Hundredths of a percent as `99.50 %`; the whole as `100 %`.
pub(crate) fn percent(hundredths: u64) -> String {
    match hundredths {
        10_000.. => "100 %".to_owned(),
        _ => format!("{}.{:02} %", hundredths / 100, hundredths % 100),
    }
}

/// `42`, `0.75`
pub(crate) fn rate(per_minute: f64) -> String {
    if per_minute >= 10.0 { format!("{per_minute:.0}") } else { format!("{per_minute:.2}") }
}

/// The rate to which it slowed down.
pub(crate) fn backoff_rate(backoff: &Backoff) -> String {
    rate(60_000.0 / backoff.at_interval_ms)
}

/// An interval: `0.05 s`, `1.50 s`, `2 min`
pub(crate) fn interval(millis: f64) -> String {
    match millis {
        ..1000.0 => format!("{millis:.0} ms"),
        ..100_000.0 => format!("{:.2} s", millis / 1000.0),
        _ => span(Duration::from_secs_f64((millis / 1000.0).min(1e9))),
    }
}

/// A pace in a few words: `42 of at most 60 a minute`.
pub(crate) fn pace(of: &CollectionRate) -> String {
    format!("{} of at most {} a minute", rate(of.effective_rate_per_min), rate(of.ceiling_rate_per_min))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_three() {
        let texts = [0, 999, 1000, 1_234_567].map(number);
        assert_eq!(texts, ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn only_the_whole_is_a_hundred_percent() {
        assert_eq!([0, 5, 9_999, 10_000].map(percent), ["0.00 %", "0.05 %", "99.99 %", "100 %"]);
    }

    #[test]
    fn moments_lie_before_or_after_now_and_intervals_are_short() {
        let at = |seconds: u64| WallTime::from_unix_millis(seconds * 1000);
        assert!(when(at(0), at(90)).0.contains(">90 s ago<"));
        assert!(when(at(7200), at(0)).0.contains(">in 2 h<"));
        assert!(due(at(7200), at(0)).0.contains(">in 2 h<"));
        assert!(due(at(0), at(90)).0.contains(">due now<"));
        assert!(until(at(0), at(1)).0.contains(">time is over<"));
        assert_eq!([50.0, 1500.0, 120_000.0].map(interval), ["50 ms", "1.50 s", "2 min"]);
    }
}
