//! What a run does with calendars: compares what they say with what was sent, and sends the difference.
//!
//! All sources together are one set of events. What was sent and is not in it any more was deleted, but only if every
//! source was read as a whole and something is in it: an empty folder or a server in trouble deletes nothing.

use super::calendar::Event;
use super::memory::{ENTRIES_MAX, Entry, Memory, Name};
use super::occurrences::{Occurrence, Window, occurrences};
use super::rule::day_number;
use super::sources::{Answer, Folder, Group, Named, Read, Rereader, Subscription, Validators};
use super::{digest, name};
use crate::files::{Place, Root, Spot, Trouble, Troubles, scope_word, setting, time_zone};
use gleaner_sdk::protocol::RecoveryAction;
use gleaner_sdk::{Client, Collect, Connector, Cursor, Emitted, Emitter, Left, SliceEnd, Stop};
use jiff::tz::TimeZone;
use jiff::{ToSpan, Zoned};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};

const FOLDER: &str = "ICAL_IMPORT_DIR";
const ADDRESS: &str = "ICAL_SUBSCRIPTION_URL";
const ZONE: &str = "ICAL_TIME_ZONE";
/// Months of a series that are taken apart, before and after this one.
const MONTHS_BEFORE: i64 = 12;
const MONTHS_AFTER: i64 = 24;
/// Records of a slice; more where the cursor is long, so that there are at most forty.
const SLICE_RECORDS: usize = 500;
const SLICES_MAX: usize = 40;
/// A subscription may forget what is past. What lies as far back as this, and before everything that it still has, is
/// not taken for deleted.
const FORGOTTEN_AFTER_DAYS: i64 = 30;
/// The form of the cursor.
const VERSION: u64 = 2;
/// The same form, written by versions that left things out without a gap: everything is read again.
const VERSION_WITHOUT_GAPS: u64 = 1;

#[derive(Debug)]
pub(crate) struct ICal;

/// One of the two streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stream {
    Events,
    Occurrences,
}

impl Stream {
    const ALL: [Self; 2] = [Self::Events, Self::Occurrences];

    const fn name(self) -> &'static str {
        match self {
            Self::Events => "events",
            Self::Occurrences => "occurrences",
        }
    }
}

impl Connector for ICal {
    fn collect(&self, run: &mut Collect<'_>) -> Result<(), Stop> {
        let place = Place::set(FOLDER)?;
        let address = setting(ADDRESS).map(|text| text.to_string_lossy().into_owned());
        if place.is_none() && address.is_none() {
            let what = format!(
                "there is no calendar to read: set {FOLDER} (or `--set import_dir=`) to a folder with .ics files, or {ADDRESS} (`--set subscription_url=`) to the address of one"
            );
            return Err(Stop::for_good(what, RecoveryAction::ManualActionRequired));
        }
        let asked = Stream::ALL.into_iter().filter(|stream| run.scope(stream.name()).is_some()).collect::<Vec<_>>();
        let Some(&first) = asked.first() else { return Ok(()) };
        let now = Zoned::now().with_time_zone(TimeZone::UTC);
        let zone = time_zone(ZONE)?;
        let mut sources = Sources {
            folder: place.as_ref().map(Folder::open).transpose()?,
            subscription: address.as_deref().map(Subscription::new).transpose()?,
            client: None,
            troubles: Troubles::take(run, first.name(), &Stream::ALL.map(Stream::name))?,
            zone,
            is_known: false,
            read: None,
            validators: Validators::default(),
        };
        let (window, month) = window(&now)?;
        let inputs = sources.word(&month);
        let mut walks = asked.iter().map(|&stream| Walk::new(stream, &inputs, run)).collect::<Vec<_>>();
        // As long as one stream lacks something, or a gap is open, everything is read.
        let is_known = walks.iter().all(|walk| walk.was_finished) && !sources.troubles.has_served();
        sources.is_known = is_known;
        if sources.subscription.is_some() {
            sources.client = Some(run.client()?);
        }
        if let Some(subscription) = &mut sources.subscription {
            // Only if nothing else changed is it enough to hear that this one did not.
            let known = Validators::of_cursor(run.cursor(first.name()));
            subscription.only_if_changed(if is_known { known.clone() } else { Validators::default() });
            sources.validators = known;
        }
        let mut is_finished = true;
        for walk in &mut walks {
            walk.today = day_number(now.date());
            let left = run.slices(walk.stream.name(), |emitter| walk.slice(emitter, &mut sources, &window))?;
            is_finished &= left == Left::Finished;
        }
        // Only a run that read everything knows that something is not missing any more.
        if is_finished { sources.settle(run.emitter()) } else { Ok(()) }
    }
}

/// What is taken apart of a series, in whole months, so that it stays the same for some weeks; and the month.
fn window(now: &Zoned) -> Result<(Window, String), Stop> {
    let month = now.first_of_month().and_then(|first| first.start_of_day());
    let window = month.and_then(|month| {
        let (from, to) = (month.checked_sub(MONTHS_BEFORE.months())?, month.checked_add(MONTHS_AFTER.months())?);
        Ok((Window { from: from.timestamp(), to: to.timestamp() }, month.strftime("%Y-%m").to_string()))
    });
    window.map_err(|fault| Stop::failed(format!("the clock of this machine is not usable: {fault}")))
}

/// Where calendars come from, read once for all streams.
struct Sources {
    folder: Option<Folder>,
    subscription: Option<Subscription>,
    client: Option<Client>,
    troubles: Troubles,
    zone: TimeZone,
    /// The last run sent everything of every stream, and nothing that can be seen from outside changed since.
    is_known: bool,
    read: Option<Option<Read>>,
    /// What the server said of what it answered.
    validators: Validators,
}

impl Sources {
    /// One word for everything that can be known without reading.
    fn word(&self, month: &str) -> String {
        let folder = self.folder.as_ref().map_or("", |folder| &folder.word);
        let subscription = self.subscription.as_ref().map_or_else(String::new, Subscription::word);
        let zone = self.zone.iana_name().unwrap_or("local");
        format!("{:016x}", digest(&[folder, &subscription, zone, month]))
    }

    /// Reads everything, once; whether it is more than what we have already.
    fn read(&mut self, emitter: &mut Emitter<'_>) -> Result<bool, Stop> {
        if self.read.is_none() {
            self.read = Some(self.read_all(emitter)?);
        }
        Ok(matches!(self.read, Some(Some(_))))
    }

    fn settle(&mut self, emitter: &mut Emitter<'_>) -> Result<(), Stop> {
        match &self.folder {
            Some(folder) => folder.settle(&mut self.troubles, emitter),
            None => self.troubles.close(emitter, |_| true),
        }
    }

    fn read_all(&mut self, emitter: &mut Emitter<'_>) -> Result<Option<Read>, Stop> {
        let mut read = Read::default();
        if let (Some(subscription), Some(client)) = (&self.subscription, &self.client) {
            match subscription.fetch(client, &self.zone, &mut self.troubles, emitter)? {
                Answer::Same => return Ok(None),
                Answer::Calendar(calendar, validators, is_complete) => {
                    read.calendars.push(*calendar);
                    read.is_incomplete |= !is_complete;
                    self.validators = validators;
                }
            }
        } else if self.is_known {
            return Ok(None);
        }
        if let Some(folder) = &self.folder {
            folder.read(&self.zone, emitter, &mut self.troubles, &mut read)?;
            if folder.is_empty() && self.subscription.is_none() {
                let message = "there is no .ics file in the folder; nothing is taken for deleted".to_owned();
                emitter.say(message)?;
            }
        }
        Ok(Some(read))
    }
}

/// What is to be said about one record.
struct Item {
    name: Name,
    entry: Entry,
    /// `None` of one that was cancelled.
    record: Option<Value>,
}

/// Which of several items of one name counts.
struct Winner {
    entry: Entry,
    /// Its place in the list of groups.
    group: u32,
}

/// What differs from what was sent.
struct Work {
    groups: Vec<Group>,
    /// Of every record that there is.
    winners: HashMap<Name, Winner>,
    /// The groups with something to send, the first last.
    changed: Vec<u32>,
    rereader: Rereader,
}

/// One stream in one run.
struct Walk<'i> {
    stream: Stream,
    inputs: &'i str,
    scope: String,
    was_finished: bool,
    memory: Memory,
    today: i64,
    /// What is still to be sent; `None` before anything was read.
    work: Option<Work>,
    gone: Vec<Name>,
    slice_records: usize,
    /// Something is missing, so the next run looks again.
    is_incomplete: bool,
}

const TOO_MANY_RECORDS: Trouble =
    Trouble::new("too_many_records", "there are more records than a cursor holds; the rest was left out");
const RECURRENCES_CUT_OFF: Trouble = Trouble::new(
    "recurrences_cut_off",
    "a series has more occurrences within the window than are kept; the first of each are stored, the rest is not",
);

impl<'i> Walk<'i> {
    fn new(stream: Stream, inputs: &'i str, run: &Collect<'_>) -> Self {
        let scope = scope_word(run, &[stream.name()]);
        let version = |cursor: &Cursor| cursor.get("version").and_then(Value::as_u64);
        let is_ours = |cursor: &&Cursor| matches!(version(cursor), Some(VERSION | VERSION_WITHOUT_GAPS));
        let cursor = run.cursor(stream.name()).filter(is_ours);
        let has_gaps = cursor.and_then(version) == Some(VERSION);
        let field = |name: &str| cursor.and_then(|cursor| cursor.get(name)?.as_str());
        let is_same_scope = field("scope") == Some(&scope);
        let mut memory = field("memory").and_then(Memory::parse).unwrap_or_default();
        if !is_same_scope {
            memory.send_again();
        }
        Self {
            was_finished: has_gaps && is_same_scope && field("inputs") == Some(inputs),
            memory,
            stream,
            inputs,
            scope,
            today: 0,
            work: None,
            gone: Vec::new(),
            slice_records: SLICE_RECORDS,
            is_incomplete: false,
        }
    }

    fn slice(&mut self, emitter: &mut Emitter<'_>, sources: &mut Sources, window: &Window) -> Result<SliceEnd, Stop> {
        let mut work = match self.work.take() {
            Some(work) => work,
            None if sources.read(emitter)? => self.prepare(sources, window, emitter)?,
            None => return Ok(SliceEnd::Last(self.cursor(true, &sources.validators))),
        };
        let mut sent = 0;
        while sent < self.slice_records
            && let Some(at) = work.changed.pop()
        {
            sent += self.send(at, &mut work, sources, window, emitter)?;
        }
        let left = work.changed.len();
        self.work = Some(work);
        if left > 0 {
            let message = format!("{left} {} or series of them are still to be sent", self.stream.name());
            emitter.say(message)?;
            return Ok(SliceEnd::Then(self.cursor(false, &sources.validators)));
        }
        let rest = self.gone.len().saturating_sub(self.slice_records);
        for name in self.gone.split_off(rest) {
            let _: Emitted = emitter.tombstone(self.stream.name(), hexadecimal(&name))?;
            self.memory.entries.remove(&name);
        }
        let is_last = self.gone.is_empty();
        let cursor = self.cursor(is_last && !self.is_incomplete, &sources.validators);
        Ok(if is_last { SliceEnd::Last(cursor) } else { SliceEnd::Then(cursor) })
    }

    /// Sends what changed of one group; how many records.
    fn send(
        &mut self,
        at: u32,
        work: &mut Work,
        sources: &mut Sources,
        window: &Window,
        emitter: &mut Emitter<'_>,
    ) -> Result<usize, Stop> {
        let (Some(Some(read)), group) = (&sources.read, work.groups[at as usize]) else { return Ok(0) };
        let root = sources.folder.as_ref().map(|folder| &folder.root);
        // A file that somebody writes to meanwhile is read again by the next run.
        let Some(items) = self.items(group, read, root, window, &mut work.rereader)? else { return Ok(0) };
        let mut sent = 0;
        for item in items.list {
            let is_winner = work.winners.get(&item.name).is_some_and(|won| won.group == at && won.entry == item.entry);
            if !is_winner || self.memory.entries.get(&item.name) == Some(&item.entry) {
                continue;
            }
            sent += 1;
            let key = hexadecimal(&item.name);
            let emitted = match &item.record {
                Some(record) => emitter.record(self.stream.name(), &key, record)?,
                None => emitter.tombstone(self.stream.name(), &key)?,
            };
            // What was not sent is tried again by the next run.
            if emitted == Emitted::Rejected {
                sources.troubles.tell(emitter, Trouble::REJECTED, &Spot::other("record", &key))?;
            } else {
                self.memory.entries.insert(item.name, item.entry);
            }
        }
        Ok(sent)
    }

    /// What is to be said about a group; `None` when its file is not any more what it was.
    fn items(
        &mut self,
        group: Group,
        read: &Read,
        root: Option<&Root>,
        window: &Window,
        rereader: &mut Rereader,
    ) -> Result<Option<Items>, Stop> {
        let Some(events) = rereader.events(group, read, root)? else {
            self.is_incomplete = true;
            return Ok(None);
        };
        let named = &read.calendars[group.calendar as usize];
        Ok(Some(match self.stream {
            Stream::Events => event_items(named, &events),
            Stream::Occurrences => occurrence_items(named, &events, window),
        }))
    }

    /// Finds out what differs from what was sent.
    fn prepare(&mut self, sources: &mut Sources, window: &Window, emitter: &mut Emitter<'_>) -> Result<Work, Stop> {
        let mut rereader = Rereader::default();
        let Some(Some(read)) = &sources.read else { return Err(Stop::failed("nothing was read")) };
        let root = sources.folder.as_ref().map(|folder| &folder.root);
        let (groups, is_subscription) = (read.groups(), sources.subscription.is_some());
        self.is_incomplete = read.is_incomplete;
        let mut winners = HashMap::<Name, Winner>::new();
        let (mut beyond, mut cut) = (0, BTreeMap::<&str, usize>::new());
        for (at, group) in groups.iter().enumerate() {
            let Some(items) = self.items(*group, read, root, window, &mut rereader)? else { continue };
            if items.is_cut {
                *cut.entry(&read.calendars[group.calendar as usize].name).or_default() += 1;
            }
            for Item { name, entry, record } in items.list {
                let has_room = winners.len() < ENTRIES_MAX || winners.contains_key(&name);
                beyond += usize::from(!has_room);
                // One that takes place is not hidden by one of the same name that does not.
                if has_room && (record.is_some() || !winners.contains_key(&name)) {
                    winners.insert(name, Winner { entry, group: u32::try_from(at).unwrap_or(u32::MAX) });
                }
            }
        }
        for (name, count) in &cut {
            let (spot, why) = (Spot::other("calendar", name), format!("{count} series"));
            sources.troubles.tell_why(emitter, RECURRENCES_CUT_OFF, &spot, Some(&why))?;
        }
        if beyond > 0 {
            let (spot, why) = (Spot::other("stream", self.stream.name()), format!("{beyond} records"));
            sources.troubles.tell_why(emitter, TOO_MANY_RECORDS, &spot, Some(&why))?;
        }
        // What was left out because there is too much of it was not deleted.
        if !self.is_incomplete && cut.is_empty() && beyond == 0 && !winners.is_empty() {
            self.gone = self.vanished(&winners, window, is_subscription);
        }
        let is_changed = |(name, won): &(&Name, &Winner)| self.memory.entries.get(*name) != Some(&won.entry);
        let mut changed = winners.iter().filter(is_changed).map(|(_, won)| won.group).collect::<Vec<_>>();
        self.slice_records = SLICE_RECORDS.max(winners.len() / SLICES_MAX);
        changed.sort_unstable_by(|one, other| other.cmp(one));
        changed.dedup();
        self.forget(window);
        Ok(Work { groups, winners, changed, rereader })
    }

    fn vanished(&self, present: &HashMap<Name, Winner>, window: &Window, is_subscription: bool) -> Vec<Name> {
        let first = present.values().map(|won| won.entry.day).min().unwrap_or(i64::MAX);
        let from = window.from.as_second().div_euclid(86_400);
        let is_forgotten =
            |entry: &Entry| is_subscription && entry.day < first && entry.day < self.today - FORGOTTEN_AFTER_DAYS;
        let is_outside = |entry: &Entry| entry.is_of_series && entry.day < from + 1;
        let is_gone = |(name, entry): &(&Name, &Entry)| {
            !present.contains_key(*name) && !is_forgotten(entry) && !is_outside(entry)
        };
        // Nothing more is to be said about what was said to be cancelled.
        self.memory
            .entries
            .iter()
            .filter(is_gone)
            .filter(|(_, entry)| !entry.is_cancelled())
            .map(|(name, _)| *name)
            .collect()
    }

    /// The days of a series that the window has left behind stay as they are.
    fn forget(&mut self, window: &Window) {
        let from = window.from.as_second().div_euclid(86_400);
        self.memory.entries.retain(|_, entry| !entry.is_of_series || entry.day >= from - 1);
    }

    fn cursor(&self, is_finished: bool, validators: &Validators) -> Cursor {
        let mut cursor = Cursor::new();
        cursor.insert("version".to_owned(), VERSION.into());
        cursor.insert("scope".to_owned(), self.scope.as_str().into());
        cursor.insert("memory".to_owned(), self.memory.text().into());
        if is_finished {
            cursor.insert("inputs".to_owned(), self.inputs.into());
            validators.put_onto(&mut cursor);
        }
        cursor
    }
}

/// What is to be said about a group of events.
struct Items {
    list: Vec<Item>,
    /// There is more than is taken.
    is_cut: bool,
}

/// Every event as it is written.
fn event_items(named: &Named, events: &[Event]) -> Items {
    let item = |event: &Event| {
        let start = event.start.as_ref()?;
        let original = event.recurrence_id.as_ref().map_or_else(String::new, |when| when.identity());
        let name = name(&["event", &named.identity, &event.uid, &original]);
        let is_cancelled = event.is_cancelled() || named.calendar.is_cancelled;
        let record = (!is_cancelled).then(|| event_record(named, event, &name));
        Some(Item { name, entry: entry(record.as_ref(), day_number(start.local.date()), false), record })
    };
    Items { list: events.iter().filter_map(item).collect(), is_cut: false }
}

/// What takes place when.
fn occurrence_items(named: &Named, events: &[Event], window: &Window) -> Items {
    let found = occurrences(events, named.calendar.is_cancelled, window, ENTRIES_MAX);
    let item = |occurrence: &Occurrence<'_>| {
        let uid = &occurrence.event.uid;
        let name = name(&["occurrence", &named.identity, uid, &occurrence.original.identity()]);
        let record = (!occurrence.is_cancelled).then(|| occurrence_record(named, occurrence, &name));
        let day = day_number(occurrence.start.local.date());
        Item { name, entry: entry(record.as_ref(), day, occurrence.is_of_series), record }
    };
    Items { list: found.list.iter().map(item).collect(), is_cut: found.cut > 0 }
}

fn entry(record: Option<&Value>, day: i64, is_of_series: bool) -> Entry {
    match record {
        Some(record) => Entry::new(digest(&[&record.to_string()]), day, is_of_series),
        None => Entry::cancelled(day, is_of_series),
    }
}

fn event_record(named: &Named, event: &Event, name: &Name) -> Value {
    let start = event.start.as_ref();
    let text = |when: Option<&super::calendar::When>| when.map(|when| when.text());
    json!({
        "id": hexadecimal(name),
        "uid": event.uid,
        "calendar_name": named.name,
        "summary": event.summary,
        "description": event.description,
        "location": event.location,
        "url": event.url,
        "start": text(start),
        "end": text(super::occurrences::end_of(event).as_ref()),
        "all_day": start.is_some_and(|start| start.is_date),
        "time_zone": event.zone_name,
        "organizer_email": event.organizer_email,
        "attendees": event.attendees,
        "status": event.status,
        "categories": event.categories,
        "rrule": event.rule_text,
        "recurrence_id": text(event.recurrence_id.as_ref()),
        "sequence": event.sequence,
        "created_at": text(event.created.as_ref()),
        "modified_at": text(event.modified.as_ref()),
    })
}

fn occurrence_record(named: &Named, occurrence: &Occurrence<'_>, key: &Name) -> Value {
    let event = occurrence.event;
    let uid = &event.uid;
    let original = event.recurrence_id.as_ref().map_or_else(String::new, |when| when.identity());
    json!({
        "id": hexadecimal(key),
        "event_id": hexadecimal(&name(&["event", &named.identity, uid, &original])),
        "uid": uid,
        "calendar_name": named.name,
        "summary": event.summary,
        "location": event.location,
        "start": occurrence.start.text(),
        "end": occurrence.end.as_ref().map(|end| end.text()),
        "all_day": occurrence.start.is_date,
        "status": event.status,
        "is_changed": occurrence.is_changed,
    })
}

fn hexadecimal(name: &Name) -> String {
    name.iter().map(|byte| format!("{byte:02x}")).collect()
}
