//! Where calendars come from: files beneath a folder, and the address of a subscription.
//!
//! Both are asked first whether anything changed. An address may be a secret in itself (whoever knows it may read the
//! calendar), so it is in no cursor, no record and no message; its host is.

use super::calendar::Calendar;
use super::digest;
use crate::files::{FilePath, Listing, Place, Root, Trouble, Troubles};
use gleaner_sdk::protocol::{RecoveryAction, SkipResult};
use gleaner_sdk::{Client, Cursor, Emitter, FetchError, FetchErrorKind, Stop};
use jiff::tz::TimeZone;
use serde_json::Value;
use url::Url;

/// The largest calendar that is read. Thirty years of a busy one are some megabytes.
pub(crate) const BYTES_MAX: usize = 32 * 1024 * 1024;

/// A calendar, and under which name its events are known.
#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) calendar: Calendar,
    /// What tells its events from those of other calendars.
    pub(crate) identity: String,
    pub(crate) name: String,
}

/// The files of the folder.
#[derive(Debug)]
pub(crate) struct Folder {
    root: Root,
    listing: Listing,
    /// The same word as long as nobody wrote to any of them.
    pub(crate) word: String,
}

/// What was read, and whether it was everything.
#[derive(Debug, Default)]
pub(crate) struct Read {
    pub(crate) calendars: Vec<Named>,
    /// Something could not be read: what is missing is not deleted.
    pub(crate) is_incomplete: bool,
}

impl Folder {
    pub(crate) fn open(place: &Place) -> Result<Self, Stop> {
        let root = place.open()?;
        let mut listing = root
            .walk(|path| path.has_extension("ics") || path.has_extension("ical"))
            .map_err(|error| place.fault(&error))?;
        listing.files.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        let parts =
            listing.files.iter().map(|found| format!("{}\t{:x}", found.path, found.stamp.sum)).collect::<Vec<_>>();
        let trouble = format!("{} {:?}", listing.is_cut, listing.unreadable);
        Ok(Self { word: format!("{:016x}", digest(&[&parts.join("\n"), &trouble])), root, listing })
    }

    /// Reads every file. What cannot be read is told.
    pub(crate) fn read(
        &self,
        zone: &TimeZone,
        emitter: &mut Emitter<'_>,
        troubles: &mut Troubles,
        read: &mut Read,
    ) -> Result<(), Stop> {
        if self.listing.is_cut {
            read.is_incomplete = true;
            troubles.tell(emitter, Trouble::TooManyFiles, &self.root.path().to_string_lossy(), None)?;
        }
        for (folder, why) in &self.listing.unreadable {
            read.is_incomplete = true;
            troubles.unreadable(emitter, folder, *why)?;
        }
        for found in &self.listing.files {
            let bytes = match self.root.open_file(&found.path).and_then(|opened| opened.read_whole(BYTES_MAX)) {
                Ok(Some(bytes)) => bytes,
                Ok(None) => {
                    read.is_incomplete = true;
                    troubles.tell(emitter, Trouble::FileTooLarge, &found.path.text(), None)?;
                    continue;
                }
                Err(error) => {
                    read.is_incomplete = true;
                    troubles.unreadable(emitter, &found.path, error.kind())?;
                    continue;
                }
            };
            let text = String::from_utf8_lossy(&bytes);
            if matches!(text, std::borrow::Cow::Owned(_)) {
                troubles.tell(emitter, Trouble::WrongEncoding, &found.path.text(), None)?;
            }
            let calendar = Calendar::read(&text, zone);
            let name = calendar.name.clone().unwrap_or_else(|| name_of(&found.path));
            if !check(&calendar, &found.path.text(), emitter)? {
                read.is_incomplete = true;
            }
            read.calendars.push(Named { calendar, identity: name.clone(), name });
        }
        Ok(())
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.listing.files.is_empty()
    }
}

/// The folder of a file, where each event has a file of its own; otherwise the file.
fn name_of(path: &FilePath) -> String {
    path.folders().pop().unwrap_or_else(|| path.stem())
}

/// Tells what a calendar's file says that was not understood; whether it is all there.
fn check(calendar: &Calendar, place: &str, emitter: &mut Emitter<'_>) -> Result<bool, Stop> {
    let faults = calendar.faults;
    let told = [
        (
            usize::from(!calendar.is_whole),
            "calendar_not_whole",
            "the file breaks off, or is no calendar; nothing is taken for deleted",
        ),
        (faults.beyond, "too_many_events", "events are more than are read of one file"),
        (faults.events, "event_without_time", "events have no time and were left out"),
        (faults.lines, "line_not_readable", "lines cannot be read and were left out"),
        (
            faults.rules,
            "rule_not_understood",
            "rules of recurrence are not understood; only the first day of each is known",
        ),
        (faults.zones, "zone_not_known", "times are in a zone that nobody knows, and were taken for the owner's own"),
    ];
    for (count, reason, what) in told.into_iter().filter(|(count, ..)| *count > 0) {
        emitter.skip(skip(reason, format!("{count} × {what}: {place}"), place))?;
    }
    Ok(calendar.is_whole && faults.beyond == 0)
}

pub(crate) fn skip(reason: &str, message: String, resource: &str) -> SkipResult {
    SkipResult {
        stream: Some("events".to_owned()),
        reason: Some(reason.to_owned()),
        message: Some(message),
        resources: vec![resource.to_owned()],
        ..SkipResult::default()
    }
}

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
    Calendar(Box<Named>, Validators),
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

    pub(crate) fn fetch(&self, client: &Client, zone: &TimeZone, emitter: &mut Emitter<'_>) -> Result<Answer, Stop> {
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
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().map_err(|error| self.fault(error.into()))? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > BYTES_MAX {
                let what = format!("it has more than {} MiB", BYTES_MAX >> 20);
                return Err(self.fault(FetchError::unexpected(what)));
            }
        }
        let calendar = Calendar::read(&String::from_utf8_lossy(&bytes), zone);
        // A page that says that the server is being worked on comes with status 200, too.
        if !check(&calendar, &self.host, emitter)? {
            return Err(self.fault(FetchError::unexpected("what it answered is no whole calendar")));
        }
        let name = calendar.name.clone().unwrap_or_else(|| self.host.clone());
        Ok(Answer::Calendar(Box::new(Named { calendar, identity: "subscription".to_owned(), name }), validators))
    }

    /// Why it could not be fetched, without its address.
    fn fault(&self, error: FetchError) -> Stop {
        let what = match (error.http_status(), error.kind()) {
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
