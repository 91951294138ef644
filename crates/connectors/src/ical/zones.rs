//! Time zones of a calendar: by their names, or by the rules that the file brings along.
//!
//! A name that the world knows is looked up. Others are made up by programs ("W. Europe Standard Time", "Customized
//! Time Zone") and are described in the file, as changes of the clock with rules of recurrence. What is neither is
//! taken for the owner's own zone, and said to be so. Pure but for the table of names.

use super::rule::{Rule, Span};
use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::{Offset, TimeZone};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Changes of one kind that are worked out: twice as many as there are years.
const CHANGES_MAX: usize = 400;
/// Descriptions of changes in one zone, and zones in one file. Known files have thirty and ten.
pub(crate) const OBSERVANCES_MAX: usize = 200;
pub(crate) const ZONES_MAX: usize = 500;

/// A zone.
#[derive(Clone, Debug)]
pub(crate) enum Zone {
    Named(TimeZone),
    Described(Arc<Described>),
}

/// A zone by its changes, in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Described {
    changes: Vec<Change>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Change {
    /// Seconds since 1970 in UTC.
    at: i64,
    /// Seconds east of Greenwich, before and after.
    from: i32,
    to: i32,
}

/// One STANDARD or DAYLIGHT of a file.
#[derive(Debug, Default)]
pub(crate) struct Observance {
    pub(crate) start: Option<DateTime>,
    pub(crate) from: Option<i32>,
    pub(crate) to: Option<i32>,
    pub(crate) rule: Option<Rule>,
    pub(crate) dates: Vec<DateTime>,
}

/// The zones of one file.
#[derive(Debug)]
pub(crate) struct Zones {
    described: BTreeMap<String, Arc<Described>>,
    /// That of times without one.
    own: TimeZone,
}

impl Zones {
    pub(crate) const fn new(own: TimeZone) -> Self {
        Self { described: BTreeMap::new(), own }
    }

    /// Adds what the file says about a zone, unless the world knows it by its name; `false` when there is no room left.
    pub(crate) fn describe(&mut self, name: String, observances: &[Observance]) -> bool {
        if named(&name).is_some() {
            return true;
        }
        let has_room = self.described.len() < ZONES_MAX;
        if has_room {
            self.described.insert(name, Arc::new(Described::new(observances)));
        }
        has_room
    }

    /// The file says where it comes from.
    pub(crate) fn set_own(&mut self, name: &str) {
        if let Some(zone) = named(name) {
            self.own = zone;
        }
    }

    pub(crate) fn own(&self) -> Zone {
        Zone::Named(self.own.clone())
    }

    /// The zone of this name, and whether it is known.
    pub(crate) fn find(&self, name: &str) -> (Zone, bool) {
        if let Some(zone) = named(name) {
            return (Zone::Named(zone), true);
        }
        match self.described.get(name).filter(|zone| !zone.changes.is_empty()) {
            Some(zone) => (Zone::Described(zone.clone()), true),
            None => (self.own(), false),
        }
    }
}

/// `Europe/Berlin`, also behind the address of whoever wrote it down first: `/example.org/20050126_1/Europe/Berlin`.
fn named(name: &str) -> Option<TimeZone> {
    let name = name.trim_matches(['"', ' ']);
    if matches!(name, "UTC" | "GMT" | "Z" | "Etc/UTC") {
        return Some(TimeZone::UTC);
    }
    let parts = name.trim_start_matches('/').split('/').collect::<Vec<_>>();
    // A single word is a name of its own only as a whole: "Standard" is none.
    let shortest = if parts.len() > 1 { parts.len() - 1 } else { 1 };
    (0..shortest).find_map(|from| TimeZone::get(&parts[from..].join("/")).ok())
}

impl Zone {
    pub(crate) const UTC: Self = Self::Named(TimeZone::UTC);

    /// The instant of a local time. One that is skipped is an hour later, one that comes twice is the first.
    pub(crate) fn instant(&self, local: DateTime) -> Option<Timestamp> {
        match self {
            Self::Named(zone) => zone.to_ambiguous_timestamp(local).compatible().ok(),
            Self::Described(zone) => {
                let seconds = local_seconds(local);
                let is_over = |change: &Change| change.at + i64::from(change.from.max(change.to)) <= seconds;
                Timestamp::from_second(seconds - i64::from(zone.offset_after(is_over))).ok()
            }
        }
    }

    /// How far the clocks are from UTC at an instant.
    pub(crate) fn offset(&self, instant: Timestamp) -> Offset {
        match self {
            Self::Named(zone) => zone.to_offset(instant),
            Self::Described(zone) => {
                let seconds = zone.offset_after(|change| change.at <= instant.as_second());
                Offset::from_seconds(seconds).unwrap_or(Offset::UTC)
            }
        }
    }

    /// The local time of an instant.
    pub(crate) fn local(&self, instant: Timestamp) -> DateTime {
        self.offset(instant).to_datetime(instant)
    }
}

impl Described {
    fn new(observances: &[Observance]) -> Self {
        let epoch = Date::new(1970, 1, 1).unwrap_or_default().at(0, 0, 0, 0);
        let to = Date::new(2150, 1, 1).unwrap_or_default().at(0, 0, 0, 0);
        let mut changes = Vec::new();
        for observance in observances {
            let (Some(start), Some(from), Some(to_offset)) = (observance.start, observance.from, observance.to) else {
                continue;
            };
            let until = observance.rule.as_ref().and_then(|rule| until_of(rule.until.as_deref()?, from));
            let span = Span { from: epoch.max(start), to, until, most: CHANGES_MAX };
            let ruled = observance.rule.as_ref().map(|rule| rule.times(start, &span).times).unwrap_or_default();
            let all = [start].into_iter().chain(ruled).chain(observance.dates.iter().copied().take(CHANGES_MAX));
            changes.extend(all.map(|local| Change { at: local_seconds(local) - i64::from(from), from, to: to_offset }));
        }
        changes.sort_unstable();
        changes.dedup();
        Self { changes }
    }

    /// The offset after the last change that is over, or the one before all of them.
    fn offset_after(&self, is_over: impl Fn(&Change) -> bool) -> i32 {
        let last = self.changes.iter().rev().find(|change| is_over(change)).map(|change| change.to);
        last.or_else(|| self.changes.first().map(|first| first.from)).unwrap_or(0)
    }
}

/// The end of a rule of changes, which is told in UTC, as local time before the change.
fn until_of(text: &str, from: i32) -> Option<DateTime> {
    let local = super::calendar::date_time(text)?.0;
    let is_utc = text.ends_with(['Z', 'z']);
    if !is_utc {
        return Some(local);
    }
    let instant = Timestamp::from_second(local_seconds(local)).ok()?;
    Some(Offset::from_seconds(from).ok()?.to_datetime(instant))
}

/// Seconds since 1970, as if the clock showed UTC.
fn local_seconds(local: DateTime) -> i64 {
    let clock = i64::from(local.hour()) * 3600 + i64::from(local.minute()) * 60 + i64::from(local.second());
    super::rule::day_number(local.date()) * 86_400 + clock
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> DateTime {
        text.parse().unwrap()
    }

    fn observance(start: &str, from: i32, to: i32, rule: &str) -> Observance {
        Observance {
            start: Some(at(start)),
            from: Some(from),
            to: Some(to),
            rule: Rule::parse(rule),
            dates: Vec::new(),
        }
    }

    /// As Outlook describes Central Europe.
    fn outlook() -> Zone {
        Zone::Described(Arc::new(Described::new(&[
            observance("1601-01-01T03:00:00", 7200, 3600, "FREQ=YEARLY;BYDAY=-1SU;BYMONTH=10"),
            observance("1601-01-01T02:00:00", 3600, 7200, "FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3"),
        ])))
    }

    #[test]
    fn a_described_zone_agrees_with_the_known_one_throughout_the_year() {
        let (described, known) = (outlook(), Zone::Named(TimeZone::get("Europe/Berlin").unwrap()));
        for day in super::super::rule::day_number(Date::new(1997, 1, 1).unwrap())
            ..super::super::rule::day_number(Date::new(2040, 1, 1).unwrap())
        {
            for hour in [0, 1, 4, 12, 23] {
                let local = super::super::rule::date_of(day).unwrap().at(hour, 30, 0, 0);
                let (one, other) = (described.instant(local).unwrap(), known.instant(local).unwrap());
                assert_eq!(one, other, "{local}");
                assert_eq!(described.local(one), local);
            }
        }
    }

    #[test]
    fn names_are_found_behind_addresses_and_unknown_ones_are_said_to_be() {
        let zones = Zones::new(TimeZone::UTC);
        for name in [
            "Europe/Berlin",
            "/freeassociation.sourceforge.net/Europe/Berlin",
            "/softwarestudio.org/Olson_20011030_5/Europe/Berlin",
        ] {
            let (zone, is_known) = zones.find(name);
            assert!(is_known, "{name}");
            assert_eq!(zone.instant(at("2024-07-01T12:00:00")).unwrap().to_string(), "2024-07-01T10:00:00Z");
        }
        for name in ["W. Europe Standard Time", "", "Standard", "/", "../../etc/passwd"] {
            assert!(!zones.find(name).1, "{name}");
        }
    }

    #[test]
    fn a_description_without_sense_describes_nothing() {
        let mut zones = Zones::new(TimeZone::UTC);
        assert!(zones.describe("X".into(), &[Observance::default()]));
        assert!(!zones.find("X").1);
        let often = observance("1970-01-01T00:00:00", 0, 3600, "FREQ=SECONDLY");
        assert!(Described::new(&[often]).changes.len() <= CHANGES_MAX + 1);
    }
}
