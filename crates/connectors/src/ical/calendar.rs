//! One calendar: its events as they are written, with their times understood.
//!
//! A file of any size is read in two passes, line by line: first what holds for all of it (its name, its zones), then one
//! event after another. A file that breaks off in the middle says so: nobody may take what is missing for deleted. An
//! event without a time is counted and left out.

use super::lines::{Content, Line, Reader};
use super::rule::Rule;
use super::zones::{OBSERVANCES_MAX, Observance, Zone, Zones};
use jiff::civil::{Date, DateTime};
use jiff::fmt::temporal::SpanParser;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, SpanRelativeTo, Timestamp};
use serde::Serialize;
use std::fs::File;
use std::io;
use std::ops::Range;

/// Attendees, dates and exceptions of one event.
const LIST_MAX: usize = 10_000;
/// Components in each other: a calendar, an event, an alarm.
const DEPTH_MAX: usize = 16;

/// A point of the calendar, as it was written.
#[derive(Clone, Debug)]
pub(crate) struct When {
    pub(crate) local: DateTime,
    pub(crate) zone: Zone,
    /// A day without a time.
    pub(crate) is_date: bool,
}

/// Someone who was invited.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Attendee {
    email: Option<String>,
    name: Option<String>,
    status: Option<String>,
}

/// One VEVENT.
#[derive(Clone, Debug, Default)]
pub(crate) struct Event {
    pub(crate) uid: String,
    pub(crate) start: Option<When>,
    pub(crate) end: Option<When>,
    pub(crate) duration: Option<SignedDuration>,
    pub(crate) recurrence_id: Option<When>,
    /// It stands for all later ones of its series, too.
    pub(crate) is_this_and_future: bool,
    pub(crate) rule_text: Option<String>,
    pub(crate) rule: Option<Rule>,
    pub(crate) dates: Vec<When>,
    pub(crate) exceptions: Vec<When>,
    pub(crate) zone_name: Option<String>,
    pub(crate) summary: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) location: Option<String>,
    pub(crate) url: Option<String>,
    pub(crate) organizer_email: Option<String>,
    pub(crate) attendees: Vec<Attendee>,
    pub(crate) status: Option<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) sequence: i64,
    pub(crate) created: Option<When>,
    pub(crate) modified: Option<When>,
}

/// What one file says, but for its events.
#[derive(Debug)]
pub(crate) struct Calendar {
    pub(crate) name: Option<String>,
    /// It begins and ends as a calendar does.
    pub(crate) is_whole: bool,
    /// It says that all of its events are cancelled.
    pub(crate) is_cancelled: bool,
    pub(crate) faults: Faults,
    zones: Zones,
}

/// What was not understood, as numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Faults {
    pub(crate) lines: usize,
    pub(crate) long_lines: usize,
    /// Lines with bytes that are not UTF-8.
    pub(crate) replaced: usize,
    /// Events without a time, and such that begin and do not end.
    pub(crate) events: usize,
    pub(crate) rules: usize,
    /// Points in time that cannot be read.
    pub(crate) times: usize,
    /// Names of zones that nobody knows, and zones that are described at too great a length.
    pub(crate) zones: usize,
    /// Attendees, dates and exceptions that are more than are kept of one event.
    pub(crate) lists: usize,
}

impl Calendar {
    /// Reads a file, and hands out each event with the bytes at which it stands. Times without a zone are in `own`.
    pub(crate) fn read(
        file: &File,
        own: &TimeZone,
        buffer: &mut Vec<u8>,
        mut take: impl FnMut(&Self, Event, Range<u64>),
    ) -> io::Result<Self> {
        let mut calendar = Self::head(&mut Reader::new(file, buffer), own)?;
        let mut reader = Reader::new(file, buffer);
        let mut open = None;
        while let Some(content) = reader.next()? {
            let line = match content {
                Content::Line(line) => line,
                Content::NotReadable => {
                    calendar.faults.lines += 1;
                    continue;
                }
                Content::TooLong => {
                    calendar.faults.long_lines += 1;
                    continue;
                }
            };
            match (line.name.as_str(), line.names("VEVENT")) {
                ("BEGIN", true) => {
                    calendar.faults.events += usize::from(open.is_some());
                    open = Some((Opened::default(), reader.start));
                }
                ("END", true) => {
                    if let Some((event, start)) = open.take()
                        && let Some(event) = event.close(&mut calendar.faults)
                    {
                        take(&calendar, event, start..reader.end);
                    }
                }
                _ => {
                    if let Some((event, _)) = &mut open {
                        event.read(&line, &calendar.zones, &mut calendar.faults);
                    }
                }
            }
        }
        calendar.faults.events += usize::from(open.is_some());
        calendar.faults.replaced = reader.replaced;
        Ok(calendar)
    }

    /// The event that stands in these bytes.
    pub(crate) fn event(&self, bytes: &[u8], buffer: &mut Vec<u8>) -> io::Result<Option<Event>> {
        let (mut reader, mut event, mut faults) = (Reader::new(&bytes, buffer), Opened::default(), Faults::default());
        while let Some(content) = reader.next()? {
            if let Content::Line(line) = content
                && !matches!((line.name.as_str(), line.names("VEVENT")), ("BEGIN" | "END", true))
            {
                event.read(&line, &self.zones, &mut faults);
            }
        }
        Ok(event.close(&mut faults))
    }

    /// What holds for all of it. The zones are read first: events may come before them.
    fn head(reader: &mut Reader<'_>, own: &TimeZone) -> io::Result<Self> {
        let mut calendar = Self {
            name: None,
            is_whole: false,
            is_cancelled: false,
            faults: Faults::default(),
            zones: Zones::new(own.clone()),
        };
        let (mut begun, mut ended) = (0, 0);
        let (mut path, mut zone) = (Vec::<String>::new(), ZoneReader::default());
        while let Some(content) = reader.next()? {
            let Content::Line(line) = content else { continue };
            match line.name.as_str() {
                "BEGIN" => begun += usize::from(line.names("VCALENDAR")),
                "END" => ended += usize::from(line.names("VCALENDAR")),
                _ if path.last().is_some_and(|name| name == "VCALENDAR") => calendar.property(&line),
                _ => {}
            }
            nest(&mut path, &line);
            zone.read(&line, &mut calendar.zones);
        }
        calendar.faults.zones += zone.cut;
        calendar.is_whole = begun > 0 && begun == ended;
        Ok(calendar)
    }

    fn property(&mut self, line: &Line) {
        match line.name.as_str() {
            "X-WR-CALNAME" | "NAME" if self.name.is_none() => {
                self.name = Some(line.text().trim().to_owned()).filter(|name| !name.is_empty());
            }
            "METHOD" => self.is_cancelled = line.value.trim().eq_ignore_ascii_case("CANCEL"),
            _ => {}
        }
    }
}

/// Follows a line into a component or out of one; whether it is such a line. `path` is what is open, outermost first.
fn nest(path: &mut Vec<String>, line: &Line) -> bool {
    match line.name.as_str() {
        "BEGIN" if path.len() < DEPTH_MAX => path.push(line.value.trim().to_ascii_uppercase()),
        "BEGIN" => {}
        "END" => {
            let begun = path.iter().rposition(|open| line.names(open));
            path.truncate(begun.unwrap_or(path.len()));
        }
        _ => return false,
    }
    true
}

/// An event that is being read.
#[derive(Debug, Default)]
struct Opened {
    event: Event,
    /// Components within it, such as alarms: their lines are not the event's.
    inside: Vec<String>,
}

impl Opened {
    fn read(&mut self, line: &Line, zones: &Zones, faults: &mut Faults) {
        if !nest(&mut self.inside, line) && self.inside.is_empty() {
            self.event.read(line, zones, faults);
        }
    }

    /// The event, if it has a time.
    fn close(self, faults: &mut Faults) -> Option<Event> {
        let mut event = self.event;
        // Some programs leave it out where a single day of a series is changed.
        event.start = event.start.or_else(|| event.recurrence_id.clone());
        let Some(start) = &event.start else {
            faults.events += 1;
            return None;
        };
        if event.uid.is_empty() {
            // Some programs give events no name. What an event says is the next best.
            let summary = event.summary.as_deref().unwrap_or_default();
            event.uid = format!("without-uid-{:016x}", super::digest(&[summary, &start.identity()]));
        }
        let is_understood = |rule: &Rule| rule.until.as_deref().is_none_or(|until| date_time(until.trim()).is_some());
        let rules = usize::from(event.rule_text.is_some() && !event.rule.as_ref().is_some_and(is_understood));
        faults.rules += rules;
        Some(event)
    }
}

/// Takes the zones out of a file.
#[derive(Debug, Default)]
struct ZoneReader {
    name: Option<String>,
    observances: Vec<Observance>,
    is_inside: bool,
    /// Zones and descriptions that found no room.
    cut: usize,
}

impl ZoneReader {
    fn read(&mut self, line: &Line, zones: &mut Zones) {
        let value = line.value.trim();
        match (line.name.as_str(), value.to_ascii_uppercase().as_str()) {
            ("X-WR-TIMEZONE", _) => zones.set_own(value),
            ("BEGIN", "VTIMEZONE") => (self.name, self.observances, self.is_inside) = (None, Vec::new(), true),
            ("END", "VTIMEZONE") => {
                if let Some(name) = self.name.take() {
                    self.cut += usize::from(!zones.describe(name, &self.observances));
                }
                self.is_inside = false;
            }
            _ if !self.is_inside => {}
            ("BEGIN", "STANDARD" | "DAYLIGHT") if self.observances.len() < OBSERVANCES_MAX => {
                self.observances.push(Observance::default());
            }
            ("BEGIN", "STANDARD" | "DAYLIGHT") => self.cut += 1,
            ("TZID", _) => self.name = Some(value.to_owned()),
            (property, _) => {
                if let Some(observance) = self.observances.last_mut() {
                    self.cut += usize::from(property == "RDATE" && observance.dates.len() >= LIST_MAX);
                    observe(observance, property, value);
                }
            }
        }
    }
}

fn observe(observance: &mut Observance, property: &str, value: &str) {
    match property {
        "DTSTART" => observance.start = date_time(value).map(|(local, _)| local),
        "TZOFFSETFROM" => observance.from = offset(value),
        "TZOFFSETTO" => observance.to = offset(value),
        "RRULE" => observance.rule = Rule::parse(value),
        "RDATE" if observance.dates.len() < LIST_MAX => {
            observance.dates.extend(value.split(',').filter_map(date_time).map(|(local, _)| local));
        }
        _ => {}
    }
}

/// `+0200`, `-053000`.
fn offset(text: &str) -> Option<i32> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    let part = |from: usize| digits.get(from..from + 2)?.parse::<i32>().ok();
    let seconds = part(0)? * 3600 + part(2)? * 60 + part(4).unwrap_or(0);
    (seconds <= 86_400).then_some(sign * seconds)
}

impl Event {
    fn read(&mut self, line: &Line, zones: &Zones, faults: &mut Faults) {
        let text = || Some(line.text()).filter(|text| !text.is_empty());
        match line.name.as_str() {
            "UID" => self.uid = line.text().trim().to_owned(),
            "SUMMARY" => self.summary = text(),
            "DESCRIPTION" => self.description = text(),
            "LOCATION" => self.location = text(),
            "URL" => self.url = text(),
            "STATUS" => self.status = Some(line.value.trim().to_ascii_uppercase()),
            "SEQUENCE" => self.sequence = line.value.trim().parse().unwrap_or(0),
            "CATEGORIES" => extend(&mut self.categories, line.texts(), faults),
            "ORGANIZER" => self.organizer_email = address(&line.value),
            "ATTENDEE" => {
                let attendee = Attendee {
                    email: address(&line.value),
                    name: line.parameter("CN").map(ToOwned::to_owned),
                    status: line.parameter("PARTSTAT").map(str::to_ascii_uppercase),
                };
                extend(&mut self.attendees, [attendee], faults);
            }
            "RRULE" => {
                self.rule = Rule::parse(&line.value);
                self.rule_text = Some(line.value.trim().to_owned());
            }
            "DURATION" => {
                self.duration = duration(line.value.trim());
                faults.times += usize::from(self.duration.is_none());
            }
            _ => self.read_time(line, zones, faults),
        }
    }

    fn read_time(&mut self, line: &Line, zones: &Zones, faults: &mut Faults) {
        let mut when = |value: &str| when(line, value, zones, faults);
        match line.name.as_str() {
            "DTSTART" => {
                self.start = when(&line.value);
                self.zone_name = line.parameter("TZID").map(ToOwned::to_owned);
            }
            "DTEND" => self.end = when(&line.value),
            "RECURRENCE-ID" => {
                self.recurrence_id = when(&line.value);
                self.is_this_and_future =
                    line.parameter("RANGE").is_some_and(|range| range.eq_ignore_ascii_case("THISANDFUTURE"));
            }
            "CREATED" => self.created = when(&line.value),
            "LAST-MODIFIED" => self.modified = when(&line.value),
            // A period begins with its time; how long that one lasts is the event's.
            "RDATE" => {
                let starts = line.value.split(',').map(|value| value.split('/').next().unwrap_or_default());
                let dates = starts.filter_map(&mut when).collect::<Vec<_>>();
                extend(&mut self.dates, dates, faults);
            }
            "EXDATE" => {
                let dates = line.value.split(',').filter_map(when).collect::<Vec<_>>();
                extend(&mut self.exceptions, dates, faults);
            }
            _ => {}
        }
    }

    /// How long it lasts: by its end, by its duration, or not at all; a day, if it is one.
    pub(crate) fn length(&self) -> Length {
        let Some(start) = &self.start else { return Length::Seconds(0) };
        if start.is_date {
            let days = self
                .end
                .as_ref()
                .map(|end| super::rule::day_number(end.local.date()) - super::rule::day_number(start.local.date()));
            let days = days.or_else(|| self.duration.map(|duration| duration.as_hours().div_euclid(24)));
            return Length::Days(days.unwrap_or(1).max(1));
        }
        let between = || Some(self.end.as_ref()?.instant()?.as_second() - start.instant()?.as_second());
        Length::Seconds(between().or_else(|| self.duration.map(|duration| duration.as_secs())).unwrap_or(0).max(0))
    }

    /// Whether it does not take place.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.status.as_deref() == Some("CANCELLED")
    }
}

/// How long an event lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    Days(i64),
    Seconds(i64),
}

impl When {
    pub(crate) fn instant(&self) -> Option<Timestamp> {
        self.zone.instant(self.local)
    }

    /// As records write it: a day, or a time with its distance from UTC.
    pub(crate) fn text(&self) -> String {
        match self.instant() {
            Some(instant) if !self.is_date => instant.display_with_offset(self.zone.offset(instant)).to_string(),
            _ => self.local.date().to_string(),
        }
    }

    /// The same for the same point, whatever the zone it was written in.
    pub(crate) fn identity(&self) -> String {
        match self.instant() {
            Some(instant) if !self.is_date => instant.to_string(),
            _ => self.local.date().to_string(),
        }
    }
}

/// Puts into a list what there is room for, and counts the rest.
fn extend<T>(list: &mut Vec<T>, more: impl IntoIterator<Item = T>, faults: &mut Faults) {
    for one in more {
        if list.len() < LIST_MAX {
            list.push(one);
        } else {
            faults.lists += 1;
        }
    }
}

fn when(line: &Line, value: &str, zones: &Zones, faults: &mut Faults) -> Option<When> {
    let Some((local, form)) = date_time(value.trim()) else {
        faults.times += usize::from(!value.trim().is_empty());
        return None;
    };
    let is_date = form == Form::Date;
    let zone = match (form, line.parameter("TZID")) {
        (Form::Utc, _) => Zone::UTC,
        (Form::Local, Some(name)) => {
            let (zone, is_known) = zones.find(name);
            faults.zones += usize::from(!is_known);
            zone
        }
        (Form::Date | Form::Local, _) => zones.own(),
    };
    Some(When { local, zone, is_date })
}

/// How a point in time is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Date,
    Local,
    Utc,
}

/// `20240131`, `20240131T180500` or `20240131T180500Z`.
pub(crate) fn date_time(text: &str) -> Option<(DateTime, Form)> {
    let text = text.trim();
    let digits = |text: &str, from: usize, to: usize| {
        text.get(from..to).filter(|part| part.bytes().all(|byte| byte.is_ascii_digit()))?.parse::<i16>().ok()
    };
    let date = Date::new(digits(text, 0, 4)?, digits(text, 4, 6)? as i8, digits(text, 6, 8)? as i8).ok()?;
    let Some(clock) = text[8..].strip_prefix(['T', 't']) else {
        return text[8..].is_empty().then_some((date.at(0, 0, 0, 0), Form::Date));
    };
    let (clock, form) = clock.strip_suffix(['Z', 'z']).map_or((clock, Form::Local), |clock| (clock, Form::Utc));
    let (hour, minute, second) = (digits(clock, 0, 2)?, digits(clock, 2, 4)?, digits(clock, 4, 6).unwrap_or(0));
    // A leap second has no place on a clock of 60.
    let time = DateTime::new(date.year(), date.month(), date.day(), hour as i8, minute as i8, second.min(59) as i8, 0);
    time.ok().map(|time| (time, form))
}

/// `PT1H30M`, `P1DT12H`, `P2W`, `-PT15M`.
fn duration(text: &str) -> Option<SignedDuration> {
    static PARSER: SpanParser = SpanParser::new();
    PARSER.parse_span(text).ok()?.to_duration(SpanRelativeTo::days_are_24_hours()).ok()
}

/// `mailto:someone@example.test`.
fn address(value: &str) -> Option<String> {
    let value = value.trim();
    let email =
        if value.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("mailto:")) { &value[7..] } else { value };
    Some(email.to_owned()).filter(|email| !email.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_those_of_the_standard() {
        for (text, seconds) in
            [("PT1H30M", 5_400), ("P15DT5H0M20S", 1_314_020), ("P7W", 4_233_600), ("-PT15M", -900), ("+P1D", 86_400)]
        {
            assert_eq!(duration(text), Some(SignedDuration::from_secs(seconds)), "{text}");
        }
        for text in ["", "P", "PT", "1H", "P1M", "PT5", "PTH", "P99999999999999999999D"] {
            assert_eq!(duration(text), None, "{text}");
        }
    }
}
