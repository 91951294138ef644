//! What takes place when: events of one name, a series taken apart within a window of time.
//!
//! Pure. A series is its rule and its further dates, without its exceptions, and with single days that were changed. All
//! of it is bounded: so many for one series, so many for a calendar, and what was cut off is counted.

use super::calendar::{Event, Length, When};
use super::rule::{Span, date_of, day_number};
use jiff::Timestamp;
use jiff::civil::DateTime;
use std::collections::{BTreeMap, BTreeSet};

/// Occurrences of one series: every day of the window ten times over.
pub(crate) const OF_SERIES_MAX: usize = 10_000;

/// What is looked at of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) from: Timestamp,
    /// Not this one any more.
    pub(crate) to: Timestamp,
}

/// One time at which an event takes place.
#[derive(Clone, Debug)]
pub(crate) struct Occurrence<'c> {
    /// What it is: the series, or the day that was changed.
    pub(crate) event: &'c Event,
    /// When it was to be, which stays its name when it is moved.
    pub(crate) original: When,
    pub(crate) start: When,
    pub(crate) end: Option<When>,
    pub(crate) is_changed: bool,
    pub(crate) is_cancelled: bool,
    pub(crate) is_of_series: bool,
}

/// All of them, and what is wrong with that.
#[derive(Debug, Default)]
pub(crate) struct Occurrences<'c> {
    pub(crate) list: Vec<Occurrence<'c>>,
    /// Series of which there is more than is taken.
    pub(crate) cut: usize,
}

/// Takes events of a calendar apart; at most `most` occurrences. All events of one name are among them.
pub(crate) fn occurrences<'c>(
    events: &'c [Event],
    is_cancelled: bool,
    window: &Window,
    most: usize,
) -> Occurrences<'c> {
    let mut series = BTreeMap::<&str, Series<'c>>::new();
    for event in events {
        series.entry(&event.uid).or_default().add(event);
    }
    let mut found = Occurrences::default();
    for series in series.into_values() {
        let room = most.saturating_sub(found.list.len());
        let (list, is_cut) = series.expand(window, room.min(OF_SERIES_MAX));
        found.list.extend(list);
        found.cut += usize::from(is_cut);
    }
    if is_cancelled {
        found.list.iter_mut().for_each(|occurrence| occurrence.is_cancelled = true);
    }
    found
}

/// An event in place of another, and when that one was to be.
type Change<'c> = (&'c Event, &'c When);

/// Everything of one name.
#[derive(Default)]
struct Series<'c> {
    master: Option<&'c Event>,
    /// Days that were changed, by when they were to be.
    changed: BTreeMap<String, Change<'c>>,
}

impl<'c> Series<'c> {
    /// Of two versions the one with the higher number, or the later one in the file.
    fn add(&mut self, event: &'c Event) {
        let is_newer = |old: &Event| event.sequence >= old.sequence;
        match &event.recurrence_id {
            None if self.master.is_none_or(is_newer) => self.master = Some(event),
            None => {}
            Some(original) => {
                let entry = self.changed.entry(original.identity()).or_insert((event, original));
                if is_newer(entry.0) {
                    *entry = (event, original);
                }
            }
        }
    }

    fn expand(mut self, window: &Window, most: usize) -> (Vec<Occurrence<'c>>, bool) {
        let (mut list, mut is_cut) = (Vec::new(), false);
        let lasting = self.changed.values().filter(|(event, _)| event.is_this_and_future).copied().collect::<Vec<_>>();
        if let Some((master, start)) = self.master.and_then(|master| Some((master, master.start.as_ref()?))) {
            let is_of_series = master.rule.is_some() || !master.dates.is_empty();
            let (times, is_more) =
                if is_of_series { times(master, start, window, most) } else { (vec![start.clone()], false) };
            is_cut = is_more;
            for original in times {
                let (event, shift) = event_at(&lasting, master, &original);
                let moved = shift.map_or(Some(original.clone()), |shift| later(&original, shift));
                let Some(start) = moved else { continue };
                let changed = self.changed.remove(&original.identity());
                let (event, start) = changed.map_or((event, start), |(event, _)| {
                    (event, event.start.clone().unwrap_or_else(|| original.clone()))
                });
                list.push(occurrence(event, original, start, master, is_of_series));
            }
        }
        // Changed days whose series is not here, or lies outside of the window.
        for (event, original) in std::mem::take(&mut self.changed).into_values() {
            let Some(start) = event.start.clone() else { continue };
            let is_inside = start.instant().is_some_and(|at| at >= window.from && at < window.to);
            if self.master.is_none() || is_inside {
                list.push(occurrence(event, original.clone(), start, event, false));
            }
        }
        if list.len() > most {
            list.truncate(most);
            is_cut = true;
        }
        (list, is_cut)
    }
}

/// The event that holds at a time: the series, or a change of this and all later days, with how far it moved them.
fn event_at<'c>(lasting: &[Change<'c>], master: &'c Event, original: &When) -> (&'c Event, Option<i64>) {
    let instant = original.instant();
    let holds = |change: &&Change<'c>| change.1.instant() <= instant;
    let Some((event, from)) = lasting.iter().filter(holds).max_by_key(|(_, from)| from.instant()) else {
        return (master, None);
    };
    let moved = event.start.as_ref().and_then(When::instant).zip(from.instant());
    (event, moved.map(|(to, from)| to.as_second() - from.as_second()))
}

fn occurrence<'c>(event: &'c Event, original: When, start: When, master: &Event, is_of_series: bool) -> Occurrence<'c> {
    // A change that says nothing about the length keeps that of the series.
    let length = if event.end.is_some() || event.duration.is_some() { event.length() } else { master.length() };
    let end = match length {
        Length::Days(days) => date_of(day_number(start.local.date()) + days)
            .map(|day| When { local: day.at(0, 0, 0, 0), ..start.clone() }),
        Length::Seconds(seconds) => later(&start, seconds),
    };
    let is_changed = event.recurrence_id.is_some();
    Occurrence {
        event,
        original,
        is_changed,
        is_cancelled: event.is_cancelled() || master.is_cancelled(),
        end,
        start,
        is_of_series,
    }
}

/// When an event ends, the first time.
pub(crate) fn end_of(event: &Event) -> Option<When> {
    let start = event.start.clone()?;
    occurrence(event, start.clone(), start, event, false).end
}

/// So many seconds later, in the same zone; whole days of a day.
fn later(when: &When, seconds: i64) -> Option<When> {
    if when.is_date {
        let day = date_of(day_number(when.local.date()) + seconds.div_euclid(86_400))?;
        return Some(When { local: day.at(0, 0, 0, 0), ..when.clone() });
    }
    let instant = Timestamp::from_second(when.instant()?.as_second().checked_add(seconds)?).ok()?;
    Some(When { local: when.zone.local(instant), ..when.clone() })
}

/// The times of a series within the window, without its exceptions.
fn times(master: &Event, start: &When, window: &Window, most: usize) -> (Vec<When>, bool) {
    let local = |instant: Timestamp| start.zone.local(instant);
    // A day begins at its midnight, whatever the zone of the window.
    let from = if start.is_date { local(window.from).date().at(0, 0, 0, 0) } else { local(window.from) };
    let to = local(window.to);
    let until = master.rule.as_ref().and_then(|rule| until(rule.until.as_deref()?, start));
    let span = Span { from, to, until, most: most.saturating_add(master.exceptions.len()) };
    let ruled = master.rule.as_ref().map(|rule| rule.times(start.local, &span)).unwrap_or_default();
    let mut is_cut = ruled.is_cut;
    let first = Some(start.local).filter(|first| master.rule.is_none() && *first >= from && *first < to);
    let mut all = BTreeMap::new();
    for time in first.into_iter().chain(ruled.times) {
        let when = When { local: time, ..start.clone() };
        all.insert((when.local, when.identity()), when);
    }
    for when in &master.dates {
        let is_inside = when.instant().is_some_and(|at| at >= window.from && at < window.to);
        if is_inside {
            all.insert((when.local, when.identity()), when.clone());
        }
    }
    let exceptions = master.exceptions.iter().map(When::identity).collect::<BTreeSet<_>>();
    let days =
        master.exceptions.iter().filter(|when| when.is_date).map(|when| when.local.date()).collect::<BTreeSet<_>>();
    let mut times = all
        .into_values()
        .filter(|when| !exceptions.contains(&when.identity()) && !days.contains(&when.local.date()))
        .collect::<Vec<_>>();
    if times.len() > most {
        times.truncate(most);
        is_cut = true;
    }
    (times, is_cut)
}

/// The last time of a rule in the zone of its series: a day is meant as a whole.
fn until(text: &str, start: &When) -> Option<DateTime> {
    let (local, form) = super::calendar::date_time(text)?;
    Some(match form {
        super::calendar::Form::Date => local.date().at(23, 59, 59, 0),
        super::calendar::Form::Local => local,
        super::calendar::Form::Utc if start.is_date => local.date().at(23, 59, 59, 0),
        super::calendar::Form::Utc => start.zone.local(super::zones::Zone::UTC.instant(local)?),
    })
}

#[cfg(test)]
mod tests {
    use super::super::calendar::Calendar;
    use super::*;
    use jiff::tz::TimeZone;

    fn window() -> Window {
        Window { from: "2024-01-01T00:00:00Z".parse().unwrap(), to: "2025-01-01T00:00:00Z".parse().unwrap() }
    }

    /// A calendar, and its events.
    fn read(text: &str, zone: &TimeZone) -> (Calendar, Vec<Event>) {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("f"), text).unwrap();
        let (file, mut events) = (std::fs::File::open(place.path().join("f")).unwrap(), Vec::new());
        let calendar = Calendar::read(&file, zone, &mut Vec::new(), |calendar, event, at| {
            // Each can be read again from its own bytes.
            let bytes = &text.as_bytes()[at.start as usize..at.end as usize];
            assert_eq!(format!("{:?}", calendar.event(bytes, &mut Vec::new()).unwrap().unwrap()), format!("{event:?}"));
            events.push(event);
        });
        (calendar.unwrap(), events)
    }

    fn calendar(events: &str) -> Vec<Event> {
        let text = format!("BEGIN:VCALENDAR\r\n{}END:VCALENDAR\r\n", events.replace('\n', "\r\n"));
        read(&text, &TimeZone::get("Europe/Berlin").unwrap()).1
    }

    /// Starts, with `!` behind what was changed and `x` behind what is cancelled.
    fn starts(events: &str) -> Vec<String> {
        let calendar = calendar(events);
        let found = occurrences(&calendar, false, &window(), 1000);
        let text = |one: &Occurrence<'_>| {
            let marks = [(one.is_changed, "!"), (one.is_cancelled, "x")];
            one.start.text() + &marks.iter().filter(|(is, _)| *is).map(|(_, mark)| *mark).collect::<String>()
        };
        let mut starts = found.list.iter().map(text).collect::<Vec<_>>();
        starts.sort();
        starts
    }

    #[test]
    fn a_series_stays_at_its_local_time_when_the_clocks_change() {
        let event = "BEGIN:VEVENT\nUID:a\nDTSTART;TZID=Europe/Berlin:20240325T090000\nDTEND;TZID=Europe/Berlin:20240325T100000\nRRULE:FREQ=WEEKLY;COUNT=2\nEND:VEVENT\n";
        assert_eq!(starts(event), ["2024-03-25T09:00:00+01:00", "2024-04-01T09:00:00+02:00"]);
        let calendar = calendar(event);
        let ends = occurrences(&calendar, false, &window(), 9)
            .list
            .iter()
            .map(|one| one.end.as_ref().unwrap().text())
            .collect::<Vec<_>>();
        assert_eq!(ends, ["2024-03-25T10:00:00+01:00", "2024-04-01T10:00:00+02:00"]);
    }

    #[test]
    fn exceptions_further_dates_and_changed_days_are_heeded() {
        let found = starts(
            "BEGIN:VEVENT\nUID:a\nSEQUENCE:3\nDTSTART:20240101T090000Z\nRRULE:FREQ=DAILY;COUNT=5\nEXDATE:20240102T090000Z\n\
             RDATE:20240201T100000Z,20240101T090000Z\nEND:VEVENT\n\
             BEGIN:VEVENT\nUID:a\nRECURRENCE-ID:20240103T090000Z\nDTSTART:20240103T150000Z\nEND:VEVENT\n\
             BEGIN:VEVENT\nUID:a\nRECURRENCE-ID:20240104T090000Z\nSTATUS:CANCELLED\nEND:VEVENT\n\
             BEGIN:VEVENT\nUID:b\nRECURRENCE-ID:20240105T090000Z\nDTSTART:20240105T200000Z\nEND:VEVENT\n",
        );
        assert_eq!(
            found,
            [
                "2024-01-01T09:00:00Z",
                "2024-01-03T15:00:00Z!",
                "2024-01-04T09:00:00Z!x",
                "2024-01-05T09:00:00Z",
                "2024-01-05T20:00:00Z!",
                "2024-02-01T10:00:00Z",
            ]
            .map(|text| text.replace('Z', "+00:00"))
        );
    }

    #[test]
    fn a_change_of_this_and_all_later_days_moves_them() {
        let found = starts(
            "BEGIN:VEVENT\nUID:a\nDTSTART:20240101T090000Z\nRRULE:FREQ=DAILY;COUNT=4\nEND:VEVENT\n\
             BEGIN:VEVENT\nUID:a\nRECURRENCE-ID;RANGE=THISANDFUTURE:20240103T090000Z\nDTSTART:20240103T110000Z\nEND:VEVENT\n",
        );
        assert_eq!(
            found,
            [
                "2024-01-01T09:00:00+00:00",
                "2024-01-02T09:00:00+00:00",
                "2024-01-03T11:00:00+00:00!",
                "2024-01-04T11:00:00+00:00!"
            ]
        );
    }

    #[test]
    fn days_are_days_wherever_one_is_and_an_end_in_utc_is_understood() {
        assert_eq!(
            starts(
                "BEGIN:VEVENT\nUID:a\nDTSTART;VALUE=DATE:20240101\nRRULE:FREQ=DAILY;UNTIL=20240103\nEXDATE;VALUE=DATE:20240102\nEND:VEVENT\n"
            ),
            ["2024-01-01", "2024-01-03"]
        );
        // Until 8 o'clock UTC, which is 9 in Berlin: that one still takes place.
        let found = starts(
            "BEGIN:VEVENT\nUID:a\nDTSTART;TZID=Europe/Berlin:20240101T090000\nRRULE:FREQ=DAILY;UNTIL=20240102T080000Z\nEND:VEVENT\n",
        );
        assert_eq!(found, ["2024-01-01T09:00:00+01:00", "2024-01-02T09:00:00+01:00"]);
    }

    #[test]
    fn single_events_are_there_outside_of_the_window_and_series_are_not() {
        let found = starts(
            "BEGIN:VEVENT\nUID:a\nDTSTART:19900101T090000Z\nEND:VEVENT\nBEGIN:VEVENT\nUID:b\nDTSTART:19900101T090000Z\nRRULE:FREQ=YEARLY\nEND:VEVENT\n",
        );
        assert_eq!(found, ["1990-01-01T09:00:00+00:00", "2024-01-01T09:00:00+00:00"]);
    }

    #[test]
    fn a_million_recurrences_are_bounded_and_counted() {
        let calendar = calendar(
            "BEGIN:VEVENT\nUID:a\nDTSTART:20240101T000000Z\nRRULE:FREQ=SECONDLY;COUNT=1000000\nEND:VEVENT\nBEGIN:VEVENT\nUID:b\nDTSTART:20240101T000000Z\nEND:VEVENT\n",
        );
        let found = occurrences(&calendar, false, &window(), 1_000_000);
        assert_eq!((found.list.len(), found.cut), (OF_SERIES_MAX + 1, 1));
        let found = occurrences(&calendar, false, &window(), 5);
        assert_eq!((found.list.len(), found.cut), (5, 2));
    }

    #[test]
    fn a_calendar_that_breaks_off_is_not_whole() {
        let whole = "BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:a\nDTSTART:20240101\nEND:VEVENT\nEND:VCALENDAR\n";
        let read = |text: &str| read(text, &TimeZone::UTC);
        assert!(read(whole).0.is_whole);
        for end in 0..whole.len() - 1 {
            assert!(!read(&whole[..end]).0.is_whole, "{end}");
        }
        let (odd, events) = read(
            "BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:a\nEND:VEVENT\nBEGIN:VEVENT\nUID:b\nDTSTART;TZID=Nowhere:20240101T000000\nRRULE:FREQ=SOMETIMES\nEND:VEVENT\nEND:VCALENDAR\n",
        );
        assert_eq!((events.len(), odd.faults.events, odd.faults.rules, odd.faults.zones), (1, 1, 1, 1));
    }
}
