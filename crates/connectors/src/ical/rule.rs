//! A rule of recurrence: what is written, and which local times it means.
//!
//! Pure, and on the calendar alone: times of day have no zone here, so that a meeting at nine stays at nine when the
//! clocks change. A rule may mean millions of times or none at all for centuries, so steps and results are bounded, and
//! a result that was cut off says so.

use jiff::SignedDuration;
use jiff::civil::{Date, DateTime, Weekday};

/// Steps (years, months, days, …) that are looked at for one rule. A daily rule since 1970 takes 20,000.
const STEPS_MAX: u64 = 200_000;
/// Times that one step may mean: every second of a day.
const SET_MAX: usize = 86_400;
/// The day from which days are counted.
const EPOCH: Date = Date::constant(1970, 1, 1);

/// How often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Frequency {
    Secondly,
    Minutely,
    Hourly,
    Daily,
    Weekly,
    Monthly,
    #[default]
    Yearly,
}

impl Frequency {
    /// How long a step shorter than a day is.
    const fn seconds(self) -> i64 {
        match self {
            Self::Hourly => 3600,
            Self::Minutely => 60,
            _ => 1,
        }
    }
}

/// A rule as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rule {
    frequency: Frequency,
    interval: i64,
    count: Option<u64>,
    /// As it is written: its zone is the event's.
    pub(crate) until: Option<String>,
    seconds: Vec<i64>,
    minutes: Vec<i64>,
    hours: Vec<i64>,
    /// Days of the week, each with its number in the month or year, or zero.
    weekdays: Vec<(i64, Weekday)>,
    month_days: Vec<i64>,
    year_days: Vec<i64>,
    weeks: Vec<i64>,
    months: Vec<i64>,
    positions: Vec<i64>,
    /// Monday unless it is said.
    week_start: Option<Weekday>,
}

/// Which times are wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) from: DateTime,
    /// Not this one any more.
    pub(crate) to: DateTime,
    /// The last one that the rule means.
    pub(crate) until: Option<DateTime>,
    /// How many are wanted at most.
    pub(crate) most: usize,
}

/// The times, in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Times {
    pub(crate) times: Vec<DateTime>,
    /// There are more.
    pub(crate) is_cut: bool,
}

impl Rule {
    /// Reads a rule; `None` for what is not understood.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut frequency = None;
        let mut rule = Self { interval: 1, ..Self::default() };
        for part in text.split(';').filter(|part| !part.trim().is_empty()) {
            let (name, value) = part.split_once('=')?;
            match name.trim().to_ascii_uppercase().as_str() {
                "FREQ" => frequency = Some(frequency_called(value.trim())?),
                "INTERVAL" => {
                    rule.interval = value.trim().parse().ok().filter(|&interval| (1..=100_000).contains(&interval))?
                }
                "COUNT" => rule.count = Some(value.trim().parse().ok().filter(|&count| count > 0)?),
                "UNTIL" => rule.until = Some(value.trim().to_owned()),
                "BYSECOND" => rule.seconds = numbers(value, 0, 60, false)?,
                "BYMINUTE" => rule.minutes = numbers(value, 0, 59, false)?,
                "BYHOUR" => rule.hours = numbers(value, 0, 23, false)?,
                "BYDAY" => rule.weekdays = value.split(',').map(weekday).collect::<Option<_>>()?,
                "BYMONTHDAY" => rule.month_days = numbers(value, 1, 31, true)?,
                "BYYEARDAY" => rule.year_days = numbers(value, 1, 366, true)?,
                "BYWEEKNO" => rule.weeks = numbers(value, 1, 53, true)?,
                "BYMONTH" => rule.months = numbers(value, 1, 12, false)?,
                "BYSETPOS" => rule.positions = numbers(value, 1, 366, true)?,
                "WKST" => rule.week_start = Some(weekday(value)?.1),
                // Other calendars than the one that everybody uses.
                "RSCALE" if !value.trim().eq_ignore_ascii_case("GREGORIAN") => return None,
                _ => {}
            }
        }
        rule.frequency = frequency?;
        Some(rule)
    }

    /// The times that are meant, from the first one on, which always counts.
    pub(crate) fn times(&self, start: DateTime, span: &Span) -> Times {
        let rule = self.with_defaults(start);
        let mut found = Times::default();
        let mut left = self.count;
        let mut is_first = true;
        // How many there were before the span matters only if they are counted.
        let first_step = if self.count.is_some() { 0 } else { rule.steps_before(start, span.from) };
        for step in first_step..first_step.saturating_add(STEPS_MAX) {
            let Some(Step { begins, times, is_cut }) = rule.step(start, step) else { return found };
            if begins >= span.to {
                return found;
            }
            found.is_cut |= is_cut;
            let begin = (is_first && step == 0 && times.iter().all(|&time| time != start)).then_some(start);
            is_first = false;
            for time in begin.into_iter().chain(times.into_iter().filter(|&time| time >= start)) {
                if time >= span.to || span.until.is_some_and(|until| time > until) {
                    return found;
                }
                if time >= span.from {
                    if found.times.len() == span.most {
                        found.is_cut = true;
                        return found;
                    }
                    found.times.push(time);
                }
                left = left.map(|left| left.saturating_sub(1));
                if left == Some(0) {
                    return found;
                }
            }
        }
        found.is_cut = true;
        found
    }

    /// What is not said is as it is at the first time.
    fn with_defaults(&self, start: DateTime) -> Self {
        let mut rule = self.clone();
        let says_no_day = rule.weekdays.is_empty() && rule.month_days.is_empty() && rule.year_days.is_empty();
        let weekday = (0, start.weekday());
        match rule.frequency {
            Frequency::Yearly if says_no_day && rule.weeks.is_empty() => {
                rule.month_days = vec![i64::from(start.day())];
                if rule.months.is_empty() {
                    rule.months = vec![i64::from(start.month())];
                }
            }
            Frequency::Yearly if says_no_day => rule.weekdays = vec![weekday],
            Frequency::Monthly if says_no_day => rule.month_days = vec![i64::from(start.day())],
            Frequency::Weekly if rule.weekdays.is_empty() => rule.weekdays = vec![weekday],
            _ => {}
        }
        let or = |list: &mut Vec<i64>, is_needed: bool, value: i8| {
            if list.is_empty() && is_needed {
                list.push(i64::from(value));
            }
        };
        or(&mut rule.hours, rule.frequency >= Frequency::Daily, start.hour());
        or(&mut rule.minutes, rule.frequency >= Frequency::Hourly, start.minute());
        or(&mut rule.seconds, rule.frequency >= Frequency::Minutely, start.second());
        rule
    }

    /// How many steps end before the span for certain.
    fn steps_before(&self, start: DateTime, from: DateTime) -> u64 {
        let (a, b) = (start.date(), from.date());
        let days = day_number(b) - day_number(a);
        let years = i64::from(b.year()) - i64::from(a.year());
        // Two units of room for beginnings of weeks and days.
        let (units, room) = match self.frequency {
            Frequency::Yearly => (years, 2),
            Frequency::Monthly => (12 * years + i64::from(b.month()) - i64::from(a.month()), 2),
            Frequency::Weekly => (days / 7, 2),
            Frequency::Daily => (days, 2),
            shorter => (days * 86_400 / shorter.seconds(), 48 * 3600 / shorter.seconds()),
        };
        u64::try_from((units - room) / self.interval).unwrap_or(0)
    }

    /// What one step means; `None` after the last day of the calendar.
    fn step(&self, start: DateTime, step: u64) -> Option<Step> {
        let by = self.interval.checked_mul(i64::try_from(step).ok()?)?;
        let first = day_number(start.date());
        match self.frequency {
            Frequency::Yearly => {
                let year = i16::try_from(i64::from(start.year()).checked_add(by)?).ok()?;
                let begin = Date::new(year, 1, 1).ok()?;
                Some(self.days(begin, i64::from(begin.days_in_year())))
            }
            Frequency::Monthly => {
                let month = i64::from(start.year()) * 12 + i64::from(start.month()) - 1 + by;
                let begin =
                    Date::new(i16::try_from(month.div_euclid(12)).ok()?, (month.rem_euclid(12) + 1) as i8, 1).ok()?;
                Some(self.days(begin, i64::from(begin.days_in_month())))
            }
            Frequency::Weekly => {
                let week = first - self.days_into_week(start.weekday()) + 7 * by;
                Some(self.days(date_of(week)?, 7))
            }
            Frequency::Daily => Some(self.days(date_of(first + by)?, 1)),
            shorter => self.clock(start, by.checked_mul(shorter.seconds())?),
        }
    }

    /// The days of a step that fit, at each time of day.
    fn days(&self, begin: Date, count: i64) -> Step {
        let first = day_number(begin);
        let days = (first..first + count).filter_map(date_of).filter(|&day| self.fits(day)).collect::<Vec<_>>();
        let mut clock = Vec::new();
        for &hour in &self.hours {
            for &minute in &self.minutes {
                clock.extend(self.seconds.iter().map(|&second| (hour as i8, minute as i8, second.min(59) as i8)));
            }
        }
        clock.sort_unstable();
        clock.dedup();
        let days_max = SET_MAX / clock.len().max(1);
        let is_cut = days.len() > days_max;
        let all = days.iter().take(days_max).flat_map(|day| clock.iter().map(|&(h, m, s)| day.at(h, m, s, 0)));
        Step { begins: begin.at(0, 0, 0, 0), times: self.at_positions(all.collect()), is_cut }
    }

    /// The same for steps that are shorter than a day.
    fn clock(&self, start: DateTime, by: i64) -> Option<Step> {
        let of_day = i64::from(start.hour()) * 3600 + i64::from(start.minute()) * 60 + i64::from(start.second());
        let seconds = of_day.checked_add(by)?;
        let day = date_of(day_number(start.date()).checked_add(seconds.div_euclid(86_400))?)?;
        let clock = seconds.rem_euclid(86_400);
        let (hour, minute, second) = (clock / 3600, clock / 60 % 60, clock % 60);
        let begins = day.at(hour as i8, minute as i8, second as i8, 0);
        let allows = |list: &[i64], value: i64| list.is_empty() || list.contains(&value);
        let is_out = !self.fits(day)
            || !allows(&self.hours, hour)
            || (self.frequency < Frequency::Hourly && !allows(&self.minutes, minute))
            || (self.frequency < Frequency::Minutely && !allows(&self.seconds, second));
        let minutes = if self.frequency == Frequency::Hourly { self.minutes.clone() } else { vec![minute] };
        let seconds = if self.frequency >= Frequency::Minutely { self.seconds.clone() } else { vec![second] };
        let mut times = Vec::new();
        if !is_out {
            for &minute in &minutes {
                times.extend(seconds.iter().map(|&second| day.at(hour as i8, minute as i8, second.min(59) as i8, 0)));
            }
        }
        Some(Step { begins: begins.min(day.at(hour as i8, 0, 0, 0)), times: self.at_positions(times), is_cut: false })
    }

    fn at_positions(&self, mut times: Vec<DateTime>) -> Vec<DateTime> {
        times.sort_unstable();
        times.dedup();
        if self.positions.is_empty() {
            return times;
        }
        let length = times.len() as i64;
        let at = |position: &i64| if *position > 0 { position - 1 } else { length + position };
        let mut chosen = self
            .positions
            .iter()
            .map(at)
            .filter_map(|at| times.get(usize::try_from(at).ok()?).copied())
            .collect::<Vec<_>>();
        chosen.sort_unstable();
        chosen.dedup();
        chosen
    }

    /// Whether a day is one of the rule's.
    fn fits(&self, day: Date) -> bool {
        let (dom, dim) = (i64::from(day.day()), i64::from(day.days_in_month()));
        let (doy, diy) = (i64::from(day.day_of_year()), i64::from(day.days_in_year()));
        let among = |list: &[i64], number: i64, length: i64| {
            list.is_empty() || list.contains(&number) || list.contains(&(number - length - 1))
        };
        (self.months.is_empty() || self.months.contains(&i64::from(day.month())))
            && among(&self.month_days, dom, dim)
            && among(&self.year_days, doy, diy)
            && (self.weeks.is_empty() || self.is_in_weeks(day))
            && (self.weekdays.is_empty()
                || self.weekdays.iter().any(|&(nth, weekday)| {
                    let is_of_month = self.frequency == Frequency::Monthly || !self.months.is_empty();
                    let (number, length) = if is_of_month { (dom, dim) } else { (doy, diy) };
                    let is_counted = self.frequency >= Frequency::Monthly && nth != 0;
                    let is_nth = nth == (number - 1) / 7 + 1 || nth == -((length - number) / 7 + 1);
                    weekday == day.weekday() && (!is_counted || is_nth)
                }))
    }

    fn days_into_week(&self, day: Weekday) -> i64 {
        i64::from(day.since(self.week_start.unwrap_or(Weekday::Monday)))
    }

    /// Weeks are counted from the first that has four days in the year.
    fn is_in_weeks(&self, day: Date) -> bool {
        let first_week = |year: i16| {
            let fourth = Date::new(year, 1, 4).ok()?;
            Some(day_number(fourth) - self.days_into_week(fourth.weekday()))
        };
        let number = day_number(day);
        let year = [day.year() + 1, day.year(), day.year() - 1]
            .into_iter()
            .find(|&year| first_week(year).is_some_and(|first| first <= number));
        let Some((first, next)) = year.and_then(|year| Some((first_week(year)?, first_week(year + 1)?))) else {
            return false;
        };
        let (week, weeks) = ((number - first) / 7 + 1, (next - first) / 7);
        self.weeks.contains(&week) || self.weeks.contains(&(week - weeks - 1))
    }
}

/// The times of one step, in order.
struct Step {
    begins: DateTime,
    times: Vec<DateTime>,
    is_cut: bool,
}

fn frequency_called(name: &str) -> Option<Frequency> {
    Some(match name.to_ascii_uppercase().as_str() {
        "SECONDLY" => Frequency::Secondly,
        "MINUTELY" => Frequency::Minutely,
        "HOURLY" => Frequency::Hourly,
        "DAILY" => Frequency::Daily,
        "WEEKLY" => Frequency::Weekly,
        "MONTHLY" => Frequency::Monthly,
        "YEARLY" => Frequency::Yearly,
        _ => return None,
    })
}

/// Numbers within a range; with `from_end` also as many counted from the end.
fn numbers(text: &str, from: i64, to: i64, from_end: bool) -> Option<Vec<i64>> {
    let number = |text: &str| text.trim().parse::<i64>().ok();
    let fits = |number: &i64| (from..=to).contains(number) || (from_end && (-to..=-from).contains(number));
    let mut numbers = text.split(',').map(|text| number(text).filter(fits)).collect::<Option<Vec<_>>>()?;
    numbers.sort_unstable();
    numbers.dedup();
    Some(numbers)
}

/// `MO`, `2MO` or `-1FR`.
fn weekday(text: &str) -> Option<(i64, Weekday)> {
    let text = text.trim();
    let (nth, name) = text.split_at_checked(text.len().checked_sub(2)?)?;
    let weekday = match name.to_ascii_uppercase().as_str() {
        "MO" => Weekday::Monday,
        "TU" => Weekday::Tuesday,
        "WE" => Weekday::Wednesday,
        "TH" => Weekday::Thursday,
        "FR" => Weekday::Friday,
        "SA" => Weekday::Saturday,
        "SU" => Weekday::Sunday,
        _ => return None,
    };
    let nth = if nth.is_empty() { 0 } else { nth.parse().ok().filter(|nth| (-53..=53).contains(nth) && *nth != 0)? };
    Some((nth, weekday))
}

/// Days since 1970-01-01.
pub(crate) fn day_number(date: Date) -> i64 {
    date.duration_since(EPOCH).as_hours() / 24
}

/// The day of this number, if the calendar has it.
pub(crate) fn date_of(number: i64) -> Option<Date> {
    EPOCH.checked_add(SignedDuration::try_from_hours(number.checked_mul(24)?)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> DateTime {
        text.parse().unwrap()
    }

    /// The dates that a rule means from its first time until 2100, at most twelve.
    fn dates(rule: &str, start: &str) -> Vec<String> {
        let span = Span { from: at(start), to: at("2100-01-01T00:00:00"), until: None, most: 12 };
        let times = Rule::parse(rule).unwrap().times(at(start), &span);
        times.times.iter().map(|time| time.date().to_string()).collect()
    }

    #[test]
    fn the_examples_of_the_standard_come_out() {
        for (rule, start, expected) in [
            ("FREQ=DAILY;COUNT=3", "1997-09-02T09:00:00", "1997-09-02 1997-09-03 1997-09-04"),
            ("FREQ=DAILY;INTERVAL=10;COUNT=3", "1997-09-02T09:00:00", "1997-09-02 1997-09-12 1997-09-22"),
            (
                "FREQ=WEEKLY;COUNT=4;WKST=SU;BYDAY=TU,TH",
                "1997-09-02T09:00:00",
                "1997-09-02 1997-09-04 1997-09-09 1997-09-11",
            ),
            (
                "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=MO",
                "1997-08-05T09:00:00",
                "1997-08-05 1997-08-10 1997-08-19 1997-08-24",
            ),
            (
                "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=SU",
                "1997-08-05T09:00:00",
                "1997-08-05 1997-08-17 1997-08-19 1997-08-31",
            ),
            ("FREQ=MONTHLY;COUNT=3;BYDAY=1FR", "1997-09-05T09:00:00", "1997-09-05 1997-10-03 1997-11-07"),
            (
                "FREQ=MONTHLY;INTERVAL=2;COUNT=4;BYDAY=1SU,-1SU",
                "1997-09-07T09:00:00",
                "1997-09-07 1997-09-28 1997-11-02 1997-11-30",
            ),
            ("FREQ=MONTHLY;COUNT=3;BYDAY=-2MO", "1997-09-22T09:00:00", "1997-09-22 1997-10-20 1997-11-17"),
            ("FREQ=MONTHLY;BYMONTHDAY=-3;COUNT=3", "1997-09-28T09:00:00", "1997-09-28 1997-10-29 1997-11-28"),
            ("FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13;COUNT=3", "1998-02-13T09:00:00", "1998-02-13 1998-03-13 1998-11-13"),
            (
                "FREQ=MONTHLY;COUNT=3;BYDAY=TU,WE,TH;BYSETPOS=3",
                "1997-09-04T09:00:00",
                "1997-09-04 1997-10-07 1997-11-06",
            ),
            (
                "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-2;COUNT=3",
                "1997-09-29T09:00:00",
                "1997-09-29 1997-10-30 1997-11-27",
            ),
            ("FREQ=MONTHLY;COUNT=3", "2024-01-31T09:00:00", "2024-01-31 2024-03-31 2024-05-31"),
            ("FREQ=YEARLY;COUNT=3;BYMONTH=6,7", "1997-06-10T09:00:00", "1997-06-10 1997-07-10 1998-06-10"),
            (
                "FREQ=YEARLY;INTERVAL=3;COUNT=4;BYYEARDAY=1,100,200",
                "1997-01-01T09:00:00",
                "1997-01-01 1997-04-10 1997-07-19 2000-01-01",
            ),
            ("FREQ=YEARLY;BYDAY=20MO;COUNT=3", "1997-05-19T09:00:00", "1997-05-19 1998-05-18 1999-05-17"),
            ("FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO;COUNT=3", "1997-05-12T09:00:00", "1997-05-12 1998-05-11 1999-05-17"),
            (
                "FREQ=YEARLY;BYMONTH=3;BYDAY=TH;COUNT=4",
                "1997-03-13T09:00:00",
                "1997-03-13 1997-03-20 1997-03-27 1998-03-05",
            ),
            (
                "FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8;COUNT=3",
                "1996-11-05T09:00:00",
                "1996-11-05 2000-11-07 2004-11-02",
            ),
            ("FREQ=YEARLY;COUNT=3", "2024-02-29T09:00:00", "2024-02-29 2028-02-29 2032-02-29"),
            // The first time always counts, whether the rule means it or not.
            ("FREQ=WEEKLY;BYDAY=MO;COUNT=3", "2024-05-01T09:00:00", "2024-05-01 2024-05-06 2024-05-13"),
        ] {
            assert_eq!(dates(rule, start).join(" "), expected, "{rule}");
        }
    }

    #[test]
    fn times_of_day_are_expanded_and_narrowed() {
        let clock = |rule: &str| {
            let (start, to) = (at("1997-09-02T09:00:00"), at("1997-09-04T00:00:00"));
            let span = Span { from: start, to, until: None, most: 100 };
            let times = Rule::parse(rule).unwrap().times(start, &span).times;
            times.iter().map(|time| time.strftime("%d %H:%M").to_string()).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(clock("FREQ=HOURLY;INTERVAL=3;COUNT=3"), "02 09:00, 02 12:00, 02 15:00");
        assert_eq!(clock("FREQ=MINUTELY;INTERVAL=90;COUNT=4"), "02 09:00, 02 10:30, 02 12:00, 02 13:30");
        assert_eq!(
            clock("FREQ=DAILY;BYHOUR=9,10;BYMINUTE=0,30"),
            "02 09:00, 02 09:30, 02 10:00, 02 10:30, 03 09:00, 03 09:30, 03 10:00, 03 10:30"
        );
        assert_eq!(clock("FREQ=MINUTELY;INTERVAL=20;BYHOUR=9;COUNT=4"), "02 09:00, 02 09:20, 02 09:40, 03 09:00");
        assert_eq!(clock("FREQ=HOURLY;BYMINUTE=0,15;BYHOUR=23;COUNT=3"), "02 09:00, 02 23:00, 02 23:15");
    }

    #[test]
    fn a_span_far_away_is_reached_without_the_steps_before_it() {
        let start = at("1970-01-01T09:00:00");
        let span = Span { from: at("9000-05-01T00:00:00"), to: at("9000-05-03T00:00:00"), until: None, most: 100 };
        for (rule, count) in
            [("FREQ=SECONDLY;INTERVAL=3600", 48), ("FREQ=DAILY", 2), ("FREQ=HOURLY", 48), ("FREQ=WEEKLY;BYDAY=TH", 1)]
        {
            let times = Rule::parse(rule).unwrap().times(start, &span);
            assert_eq!((times.times.len(), times.is_cut), (count, false), "{rule}");
        }
    }

    #[test]
    fn a_million_times_are_cut_off_and_a_rule_that_means_nothing_ends() {
        let start = at("2024-01-01T00:00:00");
        let span = Span { from: start, to: at("2100-01-01T00:00:00"), until: None, most: 1000 };
        let times = Rule::parse("FREQ=SECONDLY").unwrap().times(start, &span);
        assert_eq!((times.times.len(), times.is_cut), (1000, true));
        let times = Rule::parse("FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30").unwrap().times(start, &span);
        assert_eq!((times.times.len(), times.is_cut), (1, true), "looked for as long as is reasonable");
        let times = Rule::parse("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30").unwrap().times(start, &span);
        assert_eq!((times.times.len(), times.is_cut), (1, false));
        let times = Rule::parse("FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30").unwrap().times(start, &span);
        assert_eq!((times.times.len(), times.is_cut), (1, false), "there is nothing to look for behind the end");
        let every = (0..60).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
        let all = format!(
            "FREQ=YEARLY;BYHOUR=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23;BYMINUTE={every};BYSECOND={every};BYMONTH=1,2"
        );
        assert!(Rule::parse(&all).unwrap().times(start, &span).is_cut);
    }

    #[test]
    fn what_is_no_rule_is_not_guessed() {
        for text in [
            "",
            "FREQ=",
            "FREQ=OFTEN",
            "COUNT=3",
            "FREQ=DAILY;INTERVAL=0",
            "FREQ=DAILY;COUNT=0",
            "FREQ=DAILY;BYHOUR=24",
            "FREQ=DAILY;BYDAY=XX",
            "FREQ=DAILY;BYDAY=0MO",
            "FREQ=DAILY;BYMONTH=-1",
            "FREQ=DAILY;X",
            "RSCALE=CHINESE;FREQ=YEARLY",
            "FREQ=DAILY;INTERVAL=99999999999999999999",
        ] {
            assert_eq!(Rule::parse(text), None, "{text}");
        }
    }

    #[test]
    fn days_have_numbers_and_numbers_days() {
        for number in [-719_000, -1, 0, 59, 60, 11_016, 19_782, 2_900_000] {
            assert_eq!(day_number(date_of(number).unwrap()), number);
        }
        assert_eq!(date_of(0).unwrap().to_string(), "1970-01-01");
        assert_eq!((date_of(i64::MAX), date_of(9_000_000)), (None, None));
    }
}
