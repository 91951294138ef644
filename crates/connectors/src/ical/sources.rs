//! Where calendars come from: files beneath a folder, and the address of a subscription.
//!
//! Both are asked first whether anything changed. A calendar is never held in memory: what is kept of it is where each of
//! its events stands, and an event is read again when it is needed. An address may be a secret in itself (whoever knows
//! it may read the calendar), so it is in no cursor, no record and no message; its host is.

use super::calendar::{Calendar, Event};
use super::digest;
use crate::digest::hash;
use crate::files::{FilePath, Listing, Place, Root, Spot, Stamp, Trouble, Troubles};
use gleaner_sdk::protocol::RecoveryAction;
use gleaner_sdk::{Client, Cursor, Emitter, FetchError, FetchErrorKind, Stop};
use jiff::tz::TimeZone;
use serde_json::Value;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use url::Url;

/// The largest calendar that is fetched: it lies on the disk while it is read.
const FETCHED_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// The largest event that is held. Its longest line has 16 MiB.
const EVENT_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Events of one name that are held at once: the changed days of a series. Thirty years of a daily one have 11,000.
const SERIES_EVENTS_MAX: usize = 20_000;

/// A calendar, and under which name its events are known.
#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) calendar: Calendar,
    /// What tells its events from those of other calendars.
    pub(crate) identity: String,
    pub(crate) name: String,
    text: Text,
    /// Where its events stand, those of one name together and in their order.
    events: Vec<EventAt>,
}

/// Where the text of a calendar is.
#[derive(Debug)]
enum Text {
    /// A file of the folder, as it was when it was read.
    Beneath(FilePath, Stamp),
    /// Fetched, in a file without a name.
    Fetched(File),
}

/// Where an event stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct EventAt {
    /// Of its name.
    uid: u128,
    from: u64,
    to: u64,
}

/// What was read, and whether it was everything.
#[derive(Debug, Default)]
pub(crate) struct Read {
    pub(crate) calendars: Vec<Named>,
    /// Something could not be read: what is missing is not deleted.
    pub(crate) is_incomplete: bool,
}

/// The events of one name in one calendar.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    pub(crate) calendar: u32,
    first: u32,
    count: u32,
}

impl Read {
    /// All events, by their names.
    pub(crate) fn groups(&self) -> Vec<Group> {
        let mut groups = Vec::new();
        for (calendar, named) in self.calendars.iter().enumerate() {
            let mut first = 0;
            for group in named.events.chunk_by(|one, other| one.uid == other.uid) {
                let [calendar, from, count] = [calendar, first, group.len()].map(|n| u32::try_from(n).unwrap_or(0));
                groups.push(Group { calendar, first: from, count });
                first += group.len();
            }
        }
        groups
    }
}

/// Reads events again, one group after another.
#[derive(Debug, Default)]
pub(crate) struct Rereader {
    open: Option<(u32, File)>,
    bytes: Vec<u8>,
    buffer: Vec<u8>,
}

impl Rereader {
    /// The events of a group; `None` when its file is not any more what it was.
    pub(crate) fn events(&mut self, group: Group, read: &Read, root: Option<&Root>) -> io::Result<Option<Vec<Event>>> {
        let named = &read.calendars[group.calendar as usize];
        if self.open.as_ref().is_none_or(|(calendar, _)| *calendar != group.calendar) {
            let file = match &named.text {
                Text::Fetched(file) => file.try_clone()?,
                Text::Beneath(path, stamp) => {
                    let Some(root) = root else { return Ok(None) };
                    let opened = match root.open_file(path) {
                        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                        opened => opened?,
                    };
                    if opened.stamp != *stamp {
                        return Ok(None);
                    }
                    opened.reader()?
                }
            };
            self.open = Some((group.calendar, file));
        }
        let Some((_, file)) = &self.open else { return Ok(None) };
        let (first, count) = (group.first as usize, group.count as usize);
        let mut events = Vec::with_capacity(count.min(SERIES_EVENTS_MAX));
        for at in named.events[first..first + count].iter().take(SERIES_EVENTS_MAX) {
            self.bytes.resize(usize::try_from(at.to - at.from).unwrap_or(0), 0);
            file.read_exact_at(&mut self.bytes, at.from)?;
            events.extend(named.calendar.event(&self.bytes, &mut self.buffer)?);
        }
        Ok(Some(events))
    }
}

/// The files of the folder.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) root: Root,
    pub(crate) listing: Listing,
    /// The same word as long as nobody wrote to any of them.
    pub(crate) word: String,
}

impl Folder {
    pub(crate) fn open(place: &Place) -> Result<Self, Stop> {
        let root = place.open()?;
        let mut listing = root.walk(is_wanted).map_err(|error| place.fault(&error))?;
        listing.files.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        let parts =
            listing.files.iter().map(|found| format!("{}\t{:x}", found.path, found.stamp.sum)).collect::<Vec<_>>();
        let trouble = format!("{} {:?} {:?}", listing.is_cut, listing.unreadable, listing.too_deep);
        Ok(Self { word: format!("{:016x}", digest(&[&parts.join("\n"), &trouble])), root, listing })
    }

    /// Reads every file. What cannot be read is a gap.
    pub(crate) fn read(
        &self,
        zone: &TimeZone,
        emitter: &mut Emitter<'_>,
        troubles: &mut Troubles,
        read: &mut Read,
    ) -> Result<(), Stop> {
        let listing = &self.listing;
        listing.tell(&self.root, is_wanted, troubles, emitter)?;
        read.is_incomplete |= listing.is_cut || !listing.unreadable.is_empty() || !listing.too_deep.is_empty();
        let mut buffer = Vec::new();
        for found in &listing.files {
            let opened = self.root.open_file(&found.path);
            let scanned = opened.and_then(|opened| Ok((scan(&opened.file, zone, &mut buffer)?, opened.stamp)));
            let ((calendar, events, too_large), stamp) = match scanned {
                Ok(scanned) => scanned,
                Err(error) => {
                    read.is_incomplete = true;
                    troubles.unreadable(emitter, &found.path, error.kind())?;
                    continue;
                }
            };
            read.is_incomplete |= !check(&calendar, too_large, &Spot::file(&found.path), troubles, emitter)?;
            let name = calendar.name.clone().unwrap_or_else(|| name_of(&found.path));
            let text = Text::Beneath(found.path.clone(), stamp);
            read.calendars.push(Named { calendar, identity: name.clone(), name, text, events });
        }
        Ok(())
    }

    /// Closes the gaps of what is readable now, or gone.
    pub(crate) fn settle(&self, troubles: &mut Troubles, emitter: &mut Emitter<'_>) -> Result<(), Stop> {
        for found in &self.listing.files {
            troubles.settle(emitter, &found.path, 0)?;
        }
        let is_there = |path: &FilePath| self.listing.files.binary_search_by(|file| file.path.cmp(path)).is_ok();
        troubles.close(emitter, |path| !is_there(path) && self.listing.is_gone(path))
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.listing.files.is_empty()
    }
}

fn is_wanted(path: &FilePath) -> bool {
    path.has_extension("ics") || path.has_extension("ical")
}

/// Reads a calendar, and notes where its events stand; and how many are too large.
fn scan(file: &File, zone: &TimeZone, buffer: &mut Vec<u8>) -> io::Result<(Calendar, Vec<EventAt>, usize)> {
    let (mut events, mut too_large) = (Vec::new(), 0);
    let calendar = Calendar::read(file, zone, buffer, |_, event, at| {
        if at.end - at.start > EVENT_BYTES_MAX {
            too_large += 1;
        } else {
            events.push(EventAt { uid: hash(&[&event.uid]).digest128(), from: at.start, to: at.end });
        }
    })?;
    events.sort_unstable();
    let groups = events.chunk_by(|one, other| one.uid == other.uid);
    too_large += groups.map(|group| group.len().saturating_sub(SERIES_EVENTS_MAX)).sum::<usize>();
    events.shrink_to_fit();
    Ok((calendar, events, too_large))
}

/// The folder of a file, where each event has a file of its own; otherwise the file.
fn name_of(path: &FilePath) -> String {
    path.folders().pop().unwrap_or_else(|| path.stem())
}

/// Reports what of a calendar's file was not understood; whether it is all there, so that what is missing is deleted.
fn check(
    calendar: &Calendar,
    too_large: usize,
    spot: &Spot,
    troubles: &mut Troubles,
    emitter: &mut Emitter<'_>,
) -> Result<bool, Stop> {
    let faults = calendar.faults;
    let told = [
        (usize::from(!calendar.is_whole), NOT_WHOLE),
        (faults.events, NO_TIME),
        (too_large, TOO_LARGE),
        (faults.long_lines, Trouble::LINE_TOO_LONG),
        (faults.lines, Trouble::NOT_READABLE),
        (faults.replaced, Trouble::WRONG_ENCODING),
        (faults.times, TIME_NOT_READABLE),
        (faults.rules, RULE_NOT_UNDERSTOOD),
        (faults.zones, ZONE_NOT_KNOWN),
        (faults.lists, LIST_TOO_LONG),
    ];
    for (count, trouble) in told {
        troubles.tell_times(emitter, trouble, spot, count as u64)?;
    }
    Ok(calendar.is_whole && faults.events == 0 && faults.long_lines == 0 && too_large == 0)
}

const NOT_WHOLE: Trouble =
    Trouble::new("calendar_not_whole", "the file breaks off, or is no calendar; nothing is taken for deleted");
const NO_TIME: Trouble = Trouble::new("event_without_time", "an event has no time or no end and was left out");
const TOO_LARGE: Trouble = Trouble::new("event_too_large", "an event is larger than is read and was left out");
const TIME_NOT_READABLE: Trouble = Trouble::new("time_not_readable", "a time of an event cannot be read");
const RULE_NOT_UNDERSTOOD: Trouble =
    Trouble::new("rule_not_understood", "a rule of recurrence is not understood; only the first day of it is stored");
const ZONE_NOT_KNOWN: Trouble =
    Trouble::new("zone_not_known", "a time is in an unknown zone and was taken for the owner's own");
const LIST_TOO_LONG: Trouble = Trouble::new(
    "list_too_long",
    "an event has more than 10,000 attendees, dates or exceptions; the rest was left out",
);

/// A subscription, and what its server said last.
#[derive(Debug)]
pub(crate) struct Subscription {
    url: Url,
    host: String,
    known: Validators,
}

/// By what a server recognises what we have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Validators {
    pub(crate) etag: Option<String>,
    pub(crate) last_modified: Option<String>,
}

impl Validators {
    pub(crate) fn of_cursor(cursor: Option<&Cursor>) -> Self {
        let text = |name: &str| cursor?.get(name)?.as_str().map(ToOwned::to_owned);
        Self { etag: text("etag"), last_modified: text("last_modified") }
    }

    pub(crate) fn put_onto(&self, cursor: &mut Cursor) {
        for (name, value) in [("etag", &self.etag), ("last_modified", &self.last_modified)] {
            if let Some(value) = value {
                cursor.insert(name.to_owned(), Value::from(value.as_str()));
            }
        }
    }
}

/// What a server answered.
pub(crate) enum Answer {
    /// It is what we have.
    Same,
    /// With whether all of it could be read.
    Calendar(Box<Named>, Validators, bool),
}

/// A validator that is longer is none: it would be on every cursor.
const VALIDATOR_BYTES_MAX: usize = 512;

impl Subscription {
    /// The address that the owner set. `webcal:` is what browsers hand to programs.
    pub(crate) fn new(text: &str) -> Result<Self, Stop> {
        let needs_owner = |what: &str| {
            let what = format!(
                "ICAL_SUBSCRIPTION_URL {what}; give an address that begins with https://, http:// or webcal://"
            );
            Stop::for_good(what, RecoveryAction::ManualActionRequired)
        };
        let text = text.trim();
        let text = text.strip_prefix("webcal://").map_or_else(|| text.to_owned(), |rest| format!("https://{rest}"));
        let url = Url::parse(&text).map_err(|_| needs_owner("is no address"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(needs_owner("is of no kind that can be fetched"));
        }
        let host = url.host_str().ok_or_else(|| needs_owner("has no host"))?.to_owned();
        Ok(Self { url, host, known: Validators::default() })
    }

    /// Says what we have; for a run that needs the calendar only if it changed.
    pub(crate) fn only_if_changed(&mut self, known: Validators) {
        self.known = known;
    }

    /// A word for which subscription it is, from which nobody gets its address.
    pub(crate) fn word(&self) -> String {
        format!("{:016x}", digest(&["subscription", self.url.as_str()]))
    }

    pub(crate) fn fetch(
        &self,
        client: &Client,
        zone: &TimeZone,
        troubles: &mut Troubles,
        emitter: &mut Emitter<'_>,
    ) -> Result<Answer, Stop> {
        let mut request = client.get(self.url.as_str()).header("accept", "text/calendar, */*;q=0.1");
        if let Some(etag) = &self.known.etag {
            request = request.header("if-none-match", etag);
        }
        if let Some(time) = &self.known.last_modified {
            request = request.header("if-modified-since", time);
        }
        let mut response = request.send().map_err(|error| self.fault(error.into()))?;
        let status = response.status().as_u16();
        if status == 304 {
            return Ok(Answer::Same);
        }
        if status != 200 {
            return Err(self.fault(FetchError::of_status(status)));
        }
        let header = |name: &str| {
            let value = response.headers().get(name)?.to_str().ok()?;
            Some(value.to_owned()).filter(|value| value.len() <= VALIDATOR_BYTES_MAX)
        };
        let validators = Validators { etag: header("etag"), last_modified: header("last-modified") };
        // On the disk without a name: it is gone with the process.
        let (mut file, mut bytes) = (tempfile::tempfile()?, 0);
        while let Some(chunk) = response.chunk().map_err(|error| self.fault(error.into()))? {
            file.write_all(&chunk)?;
            bytes += chunk.len() as u64;
            if bytes > FETCHED_BYTES_MAX {
                let what = format!("it has more than {} MiB", FETCHED_BYTES_MAX >> 20);
                return Err(self.fault(FetchError::unexpected(what)));
            }
        }
        let (calendar, events, too_large) = scan(&file, zone, &mut Vec::new())?;
        // A page that says that the server is being worked on comes with status 200, too.
        if !calendar.is_whole {
            return Err(self.fault(FetchError::unexpected("what it answered is no whole calendar")));
        }
        let is_complete = check(&calendar, too_large, &Spot::other("calendar", &self.host), troubles, emitter)?;
        let name = calendar.name.clone().unwrap_or_else(|| self.host.clone());
        let (identity, text) = ("subscription".to_owned(), Text::Fetched(file));
        let named = Named { calendar, identity, name, text, events };
        Ok(Answer::Calendar(Box::new(named), validators, is_complete))
    }

    /// Why it could not be fetched, without its address.
    fn fault(&self, error: FetchError) -> Stop {
        let what = match (error.http_status, error.kind) {
            (Some(status), _) => format!("its server answered {status}"),
            (None, FetchErrorKind::Other) => error.to_string().replace(self.url.as_str(), &self.host),
            (None, FetchErrorKind::Temporary) => "its server cannot be reached, or did not answer".to_owned(),
            (None, kind) => format!("{kind:?}"),
        };
        let mut stop = Stop::from(error);
        if let Stop::Failed(failure) = &mut stop {
            failure.message =
                format!("the calendar at {} cannot be fetched: {what}; nothing is taken for deleted", self.host);
        }
        stop
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_an_address_and_is_never_repeated() {
        assert_eq!(Subscription::new(" webcal://c.example/private-s3cret/a.ics ").unwrap().url.scheme(), "https");
        for text in ["", "c.example/a.ics", "ftp://c.example/s3cret", "file:///etc/s3cret", "http://"] {
            let Err(Stop::Failed(failure)) = Subscription::new(text) else { panic!("{text}") };
            assert!(!failure.message.contains("s3cret"), "{}", failure.message);
        }
        let subscription = Subscription::new("https://c.example/private-s3cret/a.ics").unwrap();
        let faults = [
            FetchError::of_status(404),
            FetchError::new(FetchErrorKind::Temporary, "https://c.example/private-s3cret/a.ics is lost"),
            FetchError::unexpected("https://c.example/private-s3cret/a.ics is odd"),
        ];
        for fault in faults {
            let Stop::Failed(failure) = subscription.fault(fault) else { panic!("a failure") };
            assert!(
                failure.message.contains("c.example") && !failure.message.contains("s3cret"),
                "{}",
                failure.message
            );
        }
        assert!(!subscription.word().contains("s3cret"));
    }

    #[test]
    fn where_each_event_has_a_file_the_folder_is_the_calendar() {
        assert_eq!(name_of(&FilePath::parse("work.ics").unwrap()), "work");
        assert_eq!(name_of(&FilePath::parse("work/4f2a.ics").unwrap()), "work");
    }
}
