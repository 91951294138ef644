//! What a run does with a folder of exports: reads those that are new or changed, message after message.
//!
//! An export is a snapshot, and the next one of the same chat has everything again. So a message's key is made of what
//! it says and when, and what was sent already is known by it. Of a text that only grew, what lies before is not even
//! sent again. An export that is removed from the folder takes nothing away: it was never the chat itself.

use super::export::{self, Export, Loaded};
use super::parse::{Message, Messages, Sent};
use super::stamps::DateOrder;
use super::words::Body;
use crate::digest::hash;
use crate::files::{
    Failed, FilePath, Found, Lines, Listing, Mark, Marks, Opened, Place, Root, Spot, Trouble, Troubles, scope_word,
    time_zone,
};
use crate::record::record;
use gleaner_sdk::protocol::RecoveryAction;
use gleaner_sdk::{Collect, Connector, Cursor, Emitted, Emitter, Left, SliceEnd, Stop};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

const STREAMS: [&str; 3] = ["attachments", "chats", "messages"];
const FOLDER: &str = "WHATSAPP_EXPORT_DIR";
const ZONE: &str = "WHATSAPP_TIME_ZONE";
/// How much text a slice has: some thousand messages.
const SLICE_BYTES: u64 = 256 * 1024;
/// A slice has at least this many times what its cursor takes.
const CURSOR_SHARE: u64 = 16;
/// What an export counts for besides its text: it has to be opened.
const EXPORT_COST: u64 = 4096;

const ARCHIVE_NOT_READABLE: Trouble = Trouble::new("archive_not_readable", "the archive cannot be read");
const NOT_UNDERSTOOD: Trouble =
    Trouble::new("chat_not_understood", "no line of the chat begins with a date that is known, so it was left out");
const SEVERAL_CHATS: Trouble = Trouble::new(
    "several_chats",
    "the archive has several chats, and only one of them was read; unpack it, and put the folder in its place",
);
const MESSAGE_TOO_LONG: Trouble =
    Trouble::new(Trouble::LINE_TOO_LONG.reason, "a message is longer than 16 MiB and was left out");
const LINES_BEFORE: Trouble =
    Trouble::new("lines_before_first_message", "lines before the first message belong to none and were left out");
const MANY_PARTICIPANTS: Trouble =
    Trouble::new("too_many_participants", "the chat has more than 20,000 senders; not all are listed");

#[derive(Debug)]
pub(crate) struct WhatsApp;

impl Connector for WhatsApp {
    fn collect(&self, run: &mut Collect<'_>) -> Result<(), Stop> {
        let Some(place) = Place::set(FOLDER)? else {
            let what = format!(
                "WhatsApp has no place of its own for exports; put them into a folder and set {FOLDER} (or `--set export_dir=`) to it"
            );
            return Err(Stop::for_good(what, RecoveryAction::ManualActionRequired));
        };
        let Some(carrier) = STREAMS.into_iter().find(|stream| run.scope(stream).is_some()) else { return Ok(()) };
        // Exports have no zone. They were written where the phone was; the best guess is where this machine is.
        let zone = time_zone(ZONE)?;
        let root = place.open()?;
        let listing = root.walk(|_| true).map_err(|error| place.fault(&error))?;
        // Another zone makes other times of the same exports.
        let scope = format!("{} {}", scope_word(run, &STREAMS), zone.iana_name().unwrap_or("local"));
        let marks = Marks::of_cursor(run.cursor(carrier), &scope);
        // Parts of a chat that cannot be read are messages.
        let lost = if run.scope("messages").is_some() { "messages" } else { carrier };
        let troubles = Troubles::take(run, lost, &STREAMS)?;
        let mut work = Work::new(&root, zone, marks, listing, troubles);
        work.listing.tell(&root, is_export, &mut work.troubles, run.emitter())?;
        let left = run.slices(carrier, |emitter| {
            let is_last = work.slice(emitter)?;
            // The cursor of one stream covers all; the others say that theirs is up to it, so that what another export
            // says of the same message comes after a cursor.
            for other in STREAMS.into_iter().filter(|stream| *stream != carrier) {
                emitter.slice(other, &Cursor::from_iter([("as_far_as".to_owned(), carrier.into())]))?;
            }
            let cursor = work.marks.to_cursor(&scope);
            Ok(if is_last { SliceEnd::Last(cursor) } else { SliceEnd::Then(cursor) })
        })?;
        if left == Left::Finished {
            STREAMS.iter().for_each(|stream| run.finished(stream));
        }
        Ok(())
    }
}

struct Work<'w> {
    root: &'w Root,
    zone: TimeZone,
    marks: Marks,
    troubles: Troubles,
    /// Exports that are new or changed, the first last.
    exports: Vec<Found>,
    /// Sizes of the other files: what was sent may lie beside its text.
    files: BTreeMap<String, u64>,
    /// What else the walk found.
    listing: Listing,
    /// Every export that was found, for gaps of those that are not there any more.
    paths: BTreeSet<FilePath>,
    current: Option<Current>,
    buffer: Vec<u8>,
    /// Texts and archives that are no exports.
    others: u64,
}

/// An export that is being sent.
struct Current {
    path: FilePath,
    opened: Opened,
    loaded: Loaded,
    chat_id: String,
    /// Its chat was sent.
    is_told: bool,
    messages: Messages,
    /// How far the text was read.
    offset: u64,
    /// Messages that begin before this byte were sent by an earlier run.
    from: u64,
    /// Something is missing for which there was no room for a gap of its own: the export is read again by the next run.
    is_unmarked: bool,
}

impl<'w> Work<'w> {
    fn new(root: &'w Root, zone: TimeZone, marks: Marks, mut listing: Listing, troubles: Troubles) -> Self {
        let found = std::mem::take(&mut listing.files);
        let (mut exports, others): (Vec<_>, Vec<_>) = found.into_iter().partition(|found| is_export(&found.path));
        let paths = exports.iter().map(|found| found.path.clone()).collect();
        exports.retain(|found| !marks.is_same(found) || troubles.concern(&found.path));
        // What nobody wrote to is read again where something in it was missing, after everything else.
        exports.sort_by(|one, other| {
            marks.is_same(other).cmp(&marks.is_same(one)).then_with(|| other.path.cmp(&one.path))
        });
        let files = others.into_iter().map(|found| (found.path.text(), found.stamp.size)).collect();
        let (current, buffer) = (None, Vec::new());
        Self { root, zone, marks, troubles, exports, files, listing, paths, current, buffer, others: 0 }
    }

    /// Sends one slice; whether it was the last.
    fn slice(&mut self, emitter: &mut Emitter<'_>) -> Result<bool, Stop> {
        let budget = SLICE_BYTES.max(self.marks.bytes as u64 * CURSOR_SHARE);
        let (mut spent, mut chats) = (0, BTreeSet::new());
        while spent < budget {
            let Some(mut current) = self.next_export(emitter)? else {
                self.finish(emitter)?;
                return Ok(true);
            };
            // Another export of a chat may say something else about a message. Between two cursors a key has one content.
            if !chats.insert(current.chat_id.clone()) {
                self.current = Some(current);
                return Ok(false);
            }
            if !current.is_told {
                if self.send_chat(&current, emitter)? == Emitted::Rejected {
                    let spot = Spot::file(&current.path);
                    current.is_unmarked |= !self.troubles.tell(emitter, Trouble::REJECTED, &spot)?;
                }
                current.is_told = true;
            }
            spent += EXPORT_COST;
            match self.send(&mut current, budget, &mut spent, emitter) {
                Ok(is_whole) => {
                    self.leave(&current, is_whole, emitter)?;
                    if is_whole {
                        self.troubles.settle(emitter, &current.path, current.from)?;
                    } else {
                        self.current = Some(current);
                    }
                }
                Err(Failed::File(error)) => self.troubles.unreadable(emitter, &current.path, error.kind())?,
                Err(Failed::Stop(stop)) => return Err(stop),
            }
        }
        let message =
            format!("{} exports are still to be read", self.exports.len() + usize::from(self.current.is_some()));
        emitter.say(message)?;
        Ok(false)
    }

    /// The export to go on with.
    fn next_export(&mut self, emitter: &mut Emitter<'_>) -> Result<Option<Current>, Stop> {
        if let Some(current) = self.current.take() {
            return Ok(Some(current));
        }
        while let Some(found) = self.exports.pop() {
            let path = found.path;
            let opened = match self.root.open_file(&path) {
                Ok(opened) => opened,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => {
                    self.troubles.unreadable(emitter, &path, error.kind())?;
                    continue;
                }
            };
            let sent = self.marks.get(&path);
            // Where something was missing, all of it is read again.
            let sent = sent.filter(|mark| !(mark.is_finished() && self.troubles.concern(&path)));
            let sent = sent.and_then(|mark| Sent::parse(&mark.note));
            match export::load(&path, &opened, sent, &mut self.buffer) {
                Ok(Export::Chat(loaded)) => return self.begin(path, opened, *loaded, sent, emitter).map(Some),
                Ok(other) => self.leave_out(&path, &opened, &other, emitter)?,
                Err(error) => self.troubles.unreadable(emitter, &path, error.kind())?,
            }
        }
        Ok(None)
    }

    fn begin(
        &mut self,
        path: FilePath,
        opened: Opened,
        loaded: Loaded,
        sent: Option<Sent>,
        emitter: &mut Emitter<'_>,
    ) -> Result<Current, Stop> {
        let outline = &loaded.outline;
        let told = [
            (outline.lines_replaced + loaded.letters_replaced, Trouble::WRONG_ENCODING),
            (outline.lines_before, LINES_BEFORE),
            (u64::from(outline.participants_are_cut), MANY_PARTICIPANTS),
            (u64::from(loaded.has_others), SEVERAL_CHATS),
        ];
        let (spot, mut is_unmarked) = (Spot::file(&path), false);
        for (count, trouble) in told {
            is_unmarked |= !self.troubles.tell_times(emitter, trouble, &spot, count)?;
        }
        let from = sent.filter(|_| outline.goes_on).map_or(0, |sent| sent.byte);
        let (chat_id, messages) = (key(&["chat", &loaded.name]), Messages::new(outline));
        Ok(Current { path, opened, loaded, chat_id, is_told: false, messages, offset: 0, from, is_unmarked })
    }

    /// Sends messages; whether it was the last.
    fn send(
        &mut self,
        current: &mut Current,
        budget: u64,
        spent: &mut u64,
        emitter: &mut Emitter<'_>,
    ) -> Result<bool, Failed> {
        let mut buffer = std::mem::take(&mut self.buffer);
        // The same open file, so that the lines borrow nothing of what is sent.
        let text = current.loaded.text.try_clone()?;
        let mut lines = Lines::new(&text, current.offset, &mut buffer);
        let is_last = loop {
            let Some(message) = current.messages.next(&mut lines)? else { break true };
            if message.start < current.from {
                continue;
            }
            *spent += current.messages.next_at.byte - message.start;
            self.send_message(current, message, emitter)?;
            if *spent >= budget {
                break false;
            }
        };
        current.offset = lines.offset();
        self.buffer = buffer;
        Ok(is_last)
    }

    fn send_message(&mut self, current: &mut Current, message: Message, emitter: &mut Emitter<'_>) -> Result<(), Stop> {
        let (spot, rejected) = (Spot::line(&current.path, message.start), emitter.counts().rejected);
        let is_cut = message.is_cut;
        if !is_cut {
            self.send_records(current, message, emitter)?;
        }
        let trouble = if is_cut {
            MESSAGE_TOO_LONG
        } else if emitter.counts().rejected > rejected {
            Trouble::REJECTED
        } else {
            return Ok(());
        };
        current.is_unmarked |= !self.troubles.tell(emitter, trouble, &spot)?;
        Ok(())
    }

    fn send_records(&self, current: &Current, message: Message, emitter: &mut Emitter<'_>) -> Result<(), Stop> {
        let id = message_key(&current.chat_id, &message);
        let sent_at = message.time.map(|time| self.instant(time));
        let (kind, text, name) = match message.body {
            Body::Text(text) => ("message", Some(text), None),
            Body::Media { name, caption } => ("media", Some(caption).filter(|text| !text.is_empty()), name),
            Body::Deleted => ("deleted", None, None),
            Body::Notice(text) => ("notice", Some(text), None),
        };
        let (sent_at, local_time) = sent_at.unzip();
        let Current { chat_id, loaded, .. } = current;
        if let Some(name) = &name {
            let attachment_id = key(&["attachment", &id, name]);
            let attachment = record! {
                id: &attachment_id,
                message_id: &id,
                chat_id,
                name,
                bytes: self.size_of(current, name),
                sent_at: &sent_at,
            };
            let _: Emitted = emitter.record("attachments", &attachment_id, &attachment)?;
        }
        let record = record! {
            id: &id,
            chat_id,
            chat_name: &loaded.name,
            sent_at,
            local_time,
            sender: message.sender,
            kind,
            text,
            attachment_name: name,
            is_edited: message.is_edited,
        };
        emitter.record("messages", &id, &record).map(drop)
    }

    /// The instant, and what the phone showed.
    fn instant(&self, local: DateTime) -> (String, String) {
        let instant = self.zone.to_ambiguous_timestamp(local).compatible().unwrap_or_default();
        (instant.display_with_offset(self.zone.to_offset(instant)).to_string(), local.to_string())
    }

    /// How large a file is that is in the archive, or beside the text.
    fn size_of(&self, current: &Current, name: &str) -> Option<u64> {
        match &current.loaded.archived {
            Some(archived) => archived.get(name).copied(),
            None => {
                let beside = current.path.folders().into_iter().chain([name.to_owned()]).collect::<Vec<_>>().join("/");
                self.files.get(&beside).copied()
            }
        }
    }

    fn send_chat(&self, current: &Current, emitter: &mut Emitter<'_>) -> Result<Emitted, Stop> {
        let outline = &current.loaded.outline;
        let instant = |time: Option<DateTime>| time.map(|time| self.instant(time).0);
        let record = record! {
            id: &current.chat_id,
            name: &current.loaded.name,
            participants: &outline.participants,
            first_message_at: instant(outline.first),
            last_message_at: instant(outline.last),
            messages: outline.messages,
            date_order: match outline.order {
                DateOrder::Day => "day_first",
                DateOrder::Month => "month_first",
                DateOrder::Year => "year_first",
            },
            date_order_is_certain: outline.order_is_told,
        };
        emitter.record("chats", &current.chat_id, &record)
    }

    /// An export that is none, or cannot be read. It is looked at again when it changes, and while it has a gap.
    fn leave_out(
        &mut self,
        path: &FilePath,
        opened: &Opened,
        export: &Export,
        emitter: &mut Emitter<'_>,
    ) -> Result<(), Stop> {
        let spot = Spot::file(path);
        let is_told = match export {
            Export::Chat(_) => true,
            Export::NotAChat => {
                self.others += 1;
                true
            }
            Export::NotUnderstood => self.troubles.tell(emitter, NOT_UNDERSTOOD, &spot)?,
            Export::Broken(why) => self.troubles.tell_why(emitter, ARCHIVE_NOT_READABLE, &spot, Some(why))?,
        };
        self.troubles.settle(emitter, path, 0)?;
        if is_told { self.mark(path, opened, true, String::new(), emitter) } else { Ok(()) }
    }

    fn leave(&mut self, current: &Current, is_finished: bool, emitter: &mut Emitter<'_>) -> Result<(), Stop> {
        if current.is_unmarked {
            self.marks.remove(&current.path);
            return Ok(());
        }
        // The last message may go on in a longer export, so it is sent again.
        let sent = if is_finished { current.messages.last_at } else { current.messages.next_at };
        self.mark(&current.path, &current.opened, is_finished, sent.note(), emitter)
    }

    fn mark(
        &mut self,
        path: &FilePath,
        opened: &Opened,
        is_finished: bool,
        note: String,
        emitter: &mut Emitter<'_>,
    ) -> Result<(), Stop> {
        match Mark::new(opened, 0, is_finished, note) {
            Ok(mark) => self.marks.set_or_say(path, mark, emitter),
            Err(error) => self.troubles.unreadable(emitter, path, error.kind()),
        }
    }

    fn finish(&mut self, emitter: &mut Emitter<'_>) -> Result<(), Stop> {
        if self.others > 0 {
            let message = format!("{} texts or archives in the folder are no exported chats", self.others);
            emitter.say(message)?;
        }
        let Self { listing, paths, troubles, .. } = self;
        troubles.close(emitter, |path| !paths.contains(path) && listing.is_gone(path))
    }
}

fn is_export(path: &FilePath) -> bool {
    path.has_extension("txt") || path.has_extension("zip")
}

fn message_key(chat_id: &str, message: &Message) -> String {
    let (kind, text) = message.body.identity();
    let sender = message.sender.as_deref().unwrap_or_default();
    key(&[chat_id, &message.stamp, sender, &kind.to_string(), text, &message.occurrence.to_string()])
}

/// A name made of parts.
fn key(parts: &[&str]) -> String {
    format!("{:032x}", hash(parts).digest128())
}
