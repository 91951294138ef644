//! Numbers, dates and shares as pages write them.
//!
//! A date is shown as how long ago it was, with the moment itself one hover away; the script counts it on. Only our own
//! numbers go into the markup here.

use askama::filters::HtmlSafe;
use gleaner_engine::WallTime;
use gleaner_protocol::CollectionRate;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::fmt::{self, Display, Formatter};
use std::time::Duration;

/// A moment, as far from now as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct When {
    at: WallTime,
    now: WallTime,
}

impl When {
    pub(crate) const fn new(at: WallTime, now: WallTime) -> Self {
        Self { at, now }
    }
}

/// Marked up, and with nothing in it that is not ours.
impl HtmlSafe for When {}

impl Display for When {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let millis = self.at.as_unix_millis();
        let (machine, person) = (machine_date(self.at), person_date(self.at));
        let text = match self.at > self.now {
            true => format!("in {}", span(self.at.since(self.now))),
            false => format!("{} ago", span(self.now.since(self.at))),
        };
        write!(f, r#"<time datetime="{machine}" title="{person}" data-at="{millis}">{text}</time>"#)
    }
}

/// The end of something that is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Until {
    at: WallTime,
    now: WallTime,
}

impl Until {
    pub(crate) const fn new(at: WallTime, now: WallTime) -> Self {
        Self { at, now }
    }
}

impl HtmlSafe for Until {}

impl Display for Until {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let millis = self.at.as_unix_millis();
        let (machine, person) = (machine_date(self.at), person_date(self.at));
        let text = match self.at > self.now {
            true => format!("{} left", span(self.at.since(self.now))),
            false => "time is over".to_owned(),
        };
        write!(f, r#"<time datetime="{machine}" title="{person}" data-until="{millis}">{text}</time>"#)
    }
}

/// When something will happen by itself; what is due and has not happened yet is due now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    at: WallTime,
    now: WallTime,
}

impl Due {
    pub(crate) const fn new(at: WallTime, now: WallTime) -> Self {
        Self { at, now }
    }
}

impl HtmlSafe for Due {}

impl Display for Due {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let millis = self.at.as_unix_millis();
        let (machine, person) = (machine_date(self.at), person_date(self.at));
        let text = match self.at > self.now {
            true => format!("in {}", span(self.at.since(self.now))),
            false => "due now".to_owned(),
        };
        write!(f, r#"<time datetime="{machine}" title="{person}" data-due="{millis}">{text}</time>"#)
    }
}

/// The time of day of an event of a run, with its date one hover away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clock(pub(crate) WallTime);

impl HtmlSafe for Clock {}

impl Display for Clock {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let zoned = timestamp(self.0).to_zoned(TimeZone::system());
        let (machine, person) = (machine_date(self.0), person_date(self.0));
        write!(f, r#"<time datetime="{machine}" title="{person}">{}</time>"#, zoned.strftime("%H:%M:%S"))
    }
}

fn timestamp(time: WallTime) -> Timestamp {
    let millis = i64::try_from(time.as_unix_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX)
}

fn machine_date(time: WallTime) -> String {
    timestamp(time).to_string()
}

/// In the zone of the machine that collects, which is said.
pub(crate) fn person_date(time: WallTime) -> String {
    timestamp(time).to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S %Z").to_string()
}

/// `12 s`, `3 min`, `5 h`, `2 days`; the script says the same.
pub(crate) fn span(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ 0..=99 => format!("{seconds} s"),
        seconds @ 100..=5_999 => format!("{} min", seconds / 60),
        seconds @ 6_000..=172_799 => format!("{} h", seconds / 3600),
        seconds => format!("{} days", seconds / 86_400),
    }
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
        assert!(When::new(at(0), at(90)).to_string().contains(">90 s ago<"));
        assert!(When::new(at(7200), at(0)).to_string().contains(">in 2 h<"));
        assert!(Due::new(at(7200), at(0)).to_string().contains(">in 2 h<"));
        assert!(Due::new(at(0), at(90)).to_string().contains(">due now<"));
        assert!(Until::new(at(0), at(1)).to_string().contains(">time is over<"));
        assert_eq!([50.0, 1500.0, 120_000.0].map(interval), ["50 ms", "1.50 s", "2 min"]);
    }
}
