//! Intervals, cron patterns, quiet hours and time zones.
//!
//! An interval is elapsed time, so a clock change does not affect it. Cron patterns and quiet hours are local times
//! of day: a nonexistent hour becomes the first one after it, an hour that occurs twice counts once.

use croner::Cron;
use croner::parser::{CronParser, Seconds};
use gleaner_engine::WallTime;
use jiff::civil;
use jiff::tz::{Disambiguation, TimeZone};
use jiff::{SignedDuration, Timestamp, Zoned};
use std::time::Duration;

/// Minimum interval: anything shorter is a loop.
pub(crate) const EVERY_MIN: Duration = Duration::from_secs(60);
/// Maximum interval: ten years.
pub(crate) const EVERY_MAX: Duration = Duration::from_secs(10 * 365 * 86_400);
/// Length assumed for a cron pattern without a next time.
const A_DAY: Duration = Duration::from_secs(86_400);

/// An invalid schedule.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BadCadence {
    /// Too short or too long.
    #[error("an interval must be between a minute and ten years; this one is {0:?}")]
    Interval(Duration),
    /// An invalid cron pattern.
    #[error("{pattern:?} is not a cron pattern: {why}")]
    Cron {
        /// The pattern.
        pattern: String,
        /// The problem.
        why: String,
    },
    /// A valid pattern without any matching time.
    #[error("{0:?} never comes")]
    Never(String),
    /// Invalid quiet hours.
    #[error("invalid quiet hours {0:?}; write them as 22:00-07:00")]
    HoursText(String),
    /// Start and end are equal.
    #[error("quiet hours from {0} to {0} are ambiguous; for no automatic runs at all use `manual`")]
    Hours(civil::Time),
    /// Unknown time zone.
    #[error("unknown time zone {0:?}; names are like Europe/Berlin")]
    Zone(String),
}

/// A time zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone(TimeZone);

impl Zone {
    /// UTC.
    pub const UTC: Self = Self(TimeZone::UTC);

    /// The time zone with this name.
    ///
    /// # Errors
    ///
    /// The name is unknown.
    pub fn named(name: &str) -> Result<Self, BadCadence> {
        TimeZone::get(name).map(Self).map_err(|_| BadCadence::Zone(name.to_owned()))
    }

    /// A local time for people: `2031-02-03 04:05 CET`.
    #[must_use]
    pub fn show(&self, time: WallTime) -> String {
        self.at(time).strftime("%Y-%m-%d %H:%M %Z").to_string()
    }

    /// The zone of this machine.
    #[must_use]
    pub fn of_this_machine() -> Self {
        Self(TimeZone::system())
    }

    /// A local time of day for people, with the date if it is another day: `12:03:20`.
    #[must_use]
    pub fn show_near(&self, time: WallTime, now: WallTime) -> String {
        let (at, now) = (self.at(time), self.at(now));
        let format = if at.date() == now.date() { "%H:%M:%S" } else { "%Y-%m-%d %H:%M:%S %Z" };
        at.strftime(format).to_string()
    }

    fn at(&self, time: WallTime) -> Zoned {
        // Limited to the range of the library; a clock may be far off.
        let millis = i64::try_from(time.as_unix_millis()).unwrap_or(i64::MAX);
        Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX).to_zoned(self.0.clone())
    }
}

fn wall(zoned: &Zoned) -> WallTime {
    WallTime::from_unix_millis(u64::try_from(zoned.timestamp().as_millisecond()).unwrap_or(0))
}

/// A valid interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Every(Duration);

impl Every {
    /// An interval of this length.
    ///
    /// # Errors
    ///
    /// It is shorter than a minute or longer than ten years.
    pub fn new(length: Duration) -> Result<Self, BadCadence> {
        if (EVERY_MIN..=EVERY_MAX).contains(&length) { Ok(Self(length)) } else { Err(BadCadence::Interval(length)) }
    }

    /// The nearest valid interval: for a manifest's recommendation, which nobody here can fix.
    #[must_use]
    pub fn nearest(length: Duration) -> Self {
        Self(length.clamp(EVERY_MIN, EVERY_MAX))
    }

    /// Its length.
    #[must_use]
    pub const fn length(self) -> Duration {
        self.0
    }
}

/// How often a connection runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cadence {
    /// Once per interval, from start to start.
    Every(Every),
    /// At the times of a cron pattern.
    Cron(Box<Cron>),
}

impl Cadence {
    /// A cron pattern: five fields, or six that begin with seconds.
    ///
    /// # Errors
    ///
    /// The pattern is invalid, or never matches.
    pub fn cron(pattern: &str) -> Result<Self, BadCadence> {
        let parser = CronParser::builder().seconds(Seconds::Optional).build();
        let wrong =
            |why: croner::errors::CronError| BadCadence::Cron { pattern: pattern.to_owned(), why: why.to_string() };
        let cadence = Self::Cron(Box::new(parser.parse(pattern).map_err(wrong)?));
        // A leap day is at most eight years away.
        match cadence.next(WallTime::from_unix_millis(1_700_000_000_000), &Zone::UTC) {
            Some(_) => Ok(cadence),
            None => Err(BadCadence::Never(pattern.to_owned())),
        }
    }

    /// The first time after this one.
    #[must_use]
    pub fn next(&self, after: WallTime, zone: &Zone) -> Option<WallTime> {
        match self {
            Self::Every(every) => Some(after + every.length()),
            Self::Cron(cron) => {
                let next = wall(&cron.find_next_occurrence(&zone.at(after), false).ok()?);
                // A time that occurs twice must not be found again after its first occurrence.
                (next > after).then_some(next)
            }
        }
    }

    /// Time from `from` to the next run.
    #[must_use]
    pub fn length(&self, from: WallTime, zone: &Zone) -> Duration {
        match self {
            Self::Every(every) => every.length(),
            Self::Cron(_) => {
                let lasts = self.next(from, zone).and_then(|first| Some(self.next(first, zone)?.since(first)));
                lasts.unwrap_or(A_DAY).max(EVERY_MIN)
            }
        }
    }
}

/// Hours in which no run starts automatically. They may include midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuietHours {
    from: civil::Time,
    to: civil::Time,
}

impl QuietHours {
    /// From one time of day to another.
    ///
    /// # Errors
    ///
    /// They are equal.
    pub fn new(from: civil::Time, to: civil::Time) -> Result<Self, BadCadence> {
        if from == to { Err(BadCadence::Hours(from)) } else { Ok(Self { from, to }) }
    }

    /// Parses `22:00-07:00`.
    ///
    /// # Errors
    ///
    /// The text has another form.
    pub fn parse(text: &str) -> Result<Self, BadCadence> {
        let wrong = || BadCadence::HoursText(text.to_owned());
        let time = |text: &str| {
            let (hours, minutes) = text.trim().split_once(':')?;
            let number = |digits: &str| {
                let is_number = (1..=2).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
                if is_number { digits.parse::<i8>().ok() } else { None }
            };
            civil::Time::new(number(hours)?, number(minutes)?, 0, 0).ok()
        };
        let (from, to) = text.split_once('-').ok_or_else(wrong)?;
        Self::new(time(from).ok_or_else(wrong)?, time(to).ok_or_else(wrong)?)
    }

    /// The end of the quiet hours, if `at` is within them.
    #[must_use]
    pub fn end_if_quiet(&self, at: WallTime, zone: &Zone) -> Option<WallTime> {
        let here = zone.at(at);
        let time = here.time();
        let goes_over_midnight = self.from > self.to;
        let (after_from, before_to) = (time >= self.from, time < self.to);
        let is_quiet = if goes_over_midnight { after_from || before_to } else { after_from && before_to };
        if !is_quiet {
            return None;
        }
        let ends_tomorrow = goes_over_midnight && after_from;
        let day = if ends_tomorrow { here.date().tomorrow().ok()? } else { here.date() };
        let end = |disambiguation| {
            let end = zone.0.to_ambiguous_zoned(day.to_datetime(self.to)).disambiguate(disambiguation).ok()?;
            Some(wall(&end)).filter(|end| *end > at)
        };
        // The end may be an hour that occurs twice, and its first occurrence may be over.
        let end = end(Disambiguation::Compatible).or_else(|| end(Disambiguation::Later));
        Some(end.unwrap_or_else(|| wall(&here.saturating_add(SignedDuration::from_mins(1)))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn berlin() -> Zone {
        Zone::named("Europe/Berlin").unwrap()
    }

    fn at(text: &str) -> WallTime {
        WallTime::parse(text).unwrap()
    }

    fn hours(from: i8, to: i8) -> QuietHours {
        QuietHours::new(civil::time(from, 0, 0, 0), civil::time(to, 0, 0, 0)).unwrap()
    }

    #[test]
    fn an_interval_does_not_know_the_clock() {
        let every = Cadence::Every(Every::new(Duration::from_secs(3600)).unwrap());
        // The clock goes from 2 to 3 in that night.
        assert_eq!(every.next(at("2026-03-29T00:30:00Z"), &berlin()), Some(at("2026-03-29T01:30:00Z")));
    }

    #[test]
    fn a_pattern_is_at_the_hour_of_the_day_in_summer_and_in_winter() {
        let three = Cadence::cron("0 3 * * *").unwrap();
        assert_eq!(three.next(at("2026-01-10T12:00:00Z"), &berlin()), Some(at("2026-01-11T02:00:00Z")));
        assert_eq!(three.next(at("2026-07-10T12:00:00Z"), &berlin()), Some(at("2026-07-11T01:00:00Z")));
    }

    #[test]
    fn an_hour_that_does_not_exist_is_not_left_out() {
        let half_past_two = Cadence::cron("30 2 * * *").unwrap();
        let next = half_past_two.next(at("2026-03-28T12:00:00Z"), &berlin()).unwrap();
        assert!(next >= at("2026-03-29T01:00:00Z") && next <= at("2026-03-29T01:30:00Z"), "{next:?}");
    }

    #[test]
    fn an_hour_that_comes_twice_counts_once() {
        let half_past_two = Cadence::cron("30 2 * * *").unwrap();
        let first = half_past_two.next(at("2026-10-24T12:00:00Z"), &berlin()).unwrap();
        assert_eq!(first, at("2026-10-25T00:30:00Z"));
        assert_eq!(half_past_two.next(first, &berlin()), Some(at("2026-10-26T01:30:00Z")));
    }

    #[test]
    fn what_never_comes_and_what_is_none_is_refused() {
        assert_eq!(Cadence::cron("0 0 30 2 *"), Err(BadCadence::Never("0 0 30 2 *".to_owned())));
        assert!(matches!(Cadence::cron("every day"), Err(BadCadence::Cron { .. })));
        assert!(matches!(Cadence::cron(""), Err(BadCadence::Cron { .. })));
        assert!(Cadence::cron("0 0 29 2 *").is_ok());
        assert!(Every::new(Duration::from_secs(59)).is_err() && Every::new(Duration::MAX).is_err());
        assert!(matches!(Zone::named("Europe/Nowhere"), Err(BadCadence::Zone(_))));
        assert!(QuietHours::new(civil::time(3, 0, 0, 0), civil::time(3, 0, 0, 0)).is_err());
    }

    #[test]
    fn quiet_hours_are_written_as_people_do() {
        assert_eq!(QuietHours::parse("22:00-07:00"), Ok(hours(22, 7)));
        assert_eq!(QuietHours::parse(" 9:00 - 17:00 "), Ok(hours(9, 17)));
        for text in
            ["", "22-7", "22:00", "24:00-07:00", "22:60-07:00", "22:00-22:00", "-1:00-07:00", "22:00-07:00-08:00"]
        {
            assert!(QuietHours::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn quiet_hours_go_over_midnight_and_over_a_change_of_the_clock() {
        let night = hours(22, 7);
        let zone = berlin();
        assert_eq!(night.end_if_quiet(at("2026-01-10T20:59:00Z"), &zone), None);
        assert_eq!(night.end_if_quiet(at("2026-01-10T21:00:00Z"), &zone), Some(at("2026-01-11T06:00:00Z")));
        assert_eq!(night.end_if_quiet(at("2026-01-11T05:59:00Z"), &zone), Some(at("2026-01-11T06:00:00Z")));
        assert_eq!(night.end_if_quiet(at("2026-01-11T06:00:00Z"), &zone), None);
        // An hour less, and an hour more.
        assert_eq!(night.end_if_quiet(at("2026-03-28T22:00:00Z"), &zone), Some(at("2026-03-29T05:00:00Z")));
        assert_eq!(night.end_if_quiet(at("2026-10-24T22:00:00Z"), &zone), Some(at("2026-10-25T06:00:00Z")));
        let day = hours(9, 17);
        assert_eq!(day.end_if_quiet(at("2026-01-10T08:00:00Z"), &zone), Some(at("2026-01-10T16:00:00Z")));
        assert_eq!(day.end_if_quiet(at("2026-01-10T16:00:00Z"), &zone), None);
    }

    #[test]
    fn quiet_hours_that_end_in_an_hour_that_comes_twice_end_all_the_same() {
        let zone = berlin();
        let night = QuietHours::new(civil::time(1, 0, 0, 0), civil::time(2, 45, 0, 0)).unwrap();
        for minute in 0..240 {
            let at = at("2026-10-24T22:00:00Z") + Duration::from_secs(minute * 60);
            if let Some(end) = night.end_if_quiet(at, &zone) {
                assert!(end > at && end.since(at) < Duration::from_secs(4 * 3600), "{at:?} {end:?}");
            }
        }
    }
}
